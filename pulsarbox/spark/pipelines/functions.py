"""Functions as Spark queries: rows pass through a ``Processor``, one by one or key by key.

Without state this is one ``mapInArrow``. With state, all messages of a key go to one task (``transformWithState``),
which restores their order per topic; the state of a key is one value of the state store.
"""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import Row

from pulsarbox.spark.arrow_functions import map_in_arrow, without_pandas
from pulsarbox.spark.pipelines.declaration import Function
from pulsarbox.spark.pipelines.message_processing import EncodedMessage, Incoming, Processor
from pulsarbox.spark.worker_gc import settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
        ValueState,
    )

_INCOMING: Final = {
    "value": "binary",
    "__key": "binary",
    "__topic": "string",
    "__messageProperties": "map<string,string>",
    "__eventTime": "bigint",
    "__publishTime": "bigint",
    "__ledgerId": "bigint",
    "__entryId": "bigint",
    "__partition": "int",
    "__batchIndex": "int",
}
"""Columns read for a function; times are milliseconds since 1970."""
_TIMES: Final = ("__eventTime", "__publishTime")
OPTIONS: Final = {"valueFormat": "bytes", "columns": ",".join(_INCOMING)}
"""Options of the read: raw payloads, so that dead letters preserve them."""
SCHEMA: Final = (
    "`__topic` string, value binary, `__key` binary, `__messageProperties` map<string,string>, `__eventTime` bigint"
)
_OUT: Final = pa.schema(
    [
        ("__topic", pa.string()),
        ("value", pa.binary()),
        ("__key", pa.binary()),
        ("__messageProperties", pa.map_(pa.string(), pa.string())),
        ("__eventTime", pa.int64()),
    ]
)
_ROW: Final = Row(*_OUT.names)
_BATCH_ROWS: Final = 1000
_BATCH_BYTES: Final = 4 << 20
_BY: Final = "__by"
_STATE: Final = "pulsarbox"


def output_of(function: Function, df: "DataFrame") -> "DataFrame":
    """Apply a function to a frame that was read with ``OPTIONS``."""
    columns = (sql.unix_millis(name).alias(name) if name in _TIMES else sql.col(name) for name in _INCOMING)
    rows = df.select(*columns)
    if not function.keyed:
        return map_in_arrow(rows, partial(_mapped, function), SCHEMA)
    if callable(function.key):
        schema = ", ".join(f"`{name}` {kind}" for name, kind in _INCOMING.items())
        keys = map_in_arrow(rows, partial(_with_keys, function), f"`{_BY}` binary, {schema}")
    else:
        keys = rows.select(sql.coalesce("__key", sql.lit(b"")).alias(_BY), "*")
    time_mode = "ProcessingTime" if function.on_timer is not None else "None"
    with without_pandas():
        return keys.groupBy(_BY).transformWithState(Keyed(function), SCHEMA, "append", time_mode)


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def log(*words: object) -> None:
    """Write to Spark's log: that of the runner, or of the worker on a cluster."""
    sys.stderr.write(f"{' '.join(map(str, words))}\n")
    sys.stderr.flush()


