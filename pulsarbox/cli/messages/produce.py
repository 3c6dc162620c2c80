"""``pulsarbox produce``: publish messages from the command line or from stdin."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.time_arguments import DURATION, MOMENT
from pulsarbox.cli.common.value_types import BoundedInteger, MessageRate, Seconds
from pulsarbox.cli.connect.target import Target, service_and_late_admin_options
from pulsarbox.cli.plugins.options import PLUGINS_DIR
from pulsarbox.cli.process import completions
from pulsarbox.client.compression import CODECS
from pulsarbox.client.places import TIMEOUT_SECONDS

STDIN: Final = "-"
_NAME_MAX: Final = 1000
"""Characters of a payload that may be the name of a file."""


def _pair(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[tuple[str, str]]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"expected name=value, not '{value}'", ctx, param)
    return [(name, text) for name, _, text in (value.partition("=") for value in values)]


@click.command()
@click.argument("topic", shell_complete=completions.topics)
@click.argument("payload", required=False)
@click.option("-k", "--key", help="Message key; determines the partition.")
@click.option("--ordering-key", help="Ordering key for Key_Shared subscriptions. [default: the key]")
@click.option(
    "-p",
    "--property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pair,
    help="Message property; repeatable.",
)
@click.option("--event-time", metavar="TIME", type=MOMENT, help="Event time, set by the application.")
@click.option(
    "-i",
    "--input",
    "form",
    type=click.Choice(["lines", "raw", "ndjson"]),
    default="lines",
    show_default=True,
    help="Format of stdin: one message per line, one message in all, or JSON envelopes.",
)
@click.option(
    "-f",
    "--format",
    "line_format",
    metavar="FMT",
    help="Format of each line, such as '%k:%v' or '%P{user} %v{hex}'; see docs/cli.md.",
)
@click.option(
    "-n", "--count", type=BoundedInteger(1), help="Times to send PAYLOAD [default: 1]; maximum messages from stdin."
)
@click.option(
    "--rate",
    type=MessageRate(off=None),
    help="Maximum messages per second, such as 100/s. [default: off]",
)
@click.option("--at", "deliver_at", metavar="TIME", type=MOMENT, help="Delay delivery until this time.")
@click.option(
    "--after", "deliver_after", metavar="D", type=DURATION, help="Delay delivery by this duration, such as 10m."
)
@click.option(
    "--compress",
    type=click.Choice(list(CODECS)),
    default="none",
    show_default=True,
    help="Compression codec.",
)
@click.option("--tombstone", is_flag=True, help="Send a null value; compaction then removes the key.")
@click.option(
    "--template",
    is_flag=True,
    help="Expand {{count}}, {{random 1 100}}, {{text 8}}, {{choice a b}}, {{time}}, {{millis}}, {{uuid}}.",
)
@click.option("--batch/--no-batch", default=True, show_default=True, help="Send messages in batches.")
@click.option("--mix-keys", is_flag=True, help="Allow several keys per batch. Faster, but incorrect with Key_Shared.")
@click.option(
    "--route",
    metavar="NAME",
    default="round-robin",
    show_default=True,
    shell_complete=completions.plugins("routing"),
    help="Routing mode: round-robin, single, key, consistent, least-backlog, property, or a plugin.",
)
@click.option(
    "--route-option",
    "route_options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pair,
    help="Option of the routing mode, such as property=region; repeatable.",
)
@click.option(
    "--hash",
    "hashing",
    metavar="NAME",
    default="java",
    show_default=True,
    shell_complete=completions.plugins("hashing"),
    help="Hash function of keys: java (as Java clients), boost (as Python clients), murmur3, java-cpp, xxhash, crc32c, "
    "or a plugin.",
)
@PLUGINS_DIR
@click.option("--name", help="Producer name. [default: assigned by the broker]")
@click.option(
    "--preserve",
    is_flag=True,
    help="Store envelopes with their original producers, sequence IDs, times, partitions, batches, codecs, schemas "
    "and encryption; each message ID once.",
)
@click.option(
    "--keep",
    metavar="NAME",
    help="Retain the messages: create durable subscription NAME, unless it exists, before the first message.",
)
@click.option("--ids", is_flag=True, help="Print the ID of each stored message, in input order.")
@click.option(
    "--timeout",
    type=Seconds(above=True),
    default=f"{TIMEOUT_SECONDS:g}s",
    show_default=True,
    help="Fail after this time without a receipt or a connection, or while blocked by a backlog quota.",
)
@click.option("--no-progress", is_flag=True, help="Do not show progress.")
@click.option("-q", "--quiet", is_flag=True, help="Print diagnostics only on failure.")
@service_and_late_admin_options
def produce(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Publish PAYLOAD, or messages from stdin, to TOPIC.

    TOPIC is a name such as orders or persistent://public/default/orders. Without PAYLOAD, or with "-", each line of
    stdin is a message. Exits once the broker has stored all messages. Messages with a key are routed by its hash, the
    others round-robin; --route changes this. After a lost connection, resends messages without a receipt, which may
    store them twice unless the broker deduplicates. Warns before a load if the broker would not retain it because
    TOPIC has neither a subscription nor retention; see --keep.

    \b
    Exit codes:
      0    all messages are stored
      2    an option, the topic name or a line of stdin is invalid
      3, 5 the namespace does not exist; not authorized
      4    the producer name is in use, the topic is terminated, or its backlog quota is exceeded
      6, 7 no connection; no receipt in time
      8    some messages are stored, others not

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
    note = file_note(topic, options["payload"], template=options["template"])
    if note:
        notify(note)
    from pulsarbox.cli.messages.message_publisher import produce_messages

    produce_messages(service, admin, topic, options)


def file_note(topic: str, payload: str | None, *, template: bool) -> str:
    """Return a note if PAYLOAD is the name of a file, or @ and the name, which is published as text; else nothing."""
    if payload is None or template or payload == STDIN or "\n" in payload or len(payload) > _NAME_MAX:
        return ""
    try:
        names = (payload, payload.removeprefix("@"))  # @FILE is the syntax of curl
        file = next((name for name in names if Path(name).is_file()), "")
    except (OSError, ValueError):  # no possible name
        return ""
    if not file:
        return ""
    words = f"pulsarbox produce {shlex.quote(topic)} < {shlex.quote(file)}"
    return f"note: publishes the text '{payload}'; for the lines of the file: {words}"


def _check(options: dict[str, Any]) -> None:
    """Raise Misused for conflicting options, and set ``from_stdin``."""
    given, tombstone = options["payload"], options["tombstone"]
    from_stdin = (given is None and not tombstone) or given == STDIN
    if tombstone and given is not None:
        raise Misused("--tombstone and PAYLOAD cannot be combined")
    if options["deliver_at"] is not None and options["deliver_after"] is not None:
        raise Misused("--at and --after cannot be combined")
    if not from_stdin and (options["form"] != "lines" or options["line_format"] is not None):
        raise Misused("--input and --format apply to stdin and cannot be combined with PAYLOAD")
    if options["line_format"] is not None and options["form"] != "lines":
        raise Misused("--format and --input cannot be combined: --format reads lines")
    if options["preserve"] and options["form"] != "ndjson":
        raise Misused("--preserve requires --input ndjson")
    if options["keep"] is not None and (options["keep"].startswith("-") or not options["keep"].strip()):
        raise Misused("--keep requires a subscription name; to preserve the metadata of envelopes, use --preserve")
    if options["template"] and options["form"] != "lines":
        raise Misused("--template and --input cannot be combined")
    if options["template"] and options["line_format"] is not None:
        raise Misused("--template and --format cannot be combined")
    options["from_stdin"] = from_stdin
