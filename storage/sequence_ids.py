"""The highest sequence id of each producer of a topic, for deduplication: what is appended, and what is confirmed.

A sequence id goes to the log in the batch that holds its entry, so that the two are durable together or not at all. A
managed ledger has the same two sides: pushed is what some open batch holds, persisted what is durable.

Beside it stands which chunks there are of a message whose last one is still to come: the sequence id of all of them
becomes the highest one with the last.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from pulsarbox.storage.catalog import Row, sequence_key
from pulsarbox.storage.record import Begun, SequenceId, pack_sequence

NOTHING: Final = -(1 << 63)
"""The highest sequence id of a producer of which there is the beginning of a message, and nothing else."""


class LastSequence(NamedTuple):
    """The highest sequence id of a producer, and when it published last, or left (ms since 1970)."""

    highest: int
    published: int
    begun: Begun | None = None


class SequenceIds:
    """Sequence ids of one topic by producer name.

    ``persisted`` has those that are durable, the longest untouched first.
    """

    def __init__(self, topic_id: int) -> None:
        self.topic_id = topic_id
        self.persisted: dict[str, LastSequence] = {}
        self.open: dict[str, int] = {}
        """In the batch that gathers."""
        self._last: dict[str, Callable[[], int | None]] = {}
        """Looks up the last sequence id of the last batch of a producer whose first one alone is in ``open``."""
        self._open_begun: dict[str, Begun] = {}
        """The same, of producers that have sent chunks; it may be complete since."""
        self._under_way: dict[str, LastSequence] = {}
        """In the batch that is being written."""
        self._dirty: set[str] = set()
        """Names whose row does not say what the log says."""

    def last_pushed(self, name: str) -> int | None:
        """The highest sequence id that was appended, durable or not; None where nothing is known of the producer."""
        highest = self.open.get(name)
        if highest is not None:
            return highest
        last = self._under_way.get(name) or self.persisted.get(name)
        return None if last is None else last[0]

    def last_persisted(self, name: str) -> int | None:
        """The highest sequence id that is durable; None where there is none."""
        last = self.persisted.get(name)
        return None if last is None or last[0] == NOTHING else last[0]

    def begun_pushed(self, name: str) -> Begun | None:
        """The message whose chunks were appended last, durable or not, and which may be complete since."""
        begun = self._open_begun.get(name)
        if begun is not None:
            return begun
        last = self._under_way.get(name) or self.persisted.get(name)
        return None if last is None else last.begun

    def begun_persisted(self, name: str) -> Begun | None:
        """The message of which chunks are durable, and the last one is not."""
        last = self.persisted.get(name)
        return None if last is None else last.begun

    def is_pending(self, name: str) -> bool:
        """Whether a sequence id of the producer is appended and not durable yet."""
        return name in self.open or name in self._under_way

    def push(self, name: str, highest: int, last: Callable[[], int | None] | None = None) -> None:
        """An entry was appended whose highest sequence id this is; it is greater than the last one pushed.

        ``last`` looks up a higher one, None where there is none. That is done once, before the batch is written: it
        takes long where the entry has many messages, and most entries have another one behind them.
        """
        self.open[name] = highest
        if last is not None:
            self._last[name] = last

    def push_chunk(self, name: str, begun: Begun) -> None:
        """A chunk was appended, and was not the last of its message."""
        highest = self.last_pushed(name)
        self.open[name] = NOTHING if highest is None else highest
        self._open_begun[name] = begun

    def touch(self, name: str, wall: int) -> None:
        """The producer is there, or was until ``wall`` (ms since 1970). Not logged: the next checkpoint says it."""
        last = self.persisted.pop(name, None)
        if last is not None:
            self.persisted[name] = last._replace(published=wall)
            self._dirty.add(name)

    def names(self) -> list[str]:
        """The producers of which something is known, or will be."""
        return list(dict.fromkeys((*self.persisted, *self._under_way, *self.open)))

    def forget(self, name: str) -> bytes:
        """Know nothing of a producer any more; gives the record that says so, for the open batch."""
        for known in (self.persisted, self._under_way, self.open, self._open_begun, self._last):
            known.pop(name, None)
        self._dirty.add(name)
        return pack_sequence(SequenceId(self.topic_id, name, -1, 0, forgotten=True))

    # The journal

    def take_changes(self, wall: int) -> list[bytes]:
        """What was pushed since the last call, packed for the batch that is written at ``wall`` (ms since 1970)."""
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
        """The batch that was being written is durable."""
        persisted = self.persisted
        for name, last in self._under_way.items():
            persisted.pop(name, None)
            persisted[name] = last
        self._under_way.clear()

    def roll_back(self) -> None:
        """The batch that was being written is not stored, and the one behind it is given up."""
        self._dirty.update(self._under_way)  # a checkpoint that was made with the batch may have taken their rows
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

    # The checkpoint

    def dirty_rows(self) -> dict[str, Row | None]:
        """The rows that changed since the last call, None for forgotten producers."""
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
        """Take over the rows of the checkpoint, by name of producer; before anything else is changed or replayed."""
        lasts = {name: LastSequence(row["highest"], row["published"], _begun(row)) for name, row in rows.items()}
        self.persisted = dict(sorted(lasts.items(), key=lambda each: each[1].published))


def _begun(row: Row) -> Begun | None:
    if "begun" not in row:
        return None
    sequence_id, since, sums = row["begun"]
    return Begun(sequence_id, since, tuple(sums))
