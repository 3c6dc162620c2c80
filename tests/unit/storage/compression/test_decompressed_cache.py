"""The cache of decompressed entries is bounded, correct, and avoids repeated decompression."""

import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import EntryDamaged
from pulsarbox.storage.compression.decompressed_cache import ENTRY_BYTES, KEPT_BYTES, DecompressedCache
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry
from tests.unit.storage.batches import compress_with
from tests.unit.storage.engine_conformance import checkpoint_at, reclaim_all
from tests.unit.storage.packing.test_volume_packer_compression import Telemetry, telemetry

PLACES = st.tuples(st.integers(1, 3), st.integers(0, 6))


def entry_of(ledger_id: int, entry_id: int, size: int) -> Entry:
    body = bytes(size)
    return Entry(
        ledger_id, entry_id, 0, 1, entry_id + 300, entry_id * 1000, 1 << 31, 1 << 40, 1 << 41, 0, 1 << 31, body
    )


def size_of(entry_id: int) -> int:
    return entry_id * 150 + 1


@given(st.lists(PLACES, max_size=80), st.integers(0, 12_000))
def test_it_gives_what_was_kept_and_what_was_asked_for_of_late(asked: list[tuple[int, int]], limit: int) -> None:
    kept = DecompressedCache(limit)
    for at, place in enumerate(asked):
        entry = entry_of(*place, size_of(place[1]))
        late: set[tuple[int, int]] = set()  # the last requested entries that fit into half of the limit
        for before in reversed(asked[:at]):
            if sum(size_of(each) + ENTRY_BYTES for _, each in late | {before}) > limit // 2:
                break
            late.add(before)
        found = kept.get(*place)
        assert found == entry or (found is None and place not in late)
        if found is None:
            kept.store(entry)
        held = {**kept._younger, **kept._older}
        assert len(held) == len(kept._younger) + len(kept._older)
        assert kept.use.bytes == sum(len(each.body) + ENTRY_BYTES for each in held.values()) <= limit
        assert kept.use.hits + kept.use.misses == at + 1


def test_it_takes_no_more_memory_than_it_says() -> None:
    limit = 1 << 20
    kept = DecompressedCache(limit)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(4000):
            kept.store(entry_of((1 << 40) + number, (1 << 33) + number, 100))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert limit * 0.4 < kept.use.bytes <= limit
    assert taken <= limit


class Counting:
    """Unpacker that counts the requested bodies."""

    def __init__(self, engine: LmdbEngine) -> None:
        self._behind = engine._unpacker
        self.bodies = 0
        engine._unpacker = self  # type: ignore[assignment]

    def unpack(self, tag: bytes, dictionary: int, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        self.bodies += len(packed)
        return self._behind.unpack(tag, dictionary, packed, sizes)


@pytest.fixture
def store(tmp_path: Path) -> Telemetry:
    """A ledger with almost all entries compressed."""
    made = Telemetry(tmp_path / "data")
    made.publish(1, telemetry(1500))
    made.publish(2, telemetry(1500, seed=2))
    made.seal()
    assert "compressed" in reclaim_all(made.engine, compress_with("zstd"))
    return made


def test_what_is_read_again_is_not_unpacked_again(store: Telemetry) -> None:
    counting = Counting(store.engine)
    store.check()
    once = counting.bodies
    assert once > 2500
    store.check()
    store.check()
    assert counting.bodies == once
    use = store.engine.unpacked
    assert use.misses == once
    assert use.hits >= 2 * once  # one more for each read that ended before an entry because of its byte limit
    told = store.engine.statistics()
    assert [told["unpackedHits"], told["unpackedMisses"], told["unpackedBytes"]] == list(use)
    assert 0 < use.bytes <= KEPT_BYTES
    store.engine.close()


def test_random_reads_with_little_room_are_those_without_it(store: Telemetry, tmp_path: Path) -> None:
    dice = random.Random(5)
    for room in (0, 4000, 200_000):
        store.engine._unpacked = DecompressedCache(room)
        for _ in range(60):
            ledger_id = dice.randrange(1, 3)
            first = dice.randrange(1500)
            last = dice.randrange(first, 1500)
            found = store.engine.read(ReadRequest(1, ledger_id, first, last, dice.choice((1, 500, 20_000))))
            assert found == store.entries[ledger_id][first : first + len(found)]
            assert found
        assert store.engine.unpacked.bytes <= room
        assert bool(store.engine.unpacked.hits) == bool(room)
    store.engine.close()


def test_ledgers_that_go_and_volumes_that_are_packed_anew_leave_reads_as_they_are(store: Telemetry) -> None:
    store.check()
    del store.entries[1]
    checkpoint_at(store.engine, store.next_position - 1, dropped=(1,))
    reclaim_all(store.engine, compress_with("lz4", generation=2))
    counting = Counting(store.engine)
    store.check()
    assert counting.bodies == 0
    with pytest.raises(Exception, match="does not exist"):
        store.engine.read(ReadRequest(1, 1, 0, 10, 1000))
    store.engine.close()


def test_what_is_damaged_is_not_kept(store: Telemetry) -> None:
    class Lying(Counting):
        def unpack(self, tag: bytes, dictionary: int, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
            return [bytes(size) for size in sizes]

    Lying(store.engine)
    for _ in range(2):
        with pytest.raises(EntryDamaged):
            store.engine.read(ReadRequest(1, 1, 0, 10, 1000))
    assert store.engine.unpacked.bytes == 0
    store.engine.close()
