"""A volume read in place while a process writes it, for any index state and map size."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import pytest

from pulsarbox.errors import EntryDamaged
from pulsarbox.spark import access
from pulsarbox.spark.access import mapped_reader
from pulsarbox.spark.access.extractor import Entry, NotInPlace
from pulsarbox.spark.access.mapped_reader import Gone, MappedStore, Want
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.topic_segments import Lost, Reach, ReadPosition, TopicSegment
from tests.unit.storage.batches import Body, body_of, frame_of

WRITER = """
import sys
from pulsarbox.storage.lmdb.engine import LmdbEngine
from tests.unit.storage import batches
path, map_size, volume_size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
body_of = getattr(batches, sys.argv[4])
engine = LmdbEngine(path, map_size=map_size, volume_size=volume_size, index_flush_entries=40)
recovery = engine.recover()
position = recovery.next_position
print(engine.instance, flush=True)
for line in sys.stdin:
    first, size = map(int, line.split())
    runs = [(3, first, 2), (5, 2 * first, 4), (9, first, 2)]
    engine.commit(batches.batch_of(position, runs, size, body_of))
    position += 1
    print("done", flush=True)
"""
LEDGERS = {3: 1, 5: 2, 9: 1}
"""Number of entries in each ledger per entry in ledger 3."""


class Writer:
    """A process with an open store."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child
        self.instance = self._said()

    def _said(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline().strip()

    def write(self, first: int, size: int = 40) -> int:
        """Write one batch, with two entries from ``first`` in ledgers 3 and 9 and four in ledger 5; return the next
        entry ID."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{first} {size}\n")
        self._child.stdin.flush()
        assert self._said() == "done"
        return first + 2


@contextmanager
def writing(
    path: Path, map_size: int = 64 << 20, volume_size: int = 48 << 20, body_of: Body = body_of
) -> Iterator[Writer]:
    command = [sys.executable, "-c", WRITER, str(path), str(map_size), str(volume_size), body_of.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield Writer(child)


@contextmanager
def opened(path: Path, instance: str) -> Iterator[MappedStore]:
    store = MappedStore(path, instance)
    try:
        yield store
    finally:
        store.close()


def read(store: MappedStore, ledger: int, first: int, last: int) -> list[Entry]:
    found: list[Entry] = []
    while first <= last:
        some, first = store.read(ledger, first, last)
        found += some
    return found


def expected(ledger: int, first: int, last: int, size: int = 40, body_of: Body = body_of) -> list[Entry]:
    return [(ledger, at, body_of(ledger, at, size)) for at in range(first, last + 1)]


def swept_of(store: MappedStore, wants: list[Want]) -> dict[int, list[Entry]]:
    """Return the swept entries of each want; check that they are in order and end at the reported position."""
    found: dict[int, list[Entry]] = {}
    ends: dict[int, int] = {}
    for piece in store.sweep(dict(enumerate(wants))):
        if not isinstance(piece, Block):
            ends[piece[0]] = piece[2]
        for number, some in (piece.each() if isinstance(piece, Block) else {piece[0]: piece[1]}).items():
            found.setdefault(number, []).extend(some)
    assert all(found[number][-1][1] + 1 == end for number, end in ends.items() if number in found)
    return found


@pytest.mark.parametrize("body", [body_of, frame_of])
def test_what_the_index_has_and_what_it_has_not_yet(tmp_path: Path, body: Body) -> None:
    chance = random.Random(2)
    with writing(tmp_path / "data", body_of=body) as writer, opened(tmp_path / "data", writer.instance) as store:
        end = 0
        for turn in range(60):
            end = writer.write(end)
            if turn % 4 and turn < 50:
                continue
            for ledger, share in LEDGERS.items():
                first = chance.randrange(end * share)
                assert read(store, ledger, first, end * share - 1) == expected(
                    ledger, first, end * share - 1, body_of=body
                )
            wants = [Want(ledger, 0, end * share - 1) for ledger, share in LEDGERS.items()]
            swept = swept_of(store, wants)
            assert [swept[at] for at in range(3)] == [
                expected(want.ledger, 0, want.last, body_of=body) for want in wants
            ]
        with pytest.raises(Gone, match="3:120"):
            store.read(3, end, end)
        with pytest.raises(Gone):
            store.read(4, 0, 1)


@pytest.mark.parametrize("body", [body_of, frame_of])
@pytest.mark.parametrize(("worth", "rows"), [(1, 3), (4, 8192), (1000, 7)])
def test_some_stretches_of_some_ledgers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: int, rows: int, body: Body
) -> None:
    """Batches are scanned or located by the index; the switch between the two loses nothing."""
    monkeypatch.setattr(mapped_reader, "_WORTH", worth)
    monkeypatch.setattr(mapped_reader, "SWEEP_ROWS", rows)
    monkeypatch.setattr(mapped_reader, "SPARSE_ROWS", rows)
    monkeypatch.setattr(mapped_reader, "BLOCK_BYTES", 100 * rows)
    monkeypatch.setattr(mapped_reader, "NEAR", rows)
    chance = random.Random(worth)
    with writing(tmp_path / "data", body_of=body) as writer, opened(tmp_path / "data", writer.instance) as store:
        end = 0
        for _ in range(50):
            end = writer.write(end)
        for _ in range(20):
            wants = []
            for ledger, share in chance.choices(list(LEDGERS.items()), k=4):  # one of them twice
                first = chance.randrange(end * share)
                wants.append(Want(ledger, first, chance.randrange(first, end * share), chance.random() < 0.8))
            swept = swept_of(store, wants)
            assert [swept[at] for at in range(4)] == [expected(*want[:3], body_of=body) for want in wants]


def joined_by(store: MappedStore, wants: list[Want], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the positions of the batches that a sweep joins unchanged, with one batch per block."""
    found: list[int] = []
    join = mapped_reader._Volume._joined

    def noted(volume: mapped_reader._Volume, position: int) -> tuple[bytes, list[int], int]:
        found.append(position)
        return join(volume, position)

    monkeypatch.setattr(mapped_reader._Volume, "_joined", noted)
    monkeypatch.setattr(mapped_reader, "BLOCK_BYTES", 1)
    monkeypatch.setattr(mapped_reader, "SPARSE_ROWS", 8)
    swept = swept_of(store, wants)
    assert [swept[at] for at in range(len(wants))] == [expected(*want[:3], body_of=frame_of) for want in wants]
    return found


def test_what_nobody_wants_between_what_is_wanted_is_stepped_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writing(tmp_path / "data", body_of=frame_of) as writer, opened(tmp_path / "data", writer.instance) as store:
        end = 0
        for _ in range(80):
            end = writer.write(end)
        first, *_, last = joined = joined_by(store, [Want(3, 0, 9), Want(5, 100, 119), Want(9, 80, 99)], monkeypatch)
        assert [position - first for position in joined[:6]] == [0, 1, 2, 3, 4, 5]
        assert last - first == 49
        assert len(joined) < 30, joined


def test_what_few_ledgers_have_in_front_of_the_others_is_found_by_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_reader, "NEAR", 3)
    monkeypatch.setattr(mapped_reader, "_WORTH", 2)
    with writing(tmp_path / "data", body_of=frame_of) as writer, opened(tmp_path / "data", writer.instance) as store:
        end = 0
        for _ in range(60):
            end = writer.write(end)
        joined = joined_by(store, [Want(3, 0, 99), Want(5, 100, 199), Want(9, 51, 99)], monkeypatch)
        assert joined == list(range(joined[0], joined[0] + 25))


