"""Conversion of messages into the record batches that Spark requested, each column with its own type."""

from array import array as array_of
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from pulsarbox.config.setting import did_you_mean
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.key_value import is_separated, split
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.decode.message_columns import Cuts, Messages, Properties, text
from pulsarbox.spark.decode.row_columns import CORRUPT, NAMES, VALUE
from pulsarbox.spark.decode.value_decoder import RECORDS, Bad, Decoder, UnreadableValues, decoder, is_pair, pair
from pulsarbox.spark.decode.value_programs import TEXT, Node
from pulsarbox.spark.schema.column_types import KEY, ColumnType, NoColumnsError, is_record, type_of

FAILFAST: Final = "failfast"
DROP: Final = "dropmalformed"

_LISTS: Final[Mapping[str, str]] = {
    "__key": "key",
    "__messageId": "message_id",
    "__publishTime": "publish_time",
    "__eventTime": "event_time",
    "__messageProperties": "properties",
    "__ledgerId": "ledger",
    "__entryId": "entry",
    "__batchIndex": "batch",
    "__producerName": "producer_name",
    "__sequenceId": "sequence_id",
    "__orderingKey": "ordering_key",
    "__schemaVersion": "schema_version",
}
"""List of ``Messages`` that holds a column's values."""
_SCHEMAS_MIXED: Final = 4
_MILLIS: Final = pa.timestamp("ms", tz="UTC")
_OWN: Final[Mapping[str, pa.DataType]] = {
    "__key": pa.binary(),
    "__messageId": pa.binary(),
    "__publishTime": _MILLIS,
    "__eventTime": _MILLIS,
    "__orderingKey": pa.binary(),
    "__schemaVersion": pa.binary(),
    "__ledgerId": pa.int64(),
    "__entryId": pa.int64(),
    "__batchIndex": pa.int32(),
    "__sequenceId": pa.int64(),
}
"""Arrow types of these lists, where they differ from Spark's column type."""
_UNSIGNED: Final = frozenset({"__publishTime", "__eventTime", "__sequenceId"})
"""Unsigned 64-bit fields of the protocol, in which a producer may send any value."""
_TIME_MAX: Final = (2**63 - 1) // 1000
"""Milliseconds: Spark's timestamps are 64-bit microseconds."""


class MalformedError(ValueError):
    """A value does not match its schema, with mode=failfast."""


