"""The demo, shortened: all sides agree, and its books detect disagreement."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from examples.demo import __main__ as demo
from examples.demo.archive import PAGE, Archive, compress, packed, wait_until_packed
from examples.demo.books import Account, Books
from examples.demo.box import Box
from examples.demo.readings import Reading, key_of, made, read
from examples.demo.shares import Share
from examples.demo.spark import Outcome, missing
from tests.e2e.clients import connect

ROOT = Path(__file__).parents[3]
PAGES = 170
"""More than a volume of the demo holds."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("wants_spark", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_the_demo_ends_by_itself_and_its_numbers_agree(wants_spark: bool) -> None:
    has_spark = wants_spark and not missing()
    command = [sys.executable, "-m", "examples.demo", "--seconds", "4", *(() if has_spark else ("--no-spark",))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all groups agree\n")
    assert "DIFFER" not in done.stdout and "NO " not in done.stdout
    assert done.stderr.count("kill -9") == (4 if has_spark else 3)
    assert ("without the Spark pipeline" in done.stderr) != has_spark
    assert ("yes  all of its dead letters were replayed" in done.stdout) == has_spark
    given = {
        weight: int(readings.replace(",", ""))
        for weight, readings in re.findall(
            r"^weighted   worker .*: weight (\d), ([\d,]+) of", done.stdout, re.MULTILINE
        )
    }
    assert 1.2 < given["3"] / given["1"] < 9
    kinds = re.findall(r"^hash-tag   (\w+): partition ([\d, ]+)$", done.stdout, re.MULTILINE)
    assert {"cpu", "memory", "processes"} <= {kind for kind, _ in kinds}
    assert all(len(partitions.split(",")) == 1 for _, partitions in kinds)
    assert re.search(
        r"^xz         (nothing is compressed yet|\d+ of the archive's \d+ pages are compressed: )", done.stdout, re.M
    )
    for name in ("hash-tag", "weighted"):
        assert re.search(rf"^{name} +[\d,]*[1-9][\d,]* calls since the restart.*, 0 errors$", done.stdout, re.M)


@pytest.mark.campaign
def test_full_volumes_of_the_archive_are_packed_with_xz_and_read_again(tmp_path: Path) -> None:
    box = Box(tmp_path / "data")
    box.start()
    client = connect(box.url)
    try:
        archive = Archive(client, demo.ARCHIVE)
        for number in range(PAGES * PAGE + 1):
            archive.add(made(number, "net:eth0", "received", 1234567.0 * number))
        archive.close()
        assert archive.pages == PAGES + 1
        assert packed(box, demo.ARCHIVE) is None
        compress(box, demo.ARCHIVE)
        found = wait_until_packed(box, demo.ARCHIVE)
        assert found is not None
        assert (found["codec"], found["wanted"]) == ("xz", "xz")
        # The capacity of a volume depends on the sizes of batches. Full volumes are packed completely.
        volumes = box.ask("GET", "/pulsarbox/v1/top/storage")["rows"]
        assert {each["state"] for each in volumes} == {"packed", "current"}
        assert found["entries"] == sum(each["liveEntries"] for each in volumes if each["state"] == "packed")
        assert 0 < found["entries"] <= PAGES + 1
        assert found["ratio"] > 3
        (xz,) = [each for each in box.ask("GET", "/pulsarbox/v1/plugins") if each["name"] == "xz"]
        assert (xz["kind"], xz["errors"]) == ("compression", 0)
        assert xz["calls"] >= 2 * found["entries"]  # each was decompressed once, for comparison
        box.end(signal.SIGKILL)
        box.start()
        assert archive.read() == set(range(PAGES * PAGE + 1))
        assert box.ask("GET", "/pulsarbox/v1/top/storage")["totals"]["unpackedMisses"] >= found["entries"]
    finally:
        client.close()
        box.end(signal.SIGTERM)


def test_devices_of_a_kind_have_a_key_in_common_and_each_its_own() -> None:
    assert key_of("cpu11") == "{cpu}cpu11"
    assert key_of("net:eth0") == "{net}net:eth0"
    assert key_of("memory") == "{memory}memory"


@pytest.mark.parametrize(("given", "near"), [(75, True), (56, True), (94, True), (54, False), (96, False)])
def test_a_share_is_near_its_weight_or_is_not(given: int, near: bool) -> None:
    assert Share("w", 3, given, 100, 4).is_near == near
    assert not Share("w", 3, 0, 0, 4).is_near


@pytest.mark.parametrize(
    ("rows", "packed_row", "well"),
    [
        ({"hash-tag": (7, 0), "weighted": (9, 0)}, None, True),
        ({"hash-tag": (7, 0), "weighted": (9, 0), "xz": (4, 0)}, {}, True),
        ({"hash-tag": (7, 0), "weighted": (9, 0)}, {}, False),
        ({"hash-tag": (7, 0), "weighted": (0, 0)}, None, False),
        ({"hash-tag": (7, 0)}, None, False),
        ({"hash-tag": (7, 0), "weighted": (9, 1)}, None, False),
    ],
)
def test_whether_the_plugins_are_well(rows: dict[str, tuple[int, int]], packed_row: Any, well: bool) -> None:
    told = [{"name": name, "calls": calls, "errors": errors} for name, (calls, errors) in rows.items()]
    cast: Any = SimpleNamespace(plugins=told, packed=packed_row)
    assert demo.is_well(cast) == well


READINGS = [made(number, f"d{number % 2}", "x", number + 0.1) for number in range(6)]


def books(*readings: Reading) -> Books:
    kept = Books()
    for reading in readings:
        kept.add(reading)
    return kept


def test_books_agree_whatever_came_again_and_in_whatever_order() -> None:
    other = books(*reversed(READINGS), READINGS[3])
    assert books(*READINGS).agrees_with(other)
    assert (other.count, other.again, other.out_of_order) == (6, 1, 4)
    assert books(*READINGS).out_of_order == 0
    assert read(READINGS[1].body) == READINGS[1]


@pytest.mark.parametrize(
    "readings",
    [
        READINGS[:-1],
        [*READINGS, made(6, "d0", "x", 1.0)],
        [*READINGS[:-1], made(5, "d0", "x", 5.1)],
        [*READINGS[:-1], made(5, "d1", "x", 5.2)],
        [*READINGS[:-1], made(5, "d1", "y", 5.1)],
    ],
    ids=["one is missing", "one too many", "another device", "another value", "another text"],
)
def test_books_that_do_not_agree(readings: list[Reading]) -> None:
    assert not books(*READINGS).agrees_with(books(*readings))


def test_what_does_not_hold_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setattr(demo, "play", lambda *_, **__: None)
    monkeypatch.setattr(demo, "show", lambda *_: None)
    for held, code, said in ((False, 1, "the groups DIFFER\n"), (True, 0, "all groups agree\n")):
        monkeypatch.setattr(demo, "verdicts", lambda _, held=held: {"this": True, "that": held})
        assert (demo.main(), capsys.readouterr().out) == (code, said)


def test_what_the_pipeline_made_is_compared_message_by_message() -> None:
    published, found = Books(), Outcome()
    readings = [made(number, device, "percent", 0.1 * number) for number, device in enumerate(("cpu0", "cpu1", "cpu0"))]
    for each in readings:
        published.add(each)
    # The second message was resent because its receipt was lost; the third was a dead letter, and was replayed.
    found.came.update((0, 1, 1, 2, 2))
    found.unchecked.update((2,))
    for each in (readings[1], *readings):
        account = found.rollup.setdefault(each.device, Account())
        account.count, account.total = account.count + 1, account.total + each.value
    assert not found.is_whole(published)
    for each in (*readings, readings[1]):
        assert not found.adds_up() and not found.is_exact()
        found.add_checked(each)
    assert found.is_whole(published)
    found.add_checked(readings[0])  # a message received once is stored twice
    assert not found.is_exact() and found.checked.numbers == published.numbers


def test_the_sums_of_a_rollup_are_compared_with_what_was_checked() -> None:
    found = Outcome()
    for number, device in enumerate(("cpu0", "cpu1", "cpu0")):
        found.add_checked(made(number, device, "percent", 0.1 * number))
    found.rollup = {"cpu0": Account(2, 0.2), "cpu1": Account(1, 0.1)}
    assert found.adds_up()
    found.rollup["cpu0"].count += 1
    assert not found.adds_up()
    found.rollup["cpu0"] = Account(2, 0.201)
    assert not found.adds_up()
    del found.rollup["cpu0"]
    assert not found.adds_up()
