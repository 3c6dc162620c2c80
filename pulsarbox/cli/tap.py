"""``pulsarbox tap``: what is published from now on, on one topic or on all that fit a pattern."""

import fnmatch
import re
import time
from typing import Any, Final

import click

from pulsarbox.cli.consume import form_options, manner_of
from pulsarbox.cli.ending import Ending
from pulsarbox.cli.exits import Misused
from pulsarbox.cli.interruption import Interruption
from pulsarbox.cli.positions import UNTIL, End, Until
from pulsarbox.cli.reading import Reading
from pulsarbox.cli.starting import reader
from pulsarbox.cli.target import Target, service_options
from pulsarbox.cli.text import say
from pulsarbox.client.client import TIMEOUT_SECONDS, Client
from pulsarbox.client.consumer import Consumer
from pulsarbox.client.incoming import EARLIEST, LATEST
from pulsarbox.client.topic_consumer import Start
from pulsarbox.errors import TopicNotFound
from pulsarbox.names import parse_topic

_WILD: Final = re.compile(r"[*?\[]")
_LOOK_SECONDS: Final = 1.0


@click.command()
@click.argument("topic", metavar="TOPIC|PATTERN")
@click.option(
    "--until",
    metavar="END",
    type=UNTIL,
    default=Until(),
    help="A number of messages, a length of time (30s), or @TIME. Else until Ctrl-C.",
)
@click.option("-n", "--count", type=click.IntRange(1), help="At most so many messages.")
@form_options("table")
@service_options
def tap(service: Target, topic: str, **options: Any) -> None:
    """Show messages as they are published. Nobody's subscription is touched, and nothing is left behind.

    A PATTERN has * (any text), ? (any character) or [a-z] in the last part of a topic's name: 'orders-*', or
    'persistent://public/default/*'. Topics that are made later and fit are taken in, with all their messages.

    \b
    Exit codes:
      0    the end is reached, or the reader of stdout has seen enough
      2    an option or a name cannot be used
      3    there is no such topic or namespace
      6    the broker cannot be reached
      130  Ctrl-C

    \b
    Examples:
      pulsarbox tap orders
      pulsarbox tap 'orders-*' --filter 'props.region == "eu"'
      pulsarbox tap '*' -o ndjson --until 30s > half-a-minute.ndjson
    """
    if options["until"].kind in (End.END, End.ID):
        raise Misused("--until: what is still to be published has no end: give a number, a time, or a length of time")
    manner = manner_of(options)
    client = Client(service.hosts, TIMEOUT_SECONDS)
    try:
        with Interruption(client.loop) as interruption:
            consumer = Consumer(client, reader(Start(LATEST)))
            topics = None
            if _WILD.search(topic):
                topics = Topics(client, consumer, topic)
            else:
                consumer.add(topic)
            reading = Reading(
                client, consumer, interruption, Ending(consumer, options["until"], options["count"]), manner
            )
            if topics is not None:
                reading.each_turn = topics.look
            reading.run()
            consumer.close()
    finally:
        client.close()


class Topics:
    """The topics that fit a pattern, of now and of later."""

    def __init__(self, client: Client, consumer: Consumer, pattern: str) -> None:
        """Takes in those that are there. Raises what the broker tells, and InvalidTopicName."""
        name = parse_topic(pattern)
        self._client = client
        self._consumer = consumer
        self._namespace = name.namespace
        # With or without the domain: a bare pattern means persistent topics, as a bare name does.
        self._fits = re.compile(fnmatch.translate(str(name)))
        self._hash = ""
        self._next = time.monotonic()
        self._take_in(Start(LATEST))
        say(f"topics that fit {pattern}: {len(consumer.parts)}; new ones are taken in")

    def look(self) -> None:
        """Take in new ones; asked of the broker about once a second."""
        if time.monotonic() >= self._next:
            self._take_in(Start(EARLIEST))  # whatever is in a new one was published after we came

    def _take_in(self, start: Start) -> None:
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
