"""``pulsarbox produce``: messages from the command line or from stdin."""

from collections.abc import Callable
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.time_arguments import DURATION, MOMENT
from pulsarbox.cli.connect.target import Target, service_and_late_admin_options
from pulsarbox.cli.plugins.options import PLUGINS_DIR
from pulsarbox.cli.process import completions
from pulsarbox.client.compression import CODECS
from pulsarbox.client.places import TIMEOUT_SECONDS

STDIN: Final = "-"


def _pair(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"'{value}' is not name=value", ctx, param)
    return [(name, text) for name, _, text in (value.partition("=") for value in values)]


@click.command()
@click.argument("topic", shell_complete=completions.topics)
@click.argument("payload", required=False)
@click.option("-k", "--key", help="Key of the messages; it chooses the partition.")
@click.option("--ordering-key", help="Key for Key_Shared subscriptions, where it is to be another one.")
@click.option(
    "-p",
    "--property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pair,
    help="Property of the messages; may be given again and again.",
)
@click.option("--event-time", metavar="TIME", type=MOMENT, help="When it happened, by the application's clock.")
@click.option(
    "-i",
    "--input",
    "form",
    type=click.Choice(["lines", "raw", "ndjson"]),
    default="lines",
    show_default=True,
    help="What stdin holds: a message a line, one message, or envelopes.",
)
@click.option(
    "-f",
    "--format",
    "line_format",
    metavar="FMT",
    help="How each line is made up, such as '%k:%v' or '%P{user} %v{hex}'.",
)
@click.option(
    "-n", "--count", type=click.IntRange(1), help="Send PAYLOAD so many times (1); of stdin, at most so many messages."
)
@click.option("--rate", metavar="R", type=click.FloatRange(0, min_open=True), help="At most R messages a second.")
@click.option("--at", "deliver_at", metavar="TIME", type=MOMENT, help="Deliver them at that time.")
@click.option("--after", "deliver_after", metavar="D", type=DURATION, help="Deliver each after that time, such as 10m.")
@click.option(
    "--compress",
    type=click.Choice(list(CODECS)),
    default="none",
    show_default=True,
    help="Codec of payloads, or of whole batches.",
)
@click.option("--tombstone", is_flag=True, help="Send a null value: compaction then forgets the key.")
@click.option(
    "--template",
    is_flag=True,
    help="Fill in {{count}}, {{random 1 100}}, {{text 8}}, {{choice a b}}, {{time}}, {{millis}}, {{uuid}}.",
)
@click.option("--batch/--no-batch", default=True, show_default=True, help="Whether messages share entries.")
@click.option("--mix-keys", is_flag=True, help="Let batches hold several keys: faster, but wrong with Key_Shared.")
@click.option(
    "--route",
    metavar="NAME",
    default="round-robin",
    show_default=True,
    shell_complete=completions.plugins("routing"),
    help="How a partition is chosen: round-robin, single, key, consistent, least-backlog, property, or a plugin.",
)
@click.option(
    "--route-option",
    "route_options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pair,
    help="What the route is told, such as property=region; may be given again and again.",
)
@click.option(
    "--hash",
    "hashing",
    metavar="NAME",
    default="java",
    show_default=True,
    shell_complete=completions.plugins("hashing"),
    help="How a key is hashed: java (as Java clients), boost (as Python clients), murmur3, java-cpp, xxhash, crc32c, "
    "or a plugin.",
)
@PLUGINS_DIR
@click.option("--name", help="Name of the producer. Else the broker makes one.")
@click.option(
    "--preserve",
    is_flag=True,
    help="Store envelopes as they were: producers, sequence ids, times, partitions, batches, codecs, schemas, "
    "encryption; each message id once.",
)
@click.option(
    "--keep",
    metavar="NAME",
    help="Create durable subscription NAME, unless it exists, before the first message: it keeps what is published.",
)
@click.option("--ids", is_flag=True, help="Print the id of each message once it is stored, in the order of the input.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0, min_open=True),
    default=TIMEOUT_SECONDS,
    show_default=True,
    help="Seconds without a receipt, without a connection, or held back by a backlog quota, after which it fails.",
)
@click.option("--no-progress", is_flag=True, help="No line that says how far it is.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing where all goes well.")
@service_and_late_admin_options
def produce(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Send messages to TOPIC: PAYLOAD, or what comes in on stdin. Ends when the broker has stored all of them.

    TOPIC is a name such as orders or persistent://public/default/orders. Without PAYLOAD, or with "-", each line of
    stdin is a message. Messages without a key go to partitions in turn, others by their key; --route changes that.
    After a lost connection it goes on where it was; what had no receipt yet may then be stored twice, unless the broker
    deduplicates. If the broker would not keep the messages of a load from stdin, as TOPIC has neither a subscription
    nor retention, a warning says so before the first is published: see --keep.

    \b
    Exit codes:
      0    all are stored
      2    an option, the topic's name or a line of stdin cannot be used
      3, 5 there is no such namespace; not allowed
      4    the producer's name is taken, the topic is terminated, or its backlog has reached its quota
      6, 7 no connection; no receipt in time
      8    some are stored, others are not

    \b
    Examples:
      pulsarbox produce orders 'hello'
      pulsarbox produce orders -k user-1 -p source=web '{"total": 5}'
      seq 1000000 | pulsarbox produce orders --compress zstd
      pulsarbox produce orders --template -n 100 --rate 10 '{"id": "{{uuid}}", "n": {{random 1 9}}}'
      pulsarbox produce orders -f '%k\\t%v' < keyed.tsv
      pulsarbox produce orders --route property --route-option property=region -p region=north 'hello'
      pulsarbox produce reminders --after 10m 'tea is ready'
      pulsarbox consume orders --until end -o ndjson | pulsarbox produce copy -i ndjson
      pulsarbox produce orders-again -i ndjson --preserve --keep billing < orders.ndjson
    """
    _check(options)
    from pulsarbox.cli.messages.message_publisher import produce_messages

    produce_messages(service, admin, topic, options)


def _check(options: dict[str, Any]) -> None:
    """Options that contradict each other."""
    given, tombstone = options["payload"], options["tombstone"]
    from_stdin = (given is None and not tombstone) or given == STDIN
    if tombstone and given is not None:
        raise Misused("--tombstone has no payload: leave PAYLOAD out")
    if options["deliver_at"] is not None and options["deliver_after"] is not None:
        raise Misused("--at and --after: give one of them")
    if not from_stdin and (options["form"] != "lines" or options["line_format"] is not None):
        raise Misused("--input and --format are about stdin: leave PAYLOAD out")
    if options["line_format"] is not None and options["form"] != "lines":
        raise Misused("--format reads lines: leave --input out")
    if options["preserve"] and options["form"] != "ndjson":
        raise Misused("--preserve is about envelopes: it needs --input ndjson")
    if options["keep"] is not None and (options["keep"].startswith("-") or not options["keep"].strip()):
        raise Misused("--keep takes the name of a subscription; --preserve preserves the metadata of envelopes")
    if options["template"] and options["form"] != "lines":
        raise Misused("--template fills in PAYLOAD or lines: leave --input out")
    if options["template"] and options["line_format"] is not None:
        raise Misused("--template and --format: give one of them")
    options["from_stdin"] = from_stdin
