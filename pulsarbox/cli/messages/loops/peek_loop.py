"""Implementation of ``peek``: read from a position to the end, through a separate reader."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pulsarbox.cli.common.interruption import Interruption
from pulsarbox.cli.common.position_options import From
from pulsarbox.cli.common.topic_suggestion import suggesting
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.messages.loops.consume_loop import manner_of
from pulsarbox.cli.messages.loops.read_loop import Manner, ReadLoop
from pulsarbox.cli.messages.loops.start_position import SubscriptionPosition, check_place, place_of, reader, start_of
from pulsarbox.cli.messages.loops.stop_condition import StopCondition
from pulsarbox.cli.messages.reading_options import END_SECONDS
from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.places import EARLIEST, QUEUE, Start


def peek_topic(
    service: Target, admin: Callable[[], Target], topic: str, options: dict[str, Any], *, dead_letters: bool = False
) -> None:
    """Show the messages. Raises the exit of the command unless it succeeds.

    A table of ``dead_letters`` has their origin and reason instead of redeliveries.
    """
    redelivery = options["subscription"] is not None and not dead_letters
    manner = manner_of(options, redelivery=redelivery, dead_letters=dead_letters, timeout=END_SECONDS)
    client = Client(service.hosts, secure=service.secure, credentials=service.credentials())
    try:
        with Interruption(client.loop) as interruption:
            consumer = MultiTopicConsumer(client, reader(Start(EARLIEST), min(QUEUE, options["count"])))
            if options["subscription"] is not None:
                with suggesting(client, topic):
                    manner = _through_subscription(consumer, admin(), topic, options["subscription"], manner)
            else:
                begin = options["begin"] or From(Start(EARLIEST))
                with suggesting(client, topic):
                    consumer.add(topic, start_of(client, begin))
                check_place(begin, len(consumer.parts))
            ending = StopCondition(consumer, options["until"], options["count"])
            ReadLoop(client, consumer, interruption, ending, manner).run()
            consumer.close()
    finally:
        client.close()


def _through_subscription(
    consumer: MultiTopicConsumer, admin: Target, topic: str, subscription: str, manner: Manner
) -> Manner:
    """Start at the mark-delete position of the subscription, and skip messages acknowledged after it."""
    places: dict[str, SubscriptionPosition] = {}

    def start(part: str) -> Start:
        places[part] = place_of(admin, part, subscription)
        return Start(places[part].mark, inclusive=False)

    consumer.add(topic, start)
    also = manner.wanted

    def wanted(message: ReceivedMessage) -> bool:
        place = places[message.topic]
        if not place.is_open(message.id):
            return False
        message.entry.redelivery = place.redeliveries(message.id)  # not those to this reader
        return also is None or also(message)

    return replace(manner, wanted=wanted)
