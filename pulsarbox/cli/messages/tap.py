"""``pulsarbox tap``: what is published from now on, on one topic or on all that fit a pattern."""

from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import UNTIL, End, Until
from pulsarbox.cli.connect.target import Target, service_options
from pulsarbox.cli.messages.reading_options import form_options
from pulsarbox.cli.process import completions


@click.command()
@click.argument("topic", metavar="TOPIC|PATTERN", shell_complete=completions.topics)
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
    from pulsarbox.cli.messages.tap_loop import tap_topics

    tap_topics(service, topic, options)
