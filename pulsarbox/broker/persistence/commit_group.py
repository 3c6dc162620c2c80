"""One group of the group commit: a batch, and what waits for its copies.

In an ensemble of data directories, the parts of a group wait for different numbers of copies: each topic for the ack
quorum of its persistence policy, metadata and acknowledgements for that of the box.
"""

from collections.abc import Callable, Sized
from typing import Any, Protocol

from pulsarbox.broker.persistence.replication import AskedCopies, CopyNumbers, Replication
from pulsarbox.broker.stats.commit_stats import Traffic
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry
from pulsarbox.storage.recovery import StoredTopic

Callback = Callable[[Now], None]


class EntryMove(Protocol):
    """An entry, or messages of a batch, on its way to another topic."""

    def acked(self, cursor_id: int) -> bytes:
        """Return the acknowledgement record, flagged to be stored only together with the rest of its batch."""


class Mover(Protocol):
    """Moves entries between topics, and is notified of the outcome."""

    def moved(self, moves: list[Any], now: Now) -> None:
        """Handle that the moves are durable."""

    def not_moved(self, moves: list[Any], now: Now) -> None:
        """Handle that the moves could not be stored."""


class Publisher(Protocol):
    """The publisher of an entry, which learns the outcome of its commit."""

    def receipt(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int, now: Now) -> None:
        """Send the receipt of a durable entry."""

    def refuse(self, sequence_id: int, error: PulsarBoxError, now: Now) -> None:
        """Send the error of an entry that could not be stored."""

    def disconnect(self, now: Now) -> None:
        """Close the publisher after its entries were refused, so that no later one overtakes them."""


class SequencedTopic(Protocol):
    """A topic with sequence IDs that are committed with its entries."""

    stored: StoredTopic

    def confirmed(self) -> None:
        """Confirm the sequence IDs of the batch that became durable."""


class _Limits(Protocol):
    relative: bool

    def published(self, now: Now) -> None: ...


class _Unsubscribed(Protocol):
    count_at: int


class _Ledgers(Protocol):
    trim_due: bool

    @property
    def unsubscribed(self) -> _Unsubscribed: ...


class CommittedTopic(Protocol):
    """A topic whose entries are committed. Its parts are read inline: calls would cost 5 % of publishing."""

    ledger: ManagedLedger
    stored: StoredTopic
    traffic: Traffic

    @property
    def copies(self) -> AskedCopies | None:
        """The copies of its messages; None in a box with one data directory."""

    @property
    def subscriptions(self) -> Sized:
        """Its subscriptions."""

    @property
    def is_consumed(self) -> bool:
        """Whether consumers are connected, so that published messages are worth caching."""

    @property
    def limits(self) -> _Limits:
        """Its limits: ``relative`` ones count published messages."""

    @property
    def ledgers(self) -> _Ledgers:
        """Its ledgers: whether a trim is due, and at which total its unsubscribed messages are counted."""

    def confirmed(self, now: Now) -> None:
        """Dispatch newly confirmed entries."""

    def delays_lost(self) -> None:
        """Handle that delayed entries could not be stored."""


