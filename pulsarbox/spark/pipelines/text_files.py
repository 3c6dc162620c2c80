"""Lossless text files: columns and options with which CSV and JSON preserve every value.

Spark's own defaults trim CSV values, truncate times to milliseconds, and omit null fields from JSON. A value that a
text file cannot represent fails the job with the name of its column, and Spark publishes none of the files.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pulsarbox.errors import PreconditionFailed
from pulsarbox.spark.spark_naming import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BYTES: Final = ("base64", "hex", "text")
"""Encodings of binary columns; ``text`` is UTF-8, and rejects other bytes."""
TEXT: Final = ("csv", "json")
"""Text file formats."""
_TIMES: Final = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_JSON: Final = _TIMES | {"ignoreNullFields": "false"}
_CSV: Final = {"header": "true", "escape": '"'}
"""Quotes in values are doubled (RFC 4180); Spark's default is a backslash."""
_WHOLE: Final = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
WRITTEN: Final[Mapping[str, Mapping[str, str]]] = {"csv": _CSV | _WHOLE | _TIMES, "json": _JSON}
"""Write options, by file format."""
READ: Final[Mapping[str, Mapping[str, str]]] = {"csv": _CSV | {"multiLine": "true"}}
"""Read options for such files."""
NO_TEXT: Final = "\x00null"
"""``nullValue`` of a CSV reader that no text equals: ``""`` is read as an empty text, and an empty field as null.
Spark's default reads both as null."""
_UNICODE: Final = ("UTF-8", "UTF8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "UTF-32BE")
_NESTED: Final = ("map", "array", "struct")


def check_options(options: Mapping[str, str]) -> None:
    """Reject character sets that cannot represent every text. Raises PreconditionFailed."""
    for name, value in options.items():
        if name.lower() in ("encoding", "charset") and value.upper() not in _UNICODE:
            raise PreconditionFailed(
                f"--option {name}={value}: this character set cannot represent every text; use UTF-8 (the default), "
                "UTF-16 or UTF-32"
            )


def text_columns(
    rows: "DataFrame", names: Sequence[str], kind: str, encoding: str = "base64", place: "Column | None" = None
) -> "dict[str, Column]":
    """Return columns of a frame in the form for a file format, by name. ``encoding``: one of BYTES, for top-level
    binary columns; nested ones are base64. ``place`` identifies the row in errors."""
    types = dict(rows.dtypes)
    return {name: _text(rows, name, types[name], kind, encoding, place, only=len(names) == 1) for name in names}


def _text(
    rows: "DataFrame", name: str, type_: str, kind: str, encoding: str, place: "Column | None", *, only: bool
) -> "Column":
    from pyspark.sql import functions as sql

    column = rows[quoted(name)]
    where = sql.concat(sql.lit(f"column {name}"), sql.lit("") if place is None else sql.concat(sql.lit(" of "), place))
    if type_ == "binary":
        column = _encoded(column, encoding, where)
    if kind != "csv":
        return column
    if type_.startswith(_NESTED):
        column = sql.to_json(column, dict(_JSON))
    elif type_ == "string" or (type_ == "binary" and encoding == "text"):
        why = "contains a NUL character, which CSV readers drop: use JSON or Parquet"
        column = sql.when(sql.contains(column, sql.lit("\0")), _refused(where, why)).otherwise(column)
    if only:
        why = "is null, which CSV with a single column cannot represent: add a column, or use JSON or Parquet"
        column = sql.when(column.isNull(), _refused(where, why)).otherwise(column)
    return column


def _encoded(column: "Column", encoding: str, where: "Column") -> "Column":
    from pyspark.sql import functions as sql

    if encoding == "base64":
        # Spark breaks lines after 76 characters unless spark.sql.chunkBase64String.enabled is false.
        return sql.replace(sql.base64(column), sql.lit("\r\n"), sql.lit(""))
    if encoding == "hex":
        return sql.lower(sql.hex(column))
    text = column.cast("string")
    refused = _refused(where, "is not UTF-8: use base64 or hex for bytes")
    return sql.when(column.isNull() | sql.is_valid_utf8(text), text).otherwise(refused)


def _refused(where: "Column", why: str) -> "Column":
    from pyspark.sql import functions as sql

    return sql.raise_error(sql.concat(where, sql.lit(f" {why}"))).cast("string")
