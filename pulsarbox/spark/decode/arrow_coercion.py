"""Strict conversion of Python values to the form that Arrow accepts for a type."""

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

Shape = Callable[[Any], Any]


def shaper(target: pa.DataType) -> Shape:
    """Return a converter of values for a type; None stays None. It raises TypeError or ValueError for unfit values."""
    shape = _shaper(target)
    return lambda value: None if value is None else shape(value)


def _shaper(target: pa.DataType) -> Shape:
    is_a = pa.types
    if is_a.is_struct(target):
        return _record(target)
    if is_a.is_map(target):
        key, item = shaper(target.key_type), shaper(target.item_type)
        return lambda value: [(key(name), item(each)) for name, each in value.items()]
    if is_a.is_list(target):
        inside = shaper(target.value_type)
        return lambda value: [inside(each) for each in _expected(value, list)]
    for fits, shape in _SIMPLE:
        if fits(target):
            return shape
    return lambda value: value


def _record(target: pa.DataType) -> Shape:
    fields = [(target.field(at).name, shaper(target.field(at).type)) for at in range(target.num_fields)]

    def shape(value: Any) -> dict[str, Any]:
        found = _expected(value, dict)
        return {name: shape(found.get(name)) for name, shape in fields}

    return shape


def _expected(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is not of type {kind.__name__}"[:200])
    return value


def _text(value: Any) -> str:
    """Return text as is, and other values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    return str(value) if isinstance(value, UUID) else json.dumps(value, default=str)


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return int(_expected(value, int))


_NO_JSON: Final = frozenset({"NaN", "Infinity", "-Infinity"})
"""Numbers that JSON cannot express, as Java clients write them."""


def _real(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    if isinstance(value, str) and value in _NO_JSON:
        return float(value)
    return float(value if isinstance(value, int) else _expected(value, float))


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(_expected(value, bytes))


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return value if isinstance(value, Decimal) else Decimal(str(value))


def _time(value: Any) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else _expected(value, datetime)


def _day(value: Any) -> date:
    return date.fromisoformat(value) if isinstance(value, str) else _expected(value, date)


def _truth(value: Any) -> bool:
    return bool(_expected(value, bool))


_SIMPLE: Final[list[tuple[Callable[[pa.DataType], bool], Shape]]] = [
    (pa.types.is_string, _text),
    (pa.types.is_boolean, _truth),
    (pa.types.is_integer, _whole),
    (pa.types.is_floating, _real),
    (pa.types.is_binary, _bytes),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, _time),
    (pa.types.is_date, _day),
]
