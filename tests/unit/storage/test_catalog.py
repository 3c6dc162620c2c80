"""The catalog: rows, what of them a checkpoint has to take, and what comes back when it fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.catalog import Catalog, ledger_row
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Meta, unpack_batch

keys = st.sampled_from(["tenant/a", "tenant/b", "topic/x", "ids"])
values = st.none() | st.fixed_dictionaries({"n": st.integers(0, 5)})
steps = st.lists(st.tuples(keys, values) | st.sampled_from(["checkpoint", "failed checkpoint"]), max_size=30)


@given(steps)
def test_rows_are_a_dict_and_checkpoints_and_the_log_hold_all_of_them(
    history: list[tuple[str, dict[str, int] | None] | str],
) -> None:
    batch = Batch(1)
    catalog = Catalog({})
    model: dict[str, dict[str, int]] = {}
    disk: dict[bytes, bytes] = {}
    for step in history:
        if isinstance(step, str):
            taken = catalog.take_dirty()
            if step == "failed checkpoint":
                catalog.give_back(taken)
                continue
            disk |= {key: value for key, value in taken.items() if value is not None}
            for key in [key for key, value in taken.items() if value is None]:
                disk.pop(key, None)
        else:
            name, row = step
            catalog.put(batch, name, row)
            if row is None:
                model.pop(name, None)
            else:
                model[name] = row
    assert {key: catalog.get(key) for key in catalog.keys("")} == model
    assert list(catalog.keys("tenant/")) == sorted(key for key in model if key.startswith("tenant/"))
    for key_, value in catalog.take_dirty().items():
        if value is None:
            disk.pop(key_, None)
        else:
            disk[key_] = value
    recovered = Catalog({key.decode(): value for key, value in disk.items()})
    assert {key: recovered.get(key) for key in recovered.keys("")} == model
    replayed = Catalog({})
    for _, record in unpack_batch(batch.value()):
        assert isinstance(record, Meta)
        replayed.apply(record.key.decode(), record.value)
    assert {key: replayed.get(key) for key in replayed.keys("")} == model


def test_what_is_written_after_a_checkpoint_that_fails_wins() -> None:
    catalog = Catalog({})
    catalog.note("ids", {"next": 1})
    taken = catalog.take_dirty()
    catalog.note("ids", {"next": 2})
    catalog.give_back(taken)
    assert catalog.take_dirty() == {b"ids": b'{"next":2}'}


def test_only_the_last_ledger_with_entries_says_what_stands_at_its_end() -> None:
    ledger = ManagedLedger(1)
    first = ledger.open_ledger(1, 5)
    assert "last_batch" in ledger_row(ledger, first)
    second = ledger.open_ledger(2, 6)
    assert "last_batch" not in ledger_row(ledger, first)
    assert ledger_row(ledger, second)["created"] == 6