class RecordBatches:
    """Builder of record batches of one schema. Picklable, without its readers."""

    def __init__(self, schema: pa.Schema, registry: Registry, value_format: str, mode: str) -> None:
        self._names: list[str] = schema.names
        self._arrow = schema
        self._registry = registry
        self._form = value_format
        self._mode = mode
        self._values = [name for name in self._names if name not in NAMES and name != CORRUPT]
        self._readers: dict[tuple[str, bytes | None], _Reader] = {}
        self._alike: dict[tuple[Any, ...], _Reader] = {}
        self._several = _Several(())

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the batches."""
        return self._arrow

    @property
    def is_raw(self) -> bool:
        """Whether the values are one column ``value`` with the payloads, unchanged."""
        return self._form == "bytes" and self._values == [VALUE] and pa.types.is_binary(self._arrow.field(VALUE).type)

    @property
    def drops_rows(self) -> bool:
        """Whether a value may fail the read or drop its row."""
        return self._mode in (FAILFAST, DROP) and bool(self._values) and not self.is_raw

    @property
    def wanted(self) -> frozenset[str]:
        """The lists of ``Messages`` that the columns need."""
        lists = {_LISTS[name] for name in self._names if name in _LISTS}
        if self._values or CORRUPT in self._names:
            lists.add("payload")
            if self._form in ("auto", "avro"):
                lists.add("schema_version")
            if self._form not in ("bytes", "string"):
                lists.add("encryption")
        if KEY in self._values:
            lists.add("key")
        if self._mode == FAILFAST and self._values:
            lists |= {"ledger", "entry"}
        return frozenset(lists)

    def check(self, schemas: Iterable[Schema | None]) -> None:
        """Reject columns with an unsupported type or an unknown name, before any message is read. ``schemas``: the
        known schemas of the topics. Raises Unreadable."""
        for name in self._names:
            if name in NAMES:
                self._check_own(name)
        fields = {name for schema in schemas for name in _fields_of(schema)}
        for name in self._values:
            nearest = did_you_mean(name, list(NAMES))
            if name.startswith("__") and nearest and name not in fields and self._form != "json":
                raise UnreadableValues(f"unknown column {name}{nearest}")

    def _check_own(self, name: str) -> None:
        try:
            self._own(name, _ANY)
        except (pa.ArrowException, TypeError, ValueError):
            target = self._arrow.field(name).type
            raise UnreadableValues(
                f"column {name} has type {NAMES[name].type} and cannot be read as {target}"
            ) from None

    def mixes(self, topics: Iterable[str]) -> bool:
        """Return whether one batch may mix rows of these topics: with many schemas, their values would be read in small
        groups. Raises PulsarBoxError."""
        if not self._values or self._form in ("bytes", "string"):
            return True
        return len({_alike(self._registry.newest(topic)) for topic in topics}) <= _SCHEMAS_MIXED

    def batch(self, messages: Messages) -> pa.RecordBatch:
        """Return messages as a record batch. Raises MalformedError, Unreadable, PulsarBoxError."""
        arrays: dict[str, pa.Array] = {}
        bad: list[Bad] = []
        if self._values or CORRUPT in self._names:
            found, bad = self._decoded(messages)
            arrays.update(found)
        if bad and self._mode == FAILFAST:
            raise MalformedError(self._malformed(messages, bad[0]))
        for name in self._names:
            if name in NAMES:
                arrays[name] = self._own(name, messages)
        if CORRUPT in self._names:
            unread: list[bytes | None] = [None] * messages.rows
            for each in bad:
                unread[each.at] = messages.payloads()[each.at]
            arrays[CORRUPT] = _as(pa.array(unread, pa.binary()), self._arrow.field(CORRUPT).type)
        made = pa.RecordBatch.from_arrays([arrays[name] for name in self._names], schema=self._arrow)
        if bad and self._mode == DROP:
            out = {each.at for each in bad}
            made = made.filter(pa.array([at not in out for at in range(messages.rows)]))
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_readers": {}, "_alike": {}, "_several": _Several(())}

    def programs(self, topic: str) -> dict[str, Node] | None:
        """Return how the JVM decodes a topic's values, by hexadecimal version of their schema, which is ``*`` if it is
        insignificant; None if only Python can. Raises Unreadable, PulsarBoxError."""
        newest = None if self._form in ("bytes", "string", "json") else self._registry.newest(topic)
        found = self._reader(topic, None).program
        if found is None or newest is None or newest.type == Schema.Json:
            return None if found is None else {"*": found}
        older = {each.hex(): self._reader(topic, each).program for each in self._registry.versions(topic)}
        return {"": found, **{version: each for version, each in older.items() if each is not None}}

    @property
    def mode(self) -> str:
        """The option for values that do not match their schema: permissive, dropmalformed or failfast."""
        return self._mode

    @property
    def values(self) -> Sequence[str]:
        """The columns of the value."""
        return self._values

    def close(self) -> None:
        """Close the schema registry's connection, if any. Raises nothing."""
        self._registry.close()

    def _malformed(self, messages: Messages, bad: Bad) -> str:
        where = f"{messages.ledger[bad.at]}:{messages.entry[bad.at]}"
        topic = messages.name_of(messages.of[bad.at] if messages.of else -1)
        return (
            f"message {where} of {topic} does not match its schema ({bad.reason}). mode=permissive puts such values "
            f"into {CORRUPT}, mode=dropmalformed skips the messages"
        )

    def _own(self, name: str, messages: Messages) -> pa.Array:
        target = self._arrow.field(name).type
        if name in ("__topic", "__partition"):
            return self._of_topics(name, messages, target)
        if name == "__redeliveryCount":
            return _as(pa.repeat(pa.scalar(0, pa.int32()), messages.rows), target)
        if name == "__messageProperties":
            return _map(messages.properties, target)
        values, own = getattr(messages, _LISTS[name]), _OWN.get(name, target)
        if values and values[0] is None and values.count(None) == len(values):
            return pa.nulls(len(values), target)
        try:
            return _as(pa.array(values, own), target)
        except (OverflowError, pa.ArrowInvalid):
            if name not in _UNSIGNED:
                raise
        return _as(pa.array([_signed(value, own) for value in values], own), target)

    def _of_topics(self, name: str, messages: Messages, target: pa.DataType) -> pa.Array:
        is_name = name == "__topic"
        if messages.of:
            return self._several_of(messages).spread(0 if is_name else 1, messages.of, target)
        if is_name:
            return pa.array([messages.topic] * messages.rows, target)  # pa.repeat takes several times as long
        partition = pa.scalar(messages.partition if messages.partition >= 0 else None, pa.int32())
        return _as(pa.repeat(partition, messages.rows), target)

    # Values

    def _decoded(self, messages: Messages) -> tuple[dict[str, pa.Array], list[Bad]]:
        """Return the value columns and the unreadable rows, decoding group by group of one schema."""
        pieces: list[list[pa.Array]] = []
        order: list[int] = []
        bad: list[Bad] = []
        for reader, places in self._groups(messages):
            arrays, unread = reader.columns(messages, places)
            pieces.append(arrays)
            order += places
            bad += [Bad(places[each.at], each.reason) for each in unread]
        columns = pieces[0]
        if len(pieces) > 1:
            back = pa.array(sorted(range(len(order)), key=order.__getitem__))
            columns = [pa.concat_arrays(each).take(back) for each in zip(*pieces, strict=True)]
        return dict(zip(self._values, columns, strict=True)), sorted(bad)

    def _groups(self, messages: Messages) -> Iterable[tuple["_Reader", Sequence[int]]]:
        """Return the rows grouped by reader."""
        if self._form in ("bytes", "string"):
            any_of_them = messages.name_of(messages.of[0] if messages.of else -1)
            return [(self._reader(any_of_them, None), range(messages.rows))]
        versions: Sequence[bytes | None] = messages.schema_version or [None] * messages.rows
        version = versions[0] if versions else None
        is_one = len(set(versions)) <= 1
        if is_one and not messages.of:
            return [(self._reader(messages.topic, version), range(messages.rows))]
        if is_one:
            known = self._several_of(messages).readers.setdefault(version, {})
            known.update((at, self._reader(messages.topics[at][0], version)) for at in {*messages.of} - known.keys())
            if len(set(known.values())) == 1:
                return [(known[messages.of[0]], range(messages.rows))]
        kinds = list(zip(messages.of or [-1] * messages.rows, versions, strict=True))
        readers = {kind: self._reader(messages.name_of(kind[0]), kind[1]) for kind in set(kinds)}
        groups: dict[_Reader, list[int]] = {}
        for at, kind in enumerate(kinds):
            groups.setdefault(readers[kind], []).append(at)
        return groups.items()

    def _several_of(self, messages: Messages) -> "_Several":
        if self._several.topics is not messages.topics:
            self._several = _Several(messages.topics)
        return self._several

    def _reader(self, topic: str, version: bytes | None) -> "_Reader":
        found = self._readers.get((topic, version))
        if found is None:
            newest = None if self._form in ("bytes", "string") else self._registry.newest(topic)
            is_same = version is None or newest is None or newest.type == Schema.Json
            writer = newest if is_same else self._registry.at(topic, version or b"")
            alike = _alike(writer), _alike(newest)
            found = self._alike.get(alike)
            if found is None:
                fields = [self._arrow.field(name) for name in self._values]
                try:
                    found = self._alike[alike] = _Reader(writer, newest, fields, self._form)
                except UnreadableValues as error:
                    raise UnreadableValues(f"{topic}: {error}") from None
            self._readers[topic, version] = found
        return found


