"""``pulsarbox tap``: new messages of a topic, or of all topics that match a pattern."""

from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import UNTIL, End, Until
from pulsarbox.cli.common.value_types import BoundedInteger
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
    help="Stop after a number of messages or a duration (30s), or at @TIME. [default: Ctrl-C]",
)
@click.option("-n", "--count", type=BoundedInteger(1), help="Maximum number of messages.")
@form_options("table")
@service_options
def tap(service: Target, topic: str, **options: Any) -> None:
    """Show messages as they are published.

    Affects no subscription and leaves no state on the broker. PATTERN contains *, ? or [a-z] in the last part of the
    topic name: 'orders-*', or 'persistent://public/default/*'. Matching topics created later are included, with all
    their messages.

    \b
    Exit codes:
      0    the end was reached, or the reader closed stdout
      2    an option or a name is invalid
      3    the topic or namespace does not exist
      6    the broker is unreachable
      130  Ctrl-C

    \b
    Examples:
      pulsarbox tap orders
      pulsarbox tap orders --filter 'key == "user-1"'
      pulsarbox tap 'orders-*' --filter 'props.region == "eu"'
      pulsarbox tap '*' -o ndjson --until 30s > half-a-minute.ndjson
    """
    if options["until"].kind in (End.END, End.ID):
        raise Misused("--until: future messages have no end; expected a number of messages, a duration or @TIME")
    from pulsarbox.cli.messages.loops.tap_loop import tap_topics

    tap_topics(service, topic, options)