class CommitGroup:
    """A batch and the actions that wait for its commit."""

    __slots__ = (
        "appended", "batch", "callbacks", "copied", "cursors", "lazy_until", "metadata_callbacks", "metadata_quorum",
        "moves", "opened", "quorums", "receipts", "released", "rows", "sequenced", "taken", "urgent",
    )  # fmt: skip

    def __init__(self, position: int) -> None:
        self.batch = Batch(position)
        self.receipts: list[tuple[Publisher, int, int, int, int]] = []
        """Producer, sequence ID, highest sequence ID, ledger ID, entry ID; also of duplicates, without an entry."""
        self.appended: dict[CommittedTopic, list[Entry]] = {}
        self.sequenced: dict[SequencedTopic, None] = {}
        """Deduplication state of topics that were published to."""
        self.cursors: dict[ManagedCursor, None] = {}
        """Cursors with changes to write."""
        self.callbacks: list[Callback] = []
        """Called once the whole group is durable."""
        self.metadata_callbacks: list[Callback] = []
        """Called once its metadata and acknowledgements are durable. Empty in a box with one data directory."""
        self.moves: dict[Mover, list[EntryMove]] = {}
        """Messages being moved between topics, by mover."""
        self.copied: list[tuple[Callback, Callable[[Exception, Now], None], CopyNumbers | None]] = []
        """Callbacks for entries written by ``copy``: stored, and lost; and the copies of these entries."""
        self.urgent = False
        self.rows = False
        """Whether the batch contains rows of the metadata."""
        self.lazy_until = 0.0
        self.opened = self.taken = 0.0
        """When the group was opened and when it was taken, in seconds of the monotonic clock."""
        self.quorums: dict[CommittedTopic, int] = {}
        """Ack quorums of the topics, set when the group is taken; empty in a box with one data directory."""
        self.metadata_quorum = 1
        """Ack quorum of metadata and acknowledgements."""
        self.released = 0
        """Durable copies for which parts of the group were completed before the commit."""

    def ask_for_copies(self, replication: Replication, now: Now) -> None:
        """Have the batch ask for the copies of its parts, before it gets records that belong to its entries."""
        batch = self.batch
        for topic in self.appended:
            assert topic.copies is not None
            asked = topic.copies.asked
            replication.ask(batch, asked)
            self.quorums[topic] = asked.ack_quorum
        for _, _, copies in self.copied:
            replication.ask(batch, copies or replication.default)
        other_records = 2 * len(batch.covered) - len(batch.parts)  # an entry is two parts, and one of them is covered
        if other_records or not (self.appended or self.copied):
            self.metadata_quorum = replication.ask_for_metadata(batch, now)

    def split_off(self, copies: int, default: CopyNumbers) -> "CommitGroup":
        """Remove and return the parts that are complete with ``copies``; ``default`` is that of the box.

        Moves and callbacks remain, because they depend on several parts.
        """
        part = CommitGroup(self.batch.position)
        part.appended = {topic: each for topic, each in self.appended.items() if self.quorums[topic] <= copies}
        self.appended = {topic: each for topic, each in self.appended.items() if topic not in part.appended}
        waiting = [topic.stored for topic in self.appended]
        part.sequenced = {each: None for each in self.sequenced if each.stored not in waiting}
        self.sequenced = {each: None for each in self.sequenced if each not in part.sequenced}
        ledgers = {entry.ledger_id for entries in self.appended.values() for entry in entries}
        producers = {receipt[0] for receipt in self.receipts if receipt[3] in ledgers}
        part.receipts = [each for each in self.receipts if each[0] not in producers]
        self.receipts = [each for each in self.receipts if each[0] in producers]  # duplicates wait for their turn
        part.copied = [each for each in self.copied if (each[2] or default).ack_quorum <= copies]
        self.copied = [each for each in self.copied if (each[2] or default).ack_quorum > copies]
        if self.metadata_quorum <= copies:
            part.metadata_callbacks, self.metadata_callbacks = self.metadata_callbacks, []
            self.rows = False
        self.released = copies
        return part

    def waited(self) -> float:
        """Return how many seconds the oldest entry of the group waited until the group was taken.

        Entries have wall-clock times only, and that clock may have been moved: the result is capped at the group's age.
        """
        for entries in self.appended.values():
            waited = (self.batch.wall - entries[0].append_time) / 1000
            return min(max(waited, 0.0), self.taken - self.opened)
        return 0.0

    def send_receipts(self, now: Now) -> None:
        """Send the receipts of its entries, in order."""
        for producer, sequence_id, highest_sequence_id, ledger_id, entry_id in self.receipts:
            producer.receipt(sequence_id, highest_sequence_id, ledger_id, entry_id, now)

    def run_callbacks(self, now: Now) -> None:
        """Notify those that wait for the changes of the group."""
        for callback in self.callbacks:
            callback(now)
        for callback in self.metadata_callbacks:
            callback(now)
