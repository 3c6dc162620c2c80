"""The benchmark of rates completes. Its accuracy is not verified, because it depends on the machine."""

import json
from pathlib import Path

import pytest

from benchmarks.throttle import Arrivals, Line, main


def test_it_measures_shows_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "found.json"
    main(["--periods", "1", "--rates", "10", "--batches", "100", "--json", str(written)])
    cases = [(line["what"], line["rate"], line["batch"]) for line in json.loads(written.read_text())]
    assert cases == [("dispatch", 10, 100), ("publish", 10, 100)]
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_whole_periods_are_counted_between_bursts() -> None:
    arrivals = Arrivals()
    for period in range(8):
        arrivals.at += [(0.3 + period + i / 1000, 2) for i in range(5)]
    assert arrivals.in_periods(0.0, 5) == 50


def test_one_entry_or_two_percent() -> None:
    assert Line("dispatch", 10, 1000, 10, 0.0, 1000).kept
    assert Line("dispatch", 1000, 1, 10, 0.0, 10_200).kept
    assert not Line("dispatch", 1000, 1, 10, 0.0, 10_201).kept
    assert not Line("dispatch", 10, 1, 10, 0.0, 97).kept
