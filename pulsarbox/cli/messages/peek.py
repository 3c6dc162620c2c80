"""``pulsarbox peek``: show stored messages without side effects."""

from collections.abc import Callable
from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import FROM, UNTIL, End, Until
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.target import Target, service_and_late_admin_options
from pulsarbox.cli.messages.reading_options import form_options
from pulsarbox.cli.process import completions


@click.command()
@click.argument("topic", shell_complete=completions.topics)
@click.option(
    "-s",
    "--subscription",
    metavar="SUB",
    shell_complete=completions.subscriptions,
    help="Show the unacknowledged messages of this subscription.",
)
@click.option(
    "--from",
    "begin",
    metavar="POS",
    type=FROM,
    help="Start position: earliest, -10, @-1h, @2026-11-21T10:00, or a message ID. [default: earliest]",
)
@click.option(
    "--until",
    metavar="END",
    type=UNTIL,
    default=Until(End.END),
    help="Stop at: end, @TIME, or a message ID. [default: end]",
)
@click.option(
    "-n", "--count", type=BoundedInteger(1), default=10, show_default=True, help="Maximum number of messages."
)
@form_options("table")
@service_and_late_admin_options
def peek(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Show stored messages of TOPIC without acknowledging them.

    With -s, shows the messages that the subscription has not acknowledged, including those delivered to a consumer.
    Their positions come from the Admin API; that of Apache Pulsar reports a batch only as a whole. REDELIVERED and the
    filter field redelivery count redeliveries by the subscription; Apache Pulsar does not report them.

    \b
    Exit codes:
      0    success, even without messages
      2    an option or a name is invalid
      3    the topic or subscription does not exist
      6, 7 the broker is unreachable; the end was not reached in time

    \b
    Examples:
      pulsarbox peek orders
      pulsarbox peek orders --from -3 -o hex
      pulsarbox peek orders -s billing -n 100 -o ndjson
      pulsarbox peek orders -s billing --filter 'redelivery > 2'
    """
    if options["subscription"] is not None and options["begin"] is not None:
        raise Misused("-s and --from cannot be combined: -s starts at the position of the subscription")
    from pulsarbox.cli.messages.loops.peek_loop import peek_topic

    peek_topic(service, admin, topic, options)
