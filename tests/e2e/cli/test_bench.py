"""The benchmark completes. Its figures are not verified, because they depend on the machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bench import Target, arguments_of, bench, compare
from benchmarks.drivers.raw_driver import count_receipts
from benchmarks.rows import ROWS, Figure
from pulsarbox.protocol.send_receipt import ReceiptEncoder
from tests.e2e.conftest import Running
from tests.tools.campaigns import short
from tests.tools.go import GoError

DRIVEN = ["publish-single", "publish-1000-topics", "roundtrip", "catchup-shared", "catchup-key_shared-4"]
"""Rows of the client drivers."""
RAW = ["many-1", "many-1000", "holes", "join-leave", "scrape", "polled", "compressing-orders"]
RAW += ["txn-10", "txn-inside", "backup-link"]
"""Rows with separate drivers."""


def measured(box: Running, rows: list[str], kind: str, folder: Path, *words: str) -> list[dict[str, Any]]:
    """Return the recorded figures of each target."""
    from benchmarks.bench import driver

    try:
        command = driver(kind)
    except GoError as error:
        if "not installed" not in str(error):
            raise
        pytest.skip(str(error))
    written = folder / "bench.json"
    given = ["--rounds", "1", "--scale", "0.001", "--json", str(written), *words, "--rows", *rows]
    bench(arguments_of(given), Target("url", box.url, web_url=box.web_url), command)
    targets: list[dict[str, Any]] = json.loads(written.read_text())["targets"]
    assert all(sorted(target["values"]) == sorted(rows) for target in targets)
    return targets


@pytest.mark.timeout(700)  # the Go driver may have to be built
@pytest.mark.parametrize(
    ("kind", "rows"), short([("python", ["roundtrip", "catchup-shared"]), ("python", DRIVEN), ("go", DRIVEN)], 1)
)
def test_two_brokers_are_measured_shown_and_written(
    box: Running,
    kind: str,
    rows: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    versus = ["--versus", box.url, "--versus-web-url", box.web_url]
    assert len(measured(box, rows, kind, tmp_path, *versus)) == 2
    shown = capsys.readouterr().out
    assert "one in flight" in shown
    assert "catch-up single, Shared" in shown


@pytest.mark.campaign
def test_rows_with_a_driver_of_their_own_are_measured(box: Running, tmp_path: Path) -> None:
    (target,) = measured(box, RAW, "python", tmp_path)
    assert sorted(target["values"]["many-1000"]) == ["driver_us", "rate", "share"]
    assert {"packing", "bodies", "cold", "cold_plain", "kept"} <= target["values"]["compressing-orders"].keys()


def test_who_is_better_depends_on_the_figure() -> None:
    targets = [Target("a", ""), Target("b", "")]
    assert compare(targets, [200.0, 100.0], Figure("rate", "msg/s", more_is_better=True)) == ["2.00", "a"]
    assert compare(targets, [200.0, 100.0], Figure("p50_ms", "ms")) == ["2.00", "b"]
    assert compare(targets, [None, 100.0], Figure("p50_ms", "ms")) == ["-", ""]


@pytest.mark.parametrize("size", short([1, 2, 3, 7, 64], 2))
def test_receipts_are_counted_however_they_arrive(size: int) -> None:
    # Numbers whose varints resemble the first bytes of a receipt as closely as possible.
    awkward = [0, 7, 8, 58, 0x387, 0x1D07, 0x1D0388, 2**63 + 0x1D0388]
    each = [ReceiptEncoder(a).encode(b, c, d, d) for a in awkward for b in awkward for c in awkward for d in awkward]
    stream, rest, found = b"".join(each), b"", 0
    for at in range(0, len(stream), size):
        count, rest = count_receipts(rest + stream[at : at + size])
        found += count
    assert found == len(each)


def test_a_job_says_what_to_do_and_how_much() -> None:
    for row in ROWS:
        job = row.job_for("pulsar://x", "t", 0.5)
        assert (job["url"], job["topic"], job["messages"]) == ("pulsar://x", "t", row.job["messages"] // 2)
