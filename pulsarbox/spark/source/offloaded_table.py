"""Topic as one table: its offloaded files, read by Spark's Parquet reader, plus the entries still in the box.

The manifest is read once to fix the boundary: the files are listed, and the source starts at the first position after
them. Offloading that happens meanwhile changes neither part.
"""

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructField, StructType

from pulsarbox.names import parse_topic
from pulsarbox.spark.connect.broker_api import Service, TopicBounds
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.decode import row_columns
from pulsarbox.spark.lakehouse.table_scan import TableScan
from pulsarbox.spark.offload import table_history
from pulsarbox.spark.offload.columns import is_raw, typed
from pulsarbox.spark.offload.object_path import SCHEME, ObjectPath
from pulsarbox.spark.offload.table_history import OffloadRoot
from pulsarbox.spark.options import BATCH, OptionError, SparkOptions, parse
from pulsarbox.spark.schema.inference import described
from pulsarbox.spark.source import topic_selection
from pulsarbox.spark.source.offsets import Mark, document
from pulsarbox.spark.spark_naming import quoted, unglobbed
from pulsarbox.spark.topic_segments import DataLost, Lost

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger(__name__)

_LISTING: Final = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_NOT_HERE: Final = {
    "starting_offsets": "startingOffsets",
    "starting_time": "startingTime",
    "ending_offsets": "endingOffsets",
    "ending_time": "endingTime",
    "read_compacted": "readCompacted",
    "subscription": "subscription",
}
"""Options of a read that a table rejects, since it always has the whole topic."""


class Past(NamedTuple):
    """Snapshot of the offloaded history of some topics."""

    files: dict[str, list[Any]]
    """Full paths, or the scan of a table, by column set ID."""
    schemas: dict[str, StructType]
    marks: dict[str, Mark]
    """Position after the history, by topic or partition."""
    instances: dict[str, str]
    """ID of the data directory of each topic's ledgers."""
    newest: str = ""
    """ID of the column set that was written last."""


def table(
    spark: "SparkSession",
    topic: str | Sequence[str] | None,
    directory: str | Path,
    *,
    tail: bool,
    schema: StructType | str | None,
    catalog: str = "",
    options: Mapping[str, str | bool | int],
) -> "DataFrame":
    """See ``pulsarbox.spark.table``."""
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    if topic is not None:
        names = [topic] if isinstance(topic, str) else list(topic)
        given |= {"topic": names[0]} if len(names) == 1 else {"topics": ",".join(names)}
    asked = parse(given, BATCH)
    for field, name in _NOT_HERE.items():
        if getattr(asked, field) != getattr(SparkOptions(), field):
            raise OptionError(
                f"option {name} does not apply to table(), which has all offloaded rows and all later ones: filter "
                "with where"
            )
    root = table_history.root_of(directory, catalog)
    past = past_of(root, _offloaded(root, asked), [str(parse_topic(name)) for name in asked.named])
    # Fix the boundary before asking the box: entries offloaded from now on are still read from the box.
    found = _live(asked, past, root) if tail else {}
    if not found and not past.files:
        if tail or not past.newest:
            raise OptionError(
                f"nothing of {', '.join(asked.named) or asked.topics_pattern} was offloaded into {root}"
                + _or_tail(tail)
            )
    wanted = _wanted(asked, schema, past, tail=bool(found))
    frames = [_history(spark, past.schemas[name], paths, wanted) for name, paths in sorted(past.files.items())]
    if found:
        frames.append(_tail(spark, given, found, wanted))
    if not frames:
        return spark.createDataFrame([], wanted)
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def _or_tail(tail: bool) -> str:
    return ", and the box has no such topic" if tail else "; tail=True reads it from the box"


def _offloaded(root: OffloadRoot, asked: SparkOptions) -> list[str]:
    """Return the base names of the requested topics that may have a history."""
    if asked.topics_pattern:
        matches = topic_selection.matcher(asked.topics_pattern)[1]
        return [str(name) for name in table_history.topics_of(root) if matches(str(name))]
    return sorted({str(parse_topic(name).base) for name in asked.named})


