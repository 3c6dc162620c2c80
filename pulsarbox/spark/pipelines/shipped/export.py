"""``export``: what topics have, once, into files of Parquet, JSON or CSV, with the columns that their schemas give."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pulsarbox.errors import Conflict, PreconditionFailed, PulsarBoxError
from pulsarbox.spark import selection
from pulsarbox.spark.naming import quoted
from pulsarbox.spark.options import READ, parse
from pulsarbox.spark.pipelines.shipped.acked import Acked, acked_of, left_of
from pulsarbox.spark.reaching import reach
from pulsarbox.spark.rows import NAMES, chosen
from pulsarbox.spark.service import Service

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CSV: Final = {"header": "true", "escape": '"'}
"""Options of CSV unless others are given: quotes are doubled, as elsewhere."""
_ID: Final = re.compile(r"-?\d+:-?\d+(:-?\d+){0,2}")
_NESTED: Final = ("map", "array", "struct")


class NotEmptyError(Conflict):
    """There is something already where files are to be written."""


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

    def acked(self, subscription: str) -> dict[str, Acked]:
        """What a subscription has acknowledged, by topic or partition. Raises what the broker tells."""
        options = parse({**self.box, **self.select}, READ)
        to = reach(options)
        with Service(to) as service:
            topics = selection.topics(service, options)
        return {topic: acked_of(to, topic, subscription) for topic in topics}


def ranged(topics: str, begin: str, end: str, subscription: str) -> dict[str, str]:
    """The options for a range: ``begin`` and ``end`` are ids (``12:345``, included), times, or empty.

    Raises PulsarBoxError for what contradicts itself.
    """
    found: dict[str, str] = {}
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
    """Raises PulsarBoxError where it would write over something, and OptionError."""
    parse({**asked.box, **asked.select}, READ)
    if not asked.mode:
        check_empty(asked.place)


def check_empty(where: str) -> None:
    """Raises NotEmptyError where a directory of this machine has something in it."""
    if urlsplit(where).scheme not in ("", "file"):
        return
    place = Path(urlsplit(where).path if where.startswith("file:") else where)
    if place.is_file() or (place.is_dir() and any(place.iterdir())):
        raise NotEmptyError(f"{place} is not empty: give --append, --overwrite, or another directory")


def export(spark: "SparkSession", asked: Export) -> int:
    """Write it; how many rows. Raises what Spark does."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    counted = Observation("export")
    named = [] if asked.columns in ("basic", "all") else [name.strip() for name in asked.columns.split(",")]
    subscription = asked.select.get("subscription", "")
    reader = spark.read.format("pulsarbox").options(**asked.box, **asked.select)
    rows = reader.option("columns", "all" if named or subscription else asked.columns).load()
    if subscription:
        named = named or _as_asked(rows.columns, asked.columns)
        rows = left_of(rows, asked.acked(subscription))
    for name in named:
        if name not in rows.columns:
            raise PreconditionFailed(f"--columns: there is no {name}: there are {', '.join(rows.columns)}")
    rows = rows.select(*(rows[quoted(name)] for name in named)) if named else rows
    rows = plain(rows) if asked.form == "csv" else rows
    rows = rows.observe(counted, sql.count(sql.lit(1)).alias("rows"))
    usual = CSV if asked.form == "csv" else {}
    there = urlsplit(asked.place).scheme not in ("", "file")
    mode = asked.mode or ("errorifexists" if there else "append")
    rows.write.format(asked.form).mode(mode).options(**{**usual, **asked.written}).save(asked.place)
    return int(counted.get["rows"])


def _as_asked(columns: list[str], asked: str) -> list[str]:
    """Of all columns those of ``basic`` or ``all``."""
    beside = {column.name for column in chosen(asked)}
    return [name for name in columns if name in beside or name not in NAMES]


def plain(rows: "DataFrame") -> "DataFrame":
    """Columns that CSV can hold: what is nested as JSON, bytes as text, or in base64 where they are none."""
    return rows.select(*(_plain(rows, name, kind).alias(name) for name, kind in rows.dtypes))


def _plain(rows: "DataFrame", name: str, kind: str) -> "Column":
    from pyspark.sql import functions as sql

    column = rows[quoted(name)]
    if kind == "binary":
        text = column.cast("string")
        return sql.when(sql.is_valid_utf8(text), text).otherwise(sql.base64(column))
    return sql.to_json(column) if kind.startswith(_NESTED) else column
