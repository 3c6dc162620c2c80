"""The benchmark of embedded boxes completes. Its figures are not verified."""

import json
from pathlib import Path

import pytest

from benchmarks.embed import KINDS, main


@pytest.mark.campaign
def test_it_measures_shows_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written, disk = tmp_path / "found.json", tmp_path / "disk"
    disk.mkdir()
    main(["--starts", "1", "--boxes", "2", "--disk", str(disk), "--json", str(written)])
    titles = [line["title"] for line in json.loads(written.read_text())]
    assert {f"start, {kind}" for kind in KINDS} < set(titles)
    shown = capsys.readouterr().out
    assert all(title in shown for title in titles)
    assert list(disk.iterdir()) == []