class _Several:
    """Cached readers and arrays for topics whose messages are mixed."""

    def __init__(self, topics: Sequence[tuple[str, int]]) -> None:
        self.topics = topics
        self.readers: dict[bytes | None, dict[int, _Reader]] = {}
        """By schema version, then by topic index."""
        self._arrays: dict[tuple[int, pa.DataType], pa.Array] = {}

    def spread(self, what: int, of: list[int], target: pa.DataType) -> pa.Array:
        """Return the name (0) or partition (1) of each row's topic."""
        every = self._arrays.get((what, target))
        if every is None:
            values = [None if each[what] == -1 else each[what] for each in self.topics]
            every = self._arrays[what, target] = _as(pa.array(values, pa.int32() if what else pa.string()), target)
        return every.take(_numbers(of))


_ANY: Final = Messages(
    "1", 1, 1, key=[b"1"], ordering_key=[b"1"], message_id=[b"1"], ledger=[1], entry=[1], batch=[1],
    publish_time=[1], event_time=[1], properties=Properties([1], [b"1"], [b"1"]), producer_name=["1"], sequence_id=[1],
    schema_version=[b"1"],
)  # fmt: skip
"""Sample message that casts to every type its columns can be read as."""


def _fields_of(schema: Schema | None) -> list[str]:
    """Return the field names of a record schema; empty for others."""
    try:
        found = type_of(schema)
    except NoColumnsError:
        return []
    return _names_of(found) if is_record(found) else []


