"""What a seek did to a backlog, in words."""

from typing import Any

import pytest

from pulsarbox.cli.commands.sub import seek_words


def backlog(count: int, unit: str = "messages") -> dict[str, Any]:
    return {"backlog": count, "backlog_unit": unit, "backlog_entries": count}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (backlog(12), backlog(1345), "backlog 12 before, 1,345 now (messages): 1,333 are delivered again"),
        (backlog(5), backlog(0), "backlog 5 before, 0 now (messages): 5 are skipped"),
        (backlog(5, "entries"), backlog(5, "entries"), "backlog 5 before, 5 now (entries): no change"),
        (None, backlog(5), "the backlog is unknown"),
    ],
)
def test_a_seek_is_reported(before: dict[str, Any] | None, after: dict[str, Any], words: str) -> None:
    assert seek_words(before, after) == words