def _mapped(function: Function, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Process batches of messages. Runs in a worker."""
    processor = Processor(function, now, log)
    packing = _Packing()
    for batch in batches:
        for row in batch.to_pylist():
            yield from packing.add(processor.process(_incoming(row)))
    yield from packing.rest()
    settle()


def _with_keys(function: Function, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Prepend the state key to the other columns. Runs in a worker."""
    processor = Processor(function, now, log)
    for batch in batches:
        keys = pa.array([processor.key_of(_incoming(row)) for row in batch.to_pylist()], pa.binary())
        yield pa.RecordBatch.from_arrays([keys, *batch.columns], [_BY, *batch.schema.names])
    settle()


def _incoming(row: Mapping[str, Any]) -> Incoming:
    key, properties = row["__key"], row["__messageProperties"]
    numbers = (row["__ledgerId"], row["__entryId"], row["__partition"], row["__batchIndex"])
    return Incoming(
        None if row["value"] is None else bytes(row["value"]),
        None if key is None else bytes(key),
        row["__topic"],
        dict(properties or ()),
        row["__eventTime"],
        row["__publishTime"],
        ":".join("-1" if each is None else str(each) for each in numbers),
    )


class _Packing:
    """Packing of rows into Arrow batches of limited size."""

    def __init__(self) -> None:
        self._rows: list[EncodedMessage] = []
        self._size = 0

    def add(self, rows: Iterable[EncodedMessage]) -> "Iterator[pa.RecordBatch]":
        """Add rows; yield a batch whenever one is full."""
        for row in rows:
            self._rows.append(row)
            self._size += len(row.value or b"")
            if len(self._rows) >= _BATCH_ROWS or self._size >= _BATCH_BYTES:
                yield from self.rest()

    def rest(self) -> "Iterator[pa.RecordBatch]":
        """Yield the remaining rows, if any."""
        if not self._rows:
            return
        topics, values, keys, properties, times = zip(*self._rows, strict=True)
        arrays = [
            pa.array(topics, pa.string()),
            pa.array(values, pa.binary()),
            pa.array(keys, pa.binary()),
            pa.array([list(each.items()) for each in properties], _OUT.field(3).type),
            pa.array(times, pa.int64()),
        ]
        self._rows, self._size = [], 0
        yield pa.RecordBatch.from_arrays(arrays, schema=_OUT)


class Keyed(StatefulProcessor):
    """Function with state, in a worker."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def init(self, handle: "StatefulProcessorHandle") -> None:
        """See Spark's StatefulProcessor, as for the other methods."""
        self._handle = handle
        self._kept = handle.getValueState(_STATE, "kept binary")
        self._processor = Processor(self._function, now, log)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Process the messages of a key in a micro-batch."""
        with _Opened(self._kept, self._handle) as store:
            for row in sorted(rows, key=_place):
                message = _incoming(row.asDict())
                yield from _rows(self._processor.process(message, store))

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: "TimerValues",  # noqa: N803 - Spark's name
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        """Process the due timers of a key."""
        with _Opened(self._kept, self._handle) as store:
            due = timerValues.getCurrentProcessingTimeInMs()
            yield from _rows(self._processor.due(bytes(key[0]), due, store))

    def close(self) -> None:
        """Do nothing: no resources to close."""


def _place(row: Any) -> tuple[str, int, int, int]:
    """Return the sort key of a message: Spark's shuffle does not preserve order."""
    return (
        row["__topic"],
        row["__ledgerId"],
        row["__entryId"],
        -1 if row["__batchIndex"] is None else row["__batchIndex"],
    )


def _rows(found: Iterable[EncodedMessage]) -> Iterator[Row]:
    for each in found:
        yield _ROW(each.topic, each.value, each.key, dict(each.properties), each.event_time)


class _Opened:
    """State of a key, read once, and written once if it changed."""

    def __init__(self, kept: "ValueState", handle: "StatefulProcessorHandle") -> None:
        self._kept = kept
        self._handle = handle
        found = kept.get()
        self._before: dict[str, str] = json.loads(bytes(found[0])) if found and found[0] is not None else {}
        self._values = dict(self._before)

    def __enter__(self) -> "_Opened":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None or self._values == self._before:
            return
        if self._values:
            self._kept.update((json.dumps(self._values).encode(),))
        else:
            self._kept.clear()

    def get(self, name: str) -> bytes | None:
        found = self._values.get(name)
        return None if found is None else found.encode()

    def put(self, name: str, value: bytes) -> None:
        self._values[name] = value.decode()

    def delete(self, name: str) -> None:
        self._values.pop(name, None)

    def names(self) -> Iterable[str]:
        return tuple(self._values)

    def timer(self, at: int) -> None:
        self._handle.registerTimer(at)
