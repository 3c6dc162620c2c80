"""``bin/pulsar-client`` of the container image: ``produce`` and ``consume`` with the options of Pulsar's own tool.

Source: Pulsar documentation, "Command line tools: pulsar-client". Options for encryption keys, schemas and WebSocket
URLs are not supported.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean

_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}
_TYPES: Final = {"Exclusive": "exclusive", "Shared": "shared", "Failover": "failover", "Key_Shared": "key_shared"}
_BOUNDARY: Final = "----- got message -----"


@click.group(context_settings=_CONTEXT)
@click.option("--url", help="Service URL. [default: brokerServiceUrl of conf/client.conf]")
@click.option("--auth-plugin", help="Authentication: token, tls, basic, or the class name of Pulsar's client.")
@click.option("--auth-params", help="Its parameters, such as token:eyJ... or file:///path/to/token.")
@click.option("--tlsTrustCertsFilePath", "--tls-trust-cert-path", "tls_trust_cert_path", help="Trusted certificates.")
@click.pass_context
def pulsar_client(context: click.Context, /, **options: Any) -> None:
    """Publish and consume messages, compatible with Pulsar's pulsar-client."""
    context.obj = options


@pulsar_client.command(context_settings=_CONTEXT)
@click.argument("topic")
@click.option("-m", "--messages", multiple=True, help="Messages to publish, separated by --separator.")
@click.option(
    "-s", "--separator", default=",", show_default=True, help="Separator of messages in -m; empty: do not split."
)
@click.option(
    "-f",
    "--files",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File to publish as one message; repeatable.",
)
@click.option(
    "-n",
    "--num-produce",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of times to publish all messages.",
)
@click.option("-r", "--rate", type=float, default=0, show_default=True, help="Messages per second; 0: no limit.")
@click.option("-k", "--key", help="Partition key.")
@click.option("-p", "--properties", multiple=True, metavar="KEY=VALUE", help="Comma-separated properties.")
@click.option("-db", "--disable-batching", is_flag=True, help="Publish each message as a separate entry.")
@click.pass_obj
def produce(connection: dict[str, Any], /, topic: str, **options: Any) -> None:
    """Publish messages to TOPIC.

    \b
    Example:
      pulsar-client produce my-topic -n 10 -m "hello pulsar"
    """
    contents = _contents(options)
    if not contents:
        raise Misused("nothing to publish: specify messages with -m or files with -f")
    properties = tuple(_property(each) for text in options["properties"] for each in text.split(",") if each)
    with _connected(connection) as client:
        from pulsarbox.client.producer import Options, Producer
        from pulsarbox.protocol.message_encoder import Outgoing

        producer = Producer(client, topic, Options(batching=not options["disable_batching"]), lambda *_: None)
        begin, sent = time.monotonic(), 0
        for _ in range(options["num_produce"]):
            for content in contents:
                if options["rate"] > 0:
                    _wait(client, begin + sent / options["rate"])
                producer.send(Outgoing(content, key=options["key"], properties=properties))
                sent += 1
        producer.flush()
        producer.close()
    click.echo(f"{sent} messages successfully produced")


