"""``export``: what topics have, once, into files of Parquet, JSON or CSV, with the columns that their schemas give."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulsarbox.errors import PreconditionFailed, PulsarBoxError
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.decode.row_columns import NAMES, chosen
from pulsarbox.spark.options import EARLIEST, LATEST, READ, OptionError, parse
from pulsarbox.spark.pipelines.shipped.acknowledged_entries import Acked, acked_of, left_of
from pulsarbox.spark.pipelines.shipped.file_output import check_empty, write
from pulsarbox.spark.pipelines.text_files import TEXT, WRITTEN, check_options, text_columns
from pulsarbox.spark.source import topic_selection
from pulsarbox.spark.spark_naming import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ID: Final = re.compile(r"-?\d+:-?\d+(:-?\d+){0,2}")
_PLACE: Final = ("__ledgerId", "__entryId", "__partition", "__batchIndex")
"""The columns of which a message id is made up."""
MESSAGE_ID: Final = "__messageId"


@dataclass(frozen=True)
class Export:
    """What is written where."""

    box: Mapping[str, str]
    select: Mapping[str, str]
    """Topics and their range, as options of the format: see ``ranged``."""
    form: str
    place: str
    """A directory, or a URL that Spark writes to."""
    columns: str = "basic"
    """Or ``all``, or names with commas, those of a record among them."""
    mode: str = ""
    """``append``, ``overwrite``; empty: only where there is nothing yet."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Options of the files."""
    encoding: str = "base64"
    """Of columns of bytes in files of text: one of BYTES."""

    def acked(self, subscription: str) -> dict[str, Acked]:
        """What a subscription has acknowledged, by topic or partition. Raises what the broker tells."""
        options = parse({**self.box, **self.select}, READ)
        to = reach(options)
        with Service(to) as service:
            topics = topic_selection.topics(service, options)
        return {topic: acked_of(to, topic, subscription) for topic in topics}

    def check_range(self, begin: str, end: str) -> None:
        """Raise OptionError where ``end`` is before ``begin`` on every topic, and what the broker refuses with.

        Two times are compared without the broker; an id and another id or a time are resolved by it.
        """
        if not (begin and end and (_ID.fullmatch(begin) or _ID.fullmatch(end))):
            return
        options = parse({**self.box, **self.select}, READ)
        with Service(reach(options)) as service:
            for topic in topic_selection.topics(service, options):
                start = topic_selection.start(service, options, topic, EARLIEST).place
                if start < topic_selection.end(service, options, topic):
                    return
        raise OptionError(f"--until {end} is before --from {begin}, so nothing is between them: exchange them")


def ranged(topics: str, begin: str, end: str, subscription: str) -> dict[str, str]:
    """The options for a range: ``begin`` and ``end`` are ids (``12:345``, included), times, or empty.

    Raises PulsarBoxError for what contradicts itself.
    """
    found: dict[str, str] = {}
    if begin == LATEST:
        raise PulsarBoxError("--from latest: an export ends where the topic ends, so nothing follows; leave --from out")
    if end == EARLIEST:
        raise PulsarBoxError("--until earliest: nothing is before the first message; leave --until out")
    if subscription:
        if begin:
            raise PulsarBoxError("a subscription says where to begin: leave --from out, or -s")
        found |= {"startingOffsets": "subscription", "subscription": subscription}
    for text, offsets, time in ((begin, "startingOffsets", "startingTime"), (end, "endingOffsets", "endingTime")):
        if not text:
            continue
        if not _ID.fullmatch(text):
            found[offsets if text in ("earliest", "latest") else time] = text
            continue
        if "," in topics or not topics:
            raise PulsarBoxError(f"{text} is an id of one topic: name one topic, or give a time")
        found[offsets] = f'{{"{topics}": "{_place(text, is_end=offsets == "endingOffsets")}"}}'
    return found


def _place(text: str, *, is_end: bool) -> str:
    """``ledger:entry`` or ``ledger:entry:batch`` of an id as our commands write it; the end is the place behind it."""
    ledger, entry, *rest = (int(number) for number in text.split(":"))
    batch = rest[1] if len(rest) == 2 else -1  # the third one is the partition's number
    if len(rest) == 1:
        raise PulsarBoxError(f"{text}: an id is LEDGER:ENTRY, or LEDGER:ENTRY:PARTITION:INDEX")
    if batch >= 0:
        return f"{ledger}:{entry}:{batch + is_end}"
    return f"{ledger}:{entry + is_end}"


def check(asked: Export) -> None:
    """Raise PulsarBoxError for options that contradict each other, NotEmptyError for a directory that holds something,
    and OptionError."""
    parse({**asked.box, **asked.select}, READ)
    check_options(asked.written)
    if asked.encoding != "base64" and asked.form not in TEXT:
        raise PulsarBoxError(f"--bytes is about files of text: {asked.form} holds bytes as they are")
    if not asked.mode:
        check_empty(asked.place)


def export(spark: "SparkSession", asked: Export) -> int:
    """Write it; how many rows. Raises what Spark does."""
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
            raise PreconditionFailed(f"--columns: there is no {name}: there are {', '.join(rows.columns)}")
    if is_text:
        rows = _as_text(rows, asked, named)
    elif named:
        rows = rows.select(*(rows[quoted(name)] for name in named))
    rows = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    write(rows, asked.form, asked.place, asked.mode, {**WRITTEN.get(asked.form, {}), **asked.written})
    return int(counted.get["rows"])


def _as_asked(columns: list[str], asked: str) -> list[str]:
    """Of all columns those of ``basic`` or ``all``."""
    beside = {column.name for column in chosen(asked)}
    return [name for name in columns if name in beside or name not in NAMES]


def _as_text(rows: "DataFrame", asked: Export, named: list[str]) -> "DataFrame":
    """The named columns as text holds them, message ids as our commands write them."""
    from pyspark.sql import functions as sql

    parts = (sql.coalesce(rows[name].cast("string"), sql.lit("-1")) for name in _PLACE)
    place = sql.concat_ws(":", *parts)
    columns = text_columns(rows, named, asked.form, asked.encoding, sql.concat(sql.lit("message "), place))
    if MESSAGE_ID in columns:
        columns[MESSAGE_ID] = place
    return rows.select(*(column.alias(name) for name, column in columns.items()))