def past_of(root: OffloadRoot, topics: Sequence[str], named: Sequence[str] = ()) -> Past:
    """Return the offloaded history of some topics, limited to the ``named`` partitions and the partitions of named
    topics, if any are named. Raises OffloadError."""
    found = table_history.offloaded(root, topics, named)
    files = {name: [_uri(path) for path in paths] for name, paths in found.files.items()}
    schemas = {name: StructType.fromJson(columns) for name, columns in found.schemas.items()}
    return Past(files, schemas, found.marks, found.instances, found.newest)


def _uri(path: Path | ObjectPath | TableScan) -> str | TableScan:
    if isinstance(path, TableScan):
        return path
    return f"file://{unglobbed(path)}" if isinstance(path, Path) else str(path)


def _live(asked: SparkOptions, past: Past, root: OffloadRoot) -> dict[str, Mark | None]:
    """Return the topics and partitions in the box, each with its starting mark; None is its beginning.

    Raises OptionError for a named topic that is only offloaded, or was offloaded from another box; DataLost for a topic
    that was deleted and recreated.
    """
    to = reach(asked)
    with Service(to) as service:
        if asked.topics_pattern:
            topics = topic_selection.topics(service, asked)
        else:
            topics = _named(service, asked, past)
        bounds = service.all_bounds(topics) if past.marks else {}
        known = sorted(set(topics) & past.marks.keys() & bounds.keys())
        instance = service.instance(known[0]) if known else None
    for topic in known:
        if instance is not None and past.instances[topic] != instance:
            raise OptionError(
                f"{root} has the history of {topic} from another box (data directory "
                f"{past.instances[topic] or 'unknown'}, this one is {instance or 'unknown'}): read it with tail=False, "
                "and the topic separately"
            )
        _check_same(topic, past.marks[topic], bounds[topic], fail=asked.fail_on_data_loss)
    gone = sorted(past.marks.keys() - set(topics))
    for topic in gone:
        log.warning("%s no longer exists in the box: only its offloaded rows are read", topic)
    return {topic: past.marks.get(topic) for topic in topics}


def _named(service: Service, asked: SparkOptions, past: Past) -> list[str]:
    try:
        return topic_selection.awaited(service, asked)
    except OptionError as error:
        if past.marks:
            raise OptionError(f"{error}. tail=False reads what was offloaded") from None
        raise


def _check_same(topic: str, mark: Mark, bounds: TopicBounds, *, fail: bool) -> None:
    if mark.place.ledger < bounds.earliest.ledger and 0 <= bounds.before < mark.seen:
        lost = Lost(topic, mark.place, bounds.earliest, "no longer exist: the topic was recreated")
        if fail:
            raise DataLost(lost)
        log.warning("%s: skipped", lost)


def _wanted(asked: SparkOptions, schema: StructType | str | None, past: Past, *, tail: bool) -> StructType:
    """Return the columns of the table."""
    if isinstance(schema, str):
        made = StructType.fromDDL(schema)
        assert isinstance(made, StructType)
        return made
    if schema is not None:
        return schema
    if tail:
        return described(asked)
    whole = typed(past.schemas[past.newest])
    own = [column.name for column in row_columns.chosen(asked.columns)]
    values = [
        field for field in whole.fields if field.name not in row_columns.NAMES and field.name != row_columns.CORRUPT
    ]
    if asked.value_format == "bytes" or asked.different_schemas:
        values = [StructField(row_columns.VALUE, BinaryType())]
    corrupt = [
        field for field in whole.fields if field.name == row_columns.CORRUPT and len(values) and not _only_bytes(values)
    ]
    if not row_columns.with_value(asked.columns):
        values, corrupt = [], []
    return StructType([*values, *(whole[name] for name in own), *corrupt])


def _only_bytes(values: Sequence[StructField]) -> bool:
    return len(values) == 1 and isinstance(values[0].dataType, BinaryType)


def _tail(
    spark: "SparkSession", given: Mapping[str, str], found: Mapping[str, Mark | None], wanted: StructType
) -> "DataFrame":
    marks = {topic: mark for topic, mark in found.items() if mark is not None}
    begin = json.dumps(document(marks)) if marks else "earliest"
    options = {**given, "startingOffsets": begin}
    return spark.read.format("pulsarbox").schema(wanted).options(**options).load()


