"""Export: writes topics once into Parquet, JSON or CSV files, with the columns of their schemas."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulsarbox.errors import PreconditionFailed, PulsarBoxError
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.decode.row_columns import NAMES, chosen
from pulsarbox.spark.options import EARLIEST, LATEST, READ, OptionError, parse
from pulsarbox.spark.pipelines.shipped.acknowledged_entries import AcknowledgedEntries, acked_of, left_of
from pulsarbox.spark.pipelines.shipped.file_output import check_empty, write
from pulsarbox.spark.pipelines.text_files import TEXT, WRITTEN, check_options, text_columns
from pulsarbox.spark.source import topic_selection
from pulsarbox.spark.spark_naming import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ID: Final = re.compile(r"-?\d+:-?\d+(:-?\d+){0,2}")
_PLACE: Final = ("__ledgerId", "__entryId", "__partition", "__batchIndex")
"""Columns that form a message ID."""
MESSAGE_ID: Final = "__messageId"


@dataclass(frozen=True)
class Export:
    """Request of an export."""

    box: Mapping[str, str]
    select: Mapping[str, str]
    """Topics and their range, as options of the format: see ``ranged``."""
    form: str
    place: str
    """A directory, or a URL that Spark can write to."""
    columns: str = "basic"
    """``basic``, ``all``, or names separated by commas, including record fields."""
    mode: str = ""
    """``append``, ``overwrite``; empty: the directory must be empty."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Options of the files."""
    encoding: str = "base64"
    """Encoding of binary columns in text files: one of BYTES."""

    def acked(self, subscription: str) -> dict[str, AcknowledgedEntries]:
        """Return the entries acknowledged on a subscription, by topic or partition. Raises the broker's errors."""
        options = parse({**self.box, **self.select}, READ)
        to = reach(options)
        with Service(to) as service:
            topics = topic_selection.topics(service, options)
        return {topic: acked_of(to, topic, subscription) for topic in topics}

    def check_range(self, begin: str, end: str) -> None:
        """Check that ``end`` is not before ``begin`` on every topic. Raises OptionError and the broker's errors.

        Two times are compared when the options are parsed; a range with message IDs is resolved by the broker.
        """
        if not (begin and end and (_ID.fullmatch(begin) or _ID.fullmatch(end))):
            return
        options = parse({**self.box, **self.select}, READ)
        with Service(reach(options)) as service:
            for topic in topic_selection.topics(service, options):
                start = topic_selection.start(service, options, topic, EARLIEST).place
                if start < topic_selection.end(service, options, topic):
                    return
        raise OptionError(f"--until {end} is before --from {begin}: swap them")


def ranged(topics: str, begin: str, end: str, subscription: str) -> dict[str, str]:
    """Return the options for a range: ``begin`` and ``end`` are IDs (``12:345``, inclusive), times, or empty.

    Raises PulsarBoxError for contradictions.
    """
    found: dict[str, str] = {}
    if begin == LATEST:
        raise PulsarBoxError("--from latest: nothing follows, as an export ends at the end of the topic; omit --from")
    if end == EARLIEST:
        raise PulsarBoxError("--until earliest: nothing precedes the first message; omit --until")
    if subscription:
        if begin:
            raise PulsarBoxError("a subscription determines where to start: omit --from or -s")
        found |= {"startingOffsets": "subscription", "subscription": subscription}
    for text, offsets, time in ((begin, "startingOffsets", "startingTime"), (end, "endingOffsets", "endingTime")):
        if not text:
            continue
        if not _ID.fullmatch(text):
            found[offsets if text in ("earliest", "latest") else time] = text
            continue
        if "," in topics or not topics:
            raise PulsarBoxError(f"{text} is a message ID of one topic: name a single topic, or use a time")
        found[offsets] = f'{{"{topics}": "{_place(text, is_end=offsets == "endingOffsets")}"}}'
    return found


def _place(text: str, *, is_end: bool) -> str:
    """Parse a message ID, as our commands print it, into a position: for an end, the one after the message."""
    ledger, entry, *rest = (int(number) for number in text.split(":"))
    batch = rest[1] if len(rest) == 2 else -1  # the third one is the partition's number
    if len(rest) == 1:
        raise PulsarBoxError(f"{text}: invalid message ID; expected LEDGER:ENTRY or LEDGER:ENTRY:PARTITION:INDEX")
    if batch >= 0:
        return f"{ledger}:{entry}:{batch + is_end}"
    return f"{ledger}:{entry + is_end}"


def check(asked: Export) -> None:
    """Check the request.

    Raises PulsarBoxError for contradicting options, NotEmptyError for a non-empty directory, and OptionError.
    """
    parse({**asked.box, **asked.select}, READ)
    check_options(asked.written)
    if asked.encoding != "base64" and asked.form not in TEXT:
        raise PulsarBoxError(f"--bytes applies to text formats: {asked.form} stores bytes as they are")
    if not asked.mode:
        check_empty(asked.place)


def export(spark: "SparkSession", asked: Export) -> int:
    """Write the files and return the number of rows. Raises Spark's errors."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    counted = Observation("export")
    named = [] if asked.columns in ("basic", "all") else [name.strip() for name in asked.columns.split(",")]
    subscription, is_text = asked.select.get("subscription", ""), asked.form in TEXT
    reader = spark.read.format("pulsarbox").options(**asked.box, **asked.select)
    rows = reader.option("columns", "all" if named or subscription or is_text else asked.columns).load()
    if subscription or is_text:
        named = named or _as_asked(rows.columns, asked.columns)
    if subscription:
        rows = left_of(rows, asked.acked(subscription))
    for name in named:
        if name not in rows.columns:
            raise PreconditionFailed(f"--columns: unknown column {name}; expected one of {', '.join(rows.columns)}")
    if is_text:
        rows = _as_text(rows, asked, named)
    elif named:
        rows = rows.select(*(rows[quoted(name)] for name in named))
    rows = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    write(rows, asked.form, asked.place, asked.mode, {**WRITTEN.get(asked.form, {}), **asked.written})
    return int(counted.get["rows"])


def _as_asked(columns: list[str], asked: str) -> list[str]:
    """Return the columns that ``basic`` or ``all`` selects."""
    beside = {column.name for column in chosen(asked)}
    return [name for name in columns if name in beside or name not in NAMES]


def _as_text(rows: "DataFrame", asked: Export, named: list[str]) -> "DataFrame":
    """Return the named columns as text, and message IDs as our commands print them."""
    from pyspark.sql import functions as sql

    parts = (sql.coalesce(rows[name].cast("string"), sql.lit("-1")) for name in _PLACE)
    place = sql.concat_ws(":", *parts)
    columns = text_columns(rows, named, asked.form, asked.encoding, sql.concat(sql.lit("message "), place))
    if MESSAGE_ID in columns:
        columns[MESSAGE_ID] = place
    return rows.select(*(column.alias(name) for name, column in columns.items()))