def test_a_map_that_has_grown_since_it_was_opened(tmp_path: Path) -> None:
    with writing(tmp_path / "data", map_size=4 << 20, volume_size=64 << 20) as writer:
        instance, end = writer.instance, writer.write(0)
    with opened(tmp_path / "data", instance) as store:
        assert read(store, 3, 0, end - 1) == expected(3, 0, end - 1)
        with writing(tmp_path / "data", map_size=64 << 20, volume_size=64 << 20) as writer:
            for _ in range(20):
                end = writer.write(end, 100_000)
            assert read(store, 3, 2, end - 1) == expected(3, 2, end - 1, 100_000)


def test_slots_that_killed_readers_left_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with writing(tmp_path / "data") as writer, opened(tmp_path / "data", writer.instance) as store:
        end = writer.write(0)
        assert read(store, 3, 0, 0) == expected(3, 0, 0)
        (volume,) = store._volumes.values()
        cleared: list[bool] = []

        class Full:
            """Environment whose reader slots are all in use until stale readers are cleared."""

            def begin(self, **options: bool) -> object:
                if not cleared:
                    raise lmdb.ReadersFullError("full")
                return real.begin(**options)

            def reader_check(self) -> int:
                cleared.append(True)
                return 1

        real: Any = volume._env
        monkeypatch.setattr(volume, "_env", Full())
        assert read(store, 3, 0, end - 1) == expected(3, 0, end - 1)
        monkeypatch.setattr(volume, "_env", real)
        assert cleared


