"""The history of a run with kills, and the rules it must obey. Pure: lines in, verdicts out.

A history is a list of events in the order of their observation. An event is a JSON object with ``kind`` and ``at``
(nanoseconds), and the fields of its kind:

- ``sent``, ``receipted``, ``failed``: a ``producer`` published number ``seq`` to ``topic``; the receipt gave it ``id``.
  A delayed message is ``due`` later (ms since 1970): subscriptions with several consumers receive it then, or a tick
  before.
- ``opened``: a ``consumer`` of ``subscription`` was opened. Each consumer has its own name.
- ``received``: the consumer received the message ``id``, with ``seq`` and ``producer`` from its payload; ``damaged`` if
  the payload differs from the one that was sent.
- ``acked``, ``ack-failed``: the acknowledgement of ``id`` was receipted, or was not.
- ``log``: the message is in ``topic`` at ``id``, as read from the beginning at the end of the run.
- ``resumed``: a publisher was opened, and continues with ``seq``.
- ``killed``, ``ready``: the broker was killed; it was ready again (``seconds`` after its start).

After a reconnect, a client may publish messages without a receipt again: one message is then in the log twice. It may
also buffer messages in its queue while it reconnects. The application then receives a buffered message although another
copy was acknowledged. The duplicates are counted; the buffered messages are bounded by the queue size
(``Checker.queue``). With deduplication, duplicates are violations, and publishers number their messages without a gap.
The receipt of a duplicate has -1 as its position.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Event = Mapping[str, Any]
Id = tuple[int, ...]

TICK_NS: Final = 1_000_000_000
"""Nanoseconds by which a delayed message may arrive early."""

# A broken rule is broken thousands of times: report this many violations.
VIOLATIONS_TOLD: Final = 20


@dataclass
class Verdict:
    """Violations and counts of a history."""

    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def violated(self, rule: str, text: str) -> None:
        self.counts[f"violations of {rule}"] += 1
        if len(self.violations) < VIOLATIONS_TOLD:
            self.violations.append(f"{rule}: {text}")


@dataclass
class Stream:
    """Deliveries and acknowledgements of one subscription."""

    delivered: set[Id] = field(default_factory=set)
    newest: Id = ()
    # Message ID -> number of the event that receipted its acknowledgement.
    acked: dict[Id, int] = field(default_factory=dict)
    messages: set[tuple[str, int]] = field(default_factory=set)


@dataclass
class Reception:
    """Deliveries to one consumer: the event number of its opening, and those of its deliveries."""

    opened: int
    deliveries: list[int] = field(default_factory=list)

    def since(self, number: int) -> int:
        """Return the number of deliveries after event ``number``, counted from the end: these are few."""
        count = 0
        for each in reversed(self.deliveries):
            if each <= number:
                break
            count += 1
        return count


class Checker:
    """Checker of a history."""

    def __init__(
        self, ordered: Iterable[str], subscriptions: Mapping[str, str], queue: int, once: Iterable[str] = ()
    ) -> None:
        """``ordered`` names the subscriptions with one consumer at a time, ``subscriptions`` the topic of each.

        ``queue`` is the number of messages that a client buffers for the application. The topics ``once`` have
        deduplication.
        """
        self.queue = queue
        self._once = frozenset(once)
        self._duplicates: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.verdict = Verdict()
        self._ordered = frozenset(ordered)
        self._topics = dict(subscriptions)
        self._streams: dict[str, Stream] = defaultdict(Stream)
        self._receptions: dict[str, Reception] = {}
        self._sent: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        self._due: dict[tuple[str, str, int], int] = {}
        """Due times of delayed messages (ns since 1970), by topic, producer and number."""
        self._receipts: dict[str, dict[Id, tuple[str, int]]] = defaultdict(dict)
        self._log: dict[str, dict[Id, tuple[str, int]]] = defaultdict(dict)
        self._last_log: dict[str, Id] = {}
        self._rules = {
            "sent": self._on_sent,
            "receipted": self._on_receipted,
            "opened": self._on_opened,
            "received": self._on_received,
            "acked": self._on_acked,
            "log": self._on_log,
        }

    def check(self, events: Iterable[Event]) -> Verdict:
        for number, event in enumerate(events):
            self.verdict.counts[event["kind"]] += 1
            rule = self._rules.get(event["kind"])
            if rule is not None:
                rule(number, event)
        self._at_the_end()
        return self.verdict

    def _on_sent(self, number: int, event: Event) -> None:
        self._sent[event["topic"]][event["producer"], event["seq"]] = number
        if event.get("due"):
            self.verdict.counts["delayed"] += 1
            self._due[event["topic"], event["producer"], event["seq"]] = event["due"] * 1_000_000

    def _on_receipted(self, number: int, event: Event) -> None:
        place, message = tuple(event["id"]), (event["producer"], event["seq"])
        if place[0] < 0:
            self.verdict.counts["receipts of duplicates"] += 1
            self._duplicates[event["topic"]].add(message)
            return
        before = self._receipts[event["topic"]].setdefault(place, message)
        if before != message:
            self.verdict.violated("one receipt for a place", f"{place} was given to {before} and to {message}")

    def _on_opened(self, number: int, event: Event) -> None:
        self._receptions[event["consumer"]] = Reception(number)

    def _on_received(self, number: int, event: Event) -> None:
        place, name = tuple(event["id"]), event["subscription"]
        stream, reception = self._streams[name], self._receptions[event["consumer"]]
        self._check_content(event)
        if name not in self._ordered:
            self._check_time(event)
        acked = stream.acked.get(place)
        if acked is not None:
            self._check_after_ack(event, acked, reception)
        if place in stream.delivered:
            self.verdict.counts["delivered again"] += 1
        elif name in self._ordered and place < stream.newest:
            self.verdict.violated("order", f"{name} got {place} for the first time after {stream.newest}")
        stream.delivered.add(place)
        stream.newest = max(stream.newest, place)
        stream.messages.add((event["producer"], event["seq"]))
        reception.deliveries.append(number)

    def _check_content(self, event: Event) -> None:
        message = (event["producer"], event["seq"])
        if event.get("damaged") or message not in self._sent[event["topic"]]:
            self.verdict.violated("nothing but what was sent", f"{message} at {event['id']} of {event['topic']}")

    def _check_time(self, event: Event) -> None:
        due = self._due.get((event["topic"], event["producer"], event["seq"]))
        if due is not None and event["at"] < due - TICK_NS:
            early = (due - event["at"]) / 1e9
            what = f"{event['subscription']} got {event['producer']} {event['seq']} {early:.2f} s before it was due"
            self.verdict.violated("nothing before its time", what)

    def _check_after_ack(self, event: Event, acked: int, reception: Reception) -> None:
        text = f"{event['subscription']}: {event['id']} was acknowledged and came again to {event['consumer']}"
        if reception.opened > acked:
            self.verdict.violated("nothing after its ack receipt", f"{text}, which was opened afterwards")
        elif reception.since(acked) > self.queue:
            self.verdict.violated("nothing after its ack receipt", f"{text}, when its queue had been used up")
        else:
            self.verdict.counts["acknowledged while in a queue"] += 1

    def _on_acked(self, number: int, event: Event) -> None:
        self._streams[event["subscription"]].acked.setdefault(tuple(event["id"]), number)

    def _on_log(self, number: int, event: Event) -> None:
        topic, place = event["topic"], tuple(event["id"])
        self._check_content(event)
        if place <= self._last_log.get(topic, ()):
            self.verdict.violated("order", f"{topic} has {place} after {self._last_log[topic]}")
        self._last_log[topic] = place
        self._log[topic][place] = (event["producer"], event["seq"])

    def _at_the_end(self) -> None:
        for topic, receipts in self._receipts.items():
            for place, message in receipts.items():
                found = self._log[topic].get(place)
                if found != message:
                    self.verdict.violated("nothing receipted is lost", f"{message} at {place} of {topic}: {found}")
            for name in (name for name, its in self._topics.items() if its == topic):
                missed = set(receipts.values()) - self._streams[name].messages
                for message in sorted(missed):
                    self.verdict.violated("each subscription gets all", f"{name} never got {message}")
        for topic, log in self._log.items():
            self._check_order_of_log(topic, log)
        for topic in self._once:
            self._check_once(topic)

    def _check_once(self, topic: str) -> None:
        """Check that each publisher's numbers occur once, from the first to the last receipted one."""
        found = Counter(self._log[topic].values())
        numbers: dict[str, int] = {}
        for producer, seq in {*self._receipts[topic].values(), *self._duplicates[topic], *found}:
            numbers[producer] = max(seq, numbers.get(producer, -1))
        for producer, last in sorted(numbers.items()):
            for seq in range(last + 1):
                if found[producer, seq] != 1:
                    self.verdict.violated("exactly once", f"{topic}: {found[producer, seq]} of {producer} {seq}")
            self.verdict.counts["stored exactly once"] += last + 1

    def _check_order_of_log(self, topic: str, log: Mapping[Id, tuple[str, int]]) -> None:
        seen: set[tuple[str, int]] = set()
        newest: dict[str, int] = {}
        for place, (producer, seq) in log.items():
            if (producer, seq) in seen:
                self.verdict.counts["published twice by the client"] += 1
            elif seq < newest.get(producer, -1):
                self.verdict.violated("order", f"{topic}: {producer} {seq} at {place} is after {newest[producer]}")
            seen.add((producer, seq))
            if (topic, producer, seq) in self._due:
                continue  # the Go client sends it ahead of the batch being filled
            newest[producer] = max(seq, newest.get(producer, -1))
