"""The storage benchmark completes. Its figures are not verified."""

import json
from pathlib import Path

import pytest

from benchmarks import storage_box, storage_delayed
from benchmarks.storage import PARTS, main
from tests.tools.campaigns import chosen

UNITS = {
    "packing": {"MB/s", "s", ""},
    "compressing": {"MB/s", ""},
    "catchup": {"entries/s", "MB/s"},
    "restart": {"MiB", "s"},
    "memory": {"MiB"},
    "delayed": {"MiB", "s", "ms"},
}

SHORT = ("packing", "catchup", "delayed")
"""Parts that `make test` measures."""


@pytest.mark.timeout(700)  # the Go driver may have to be built
@pytest.mark.parametrize("part", chosen(PARTS, lambda part: part in SHORT))
def test_a_part_is_measured_shown_and_written(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_box, "TAILS_MIB", (0, 16))
    monkeypatch.setattr(storage_box, "TAIL_SIZES", (100,))
    for name, small in (("SOON", 100), ("SOON_SECONDS", 1), ("FIRST_AFTER_SECONDS", 2)):
        monkeypatch.setattr(storage_delayed, name, small)
    written, disk = tmp_path / "found.json", tmp_path / "disk"
    disk.mkdir()
    scale = "0.001" if part == "delayed" else "0.01"
    words = ["--only", part, "--scale", scale, "--backlog-gib", "0.1", "--rest-seconds", "0", "--disk", str(disk)]
    main([*words, "--json", str(written)])
    lines = json.loads(written.read_text())["parts"][part]
    assert {line["unit"] for line in lines} == UNITS[part]
    assert lines[0]["figure"] in capsys.readouterr().out
    if part == "restart":
        tails = [line["value"] for line in lines if line["figure"] == "log behind the checkpoint"]
        assert tails[0] == 0
        assert 0.1 < tails[1] < 0.3
    assert list(disk.iterdir()) == []
