"""Decoded values as documents."""

import pytest

from pulsarbox.tui.viewer.document import Kind
from pulsarbox.tui.viewer.value_reader import NODES, ValueReader, kind_of
from tests.unit.tui.viewer.test_json_reader import VALUES, read, value_of


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_the_same_document_as_its_text(value: object) -> None:
    reader = ValueReader(value)
    assert all(each is None for each in reader.steps())
    assert value_of(reader.document) == value
    assert reader.document.is_complete and reader.document.span_of(0) is None


def test_deep_and_large_values_are_read_in_small_steps() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    reader = ValueReader(deep)
    assert sum(1 for _ in reader.steps()) >= 5_000 // NODES
    assert reader.document.depths[5_000] == 5_000
    large = ValueReader({str(at): at for at in range(100)}, most=10)
    list(large.steps())
    assert (len(large.document), large.document.trouble) == (10, "only the first 10 values are shown")


def test_types_of_values() -> None:
    assert [kind_of(value) for value in ("x", 1, 1.5, True, None)] == [
        *(Kind.STRING, Kind.NUMBER, Kind.NUMBER, Kind.WORD, Kind.WORD)
    ]
    assert read('"x"').kinds[0] == Kind.STRING