def _names_of(record: ColumnType) -> list[str]:
    return [field["name"] for field in record["fields"]]


def _alike(schema: Schema | None) -> tuple[Any, ...]:
    """Return a key that is equal for schemas whose values are read alike."""
    if schema is None:
        return ()
    properties = sorted((each.key, each.value) for each in schema.properties)
    return schema.type, schema.schema_data, tuple(properties)


class _Reader:
    """Reader of values of one schema into given columns."""

    def __init__(self, writer: Schema | None, newest: Schema | None, fields: list[pa.Field], form: str) -> None:
        self._fields = fields
        self._parts: list[tuple[Callable[[Messages, int], bytes | None], Decoder, list[str]]] = []
        self._is_fields = False
        """Whether the columns are the fields of one record."""
        names = [field.name for field in fields]
        if form == "auto" and writer is not None and is_pair(writer):
            self._take_pair(writer, newest)
        elif not fields:
            pass
        elif self._is_record(writer, form):
            self._is_fields = True
            self._add(_payload, decoder(writer, newest, pa.struct(fields), form), names)
        else:
            target = self._only_value()
            as_it_is = writer is None or (writer.type in RECORDS and not pa.types.is_struct(target))
            self._add(_payload, decoder(None if as_it_is else writer, newest, target, form), names)

    @property
    def program(self) -> Node | None:
        """How the JVM decodes the values; None if only Python can."""
        if len(self._parts) != 1 or self._parts[0][0] is not _payload:
            return None
        found = self._parts[0][1].program
        return found if self._is_fields or found == TEXT else None

    def _add(self, take: Callable[[Messages, int], bytes | None], made: Decoder, names: list[str]) -> None:
        self._parts.append((take, made, names))

    def _is_record(self, writer: Schema | None, form: str) -> bool:
        """Return whether the columns are fields of a record.

        A single column ``value`` is the whole record, unless the record has such a field.
        """
        if form in ("bytes", "string", "json"):
            return form == "json"
        names = [field.name for field in self._fields]
        try:
            found = type_of(writer)
        except NoColumnsError:
            return names != [VALUE]
        return is_record(found) and (names != [VALUE] or VALUE in _names_of(found))

    def _only_value(self) -> pa.DataType:
        if [field.name for field in self._fields] != [VALUE]:
            names = ", ".join(field.name for field in self._fields)
            raise UnreadableValues(
                f"the values are not records with columns {names}, but a single column {VALUE}; for JSON without a "
                "schema, set valueFormat=json"
            )
        return self._fields[0].type

    def _take_pair(self, writer: Schema, newest: Schema | None) -> None:
        apart = is_separated(writer)
        parts = split(writer)
        latest = split(newest) if newest is not None and is_pair(newest) else (None, None)
        takes = (_own_key, _payload) if apart else (_first, _second)
        for name, take, part, last in zip((KEY, VALUE), takes, parts, latest, strict=True):
            wanted = [field for field in self._fields if field.name == name]
            if wanted:
                self._add(take, decoder(part if part.type else None, last, wanted[0].type), [name])

    def columns(self, messages: Messages, places: Sequence[int]) -> tuple[list[pa.Array], list[Bad]]:
        """Return the columns of some messages, in the order of the fields, and the unreadable rows."""
        if messages.cuts is not None and len(places) == messages.rows and len(self._parts) == 1:
            take, made, names = self._parts[0]
            array = made.of_bytes(_cut(messages.cuts)) if take is _payload and made.is_plain else None
            if array is not None:
                return [array], []
        found: dict[str, pa.Array] = {}
        bad: dict[int, str] = {}
        for take, made, names in self._parts:
            values = _taken(take, messages, places, bad)
            if take is not _own_key and not made.is_plain and any(messages.encryption):
                values = _without_encrypted(values, messages, places, bad)
            array, unread = _with_nulls(made, values)
            bad.update((each.at, each.reason) for each in unread)
            found.update(zip(names, array.flatten() if self._is_fields else [array], strict=True))
        arrays = [
            found[field.name] if field.name in found else pa.nulls(len(places), field.type) for field in self._fields
        ]
        return arrays, [Bad(at, reason) for at, reason in sorted(bad.items())]


