"""Dead letters as rows, interpreted like the box's own dead letter jobs do: failure cause and filter. Does not import
pyspark."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from pulsarbox.broker.replay.entry_messages import InspectedMessage, Schemas
from pulsarbox.broker.replay.message_filter import parse_filter
from pulsarbox.protocol.dead_letters.fingerprint import Fingerprint, fingerprint
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

COLUMNS: Final = (
    *("value", "__key", "__orderingKey", "__topic", "__publishTime", "__eventTime", "__messageProperties"),
    *("__ledgerId", "__entryId", "__batchIndex", "__producerName", "__sequenceId", "__schemaVersion"),
)
"""Columns that a row must have."""
MOST: Final = 1 << 30

Row = Mapping[str, Any]


class LetterFields(NamedTuple):
    """Request for dead letters. Picklable."""

    filter: str = ""
    """Filter expression; empty for all."""
    now: int = 0
    """Milliseconds since 1970: the reference of ``time("-1h")`` in the filter."""

    def wanted(self) -> Callable[[InspectedMessage], bool]:
        """Return the filter as a predicate. Raises Unprocessable with a message for users."""
        return parse_filter(self.filter, self.now) or _every


class LetterRow(NamedTuple):
    """Interpretation of one dead letter."""

    of: Fingerprint
    wanted: bool
    message_id: str
    replays: int
    """Number of earlier replays."""


def _every(_: InspectedMessage) -> bool:
    return True


def looked(row: Row, schemas: Schemas) -> InspectedMessage:
    """Return a row in the form that the box's jobs use for a message. ``schemas``: those of its topic by version."""
    value, batch = row["value"], row["__batchIndex"]
    metadata = MessageMetadata(
        producer_name=row["__producerName"] or "",
        sequence_id=(row["__sequenceId"] or 0) % (1 << 64),  # unsigned in the protocol
        publish_time=_milliseconds(row["__publishTime"]),
        event_time=_milliseconds(row["__eventTime"]),
        null_value=value is None,
        schema_version=row["__schemaVersion"] or b"",
    )
    if row["__key"] is not None:
        metadata.partition_key = row["__key"].decode(errors="replace")
    for name, text in row["__messageProperties"] or ():
        metadata.properties.add(key=name, value=text)
    flags = 0 if batch is None else int(EntryFlag.BATCH)
    place = (row["__ledgerId"], row["__entryId"])
    entry = Entry(*place, flags, 1, 0, 0, 0, metadata.publish_time, metadata.publish_time, 0, 0, value or b"")
    return InspectedMessage(
        entry, metadata, metadata, -1 if batch is None else batch, value or b"", row["__topic"], schemas
    )


def letter(message: InspectedMessage, wanted: Callable[[InspectedMessage], bool]) -> LetterRow:
    """Return the interpretation of a message; ``wanted``: see ``LetterFields.wanted``."""
    return LetterRow(fingerprint(message), wanted(message), message.message_id, message.replays)


def _milliseconds(time: datetime | int | None) -> int:
    """Return a time in milliseconds; integers are milliseconds already."""
    if time is None:
        return 0
    return time if isinstance(time, int) else round(time.timestamp() * 1000)
