"""``pulsarbox peek``: a look at messages that changes nothing."""

from collections.abc import Callable
from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import FROM, UNTIL, End, Until
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
    help="The messages that this subscription has not acknowledged.",
)
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
@service_and_late_admin_options
def peek(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
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
    from pulsarbox.cli.messages.peek_loop import peek_topic

    peek_topic(service, admin, topic, options)
