"""Live records of a batch after some of its ledgers were deleted."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.entry_index import runs_of
from pulsarbox.storage.format import BATCH_HEADER
from pulsarbox.storage.journal import JournalRun
from pulsarbox.storage.packing.live_records import live_entries, put_together, wall_of
from pulsarbox.storage.record import Entry, Meta, check_batch, pack_meta, unpack_batch, unpack_entry
from tests.unit.storage.batches import batch_of, entry_of


def pack_batch(value: bytes, alive: Callable[[int], bool]) -> tuple[bytes, dict[int, JournalRun]] | None:
    """Return the batch with only the entries of ``alive`` ledgers."""
    entries = live_entries(value, lambda ledger_id, _: alive(ledger_id))
    if not entries:
        return None
    packed, runs = put_together(entries, wall_of(value))
    return packed, dict(runs)


def test_entries_that_are_left_out_divide_the_run_of_their_ledger() -> None:
    value = batch_of(7, [(1, 10, 6), (2, 0, 1)]).value()
    packed, runs = put_together(live_entries(value, lambda _, entry: entry not in {12, 14}), 1)
    assert [(ledger_id, run.first_entry, len(run.offsets)) for ledger_id, run in sorted(runs, key=_place)] == [
        (1, 10, 2), (1, 13, 1), (1, 15, 1), (2, 0, 1)
    ]  # fmt: skip
    for ledger_id, run in runs:
        for at, offset in enumerate(run.offsets):
            assert unpack_entry(packed, offset) == entry_of(ledger_id, run.first_entry + at)


def _place(run: tuple[int, JournalRun]) -> tuple[int, int]:
    return run[0], run[1].first_entry


@given(
    runs=st.dictionaries(st.integers(0, 5), st.integers(1, 5), max_size=6),
    alive=st.frozensets(st.integers(0, 5)),
    meta=st.booleans(),
)
def test_what_is_alive_stays_as_it_was(runs: dict[int, int], alive: frozenset[int], meta: bool) -> None:
    batch = batch_of(7, [(ledger_id, 10, count) for ledger_id, count in runs.items()])
    if meta:
        batch.add(pack_meta(Meta(b"key", b"value")))
    packed = pack_batch(batch.value(), alive.__contains__)
    kept = {ledger_id: count for ledger_id, count in runs.items() if ledger_id in alive}
    if packed is None:
        assert not kept
        return
    value, found = packed
    check_batch(value)
    assert {ledger_id: (run.first_entry, len(run.offsets)) for ledger_id, run in found.items()} == {
        ledger_id: (10, count) for ledger_id, count in kept.items()
    }
    for ledger_id, run in found.items():
        for at, offset in enumerate(run.offsets):
            assert unpack_entry(value, offset) == entry_of(ledger_id, 10 + at)
    again = runs_of(value)
    assert {key: list(run.offsets) for key, run in again.items()} == {
        key: list(run.offsets) for key, run in found.items()
    }
    assert all(isinstance(record, Entry) for _, record in unpack_batch(value))
    assert BATCH_HEADER.unpack_from(value)[5] == 7


def test_a_damaged_body_is_kept_and_a_damaged_header_is_not_believed() -> None:
    value = batch_of(1, [(1, 0, 1)]).value()
    packed = pack_batch(value[:-1] + b"?", lambda _: True)
    assert packed is not None
    with pytest.raises(PersistenceError, match="its bytes do not match"):
        unpack_entry(packed[0], packed[1][1].offsets[0])
    with pytest.raises(PersistenceError, match="batch is damaged"):
        pack_batch(value[:40] + b"?" + value[41:], lambda _: True)
