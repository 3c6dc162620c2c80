"""``pulsarbox peek``: a look at messages that changes nothing."""

from typing import Any

import click

from pulsarbox.cli.consume import END_SECONDS, form_options, manner_of
from pulsarbox.cli.ending import Ending
from pulsarbox.cli.exits import Misused
from pulsarbox.cli.interruption import Interruption
from pulsarbox.cli.positions import FROM, UNTIL, End, From, Until
from pulsarbox.cli.reading import Manner, Reading
from pulsarbox.cli.starting import Place, check_place, place_of, reader, start_of
from pulsarbox.cli.target import Target, service_and_admin_options
from pulsarbox.client.client import TIMEOUT_SECONDS, Client
from pulsarbox.client.consumer import Consumer, Message
from pulsarbox.client.incoming import EARLIEST
from pulsarbox.client.topic_consumer import QUEUE, Start


@click.command()
@click.argument("topic")
@click.option("-s", "--subscription", metavar="SUB", help="The messages that this subscription has not acknowledged.")
@click.option(
    "--from",
    "begin",
    metavar="POS",
    type=FROM,
    help="earliest (the default), -10, @-1h, @2026-11-21T10:00, or a message id.",
)
@click.option("--until", metavar="END", type=UNTIL, default=Until(End.END), help="end, @TIME, or a message id. [end]")
@click.option("-n", "--count", type=click.IntRange(1), default=10, show_default=True, help="At most so many messages.")
@form_options("table")
@service_and_admin_options
def peek(service: Target, admin: Target, topic: str, **options: Any) -> None:
    """Show messages of TOPIC that are there now. Nothing is acknowledged, and no subscription moves.

    With -s, those that the subscription has not acknowledged, whether a consumer has them or not. That is asked of the
    Admin API; of a batch it only tells whether all of it is acknowledged.

    \b
    Exit codes:
      0    shown, or there is nothing to show
      2    an option or a name cannot be used
      3    there is no such topic or subscription
      6, 7 the broker cannot be reached; the end was not reached

    \b
    Examples:
      pulsarbox peek orders
      pulsarbox peek orders --from -3 -o hex
      pulsarbox peek orders -s billing -n 100 -o ndjson
    """
    if options["subscription"] is not None and options["begin"] is not None:
        raise Misused("-s begins where the subscription is: leave --from out")
    manner = manner_of(options, timeout=END_SECONDS)
    client = Client(service.hosts, TIMEOUT_SECONDS)
    try:
        with Interruption(client.loop) as interruption:
            consumer = Consumer(client, reader(Start(EARLIEST), min(QUEUE, options["count"])))
            if options["subscription"] is not None:
                manner = _through_subscription(consumer, admin, topic, options["subscription"], manner)
            else:
                begin = options["begin"] or From(Start(EARLIEST))
                consumer.add(topic, start_of(client, begin))
                check_place(begin, len(consumer.parts))
            ending = Ending(consumer, options["until"], options["count"])
            Reading(client, consumer, interruption, ending, manner).run()
            consumer.close()
    finally:
        client.close()


def _through_subscription(consumer: Consumer, admin: Target, topic: str, subscription: str, manner: Manner) -> Manner:
    """Begin where the subscription is, and leave out what it has acknowledged behind that."""
    from dataclasses import replace

    places: dict[str, Place] = {}

    def start(part: str) -> Start:
        places[part] = place_of(admin, part, subscription)
        return Start(places[part].mark, inclusive=False)

    consumer.add(topic, start)
    also = manner.wanted

    def wanted(message: Message) -> bool:
        return places[message.topic].is_open(message.id) and (also is None or also(message))

    return replace(manner, wanted=wanted)
