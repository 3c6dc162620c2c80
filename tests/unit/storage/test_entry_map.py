"""EntryMap compared with a dict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.acknowledged_ranges import CHUNK_ENTRIES, ChunkKey
from pulsarbox.storage.entry_map import EntryMap

POSITIONS = st.tuples(st.integers(1, 3), st.integers(0, 3) | st.integers(CHUNK_ENTRIES - 2, 3 * CHUNK_ENTRIES))
STEPS = st.one_of(
    st.tuples(st.just("put"), POSITIONS, st.integers(1, 9)),
    st.tuples(st.just("drop"), POSITIONS, st.sampled_from([0, 1, 5, CHUNK_ENTRIES, 5 * CHUNK_ENTRIES])),
    st.tuples(st.just("drop_through"), POSITIONS, st.just(0)),
    st.tuples(st.just("clear"), POSITIONS, st.just(0)),
)


@given(st.lists(STEPS))
def test_it_is_a_dict_that_knows_what_changed(history: list[tuple[str, tuple[int, int], int]]) -> None:
    touched = set[ChunkKey]()
    entries = EntryMap(touched.add, str)
    model: dict[tuple[int, int], str] = {}
    for name, position, number in history:
        before = dict(model)
        touched.clear()
        if name == "put":
            entries.put(position, number)
            model[position] = str(number)
            gone = []
        elif name == "drop":
            gone = [each for each in model if position <= each <= (position[0], position[1] + number)]
            assert sorted(entries.drop(*position, position[1] + number)) == sorted(model[each] for each in gone)
        elif name == "drop_through":
            gone = [each for each in model if each <= position]
            assert sorted(entries.drop_through(*position)) == sorted(model[each] for each in gone)
        else:
            gone = list(model)
            entries.clear()
        for each in gone:
            del model[each]
        assert entries == model
        assert (list(entries), len(entries), bool(entries)) == (sorted(model), len(model), bool(model))
        changed = {each for each in {**before, **model} if before.get(each) != model.get(each)}
        assert touched >= {(ledger_id, entry_id // CHUNK_ENTRIES) for ledger_id, entry_id in changed}
        for key in touched:
            inside = [each for each in sorted(model) if (each[0], each[1] // CHUNK_ENTRIES) == key]
            assert entries.of_chunk(key) == [(each, model[each]) for each in inside]


def test_what_is_not_there() -> None:
    entries = EntryMap(set[ChunkKey]().add, int)
    entries.put((1, 5), 7)
    assert (entries.get((1, 6)), entries.get((2, 5), 0), (1, 5) in entries) == (None, 0, True)
    with pytest.raises(KeyError):
        entries[1, 6]