@pytest.mark.parametrize("body", [body_of, frame_of])
def test_what_is_damaged_ends_an_answer_and_is_told_with_the_next(tmp_path: Path, body: Body) -> None:
    with writing(tmp_path / "data", body_of=body) as writer:
        end = 0
        for _ in range(5):
            end = writer.write(end)
        instance = writer.instance
    file = tmp_path / "data" / "volumes" / "00000001" / "data.mdb"
    data = file.read_bytes()
    assert b"5:7 ." in data
    file.write_bytes(data.replace(b"5:7 .", b"6:7 ."))  # also in unreferenced pages
    with opened(tmp_path / "data", instance) as store:
        found, after = store.read(5, 0, 19)
        assert (found, after) == (expected(5, 0, 6, body_of=body), 7)
        with pytest.raises(EntryDamaged, match="checksum") as told:
            store.read(5, 7, 19)
        assert (told.value.first, told.value.last) == (7, 7)
        assert read(store, 5, 8, 19) == expected(5, 8, 19, body_of=body)
        swept = swept_of(store, [Want(3, 0, 9), Want(5, 0, 19)]).get(1, [])
        assert swept == expected(5, 0, len(swept) - 1, body_of=body) and len(swept) <= 7


@pytest.mark.parametrize("body", [body_of, frame_of])
def test_what_is_hidden_stays_hidden_where_a_stretch_is_not_had_in_one_go(tmp_path: Path, body: Body) -> None:
    """Entries of aborted transactions follow a damaged entry, so the rest is read entry by entry."""
    with writing(tmp_path / "data", body_of=body) as writer:
        end = 0
        for _ in range(5):
            end = writer.write(end)
        instance = writer.instance
    file = tmp_path / "data" / "volumes" / "00000001" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"5:7 .", b"6:7 ."))
    segments = [
        TopicSegment("persistent://public/default/a", 3, 0, 9, 10, 400, instance=instance),
        TopicSegment("persistent://public/default/b", 5, 0, 19, 17, 680, hidden=((0, 1), (15, 19)), instance=instance),
    ]
    lost: list[Lost] = []
    swept: dict[int, list[Entry]] = {}
    reach = Reach("pulsar://127.0.0.1:1", data_dir=str(tmp_path / "data"), access="mmap")
    try:
        for piece in access.pieces_of(segments, reach, lost.append, lambda part: [part]):
            for number, found in piece.each().items() if isinstance(piece, Block) else [piece]:
                swept.setdefault(number, []).extend(found)
    finally:
        mapped_reader.close_all()
    assert swept == {
        0: expected(3, 0, 9, body_of=body),
        1: expected(5, 2, 6, body_of=body) + expected(5, 8, 14, body_of=body),
    }
    assert [(each.start, each.end) for each in lost] == [(ReadPosition(5, 7), ReadPosition(5, 8))]


def test_what_is_no_data_directory_of_that_box(tmp_path: Path) -> None:
    with writing(tmp_path / "data") as writer:
        writer.write(0)
        for path, instance, reason in (
            (tmp_path / "data", "another", "another box"),
            (tmp_path / "data", "", "in memory"),
            (tmp_path / "none", writer.instance, "INSTANCE"),
        ):
            with pytest.raises(NotInPlace, match=reason):
                MappedStore(path, instance)
        meta = tmp_path / "data" / "meta"
        meta.rename(tmp_path / "meta")
        with pytest.raises(NotInPlace, match="meta cannot be read in place"):
            MappedStore(tmp_path / "data", writer.instance)
        (tmp_path / "meta").rename(meta)
