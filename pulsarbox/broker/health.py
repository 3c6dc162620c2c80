"""The health check: publishes a message, waits for the commit and reads the message back.

It uses a system topic. Requests that arrive during a check share the next one, so at most one message is in flight.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.timers import Timer, Timers
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.topic.system_topics import HEALTH_TOPIC
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import PersistenceError, PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.storage.record import Entry, Position

HEALTH_SECONDS: Final = 15.0
"""Timeout of a check. Clients of the Admin API wait for a minute."""

Checked = Callable[[Exception | None, Now], None]
"""Receives the result: None if the box is healthy."""


class _Run:
    """One check, and the callbacks waiting for it."""

    def __init__(self, asked: list[Checked]) -> None:
        self.asked = asked
        self.timer: Timer | None = None


class HealthCheck:
    """Runs health checks one at a time."""

    def __init__(self, commits: GroupCommit, timers: Timers, topics: Topics) -> None:
        self._commits = commits
        self._timers = timers
        self._topics = topics
        self._count = 0
        self._waiting: list[Checked] = []
        self._running: _Run | None = None

    def run(self, checked: Checked, now: Now) -> None:
        """Report the result within ``HEALTH_SECONDS``, or twice that if another check is in progress."""
        self._waiting.append(checked)
        if self._running is None:
            self._begin(now)

    def _begin(self, now: Now) -> None:
        run = self._running = _Run(self._waiting)
        self._waiting = []
        run.timer = self._timers.at(now.monotonic + HEALTH_SECONDS, partial(self._too_late, run))
        try:
            topic, entry = self._publish(now)
        except PulsarBoxError as error:
            self._end(run, error, now)
            return
        self._commits.after_commit(partial(self._stored, run, topic, entry))

    def _publish(self, now: Now) -> tuple[PersistentTopic, Entry]:
        """Put a message into the open batch. Raises PulsarBoxError."""
        topic = self._topics.of_box(parse_topic(HEALTH_TOPIC), now)
        refusal = topic.room.refusal
        if refusal is not None:
            raise PersistenceError(f"Messages cannot be published: {refusal}")
        self._count += 1
        metadata = MessageMetadata(producer_name="health", sequence_id=self._count, publish_time=now.wall - now.offset)
        payload = encode_entry(metadata, f"{self._commits.boot}-{self._count}".encode())
        return topic, topic.append(parse_entry(payload), payload, now)

    def _stored(self, run: _Run, topic: PersistentTopic, entry: Entry, now: Now) -> None:
        """Read the message back after a commit: its own or, if that failed, the next."""
        if run is self._running:
            topic.reader.read_run(
                Position(entry.ledger_id, entry.entry_id), entry.entry_id, 1, partial(self._read, run, entry)
            )

    def _read(self, run: _Run, written: Entry, entries: list[Entry], error: Exception | None, now: Now) -> None:
        if error is None and [each.body for each in entries] != [written.body]:
            error = PersistenceError(
                "The health check message was not stored: its position is empty or holds another message"
            )
        self._end(run, error, now)

    def _too_late(self, run: _Run, now: Now) -> None:
        self._end(
            run,
            PersistenceError(f"The health check message was not stored and read back within {HEALTH_SECONDS:g} s"),
            now,
        )

    def _end(self, run: _Run, error: Exception | None, now: Now) -> None:
        if run is not self._running:
            return
        self._running = None
        if run.timer is not None:
            run.timer.cancel()
        for checked in run.asked:
            checked(error, now)
        if self._waiting:
            self._begin(now)
