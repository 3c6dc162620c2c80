"""Columns of a row apart from its value: names, types, and the selection by the option ``columns``.

Names and types are those of the existing Pulsar connector; ``columns=all`` adds further ones. Every column is nullable.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

VALUE: Final = "value"
CORRUPT: Final = "_corrupt_record"
"""The bytes of a value that does not match its schema (mode=permissive)."""
PAYLOAD: Final = "__payload"
"""Of an offloaded file: the original payload, if the value is split into columns."""
ENCRYPTION: Final = "__encryption"
"""Of an offloaded file: serialized MessageMetadata of messages encrypted by a client, needed to decrypt their
payloads."""


class MetadataColumn(NamedTuple):
    """Column that every topic has."""

    name: str
    type: str
    """Type in Spark SQL."""
    meaning: str


BASIC: Final = (
    MetadataColumn("__key", "binary", "Key of the message; null if it has none."),
    MetadataColumn("__topic", "string", "Full name of the topic; for a partitioned topic, that of the partition."),
    MetadataColumn("__messageId", "binary", "Message ID as serialised by Pulsar's clients (`MessageIdData`)."),
    MetadataColumn("__publishTime", "timestamp", "When the producer sent the message."),
    MetadataColumn("__eventTime", "timestamp", "Event time set by the producer; null if not set."),
    MetadataColumn("__messageProperties", "map<string,string>", "Properties of the message."),
)
MORE: Final = (
    MetadataColumn("__partition", "int", "Number of the partition; null for a topic without partitions."),
    MetadataColumn("__ledgerId", "bigint", "Ledger that has the message."),
    MetadataColumn("__entryId", "bigint", "Entry in the ledger; for a chunked message, the last one."),
    MetadataColumn("__batchIndex", "int", "Index in the batch; null for a message outside of a batch."),
    MetadataColumn("__producerName", "string", "Name of the producer."),
    MetadataColumn("__sequenceId", "bigint", "Sequence ID assigned by the producer."),
    MetadataColumn("__orderingKey", "binary", "Ordering key; null if it has none."),
    MetadataColumn(
        "__schemaVersion", "binary", "Version of the schema that the message was written with; null if it has none."
    ),
    MetadataColumn("__redeliveryCount", "int", "Always 0: a read is not a delivery."),
)
ALL: Final = BASIC + MORE
NAMES: Final = {column.name: column for column in ALL}


class ColumnsError(ValueError):
    """Unknown column; the message names it."""


def chosen(columns: str) -> tuple[MetadataColumn, ...]:
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


def _named(name: str) -> MetadataColumn:
    from pulsarbox.config.setting import did_you_mean

    by_folded = {known.lower(): column for known, column in NAMES.items()}
    found = by_folded.get(name.lower())
    if found is None:
        raise ColumnsError(
            f"columns: unknown column {name!r}{did_you_mean(name, [VALUE, *NAMES]) or '.'} Expected basic, all, or a "
            f"list of {VALUE}, {', '.join(NAMES)}"
        )
    return found