# History --------------------------------------------------------------------------------------------------------------


def _history(spark: "SparkSession", stored: StructType, paths: list[Any], wanted: StructType) -> "DataFrame":
    """Read files of one column set as the wanted columns."""
    found = plan_of(stored, wanted)
    read = StructType(list({each.stored.name: each.stored for each in found if each.stored is not None}.values()))
    if isinstance(paths[0], TableScan):
        from pulsarbox.spark.source.table_rows import frame_of_table

        frame = frame_of_table(spark, paths[0], read)
    elif paths[0].startswith(SCHEME):
        from pulsarbox.spark.source.object_files import frame_of

        frame = frame_of(spark, paths, read)
    else:
        with _listed_by_the_driver(spark):
            frame = spark.read.schema(read).parquet(*paths)
    return frame.select(*(_column(each) for each in found))


@contextlib.contextmanager
def _listed_by_the_driver(spark: "SparkSession") -> Iterator[None]:
    """Have Spark look up files in the driver. From 33 files on, it would run a job with a task for each of them."""
    before = spark.conf.get(_LISTING, None)
    spark.conf.set(_LISTING, str(1 << 30))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_LISTING)
        else:
            spark.conf.set(_LISTING, before)


class Taken(NamedTuple):
    """Source of a column."""

    wanted: StructField
    stored: StructField | None
    """Column of the file, with the type in which to read it; None if the files lack it, so that it is null."""


def plan_of(stored: StructType, wanted: StructType) -> list[Taken]:
    """Return the source of each column. A column of another type is cast if Spark can, else null; values without
    columns in the files go to ``_corrupt_record``."""
    names = stored.fieldNames()
    values = [
        field
        for field in wanted.fields
        if field.name not in row_columns.NAMES and field.name not in (row_columns.CORRUPT, row_columns.PAYLOAD)
    ]
    raw_wanted = _only_bytes(values) and values[0].name == row_columns.VALUE
    found = []
    for field in wanted.fields:
        if raw_wanted and field.name == row_columns.VALUE and row_columns.PAYLOAD in names:
            found.append(Taken(field, StructField(row_columns.PAYLOAD, BinaryType())))
        elif field.name == row_columns.CORRUPT and not raw_wanted and is_raw(stored):
            found.append(Taken(field, StructField(row_columns.VALUE, BinaryType())))
        elif field.name not in names:
            found.append(Taken(field, None))
        else:
            found.append(Taken(field, _read_as(stored[field.name], field)))
    return found


def _read_as(stored: StructField, wanted: StructField) -> StructField | None:
    """Return how to read a column: as the wanted type if the reader supports it, else as stored, for a cast."""
    if _fits(stored.dataType, wanted.dataType):
        return StructField(stored.name, wanted.dataType)
    nested = (StructType, ArrayType, MapType)
    if isinstance(stored.dataType, nested) or isinstance(wanted.dataType, nested):
        return None  # a cast matches fields by order, not by name
    return StructField(stored.name, stored.dataType)


def _fits(stored: DataType, wanted: DataType) -> bool:
    """Return whether Parquet's reader yields one type as the other: fields match by name, missing ones are null."""
    if isinstance(stored, StructType) and isinstance(wanted, StructType):
        there = set(stored.fieldNames())
        shared = [field for field in wanted.fields if field.name in there]
        return bool(shared) and all(_fits(stored[field.name].dataType, field.dataType) for field in shared)
    if isinstance(stored, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(stored.elementType, wanted.elementType)
    if isinstance(stored, MapType) and isinstance(wanted, MapType):
        return _fits(stored.keyType, wanted.keyType) and _fits(stored.valueType, wanted.valueType)
    return stored == wanted


def _column(taken: Taken) -> "Column":
    from pyspark.sql import functions

    name, target = taken.wanted.name, taken.wanted.dataType
    if taken.stored is None:
        return functions.lit(None).cast(target).alias(name)
    found = functions.col(quoted(taken.stored.name))
    if taken.stored.dataType != target:
        found = found.try_cast(target)
    return found.alias(name)
