"""The benchmark runs from start to end; its figures are not looked at, because a machine has moods."""

import json
from pathlib import Path

import pytest

from benchmarks.bench import Target, arguments_of, bench, compare
from benchmarks.raw_driver import count_receipts
from benchmarks.rows import ROWS, Figure
from pulsarbox.protocol.receipts import ReceiptEncoder
from tests.e2e.conftest import Running
from tests.tools.go import GoError


@pytest.mark.timeout(700)  # the Go driver may have to be built
@pytest.mark.parametrize("kind", ["go", "python"])
def test_rows_are_measured_shown_and_written(
    box: Running,
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from benchmarks.bench import driver

    monkeypatch.setenv("COLUMNS", "200")

    try:
        command = driver(kind)
    except GoError as error:
        if "not installed" not in str(error):
            raise
        pytest.skip(str(error))
    words = ["--rounds", "1", "--scale", "0.001", "--json", str(tmp_path / "bench.json"), "--versus", box.url]
    words += ["--versus-web-url", box.web_url]
    words += ["--rows", "publish-single", "publish-1000-topics", "roundtrip", "catchup-shared"]
    words += ["many-1", "many-1000", "catchup-key_shared-4", "holes", "join-leave", "scrape", "polled"]
    bench(arguments_of(words), Target("url", box.url, web_url=box.web_url), command)
    shown = capsys.readouterr().out
    assert "one in flight" in shown
    assert "catch-up single, Shared" in shown
    told = json.loads((tmp_path / "bench.json").read_text())
    assert [sorted(target["values"]) for target in told["targets"]] == [sorted(words[words.index("--rows") + 1 :])] * 2
    assert all(sorted(target["values"]["many-1000"]) == ["driver_us", "rate", "share"] for target in told["targets"])


def test_who_is_better_depends_on_the_figure() -> None:
    targets = [Target("a", ""), Target("b", "")]
    assert compare(targets, [200.0, 100.0], Figure("rate", "msg/s", more_is_better=True)) == ["2.00", "a"]
    assert compare(targets, [200.0, 100.0], Figure("p50_ms", "ms")) == ["2.00", "b"]
    assert compare(targets, [None, 100.0], Figure("p50_ms", "ms")) == ["-", ""]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_receipts_are_counted_however_they_arrive(size: int) -> None:
    # Numbers whose varints look like the first bytes of a receipt, as far as they can.
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