def _taken(
    take: Callable[[Messages, int], bytes | None], messages: Messages, places: Sequence[int], bad: dict[int, str]
) -> list[bytes | None]:
    if take is _payload and len(places) == messages.rows:  # all rows are of one schema and in order
        return messages.payloads()
    taken: list[bytes | None] = []
    for at, place in enumerate(places):
        try:
            taken.append(take(messages, place))
        except ValueError as error:
            bad[at] = str(error)
            taken.append(None)
    return taken


def _without_encrypted(
    values: list[bytes | None], messages: Messages, places: Sequence[int], bad: dict[int, str]
) -> list[bytes | None]:
    """Replace encrypted values with None: their bytes could decode as something else by chance."""
    closed = {at for at, place in enumerate(places) if messages.encryption[place] is not None}
    bad.update(dict.fromkeys(closed, "encrypted by the client"))
    return [None if at in closed else value for at, value in enumerate(values)]


def _with_nulls(made: Decoder, values: list[bytes | None]) -> tuple[pa.Array, list[Bad]]:
    """Decode values of which some are null."""
    if None not in values:
        return made.array(values)  # type: ignore[arg-type]
    there = [at for at, value in enumerate(values) if value is not None]
    array, bad = made.array([value for value in values if value is not None])
    numbers: Iterator[int] = iter(range(len(there)))
    back = pa.array([None if value is None else next(numbers) for value in values], pa.int64())
    return array.take(back), [Bad(there[each.at], each.reason) for each in bad]


def _payload(messages: Messages, at: int) -> bytes | None:
    return messages.payloads()[at]


def _own_key(messages: Messages, at: int) -> bytes | None:
    return messages.key[at]


def _first(messages: Messages, at: int) -> bytes | None:
    payload = messages.payloads()[at]
    return None if payload is None else pair(payload)[0]


def _second(messages: Messages, at: int) -> bytes | None:
    payload = messages.payloads()[at]
    return None if payload is None else pair(payload)[1]


def _cut(cuts: Cuts) -> pa.Array:
    """Return the slices as an Arrow array, without a Python object each: every second element of an array that also has
    the gaps between them."""
    count = len(cuts.places) // 2
    if not count:
        return pa.array([], pa.binary())
    offsets = _numbers(cuts.places).buffers()[1]
    every = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, offsets, pa.py_buffer(cuts.data)])
    return every.take(_even(count))


def _numbers(values: Iterable[int]) -> pa.Array:
    """Return an int32 array; Python's array type takes half the time of Arrow's conversion."""
    found = array_of("i", values)
    return pa.Array.from_buffers(pa.int32(), len(found), [None, pa.py_buffer(found)])


@lru_cache(maxsize=8)
def _from_zero(count: int) -> pa.Array:
    return pa.array(range(count), pa.int32())


@lru_cache(maxsize=8)
def _evens(count: int) -> pa.Array:
    return pa.array(range(0, 2 * count, 2), pa.int32())


def _even(count: int) -> pa.Array:
    """Return the first ``count`` even numbers."""
    return _evens(1 << (count - 1).bit_length()).slice(0, count)


def _as(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array if array.type == target else array.cast(target)


def _signed(value: int | None, own: pa.DataType) -> int | None:
    """Return the number as signed, as Java clients have it; None for a time beyond Spark's timestamps."""
    if value is None or (own == _MILLIS and value > _TIME_MAX):
        return None
    return value - (1 << 64) if value >= 1 << 63 else value


def _map(properties: Properties, target: pa.DataType) -> pa.Array:
    if not pa.types.is_map(target):
        return pa.array(properties.pairs(), target)
    if properties.counts.count(1) == len(properties.counts):
        offsets = _from_zero(1 << len(properties.counts).bit_length()).slice(0, len(properties.counts) + 1)
    else:
        offsets = _numbers(accumulate(properties.counts, initial=0))
    names, values = _texts(properties.names, target.key_type), _texts(properties.values, target.item_type)
    return pa.MapArray.from_arrays(offsets, names, values, target)


def _texts(values: list[bytes], target: pa.DataType) -> pa.Array:
    try:
        return _as(pa.array(values, pa.string()), target)
    except pa.ArrowInvalid:  # one is not UTF-8
        return _as(pa.array([text(value) for value in values], pa.string()), target)
