"""Inspection of data directories, intact and damaged in each known way."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.catalog import compacted_key, delayed_key, delays_key
from pulsarbox.storage.compacted_ledger import CompactedView, Original, pack_compacted
from pulsarbox.storage.delayed_index import DelayedChunk
from pulsarbox.storage.format import LOG_KEY, PACKED
from pulsarbox.storage.inspection import child
from pulsarbox.storage.inspection.box import Box, name_of, number_of
from pulsarbox.storage.inspection.check import CheckReport, check
from pulsarbox.storage.inspection.dump import records_of
from pulsarbox.storage.inspection.findings import DAMAGE, WARNING, Finding
from pulsarbox.storage.inspection.statistics import statistics
from pulsarbox.storage.record import (
    Entry,
    Position,
    Redelivered,
    SequenceId,
    pack_entry,
    pack_redelivered,
    pack_sequence,
)
from tests import forks
from tests.tools.campaigns import short
from tests.unit.storage.batches import batch_of, body_of
from tests.unit.storage.directories import NEWER, TOPIC, Maker, ledger_row, make_sample, rows_of_the_sample, write
from tests.unit.storage.engine_writer import Writer

ROOT = Path(__file__).parents[4]
CURRENT = "volumes/00000003"
SEALED = "volumes/00000002"


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


@pytest.fixture
def fresh_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start child processes with the real subprocess module."""
    monkeypatch.setattr(child, "subprocess", subprocess)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return make_sample(tmp_path / "data")


