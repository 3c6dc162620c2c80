"""Columns of a row apart from its value: names, types, and the selection by the option ``columns``.

Names and types are those of the existing Pulsar connector; ``columns=all`` adds further ones. Every column is nullable.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

VALUE: Final = "value"
CORRUPT: Final = "_corrupt_record"
"""The bytes of a value that does not match its schema (mode=permissive)."""


class Column(NamedTuple):
    """Column that every topic has."""

    name: str
    type: str
    """Type in Spark SQL."""
    meaning: str


BASIC: Final = (
    Column("__key", "binary", "The message's key; null without one."),
    Column("__topic", "string", "The topic's full name; of a partitioned topic the partition's."),
    Column("__messageId", "binary", "The message's id as Pulsar's clients serialise it (`MessageIdData`)."),
    Column("__publishTime", "timestamp", "When the producer sent it."),
    Column("__eventTime", "timestamp", "When it happened, as the producer said; null where it did not."),
    Column("__messageProperties", "map<string,string>", "The message's properties."),
)
MORE: Final = (
    Column("__partition", "int", "The number of the partition; null for a topic without any."),
    Column("__ledgerId", "bigint", "Where the message stands: the ledger."),
    Column("__entryId", "bigint", "The entry of the ledger; of a message in chunks the last one."),
    Column("__batchIndex", "int", "The message's place in its batch; null for a message sent alone."),
    Column("__producerName", "string", "Who sent it."),
    Column("__sequenceId", "bigint", "The sequence id that its producer gave it."),
    Column("__orderingKey", "binary", "The ordering key; null without one."),
    Column("__schemaVersion", "binary", "The version of the schema it was written with; null without a schema."),
    Column("__redeliveryCount", "int", "How often it had been delivered before; 0, as reading is no delivery."),
)
ALL: Final = BASIC + MORE
NAMES: Final = {column.name: column for column in ALL}


class ColumnsError(ValueError):
    """Unknown column; the message names it."""


def chosen(columns: str) -> tuple[Column, ...]:
    """Return the columns that ``columns`` selects apart from the value: ``basic``, ``all``, or names with commas.

    Raises ColumnsError for an unknown name.
    """
    if columns.lower() == "basic":
        return BASIC
    if columns.lower() == "all":
        return ALL
    return tuple(_named(name) for name in _words(columns) if name.lower() != VALUE)


def with_value(columns: str) -> bool:
    """Return whether the option selects the value, which a list of names may leave out."""
    return columns.lower() in ("basic", "all") or VALUE in (name.lower() for name in _words(columns))


def _words(text: str) -> Sequence[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def _named(name: str) -> Column:
    from pulsarbox.config.setting import did_you_mean

    by_folded = {known.lower(): column for known, column in NAMES.items()}
    found = by_folded.get(name.lower())
    if found is None:
        raise ColumnsError(
            f"columns: there is no column {name!r}{did_you_mean(name, [VALUE, *NAMES])} There are basic, all, or a "
            f"list of {VALUE}, {', '.join(NAMES)}"
        )
    return found
