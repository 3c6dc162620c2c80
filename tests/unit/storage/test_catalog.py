"""The catalog: rows, rows for the next checkpoint, and recovery from a failed checkpoint."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.catalog import Catalog, cursor_key, ledger_key, topic_key
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryRows
from pulsarbox.storage.record import Meta, unpack_batch
from pulsarbox.storage.recovery import ledger_row

keys = st.sampled_from(["tenant/a", "tenant/b", "tenants", "ids"])
values = st.none() | st.fixed_dictionaries({"n": st.integers(0, 5)})
steps = st.lists(st.tuples(keys, values) | st.sampled_from(["checkpoint", "failed checkpoint"]), max_size=30)


def dump(disk: MemoryDisk, taken: dict[bytes, bytes | None]) -> None:
    """Apply the rows of a checkpoint to the disk, as an engine does."""
    for key, value in taken.items():
        if value is None:
            disk.rows.pop(key, None)
        else:
            disk.rows[key] = value


@given(steps)
def test_rows_are_a_dict_and_checkpoints_and_the_log_hold_all_of_them(
    history: list[tuple[str, dict[str, int] | None] | str],
) -> None:
    batch = Batch(1)
    disk = MemoryDisk()
    catalog = Catalog(MemoryRows(disk))
    model: dict[str, dict[str, int]] = {}
    for step in history:
        if isinstance(step, str):
            taken = catalog.take()
            if step == "failed checkpoint":
                catalog.restore()
            else:
                dump(disk, taken)
                catalog.stored()
        else:
            name, row = step
            catalog.put(batch, name, row)
            if row is None:
                model.pop(name, None)
            else:
                model[name] = row
        assert catalog.first("tenant/") == min((key for key in model if key.startswith("tenant/")), default=None)
    assert {key: catalog.get(key) for key in catalog.keys("")} == model
    assert list(catalog.keys("tenant/")) == sorted(key for key in model if key.startswith("tenant/"))
    dump(disk, catalog.take())
    recovered = Catalog(MemoryRows(disk))
    assert {key: recovered.get(key) for key in recovered.keys("")} == model
    replayed = Catalog(MemoryRows(MemoryDisk()))
    for _, record in unpack_batch(batch.value()):
        assert isinstance(record, Meta)
        replayed.apply(record.key.decode(), record.value)
    assert {key: replayed.get(key) for key in replayed.keys("")} == model


def test_what_is_written_after_a_checkpoint_that_fails_wins() -> None:
    catalog = Catalog(MemoryRows(MemoryDisk()))
    catalog.note("ids", {"next": 1})
    catalog.take()
    catalog.note("ids", {"next": 2})
    catalog.restore()
    assert catalog.take() == {b"ids": b'{"next":2}'}


def test_an_id_leads_to_its_topic_until_it_is_gone() -> None:
    catalog = Catalog(MemoryRows(MemoryDisk()))
    batch = Batch(1)
    catalog.put(batch, topic_key("t"), {"id": 7})
    catalog.put(batch, ledger_key(7, 8), {})
    catalog.put(batch, cursor_key(7, 9), {})
    assert [catalog.owner(number) for number in (6, 7, 8, 9)] == [None, "t", "t", "t"]
    for key in (ledger_key(7, 8), cursor_key(7, 9), topic_key("t")):
        catalog.put(batch, key, None)
    assert [catalog.owner(number) for number in (7, 8, 9)] == [None, None, None]
    assert not list(catalog.keys(""))


def test_only_the_last_ledger_with_entries_says_what_stands_at_its_end() -> None:
    ledger = ManagedLedger(1)
    first = ledger.open_ledger(1, 5)
    assert "last_batch" in ledger_row(ledger, first)
    second = ledger.open_ledger(2, 6)
    assert "last_batch" not in ledger_row(ledger, first)
    assert ledger_row(ledger, second)["created"] == 6


@given(
    stored=st.sets(st.integers(0, 30)),
    taken=st.dictionaries(st.integers(0, 30), st.booleans()),
    fresh=st.dictionaries(st.integers(0, 30), st.booleans()),
    count=st.integers(1, 7),
)
def test_pages_are_the_keys_piece_by_piece(
    stored: set[int], taken: dict[int, bool], fresh: dict[int, bool], count: int
) -> None:
    disk = MemoryDisk()
    catalog = Catalog(MemoryRows(disk))
    for number in stored:
        catalog.note(f"k/{number:02}", {})
    catalog.note("j/1", {})
    catalog.note("l/1", {})
    dump(disk, catalog.take())
    catalog.stored()
    for number, there in taken.items():
        catalog.note(f"k/{number:02}", {} if there else None)
    catalog.take()
    for number, there in fresh.items():
        catalog.note(f"k/{number:02}", {} if there else None)
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        keys, after = catalog.page("k/", after, count)
        assert len(keys) <= 3 * count
        found += keys
    assert found == list(catalog.keys("k/"))
