"""Messages read through the Admin API: peeked, or looked up by ID or position."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import click

from pulsarbox.cleaning import hex_rows
from pulsarbox.cli.common.exits import Failed, Misused, NotThere
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.printing import inline
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.client.transport.web import Reply

_LINE: Final = "-" * 73 + "\n"
_PREFIX: Final = "x-pulsar-"


@dataclass(slots=True)
class PrintedMessage:
    """The printed fields of a message."""

    message_id: str
    """``ledger:entry``, or ``ledger:entry:index`` in a batch."""
    batched: bool
    publish_time: int
    event_time: int
    deliver_time: int
    marker: str
    stamp: str
    """Broker timestamp from the entry metadata, if any."""
    index: str
    """Index in the topic from the entry metadata, if any."""
    properties: dict[str, str]
    payload: bytes
    chunk: str = ""
    """Description of the chunk; empty for a whole message."""


def peek_messages(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the first messages of a subscription's backlog."""
    wanted, number = values["count"], 0
    found: list[PrintedMessage] = []
    while len(found) < wanted:
        number += 1
        try:
            reply = session.reply(command.calls[0], {**values, "place": number})
        except NotThere as error:
            if "essage not found" not in error.message:
                raise
            break
        entry = list(messages_of(reply))
        if not entry:
            break
        if _wanted(reply, values):
            found += entry
    for place, message in enumerate(found[:wanted]):
        if place:
            click.echo(_LINE)
        _show(message, marker=bool(values.get("show_server_marker")))


def message_by_id(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the message at a ledger and entry."""
    try:
        reply = session.reply(command.calls[0], values)
    except NotThere as error:
        if "essage" not in error.message:
            raise
        raise NotThere(
            f"Cannot find any messages based on ledgerId:{values['ledger_id']} entryId:{values['entry_id']}"
        ) from None
    _show(_first(reply), redelivery=command.group == "topics")


def examine_message(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the Nth message from the start or the end."""
    if values["initial_position"] not in ("earliest", "latest"):
        raise Misused("--initialPosition: expected earliest or latest")
    _show(_first(session.reply(command.calls[0], values)))


def messages_of(reply: Reply) -> Iterator[PrintedMessage]:
    """Yield the messages of an entry in a response. Raises Failed for a malformed batch."""
    headers = {key.removeprefix(_PREFIX): value for key, value in reply.headers.items() if key.startswith(_PREFIX)}
    if "message-id" not in headers:
        return
    made = PrintedMessage(
        headers["message-id"],
        False,
        _time(headers, "publish-time"),
        _time(headers, "event-time"),
        _time(headers, "deliver-at-time"),
        headers.get("marker-type", ""),
        headers.get("broker-entry-metadata-timestamp", ""),
        headers.get("broker-entry-metadata-index", ""),
        _properties(headers),
        reply.body,
        _chunk(headers),
    )
    count = headers.get("num-batch-message", "")
    if not count or headers.get("is-encrypted") == "true" or headers.get("encryption-algo"):
        yield made
        return
    yield from _unpacked(made, int(count))


def _unpacked(entry: PrintedMessage, count: int) -> Iterator[PrintedMessage]:
    from pulsarbox.protocol.batch import iterate_batch
    from pulsarbox.protocol.violations import MalformedMetadata

    try:
        for index, (metadata, payload) in enumerate(iterate_batch(entry.payload, count)):
            yield PrintedMessage(
                f"{entry.message_id}:{index}",
                True,
                entry.publish_time,
                metadata.event_time or entry.event_time,
                entry.deliver_time,
                entry.marker,
                entry.stamp,
                entry.index,
                {one.key: one.value for one in metadata.properties} or entry.properties,
                payload,
            )
    except MalformedMetadata as error:
        raise Failed(f"cannot read message {entry.message_id} from its batch: {error}") from None


def _wanted(reply: Reply, values: dict[str, Any]) -> bool:
    """Return whether to show an entry, by --show-server-marker and --transaction-isolation-level."""
    headers = reply.headers
    if headers.get(f"{_PREFIX}marker-type") and not values.get("show_server_marker"):
        return False
    if values.get("transaction_isolation_level", "READ_UNCOMMITTED") == "READ_UNCOMMITTED":
        return True
    hidden = (f"{_PREFIX}txn-aborted", f"{_PREFIX}txn-uncommitted")
    return all(headers.get(name, "").lower() != "true" for name in hidden)


def _first(reply: Reply) -> PrintedMessage:
    found = next(messages_of(reply), None)
    if found is None:
        raise Failed("the broker's response is not a message")
    return found


def _show(message: PrintedMessage, marker: bool = False, redelivery: bool = False) -> None:
    click.echo(f"{'Batch Message ID' if message.batched else 'Message ID'}: {clean(message.message_id)}")
    click.echo(f"Publish time: {message.publish_time}")
    click.echo(f"Event time: {message.event_time}")
    if message.chunk:
        click.echo(f"Chunk: {clean(message.chunk)}")
    if redelivery:
        click.echo("Redelivery count: 0")
    if message.deliver_time:
        click.echo(f"Deliver at time: {message.deliver_time}")
    if marker and message.marker:
        click.echo(f"Marker Type: {clean(message.marker)}")
    if message.stamp:
        click.echo(f"Broker entry metadata timestamp: {clean(message.stamp)}")
    if message.index:
        click.echo(f"Broker entry metadata index: {clean(message.index)}")
    if message.properties:
        click.echo("Properties:")
        for key, value in message.properties.items():
            click.echo(f"{clean(key)}    {inline(value)}")
    click.echo(dump(message.payload))


def dump(data: bytes) -> str:
    """Return a hex dump with sixteen bytes per line; empty without data."""
    if not data:
        return ""
    frame = "+--------+-------------------------------------------------+----------------+"
    lines = [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
        frame,
    ]
    lines += [f"|{row.offset:08x}| {row.data.hex(' '):<48}|{row.text:<16}|" for row in hex_rows(data)]
    return "\n".join([*lines, frame])


def _time(headers: dict[str, str], name: str) -> int:
    """Return a time header in milliseconds since 1970, 0 without it."""
    text = headers.get(name, "")
    try:
        return int(text) if text.isdigit() else round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _chunk(headers: dict[str, str]) -> str:
    """Return ``2 of 5 of message UUID``, empty for a whole message."""
    index, count = headers.get("chunk-id", ""), headers.get("num-chunks-from-msg", "")
    if not index.isdigit() or not count.isdigit() or int(count) < 2:
        return ""
    return f"{int(index) + 1} of {count}" + (f" of message {headers['uuid']}" if headers.get("uuid") else "")


def _properties(headers: dict[str, str]) -> dict[str, str]:
    """Return the properties from one JSON header, or from one header per property, as sent by old brokers."""
    text = headers.get("property", "")
    if text:
        try:
            return {str(key): str(value) for key, value in json.loads(text).items()}
        except (ValueError, AttributeError):
            return {}
    start = "property-"
    own = ("property-total-chunks", "property-chunk-id")  # set by brokers for every chunk
    return {
        key.removeprefix(start): value for key, value in headers.items() if key.startswith(start) and key not in own
    }