@pytest.fixture
def live(sample: Path) -> Iterator[int]:
    """The PID of a process that holds the sample open and writes to it."""
    command = [sys.executable, "-m", "tests.unit.storage.directories", str(sample)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.kill()


def dumped(path: Path, **filters: Any) -> list[dict[str, Any]]:
    complaints: list[str] = []
    found = list(records_of(path, filters, complaints.append))
    assert complaints == []
    return found


def only(report: CheckReport, severity: str) -> Finding:
    (finding,) = [one for one in report.findings if one.severity == severity]
    return finding


def edit(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes of a file, in current pages and in stale copies left by LMDB."""
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def state_of(path: Path) -> dict[str, tuple[int, int]]:
    """Size and modification time of each file, to detect writes."""
    return {str(one): (one.stat().st_size, one.stat().st_mtime_ns) for one in path.rglob("*")}


def test_the_names_of_volumes() -> None:
    for number in (1, 99_999_999, 100_000_000, PACKED + 7):
        assert number_of(name_of(number)) == number
    assert name_of(PACKED + 7) == "packed/00000007"


@pytest.mark.usefixtures("fresh_children")
def test_a_whole_directory_is_clean_and_untouched(sample: Path) -> None:
    before = state_of(sample)
    report = check(sample)
    assert report.findings == []
    assert (report.environments, report.batches, report.entries, report.ledgers) == (4, 8, 19, 3)
    assert check(sample, quick=True).findings == []
    statistics(sample, 10)
    dumped(sample)
    assert state_of(sample) == before


def test_the_numbers(sample: Path) -> None:
    document = statistics(sample, 10)
    assert (document["live"], document["pid"], document["format"]) == (False, None, 3)
    assert (document["checkpoint"], document["last_position"]) == (5, 8)
    assert document["lag"]["batches"] == 3
    assert document["lag"]["bytes"] > 500
    totals = document["totals"]
    assert (totals["topics"], totals["subscriptions"], totals["ledgers"], totals["entries"]) == (2, 1, 3, 18)
    assert totals["bytes"] == 18 * (96 + len(body_of(2, 0)))
    volumes = {volume["name"]: volume for volume in document["volumes"]}
    states = [(name, volume["state"], volume["live_entries"]) for name, volume in volumes.items()]
    assert states == [("packed/00000001", "packed", 4), (SEALED, "sealed", 8), (CURRENT, "current", 6)]
    assert (volumes[CURRENT]["first_position"], volumes[CURRENT]["last_position"]) == (5, 8)
    assert volumes[CURRENT]["ledgers"] == 2
    topics = [(topic["name"], topic["ledgers"], topic["entries"]) for topic in document["topics"]]
    assert topics == [(TOPIC, 2, 14), (NEWER, 1, 4)]
    assert len(statistics(sample, 1)["topics"]) == 1


def test_the_records(sample: Path) -> None:
    entries = dumped(sample, kind="entry")
    assert [(one["ledger"], one["entry"]) for one in entries[:4]] == [(2, 0), (2, 1), (2, 2), (2, 3)]
    assert len(entries) == 19
    assert entries[0]["topic"] == TOPIC
    assert entries[0]["flags"] == ["checksum"]
    assert entries[0]["checksum"] == "ok"
    assert "body" not in entries[0]
    assert {one["kind"] for one in dumped(sample)} == {"entry", "meta", "mark_delete"}
    (mark,) = dumped(sample, kind="mark_delete")
    assert (mark["cursor"], mark["subscription"], mark["topic"], mark["reset"]) == (4, "sub", TOPIC, True)


def with_sequences(path: Path, topic_id: int = 1) -> Path:
    """A directory with a sequence ID row, followed by three records."""
    maker = Maker(path)
    batch = batch_of(6, [(3, 0, 1)])
    for record in (
        SequenceId(1, "meter", 17, 1_700_000_000_000),
        SequenceId(1, "other", 3, 5),
        SequenceId(1, "old", -1, 0, forgotten=True),
    ):
        batch.add(pack_sequence(record))
    maker.volume(1, [batch], sealed=False)
    key = f"sequence/{topic_id:016x}/old"
    maker.meta({**rows_of_the_sample(), key: {"highest": 4, "published": 1}}, mark=5, sealed=0)
    return path


def test_sequence_ids_are_shown_and_counted(tmp_path: Path) -> None:
    path = with_sequences(tmp_path / "data")
    first, *_, last = dumped(path, kind="sequence")
    assert (first["topic"], first["producer"], first["highest"], first["published"]) == (
        TOPIC, "meter", 17, 1_700_000_000_000
    )  # fmt: skip
    assert (last["producer"], last["forgotten"]) == ("old", True)
    assert len(dumped(path, kind="sequence", topic=TOPIC)) == 3
    assert dumped(path, kind="sequence", ledger=3) == []
    rows = [row for row in dumped(path, kind="rows") if row["key"].startswith("sequence/")]
    assert [row["value"] for row in rows] == [{"highest": 4, "published": 1}]
    assert statistics(path, 1)["totals"]["producers"] == 2


def test_sequence_ids_of_no_topic_are_a_warning(tmp_path: Path) -> None:
    good = {one.where for one in check(with_sequences(tmp_path / "good")).findings}
    (found,) = [one for one in check(with_sequences(tmp_path / "bad", 99)).findings if one.where not in good]
    assert (found.severity, found.where) == (WARNING, "topic 99")


def test_entries_of_a_compacted_ledger_say_what_they_were_published_as(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "data")
    batch = batch_of(6, [(3, 0, 1)])
    entry = Entry(2, 17, 0, 1, 1, 9, 0, 1, 1, 0, 0, b"what it was")
    stored = pack_compacted(Original(entry, len(entry.body)), 9, 0)
    batch.add_entry(9, 0, pack_entry(stored), stored.body)
    maker.volume(1, [batch], sealed=False)
    view = CompactedView(9, 1, len(stored.body), Position(2, 18), 1, 9, (2, 17, -1), 1)
    maker.meta({**rows_of_the_sample(), compacted_key(1, 9): view.row}, mark=5, sealed=0)
    (shown,) = dumped(tmp_path / "data", kind="entry", ledger=9)
    assert (shown["published_as"], shown["topic"], shown["checksum"]) == ([2, 17], TOPIC, "ok")
    assert not [one for one in check(tmp_path / "data").findings if one.ledger == 9]


def test_delays_are_shown_and_damaged_ones_are_found(tmp_path: Path) -> None:
    chunk = DelayedChunk()
    chunk.add(2000, 0, 70)
    chunk.add(1000, 1, 80)
    for name, packed in (("good", chunk.pack()), ("bad", chunk.pack()[:-1])):
        maker = Maker(tmp_path / name)
        maker.volume(1, [batch_of(6, [(3, 0, 2)])], sealed=False)
        rows = {delays_key(1, 3): {"0": [2, 1000, 2000, 150]}, delayed_key(1, 3, 0): packed}
        maker.meta({**rows_of_the_sample(), **rows}, mark=5, sealed=0)
    shown = [row for row in dumped(tmp_path / "good", kind="rows") if row["key"].startswith("delay")]
    assert [row.get("due") or row["value"] for row in shown] == [
        [[1000, 1, 80], [2000, 0, 70]],
        {"0": [2, 1000, 2000, 150]},
    ]
    assert not [one for one in check(tmp_path / "good").findings if "delayed" in one.what]
    (found,) = [one for one in check(tmp_path / "bad").findings if "delayed" in one.what]
    assert found.severity == DAMAGE
    assert "27 bytes are not a row of 1 delayed entries" in found.what


def test_volumes_are_checked_without_meta(sample: Path) -> None:
    whole = check(sample)
    (sample / "meta" / "data.mdb").write_bytes(b"")
    report = check(sample)
    assert {finding.where for finding in report.findings} == {"meta"}
    assert (report.batches, report.entries) == (whole.batches, whole.entries)


def test_redelivery_counts_are_acknowledgements_too(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "data")
    maker.volume(1, [batch_of(6, [(3, 0, 1)])], sealed=False)
    counts = pack_redelivered(Redelivered(4, ((Position(3, 0), 2),)))
    maker.meta({**rows_of_the_sample(), "acks/0000000000000004/0000000000000003/00000000": counts}, mark=5, sealed=0)
    assert not [one for one in check(tmp_path / "data").findings if "acknowledgements" in one.what]


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"topic": NEWER}, 4),
        ({"topic": TOPIC}, 15),
        ({"ledger": 2}, 11),
        ({"ledger": 2, "kind": "entry"}, 10),
        ({"ledger": 2, "entries": [3, 5]}, 3),
        ({"volume": SEALED}, 8),
        ({"limit": 5}, 5),
        ({"kind": "meta"}, 2),
        ({"kind": "rows"}, 9),
        ({"kind": "acked"}, 0),
    ],
)
def test_the_filters(sample: Path, filters: dict[str, Any], count: int) -> None:
    assert len(dumped(sample, **filters)) == count


def test_what_is_not_there_is_said(sample: Path) -> None:
    with pytest.raises(
        PersistenceError, match="has no volume volumes/9; its volumes are packed/00000001, volumes/0000"
    ):
        dumped(sample, volume="volumes/9")
    complaints: list[str] = []
    assert list(records_of(sample, {"topic": "nix"}, complaints.append)) == []
    assert "topic nix not found" in complaints[0]


def test_a_live_box(sample: Path, live: int) -> None:
    box = Box(sample)
    assert (box.live, box.pid) == (True, live)
    for _ in range(3):
        report = check(sample)
        assert report.findings == []
        assert report.entries > 25
    document = statistics(sample, 1)
    assert (document["live"], document["pid"]) == (True, live)
    assert document["last_position"] > 15
    assert len(dumped(sample, topic=NEWER)) > 10


def test_a_flipped_bit_in_a_body_is_found_and_the_bytes_are_saved(sample: Path) -> None:
    edit(sample / SEALED / "data.mdb", b"2:6 ...", b"2:6 .!.")
    finding = only(check(sample), DAMAGE)
    assert (finding.ledger, finding.entry, finding.topic) == (2, 6, TOPIC)
    assert "batch 2, entry 2:6" in finding.where
    assert "--ledger 2 --entry 6 --body" in finding.advice
    assert check(sample, quick=True).findings == []
    (entry,) = dumped(sample, ledger=2, entries=[6, 6], body=True)
    assert entry["damaged"] is True
    assert entry["checksum"] == "wrong"
    assert "body" in entry


def test_a_flipped_bit_in_a_batch_header_is_found_with_what_it_takes(sample: Path) -> None:
    value = batch_of(2, [(2, 4, 4)]).value()
    edit(sample / SEALED / "data.mdb", value[:16], value[:8] + bytes([value[8] ^ 1]) + value[9:16])
    finding = only(check(sample), DAMAGE)
    assert finding.where == f"{SEALED}, batch 2"
    assert "checksum" in finding.what
    assert "entries 2:4-7 are lost" in finding.what
    assert finding.topic == TOPIC


@pytest.mark.parametrize("size", [0, 100, 5000, 3 * 4096, 5 * 4096 + 1])
def test_a_truncated_volume(sample: Path, size: int) -> None:
    os.truncate(sample / SEALED / "data.mdb", size)
    report = check(sample)
    assert report.damaged
    assert any(SEALED in finding.where for finding in report.findings)
    document = statistics(sample, 10)
    assert document["totals"]["entries"] == 18
    complaints: list[str] = []
    left = list(records_of(sample, {"kind": "entry"}, complaints.append))
    assert len(left) == 11
    assert any("00000002" in complaint for complaint in complaints)


@pytest.mark.parametrize("name", short([CURRENT, SEALED, "meta"], 1))
def test_a_damaged_page_is_found_and_ends_nobody(tmp_path: Path, name: str) -> None:
    sample = make_sample(tmp_path / "data")
    file = sample / name / "data.mdb"
    whole = file.read_bytes()
    found = 0
    for page in range(2, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
        file.write_bytes(damaged)
        found += check(sample).damaged  # damage to a page of the free list may be harmless
        if page % 3:  # all these commands use the same child processes
            continue
        with contextlib.suppress(PersistenceError):
            statistics(sample, 10)
        list(records_of(sample, {}, lambda _: None))
    assert found >= 2


@pytest.mark.usefixtures("fresh_children")
def test_a_child_that_is_ended_by_a_signal(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """if True:
        import json, os, sys
        print('["at", "meta", 0]', flush=True)
        starts = json.loads(sys.argv[4]).get("starts", {}).get("volumes/00000003", 0)
        if starts < 8:
            print(json.dumps(["at", "volumes/00000003", max(starts, 5) + 2 * bool(starts)]), flush=True)
            os.kill(os.getpid(), 11)
        print('["record", {"position": 8}]')
        print('["end"]')
    """
    monkeypatch.setattr(child, "_START", code)
    complaints: list[str] = []
    assert list(records_of(sample, {}, complaints.append)) == [{"position": 8}]
    assert complaints == [
        f"{CURRENT}, a batch from 5 on cannot be read: reading it ended with SIGSEGV",
        f"{CURRENT}, batch 7 cannot be read: reading it ended with SIGSEGV",
    ]
    report = check(sample)
    assert report.damaged
    assert all("reading it ended with SIGSEGV" in finding.what for finding in report.findings)
    with pytest.raises(PersistenceError, match="SIGSEGV"):
        statistics(sample, 1)


@pytest.mark.usefixtures("fresh_children")
def test_a_batch_that_cannot_be_read(sample: Path) -> None:
    # Size of batch 7 in the leaf page of the log, in fields of 16 bits: low, high, flags, key size, key.
    file = sample / CURRENT / "data.mdb"
    data, tail = file.read_bytes(), b"\0\0\x08\0" + LOG_KEY.pack(7)
    at = -1
    while (at := data.find(tail, at + 1)) >= 0:
        data = data[: at - 2] + b"\xff\x7f" + data[at:]
    file.write_bytes(data)
    finding = next(one for one in check(sample).findings if one.where.startswith(CURRENT))
    assert finding.where == f"{CURRENT}, batch 5 or after it"
    volumes = {volume["name"]: volume["unreadable"] for volume in statistics(sample, 1)["volumes"]}
    assert [name for name, reason in volumes.items() if reason] == [CURRENT]
    complaints: list[str] = []
    left = [one["position"] for one in records_of(sample, {"kind": "entry", "volume": CURRENT}, complaints.append)]
    assert left == [5, 6, 8]
    assert any(complaint.startswith(f"{CURRENT}, batch 7 ") for complaint in complaints)


def test_a_missing_volume(sample: Path) -> None:
    shutil.rmtree(sample / SEALED)
    finding = only(check(sample), DAMAGE)
    assert finding.where == SEALED
    assert "the directory is missing: 8 entries" in finding.what


def test_the_missing_end_of_the_log(sample: Path) -> None:
    shutil.rmtree(sample / CURRENT)
    whats = [finding.what for finding in check(sample).findings]
    assert any("the end of the log is missing" in what for what in whats)


def test_a_hole_in_the_log(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "data")
    maker.volume(1, [batch_of(1, [(2, 0, 1)]), batch_of(3, [(2, 1, 1)])], sealed=False)
    maker.volume(2, [batch_of(5, [(2, 2, 1)])], sealed=False)
    maker.meta({}, mark=0, sealed=0)
    whats = [finding.what for finding in check(maker.path).findings]
    assert whats[0] == "batches 2 to 2 are missing"
    assert "its log begins at batch 5, but the previous volume ends at 3" in whats[1]


def test_directories_that_nobody_speaks_of(sample: Path) -> None:
    shutil.copytree(sample / SEALED, sample / "volumes" / "00000001")
    shutil.copytree(sample / SEALED, sample / "packed" / "00000009")
    (sample / "volumes" / "00000004.new").mkdir()
    (sample / "notes").mkdir()
    report = check(sample)
    assert {finding.where for finding in report.findings if finding.severity == WARNING} == {
        "volumes/00000001",
        "packed/00000009",
        "volumes/00000004.new",
        "notes",
    }


def test_a_volume_whose_removal_ended_in_the_middle_is_no_damage(sample: Path) -> None:
    for name in ("volumes/00000001", "packed/00000009"):
        (sample / name).mkdir()
        (sample / name / "lock.mdb").touch()
    report = check(sample)
    assert [(each.severity, each.where) for each in report.findings] == [
        (WARNING, "packed/00000009"),
        (WARNING, "volumes/00000001"),
    ]
    assert all("removes it at its next start" in each.advice for each in report.findings)
    (sample / SEALED / "data.mdb").unlink()  # listed in meta
    assert {each.where for each in check(sample).findings if each.severity == DAMAGE} == {SEALED}


def test_tables_that_contradict_each_other(sample: Path) -> None:
    write(sample / "meta", {b"contents": [(LOG_KEY.pack(2), bytes(40))]})
    wheres = [finding.where for finding in check(sample).findings]
    assert wheres == [f"meta, contents of {SEALED}", SEALED]


def test_an_index_that_leads_astray(sample: Path) -> None:
    with lmdb.open(str(sample / SEALED), max_dbs=16) as env, env.begin(write=True) as txn:
        index = env.open_db(b"index", txn=txn)
        with txn.cursor(db=index) as cursor:
            assert cursor.first()
            key, value = cursor.item()
        txn.put(key, value[:-1] + b"\x00", db=index)
    finding = only(check(sample), DAMAGE)
    assert "it points to batch" in finding.what


def test_a_ledger_whose_entries_are_gone(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "data")
    maker.volume(1, [batch_of(1, [(2, 0, 2)]), batch_of(2, [(2, 5, 2)])], sealed=False)
    rows = {f"topic/{TOPIC}": {"id": 1}, "ledger/0000000000000001/0000000000000002": ledger_row(9, 1)}
    maker.meta(rows, mark=2, sealed=0)
    wheres = [(finding.where, finding.topic) for finding in check(maker.path).findings]
    assert wheres == [("ledger 2, entries 2 to 4", TOPIC), ("ledger 2, entries 7 to 8", TOPIC)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"ledger/1", b"{}"),
        (b"acks/0000000000000004", b"\x02\x00\x00"),
        (b"cursor/0000000000000001/0000000000000004", b"[]"),
    ],
)
def test_a_row_that_cannot_be_understood(sample: Path, key: bytes, value: bytes) -> None:
    write(sample / "meta", {b"rows": [(key, value)]})
    finding = check(sample).findings[0]
    assert finding.where == "meta, table rows"
    assert statistics(sample, 1)["totals"]["damaged_rows"] == 1
    assert key.decode() in finding.what


@pytest.mark.parametrize("held", [False, True])
def test_without_the_right_to_write(sample: Path, held: bool, request: pytest.FixtureRequest) -> None:
    if held:
        request.getfixturevalue("live")
    command = [sys.executable, "-m", "pulsarbox", "storage", "check", str(sample)]
    if os.geteuid() == 0:  # root may write everything unless it drops that capability
        if shutil.which("setpriv") is None:
            pytest.skip("root, and no setpriv")
        rights = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    paths = [sample, *sample.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr
    assert "no damage" in done.stdout
    assert ("WARNING LOCK: a running box was read without LMDB's lock" in done.stdout) == held


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 1, "instance": "x"}', "has format 1, but this version of pulsarbox reads format 3: open it with"),
        ('{"format": 4, "instance": "x"}', "has format 4, but this version of pulsarbox reads format 3: open it with"),
        ("{", "INSTANCE is damaged"),
        ("[]", "INSTANCE is damaged"),
    ],
)
def test_what_is_no_data_directory_of_this_version(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "INSTANCE").write_text(text)
    with pytest.raises(PersistenceError, match=message):
        Box(tmp_path)


def test_what_is_no_data_directory(tmp_path: Path) -> None:
    with pytest.raises(PersistenceError, match="does not exist"):
        Box(tmp_path / "nix")
    with pytest.raises(PersistenceError, match="is not a data directory: it has no INSTANCE file"):
        Box(tmp_path)
    (tmp_path / "meta").mkdir()
    with pytest.raises(PersistenceError, match="holds data, but its INSTANCE file is missing"):
        Box(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(PersistenceError, match="is not a directory"):
        Box(tmp_path / "file")


def test_what_the_engine_writes(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data")
    for count in range(50):
        writer.round()
        if count % 20 == 5:
            shutil.copytree(tmp_path / "data", tmp_path / "copy")
            assert check(tmp_path / "copy").findings == []
            shutil.rmtree(tmp_path / "copy")
    alive = set(writer.alive)
    assert {"sealed", "packed"} <= set(writer.steps)
    writer.engine.close()
    report = check(tmp_path / "data")
    assert report.findings == []
    assert report.ledgers == len(alive)
    document = statistics(tmp_path / "data", 10)
    assert document["totals"]["entries"] == 20 * len(alive)
    assert {volume["state"] for volume in document["volumes"]} >= {"packed", "current"}
    assert document["topics"][0]["name"] == TOPIC
    entries = [(one["ledger"], one["entry"]) for one in dumped(tmp_path / "data", kind="entry", topic=TOPIC)]
    assert sorted(entries) == [(ledger, entry) for ledger in sorted(alive) for entry in range(20)]


def test_a_box_that_packs_while_it_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "data"
    command = [sys.executable, "-m", "tests.unit.storage.engine_writer", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(2):
                assert check(path).findings == []
                document = statistics(path, 1)
                assert (document["live"], document["pid"]) == (True, process.pid)
                assert not any(volume["unreadable"] for volume in document["volumes"])
                assert len(list(records_of(path, {"kind": "entry"}, lambda _: None))) > 100
        finally:
            process.kill()
    assert not check(path).damaged  # the interrupted packing leaves an unfinished volume
