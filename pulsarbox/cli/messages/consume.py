"""``pulsarbox consume``: read the messages of topics, with or without a subscription."""

from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import FROM, UNTIL, Until
from pulsarbox.cli.common.value_types import BoundedInteger, Seconds
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
    help="Consume through this subscription; created if missing.",
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(SUBSCRIPTION_TYPES),
    default="exclusive",
    show_default=True,
    help="Subscription type.",
)
@click.option(
    "--from",
    "begin",
    metavar="POS",
    type=FROM,
    help="Start position: earliest, latest, -10, -1h, @2026-11-21T10:00, or a message ID. Seeks a subscription.",
)
@click.option(
    "--until",
    metavar="END",
    type=UNTIL,
    default=Until(),
    help="Stop at: end, a number of messages, a duration (30s), @TIME, or a message ID. [default: Ctrl-C]",
)
@click.option("-n", "--count", type=BoundedInteger(1), help="Maximum number of messages.")
@click.option(
    "--ack",
    type=click.Choice(["after", "before", "none"]),
    default="after",
    show_default=True,
    help="Acknowledge after writing (on a pipe: after the reader has read), before writing, or never.",
)
@click.option("--ack-filtered", is_flag=True, help="Also acknowledge messages that --filter excludes.")
@click.option(
    "--pending-chunks",
    metavar="N",
    type=BoundedInteger(1),
    default=INCOMPLETE_MAX,
    show_default=True,
    help="Maximum number of chunked messages assembled at once; beyond it, the oldest is dropped.",
)
@click.option(
    "--ack-oldest-chunks", is_flag=True, help="Acknowledge chunks dropped by --pending-chunks; else redeliver them."
)
@click.option("--exec", "command", metavar="CMD", help="Run CMD for each message, with the payload on stdin.")
@click.option(
    "--timeout",
    type=Seconds(above=True),
    help="Fail after this time without a message, such as 5s."
    f" [default: {END_SECONDS:g}s if --until is end or an ID, else never]",
)
@form_options("lines")
@service_options
def consume(service: Target, topics: tuple[str, ...], **options: Any) -> None:
    """Consume messages of TOPICs and write them to stdout, one payload per line.

    Without a subscription, reads from the earliest message and leaves no state on the broker. With a subscription,
    resumes at its position (a new one starts at the earliest message) and acknowledges messages once written, or once
    read from a pipe. The others are redelivered after a broken pipe or Ctrl-C.

    --exec runs CMD with the shell, one message at a time. Exit code 0 acknowledges the message; any other redelivers
    it after one second. The environment describes the message: $PULSARBOX_MESSAGE_ID, _TOPIC, _KEY, _PUBLISH_TIME,
    _REDELIVERY and _PROPERTY_name.

    \b
    Exit codes:
      0    the end was reached, or the reader closed stdout
      2    an option or a name is invalid
      3    the topic does not exist (with a subscription, it is created)
      4    the subscription has an exclusive consumer, or another type
      6, 7 no connection; --timeout expired, or --until was not reached
      8    --exec commands failed
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
        raise Misused("--type requires a subscription: specify one with -s")
    if options["command"] is not None and (options["line_format"] is not None or options["output"] != "lines"):
        raise Misused("--exec cannot be combined with --output or --format: it writes no messages")
    from pulsarbox.cli.messages.loops.consume_loop import consume_topics

    consume_topics(service, topics, options)
