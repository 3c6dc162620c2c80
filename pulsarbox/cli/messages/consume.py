"""``pulsarbox consume``: the messages of topics, through a subscription or without one."""

from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import FROM, UNTIL, Until
from pulsarbox.cli.connect.target import Target, service_options
from pulsarbox.cli.messages.reading_options import END_SECONDS, form_options
from pulsarbox.cli.process import completions
from pulsarbox.client.places import INCOMPLETE_MAX, SUBSCRIPTION_TYPES


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, shell_complete=completions.topics)
@click.option(
    "-s",
    "--subscription",
    metavar="SUB",
    shell_complete=completions.subscriptions,
    help="Consume through this subscription; made where it is not.",
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(SUBSCRIPTION_TYPES),
    default="exclusive",
    show_default=True,
    help="Type of the subscription.",
)
@click.option(
    "--from",
    "begin",
    metavar="POS",
    type=FROM,
    help="earliest, latest, -10, -1h, @2026-11-21T10:00, or a message id. Moves a subscription there.",
)
@click.option(
    "--until",
    metavar="END",
    type=UNTIL,
    default=Until(),
    help="end, a number of messages, a length of time (30s), @TIME, or a message id. Else until Ctrl-C.",
)
@click.option("-n", "--count", type=click.IntRange(1), help="At most so many messages.")
@click.option(
    "--ack",
    type=click.Choice(["after", "before", "none"]),
    default="after",
    show_default=True,
    help="Acknowledge once a message is written (to a pipe: read), before it is, or not at all.",
)
@click.option("--ack-filtered", is_flag=True, help="Acknowledge what --filter leaves out, too.")
@click.option(
    "--pending-chunks",
    metavar="N",
    type=click.IntRange(1),
    default=INCOMPLETE_MAX,
    show_default=True,
    help="Large messages (in chunks) that are put together at once, at most; beyond, the oldest is given up.",
)
@click.option(
    "--ack-oldest-chunks", is_flag=True, help="Acknowledge what --pending-chunks gives up; else it comes again later."
)
@click.option("--exec", "command", metavar="CMD", help="Run CMD for each message, the payload on its stdin.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    help=f"Fail after S seconds without a message. With an --until in a topic {END_SECONDS:g}, else never.",
)
@form_options("lines")
@service_options
def consume(service: Target, topics: tuple[str, ...], **options: Any) -> None:
    """Write the messages of TOPICs to stdout, one payload a line.

    Without a subscription it reads from the earliest message, and leaves nothing behind. With one it goes on where the
    subscription is (a new one begins with the earliest message), and acknowledges what was written, or read from the
    pipe that it was written to. The rest comes again after a broken pipe or Ctrl-C.

    --exec runs CMD with the shell, one message at a time; exit code 0 acknowledges, any other gives the message back
    after a second. $PULSARBOX_MESSAGE_ID, _TOPIC, _KEY, _PUBLISH_TIME, _REDELIVERY and _PROPERTY_name tell of it.

    \b
    Exit codes:
      0    the end is reached, or the reader of stdout has seen enough
      2    an option or a name cannot be used
      3    the topic does not exist (with a subscription it is made)
      4    the subscription is taken by a consumer that is Exclusive, or of another type
      6, 7 no connection; --timeout, or an --until that is not reached
      8    commands of --exec failed
      130  Ctrl-C

    \b
    Examples:
      pulsarbox consume orders
      pulsarbox consume orders --from -10 --until end
      pulsarbox consume orders -s billing --type shared -o ndjson
      pulsarbox consume orders --from @-1h --filter 'json.total > 100' -f '%T{%H:%M} %k %v\\n'
      pulsarbox consume orders -s mail --exec './send-mail "$PULSARBOX_MESSAGE_KEY"'
    """
    if options["subscription"] is None and options["kind"] != "exclusive":
        raise Misused("--type is the type of a subscription: name one with -s")
    if options["command"] is not None and (options["line_format"] is not None or options["output"] != "lines"):
        raise Misused("--exec runs a command in place of writing: leave --output and --format out")
    from pulsarbox.cli.messages.consume_loop import consume_topics

    consume_topics(service, topics, options)
