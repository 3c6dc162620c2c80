"""Implementation of ``tap``: read new messages, and add topics that match the pattern."""

import fnmatch
import re
import time
from typing import Any, Final

from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.topic_suggestion import suggesting
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.messages.loops.consume_loop import manner_of
from pulsarbox.cli.messages.loops.read_loop import ReadLoop
from pulsarbox.cli.messages.loops.start_position import reader
from pulsarbox.cli.messages.loops.stop_condition import StopCondition
from pulsarbox.client.client import Client
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.places import EARLIEST, LATEST, Start
from pulsarbox.errors import TopicNotFound
from pulsarbox.names import parse_topic

_WILD: Final = re.compile(r"[*?\[]")
_LOOK_SECONDS: Final = 1.0


def tap_topics(service: Target, topic: str, options: dict[str, Any]) -> None:
    """Show new messages. Raises the exit of the command unless it succeeds."""
    manner = manner_of(options, several_topics=_WILD.search(topic) is not None)
    client = Client(service.hosts, secure=service.secure, credentials=service.credentials())
    try:
        with Interruption(client.loop) as interruption:
            consumer = MultiTopicConsumer(client, reader(Start(LATEST)))
            topics = None
            if _WILD.search(topic):
                topics = MatchingTopics(client, consumer, topic)
            else:
                with suggesting(client, topic):
                    consumer.add(topic)
            reading = ReadLoop(
                client, consumer, interruption, StopCondition(consumer, options["until"], options["count"]), manner
            )
            if topics is not None:
                reading.each_turn = topics.refresh
            reading.run()
            consumer.close()
    finally:
        client.close()


class MatchingTopics:
    """Existing and future topics that match a pattern."""

    def __init__(self, client: Client, consumer: MultiTopicConsumer, pattern: str) -> None:
        """Add the existing topics. Raises the broker's errors, and InvalidTopicName."""
        name = parse_topic(pattern)
        self._client = client
        self._consumer = consumer
        self._namespace = name.namespace
        # A pattern without a domain means persistent topics, as a name does.
        self._fits = re.compile(fnmatch.translate(str(name)))
        self._hash = ""
        self._next = time.monotonic()
        self._add_new(Start(LATEST))
        notify(f"topics that match {pattern}: {len(consumer.parts)}; new ones will be added")

    def refresh(self) -> None:
        """Add new topics. Asks the broker at most once a second."""
        if time.monotonic() >= self._next:
            self._add_new(Start(EARLIEST))  # all messages of a new topic are new

    def _add_new(self, start: Start) -> None:
        self._next = time.monotonic() + _LOOK_SECONDS
        found = self._client.topics(self._namespace, self._hash)
        if found is None:
            return
        names, self._hash = found
        for each in sorted(names):
            name = parse_topic(each)
            if not self._fits.fullmatch(str(name.base)) or each in self._consumer.parts:
                continue
            try:
                self._consumer.add(each, lambda topic: start)
            except TopicNotFound:  # deleted meanwhile
                continue
