"""JSON values decode identically one by one and in bulk, and indented values are decoded in bulk."""

import json
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.spark.decode.value_decoder import Decoder, decoder

ROW = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.list_(pa.struct([("x", pa.float64())])))])
ORDERS: list[dict[str, Any]] = [
    {"a": i, "b": f"a name\n{{of}} {i}", "c": [{"x": i / 2}, {"x": None}]} for i in range(50)
]


def of_json(target: pa.DataType = ROW) -> Decoder:
    return decoder(None, None, target, "json")


def read(monkeypatch: pytest.MonkeyPatch, values: list[bytes]) -> tuple[list[Any], int, bool]:
    """Return the values, the number of invalid ones, and whether they were decoded in bulk."""
    made, one_by_one = of_json(), []
    alone = made._read

    def counted(value: bytes) -> Any:
        one_by_one.append(value)
        return alone(value)

    monkeypatch.setattr(made, "_read", counted)
    found, bad = made.array(values)
    return found.to_pylist(), len(bad), not one_by_one


@pytest.mark.parametrize("indent", [None, 4, "\t", 0])
@pytest.mark.parametrize("around", ["{}", "{}\n", " \r\n{}\t"])
def test_objects_are_read_many_at_once(monkeypatch: pytest.MonkeyPatch, indent: int | str | None, around: str) -> None:
    values = [around.replace("{}", json.dumps(each, indent=indent)).encode() for each in ORDERS]
    assert read(monkeypatch, values) == (ORDERS, 0, True)


def test_lines_and_indented_objects_together(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [json.dumps(each, indent=number % 3 or None).encode() for number, each in enumerate(ORDERS)]
    assert read(monkeypatch, values) == (ORDERS, 0, True)


@pytest.mark.parametrize(
    "values",
    [
        (b'{"a":1}{"a":2,"b":', b"{}}"),  # two objects when joined
        (b'{"a":1}{"c":[{}', b"{}]}"),
        (b'{"a":1}{"b":"}', b'{"}'),
        (b'{"a":1}{"a":2}', b""),
        (b'{"a":1},{"a":2}', b"{}"),
        (b'{"a":1}}', b'{{"a":1}'),
        (b'{"a":1', b'"b":"x"}'),
        (b'{"b":"x\ny"}', b'{"b":"x\ny"}'),  # an unescaped line break in a string is invalid JSON
        (b"[1]", b"[2]"),
    ],
)
def test_no_value_is_completed_by_the_next(monkeypatch: pytest.MonkeyPatch, values: tuple[bytes, bytes]) -> None:
    good = b'{"a": 7}'
    found, bad, many = read(monkeypatch, [good, *values, good])
    alone = [read(monkeypatch, [each])[0][0] for each in values]
    assert not many and found == [{"a": 7, "b": None, "c": None}, *alone, {"a": 7, "b": None, "c": None}]
    assert bad == alone.count(None) >= 1


def test_no_values() -> None:
    assert of_json().array([])[0].to_pylist() == []
