"""The stretches of a topic's ledgers that anybody can see: for who reads much, and many at once.

Whoever asks learns of ledgers and runs, never of entries, so a topic of millions costs what its ledgers do, and its
aborted transactions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.storage.record import AckedRange, Position
from pulsarbox.storage.transactions import aborted_of

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic
    from pulsarbox.storage.ledger import LedgerInfo

SEGMENTS_MAX: Final = 1000
RUNS_MAX: Final = 10_000
"""Hidden runs that are told at once; there may be one more for each segment."""


class Whole(NamedTuple):
    """What is known of a whole ledger, whatever of it was asked for or can be seen."""

    entries: int
    before: int
    """The topic's messages in front of it, counted from its first one on; those that went are counted too."""
    after: int
    """The same up to its end."""
    closed: int
    """When it was closed, or its topic ended in it (ms since 1970); 0 while it grows."""


@dataclass(slots=True)
class Seen:
    """Entries ``first`` to ``end`` (not included) of one ledger, as far as they can be seen."""

    ledger_id: int
    first: int
    end: int
    messages: int
    """In those that are not hidden; in proportion where less than the whole ledger was asked for."""
    bytes: int
    whole: "Whole"
    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Runs of aborted transactions, first and last."""


def end_of(topic: "PersistentTopic") -> tuple[Position, int]:
    """The place behind the last entry that can be read, and the topic's messages up to there."""
    last, readable = topic.ledger.read_end, topic.stored.open.readable
    total = topic.ledger.confirmed_messages if readable is None else readable[1]
    return Position(last.ledger_id, last.entry_id + 1), min(total, topic.ledger.confirmed_messages)


def begin_of(topic: "PersistentTopic") -> tuple[Position, int]:
    """The place of the first entry there is or will be, and the topic's messages before it."""
    first = topic.ledger.next(*topic.ledger.first_position())
    return first, topic.ledger.ledgers[first.ledger_id].messages_before


class Segments:
    """What there is from ``start`` to ``end`` (not included), found in steps."""

    def __init__(self, topic: "PersistentTopic", start: Position, end: Position) -> None:
        self._topic = topic
        self._start = start
        self._end = min(end, end_of(topic)[0])
        self.found: list[Seen] = []
        self.next: Position | None = None
        """Where to go on, where there is too much for one answer."""

    def steps(self) -> Iterator[None]:
        """Each is short."""
        ledger = self._topic.ledger
        runs = 0
        for ledger_id in list(ledger.ledgers):
            info = ledger.ledgers.get(ledger_id)
            if info is None or ledger_id < self._start.ledger_id or ledger_id > self._end.ledger_id:
                continue
            first = max(self._start.entry_id, 0) if ledger_id == self._start.ledger_id else 0
            end = ledger.readable_of(info)
            if ledger_id == self._end.ledger_id:
                end = min(end, self._end.entry_id)
            if first >= end:
                continue
            if len(self.found) >= SEGMENTS_MAX or runs >= RUNS_MAX:
                self.next = Position(ledger_id, first)
                return
            seen = Seen(ledger_id, first, end, *self._weight(info, first, end), self._whole(info))
            self.found.append(seen)
            yield
            for run in self._aborted(ledger_id, first, end):
                if runs >= RUNS_MAX:
                    self._cut(seen, run.first)
                    return
                _hide(seen, run)
                runs += 1
                yield

    def put_off(self) -> Iterator[None]:
        """No step: all is left for another answer."""
        self.next = self._start
        return iter(())

    def _aborted(self, ledger_id: int, first: int, end: int) -> Iterator[AckedRange]:
        stored = self._topic.stored
        if not stored.has_aborted:
            return
        for run in aborted_of(self._topic.core.catalog, stored.topic_id, ledger_id):
            if run.first >= end:
                return
            if run.last >= first:
                yield run

    def _cut(self, seen: Seen, at: int) -> None:
        """Here, because of too many runs: the rest is for the next answer."""
        share = (at - seen.first) / (seen.end - seen.first)
        seen.messages, seen.bytes = round(seen.messages * share), round(seen.bytes * share)
        self.next = Position(seen.ledger_id, at)
        seen.end = at

    def _behind(self, info: "LedgerInfo") -> "LedgerInfo | None":
        ledgers = self._topic.ledger.ledgers.values()
        return next((each for each in ledgers if each.ledger_id > info.ledger_id), None)

    def _whole(self, info: "LedgerInfo") -> Whole:
        ledger, behind = self._topic.ledger, self._behind(info)
        if behind is not None:
            after, closed = behind.messages_before - behind.hole[0], info.closed
        else:
            ended = self._topic.termination.ended and info.confirmed == info.entries
            after, closed = ledger.confirmed_messages, max(ledger.last_append_time, 1) if ended else 0
        return Whole(info.entries, info.messages_before, after, closed)

    def _weight(self, info: "LedgerInfo", first: int, end: int) -> tuple[int, int]:
        """Messages and bytes of some entries."""
        ledger, behind = self._topic.ledger, self._behind(info)
        messages, size = ledger.confirmed_messages - info.messages_before, ledger.confirmed_bytes - info.bytes_before
        if behind is not None:
            messages = behind.messages_before - behind.hole[0] - info.messages_before
            size = behind.bytes_before - behind.hole[1] - info.bytes_before
        entries = info.confirmed
        readable = self._topic.stored.open.readable
        if readable is not None and readable[0].ledger_id == info.ledger_id:
            entries = readable[0].entry_id + 1
            messages, size = readable[1] - info.messages_before, readable[2] - info.bytes_before
        share = (end - first) / max(entries, end - first, 1)
        return max(round(messages * share), 0), max(round(size * share), 0)


def _hide(seen: Seen, run: AckedRange) -> None:
    first, last = max(run.first, seen.first), min(run.last, seen.end - 1)
    share = (last - first + 1) / (run.last - run.first + 1)
    seen.messages = max(seen.messages - round((run.messages_after - run.messages_before) * share), 0)
    seen.bytes = max(seen.bytes - round((run.bytes_after - run.bytes_before) * share), 0)
    if seen.hidden and seen.hidden[-1][1] == first - 1:
        seen.hidden[-1] = seen.hidden[-1][0], last
    else:
        seen.hidden.append((first, last))
