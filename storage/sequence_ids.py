"""Deduplication state of a topic: the highest sequence id of each producer, appended and confirmed.

A sequence id is logged in the batch that holds its entry, so both become durable together or not at all. As in a
managed ledger there are two states: a pushed id is in an uncommitted batch, a persisted one is durable.

The state includes the chunks of a message whose last chunk is not published yet: their common sequence id becomes the
highest one with the last chunk.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from pulsarbox.storage.catalog import Row, sequence_key
from pulsarbox.storage.record import Begun, SequenceId, pack_sequence

NOTHING: Final = -(1 << 63)
"""The highest sequence id of a producer that has published only the first chunks of a message."""


class LastSequence(NamedTuple):
    """The highest sequence id of a producer, and the time of its last publish or disconnect (ms since 1970)."""

    highest: int
    published: int
    begun: Begun | None = None


class SequenceIds:
    """Sequence ids of one topic by producer name.

    ``persisted`` has the durable ones, least recently updated first.
    """

    def __init__(self, topic_id: int) -> None:
        self.topic_id = topic_id
        self.persisted: dict[str, LastSequence] = {}
        self.open: dict[str, int] = {}
        """Pushed into the open batch."""
        self._last: dict[str, Callable[[], int | None]] = {}
        """Lookups of the last sequence id in each producer's last batch, of which ``open`` has only the first."""
        self._open_begun: dict[str, Begun] = {}
        """Chunked messages of the open batch by producer; a message may be complete by now."""
        self._under_way: dict[str, LastSequence] = {}
        """In the batch being written."""
        self._dirty: set[str] = set()
        """Names whose row is older than the log."""

    def last_pushed(self, name: str) -> int | None:
        """Return the highest appended sequence id, durable or not, or None if the producer is unknown."""
        highest = self.open.get(name)
        if highest is not None:
            return highest
        last = self._under_way.get(name) or self.persisted.get(name)
        return None if last is None else last[0]

    def last_persisted(self, name: str) -> int | None:
        """Return the highest durable sequence id, or None if there is none."""
        last = self.persisted.get(name)
        return None if last is None or last[0] == NOTHING else last[0]

    def begun_pushed(self, name: str) -> Begun | None:
        """Return the message whose chunks were appended last, durable or not; it may be complete by now."""
        begun = self._open_begun.get(name)
        if begun is not None:
            return begun
        last = self._under_way.get(name) or self.persisted.get(name)
        return None if last is None else last.begun

    def begun_persisted(self, name: str) -> Begun | None:
        """Return the message with durable chunks whose last chunk is missing."""
        last = self.persisted.get(name)
        return None if last is None else last.begun

    def is_pending(self, name: str) -> bool:
        """Return whether a sequence id of the producer is appended and not yet durable."""
        return name in self.open or name in self._under_way

    def push(self, name: str, highest: int, last: Callable[[], int | None] | None = None) -> None:
        """Record the highest sequence id of an appended entry; it is greater than the last one pushed.

        ``last`` looks up a higher one, or None. It is called once, before the batch is written: it is slow for an entry
        with many messages, and a later entry usually supersedes it.
        """
        self.open[name] = highest
        if last is not None:
            self._last[name] = last

    def push_chunk(self, name: str, begun: Begun) -> None:
        """Record an appended chunk other than the last of its message."""
        highest = self.last_pushed(name)
        self.open[name] = NOTHING if highest is None else highest
        self._open_begun[name] = begun

    def touch(self, name: str, wall: int) -> None:
        """Set the producer's last activity to ``wall`` (ms since 1970). Not logged, only checkpointed."""
        last = self.persisted.pop(name, None)
        if last is not None:
            self.persisted[name] = last._replace(published=wall)
            self._dirty.add(name)

    def names(self) -> list[str]:
        """Return the names of all known producers, durable or not."""
        return list(dict.fromkeys((*self.persisted, *self._under_way, *self.open)))

    def forget(self, name: str) -> bytes:
        """Remove a producer; return the record of the removal, for the open batch."""
        for known in (self.persisted, self._under_way, self.open, self._open_begun, self._last):
            known.pop(name, None)
        self._dirty.add(name)
        return pack_sequence(SequenceId(self.topic_id, name, -1, 0, forgotten=True))

    # Journal

    def take_changes(self, wall: int) -> list[bytes]:
        """Pack what was pushed since the last call, for the batch written at ``wall`` (ms since 1970)."""
        assert not self._under_way, "two batches are being written"
        records = []
        for name, look_up in self._last.items():
            self.open[name] = max(self.open[name], look_up() or NOTHING)
        self._last.clear()
        for name, highest in self.open.items():
            begun = self.begun_pushed(name)
            if begun is not None and begun.sequence_id <= highest:
                begun = None
            self._under_way[name] = LastSequence(highest, wall, begun)
            records.append(pack_sequence(SequenceId(self.topic_id, name, highest, wall, begun=begun)))
        self._dirty.update(self.open)
        self.open.clear()
        self._open_begun.clear()
        return records

    def confirm(self) -> None:
        """Mark the batch being written as durable."""
        persisted = self.persisted
        for name, last in self._under_way.items():
            persisted.pop(name, None)
            persisted[name] = last
        self._under_way.clear()

    def roll_back(self) -> None:
        """Discard the batch being written, which failed, and the open one after it."""
        self._dirty.update(self._under_way)  # a checkpoint built with the batch may have taken their rows
        self._under_way.clear()
        self.open.clear()
        self._open_begun.clear()
        self._last.clear()

    def replay(self, record: SequenceId) -> None:
        """Apply a record of the log."""
        self.persisted.pop(record.producer, None)
        if not record.forgotten:
            self.persisted[record.producer] = LastSequence(record.highest, record.published, record.begun)
        self._dirty.add(record.producer)

    # Checkpoint

    def dirty_rows(self) -> dict[str, Row | None]:
        """Return the rows that changed since the last call, None for forgotten producers."""
        rows: dict[str, Row | None] = {}
        for name in sorted(self._dirty):
            last = self._under_way.get(name) or self.persisted.get(name)
            row: Row | None = None
            if last is not None:
                row = {"highest": last.highest, "published": last.published}
                if last.begun is not None:
                    row["begun"] = last.begun
            rows[sequence_key(self.topic_id, name)] = row
        self._dirty.clear()
        return rows

    def restore(self, rows: dict[str, Row]) -> None:
        """Restore the rows of the checkpoint, by producer name; before any change or replay."""
        lasts = {name: LastSequence(row["highest"], row["published"], _begun(row)) for name, row in rows.items()}
        self.persisted = dict(sorted(lasts.items(), key=lambda each: each[1].published))


def _begun(row: Row) -> Begun | None:
    if "begun" not in row:
        return None
    sequence_id, since, sums = row["begun"]
    return Begun(sequence_id, since, tuple(sums))
