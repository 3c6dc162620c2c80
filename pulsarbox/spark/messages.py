"""Entries to messages, as columns: lists of what Arrow takes fastest, and only those that are asked for."""

from dataclasses import dataclass, field
from typing import Final

COLUMNS: Final = frozenset(
    {
        "payload", "key", "ordering_key", "message_id", "ledger", "entry", "batch", "publish_time", "event_time",
        "properties", "producer_name", "sequence_id", "schema_version",
    }
)  # fmt: skip
"""What may be asked for: names of lists of ``Messages``."""
ROWS_MAX: Final = 512
"""Messages of one ``Messages``, or BYTES_MAX: Arrow takes lists of bytes fastest so."""
BYTES_MAX: Final = 1 << 20


@dataclass(slots=True)
class Messages:
    """Some messages of one topic, in order: lists of ``rows`` values each, empty where a column was not asked for."""

    topic: str
    """Full name, of a partition its own."""
    partition: int
    """-1 where it is none."""
    rows: int = 0
    payload: list[bytes | None] = field(default_factory=list)
    """None is a null value. Decompressed; of encrypted messages as it came."""
    key: list[bytes | None] = field(default_factory=list)
    """As bytes: of a key in base64 what it means."""
    ordering_key: list[bytes | None] = field(default_factory=list)
    message_id: list[bytes] = field(default_factory=list)
    """MessageIdData in protobuf, as the clients of Pulsar write an id."""
    ledger: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    batch: list[int | None] = field(default_factory=list)
    """The index in its batch, None where it is in none."""
    publish_time: list[int] = field(default_factory=list)
    """Milliseconds since 1970."""
    event_time: list[int | None] = field(default_factory=list)
    """The same; None where it has none."""
    properties: list[list[tuple[str, str]]] = field(default_factory=list)
    """Pairs, as Arrow takes a map; a name that comes twice stands once, with its last value."""
    producer_name: list[str] = field(default_factory=list)
    sequence_id: list[int] = field(default_factory=list)
    schema_version: list[bytes | None] = field(default_factory=list)
