"""``pulsarbox consume``: the messages of topics, through a subscription or without one."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pulsarbox.cli.ending import Ending
from pulsarbox.cli.exits import Misused
from pulsarbox.cli.interruption import Interruption
from pulsarbox.cli.outputs import FORMS, form_of
from pulsarbox.cli.positions import FROM, UNTIL, End, From, Until
from pulsarbox.cli.reading import Manner, Reading
from pulsarbox.cli.starting import check_place, reader, start_of
from pulsarbox.cli.target import Target, service_options
from pulsarbox.client.client import TIMEOUT_SECONDS, Client
from pulsarbox.client.consumer import Consumer
from pulsarbox.client.incoming import EARLIEST
from pulsarbox.client.topic_consumer import TYPES, Start, Subscribing

END_SECONDS: Final = 10.0
"""Of silence, after which an end that was asked for is not reached any more."""

_F = TypeVar("_F", bound=Callable[..., Any])


def form_options(default: str) -> Callable[[_F], _F]:
    """The options that say how messages are written and which."""
    options = (
        click.option("-o", "--output", type=click.Choice(FORMS), default=default, show_default=True,
                     help="Payloads (one a line, raw, hex), envelopes, or a table for the eye."),
        click.option("-f", "--format", "line_format", metavar="FMT",
                     help="Write each message as FMT says, such as '%t %i %k %v\\n': see docs/cli.md."),
        click.option("--filter", "expression", metavar="E",
                     help="Only messages for which E holds, such as 'key == \"a\" and json.total > 5'."),
        click.option("--no-progress", is_flag=True, help="No line that says how far it is."),
    )  # fmt: skip

    def add(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def manner_of(options: dict[str, Any], **more: Any) -> Manner:
    """How messages are read, as the options say. Raises Misused."""
    try:
        form = form_of(options["output"], options["line_format"])
        wanted = None
        if options["expression"] is not None:
            from pulsarbox.cli.filters import parse_filter

            wanted = parse_filter(options["expression"])
    except ValueError as error:
        raise Misused(str(error)) from None
    return Manner(form, wanted, progress=not options["no_progress"], **more)


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@click.option("-s", "--subscription", metavar="SUB", help="Consume through this subscription; made where it is not.")
@click.option(
    "--type",
    "kind",
    type=click.Choice(list(TYPES)),
    default="exclusive",
    show_default=True,
    help="Type of the subscription.",
)
@click.option(
    "--from",
    "begin",
    metavar="POS",
    type=FROM,
    help="earliest, latest, -10, @-1h, @2026-11-21T10:00, or a message id. Moves a subscription there.",
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
    help="Acknowledge once a message is written, before it is, or not at all.",
)
@click.option("--ack-filtered", is_flag=True, help="Acknowledge what --filter leaves out, too.")
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
    subscription is (a new one begins with the earliest message), and acknowledges what was written: a message whose
    output was not taken, because of a broken pipe or Ctrl-C, comes again.

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
    subscription = options["subscription"]
    timeout = options["timeout"]
    if timeout is None and options["until"].kind in (End.END, End.ID):
        timeout = END_SECONDS
    ack = options["ack"] if subscription is not None else "none"
    manner = manner_of(
        options, ack=ack, ack_filtered=options["ack_filtered"], command=options["command"], timeout=timeout
    )
    client = Client(service.hosts, TIMEOUT_SECONDS)
    try:
        with Interruption(client.loop) as interruption:
            consumer = _opened(client, topics, options)
            ending = Ending(consumer, options["until"], options["count"])
            Reading(client, consumer, interruption, ending, manner).run()
            consumer.close()
    finally:
        client.close()


def _opened(client: Client, topics: tuple[str, ...], options: dict[str, Any]) -> Consumer:
    begin: From | None = options["begin"]
    queue = 1 if options["command"] is not None else 1000
    if options["subscription"] is None:
        begin = begin or From(Start(EARLIEST))
        consumer = Consumer(client, reader(begin.start, queue))
        for topic in topics:
            consumer.add(topic, start_of(client, begin))
        check_place(begin, len(consumer.parts))
        return consumer
    consumer = Consumer(client, Subscribing(options["subscription"], TYPES[options["kind"]], queue=queue))
    for topic in topics:
        consumer.add(topic)
    if begin is not None:
        check_place(begin, len(consumer.parts))
        starts = start_of(client, begin)
        for topic, part in consumer.parts.items():
            part.seek(starts(topic))
    return consumer
