"""Values of a result as JSON, CSV and table cells."""

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from pulsarbox.cli.common.terminal_text import clean

BYTES: Final = ("text", "base64", "hex")
_EXACT_DIGITS: Final = 15
"""Decimals of more digits are text in JSON: a double would change them."""
Convert = Callable[[Any], Any]


def bytes_as(form: str) -> Callable[[bytes], str]:
    """Return the conversion of bytes to text. ``text`` is UTF-8, with other bytes as ``\\xNN``."""
    if form == "base64":
        return lambda value: base64.b64encode(value).decode()
    if form == "hex":
        return bytes.hex
    return lambda value: value.decode("utf-8", "backslashreplace")


class JsonValues:
    """Rows of a result as JSON values."""

    def __init__(self, schema: pa.Schema, bytes_form: str, *, for_people: bool = False) -> None:
        """``for_people``: times as ``2026-11-21 10:00:00.123+01:00`` instead of ISO 8601."""
        self._moment = _readable if for_people else datetime.isoformat
        self._names = unique(schema.names)
        self._text = bytes_as(bytes_form)
        self._exact = [not pa.types.is_decimal(kind) or _is_short(kind) for kind in schema.types]

    def rows(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        """Return the rows of a batch."""
        columns = [
            [self.value(each, exact=exact) for each in batch.column(at).to_pylist(maps_as_pydicts="lossy")]
            for at, exact in enumerate(self._exact)
        ]
        return [dict(zip(self._names, row, strict=True)) for row in zip(*columns, strict=True)]

    def value(self, value: Any, *, exact: bool = True) -> Any:
        """Return a JSON value. Times are ISO 8601; numbers that JSON lacks are text."""
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, bytes):
            return self._text(value)
        if isinstance(value, float | Decimal):
            return _number(value, exact=exact)
        if isinstance(value, dict):
            return {self._key(name): self.value(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return self._moment(value) if isinstance(value, datetime) else _other(value)

    def _key(self, name: Any) -> str:
        found = self.value(name)
        return found if isinstance(found, str) else json.dumps(found)


def _number(value: float | Decimal, *, exact: bool) -> Any:
    if not math.isfinite(value):
        return str(value)
    if isinstance(value, float):
        return value
    if value.as_tuple().exponent == 0:
        return int(value)
    return float(value) if exact else str(value)


def _readable(value: datetime) -> str:
    return value.isoformat(" ", "microseconds" if value.microsecond % 1000 else "milliseconds")


def _other(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _is_short(kind: pa.DataType) -> bool:
    return bool(kind.precision <= _EXACT_DIGITS or kind.scale == 0)


def unique(names: Sequence[str]) -> list[str]:
    """Return the names with a number appended to repeated ones, as DuckDB does for tables."""
    found: dict[str, None] = {}
    for name in names:
        made, number = name, 1
        while made in found:
            made, number = f"{name}_{number}", number + 1
        found[made] = None
    return list(found)


def csv_field(value: Any) -> str:
    """Return a JSON value as a CSV field: null is empty, and an empty text is quoted."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) and not isinstance(value, dict | list):
        return text
    needs = not text or text != text.strip() or any(one in text for one in '",\r\n')
    return '"' + text.replace('"', '""') + '"' if needs else text


def cell(value: Any) -> str:
    """Return a JSON value as a cell of a table; empty for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return clean(value)
    return clean(json.dumps(value, ensure_ascii=False)) if isinstance(value, dict | list) else repr(value)