@pulsar_client.command(context_settings=_CONTEXT)
@click.argument("topic")
@click.option("-s", "--subscription-name", required=True, help="Subscription to consume through; created if missing.")
@click.option("-t", "--subscription-type", type=click.Choice(list(_TYPES)), default="Exclusive", show_default=True)
@click.option(
    "-m", "--subscription-mode", type=click.Choice(["Durable", "NonDurable"]), default="Durable", show_default=True
)
@click.option(
    "-p",
    "--subscription-position",
    type=click.Choice(["Latest", "Earliest"]),
    default="Latest",
    show_default=True,
    help="Start position of a new subscription.",
)
@click.option(
    "-n",
    "--num-messages",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Number of messages to consume; 0: no limit.",
)
@click.option("-q", "--queue-size", type=click.IntRange(0), default=0, help="Receiver queue size; 0: default.")
@click.option("--hex", "as_hex", is_flag=True, help="Show payloads in hexadecimal.")
@click.option("--hide-content", is_flag=True, help="Count messages without showing them.")
@click.pass_obj
def consume(connection: dict[str, Any], /, topic: str, **options: Any) -> None:
    """Consume messages from TOPIC, print and acknowledge them.

    \b
    Example:
      pulsar-client consume my-topic -s my-subscription -p Earliest -n 0
    """
    with _connected(connection) as client:
        from pulsarbox.cli.common.interruption import Interruption
        from pulsarbox.client.multi_topic_consumer import TYPES, MultiTopicConsumer, Subscribing
        from pulsarbox.client.places import EARLIEST, LATEST, Start

        start = Start(EARLIEST if options["subscription_position"] == "Earliest" else LATEST)
        wanted = Subscribing(
            options["subscription_name"],
            TYPES[_TYPES[options["subscription_type"]]],
            durable=options["subscription_mode"] == "Durable",
            start=start,
        )
        if options["queue_size"]:
            wanted = replace(wanted, queue=options["queue_size"])
        consumer = MultiTopicConsumer(client, wanted)
        consumer.add(topic)
        most, taken = options["num_messages"], 0
        with Interruption(client.loop) as interruption:
            while not interruption.is_asked() and (not most or taken < most) and not consumer.ended:
                messages = consumer.take(min(most - taken, 100) if most else 100, 1.0)[: most - taken if most else None]
                for message in messages:
                    if not options["hide_content"]:
                        click.echo(f"{_BOUNDARY}\n{_written(message, as_hex=options['as_hex'])}")
                consumer.acknowledge(messages)
                taken += len(messages)
        consumer.settle()
        consumer.close()
    click.echo(f"{taken} messages successfully consumed")


def _contents(options: dict[str, Any]) -> list[bytes]:
    separator = options["separator"]
    texts = [part for text in options["messages"] for part in (text.split(separator) if separator else [text])]
    return [text.encode() for text in texts] + [path.read_bytes() for path in options["files"]]


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Misused(f"--properties: expected KEY=VALUE, not '{clean(text)}'")
    return name, value


def _written(message: Any, *, as_hex: bool) -> str:
    """Return a message in pulsar-client's format, with control characters escaped on a terminal."""
    properties = ", ".join(f"{name}={value}" for name, value in message.properties)
    if message.payload is None:
        content = "null"
    else:
        content = message.payload.hex(" ") if as_hex else message.payload.decode(errors="replace")
    key = "null" if message.key is None else message.key
    text = (
        f"publishTime:[{message.publish_time}], eventTime:[{message.event_time}], key:[{key}], "
        f"properties:[{properties}], content:{content}"
    )
    return clean(text) if sys.stdout.isatty() else text


@contextmanager
def _connected(options: dict[str, Any]) -> Iterator[Any]:
    """Connect to the broker named by the options or client.conf. Raises exceptions with pulsarbox's exit codes."""
    from pulsarbox.cli.connect.target import TargetOptions, service_target
    from pulsarbox.cli.pulsar_admin.connecting import client_conf
    from pulsarbox.client.client import Client
    from pulsarbox.client.errors import NotConnected
    from pulsarbox.errors import PulsarBoxError

    file = client_conf(None)
    target = service_target(TargetOptions(options["url"] or file.get("brokerServiceUrl") or None, options=options))
    client = Client(target.hosts, secure=target.secure, credentials=target.credentials(file=file))
    try:
        yield client
    except NotConnected as error:
        raise target.unreachable(str(error)) from error
    except PulsarBoxError as error:
        raise click.ClickException(clean(str(error))) from error
    finally:
        client.close()


def _wait(client: Any, until: float) -> None:
    while (left := until - time.monotonic()) > 0:
        client.turn(left)


if __name__ == "__main__":
    pulsar_client(prog_name="pulsar-client")
