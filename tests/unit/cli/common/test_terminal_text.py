"""Sizes and counts in words."""

import pytest

from pulsarbox.cli.common.terminal_text import counted, megabytes


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (102_418, "100 KiB"), (3 << 29, "1.5 GiB"),
     (5 << 40, "5,120 GiB"), (int(99.96 * 1024), "100 KiB")],
)  # fmt: skip
def test_sizes(size: int, text: str) -> None:
    assert megabytes(size) == text


def test_one_thing_is_in_the_singular() -> None:
    assert [counted(n, "backup") for n in (0, 1, 1000)] == ["0 backups", "1 backup", "1,000 backups"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
