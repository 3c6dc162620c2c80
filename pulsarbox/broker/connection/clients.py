"""Connections, producers and consumers by client ID, and their forced disconnection.

Connection 7 has the ID ``7``, its producer 3 ``7-p3`` and its consumer 3 ``7-c3``, numbered as the client does.
Connection numbers are not reused while the box runs.
"""

import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from pulsarbox.broker.broker import Broker
    from pulsarbox.broker.connection.cnx import ServerCnx

log = logging.getLogger(__name__)

CONNECTION: Final = "connection"
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"

_ID: Final = re.compile(r"([0-9]{1,18})(?:-([pc])([0-9]{1,20}))?")


class ConnectedClient(NamedTuple):
    """A connection, or one producer or consumer on it."""

    cnx: "ServerCnx"
    producer: AttachedProducer | None = None
    consumer: Consumer | None = None

    @property
    def id(self) -> str:
        """Client ID, as accepted by ``find``."""
        if self.producer is not None:
            return f"{self.cnx.number}-p{self.producer.producer_id}"
        if self.consumer is not None:
            return f"{self.cnx.number}-c{self.consumer.consumer_id}"
        return str(self.cnx.number)

    @property
    def kind(self) -> str:
        """One of CONNECTION, PRODUCER and CONSUMER."""
        if self.producer is not None:
            return PRODUCER
        return CONSUMER if self.consumer is not None else CONNECTION

    @property
    def topic(self) -> str | None:
        """Full topic name of a producer or consumer; None for a connection."""
        if self.producer is not None:
            return str(self.producer.topic.name)
        return str(self.consumer.subscription.topic_name) if self.consumer is not None else None

    @property
    def namespace(self) -> str:
        """Namespace of the topic; empty for a connection."""
        if self.producer is not None:
            return self.producer.topic.name.namespace
        return self.consumer.subscription.topic_name.namespace if self.consumer is not None else ""


def on(cnx: "ServerCnx") -> Iterator[ConnectedClient]:
    """Yield a connection, then its producers and consumers."""
    yield ConnectedClient(cnx)
    for producer in list(cnx.producers.values()):
        yield ConnectedClient(cnx, producer=producer)
    for consumer in list(cnx.consumers.values()):
        yield ConnectedClient(cnx, consumer=consumer)


def unread(broker: "Broker") -> int:
    """Return the number of connections whose sockets are not being read."""
    return sum([cnx.unread is not None for cnx in broker.cnxs])


def suspended(broker: "Broker") -> int:
    """Return the number of suspended producers."""
    holding = [cnx for cnx in broker.cnxs if cnx.held_bytes]
    return sum([producer.suspended > 0 for cnx in holding for producer in cnx.producers.values()])


def held_bytes(broker: "Broker") -> int:
    """Return the bytes of messages whose receipts are held back by publish rates."""
    return sum([cnx.held_bytes for cnx in broker.cnxs])


def find(broker: "Broker", client_id: str) -> ConnectedClient:
    """Return the client with that ID. Raises BadRequest for an invalid ID, NotFound if it is not connected.

    Scans all connections: lookups are too rare to maintain an index.
    """
    match = _ID.fullmatch(client_id)
    if match is None:
        raise BadRequest(f"Invalid client ID {client_id[:80]!r}; expected a form such as 7, 7-p3 or 7-c3")
    number, kind, which = match.groups()
    for cnx in broker.cnxs:
        if cnx.number == int(number):
            producer = cnx.producers.get(int(which)) if kind == "p" else None
            consumer = cnx.consumers.get(int(which)) if kind == "c" else None
            if kind is None or producer is not None or consumer is not None:
                return ConnectedClient(cnx, producer, consumer)
    raise NotFound(f"Client {client_id} not found: it is not connected")


def kick(client: ConnectedClient, by: str, now: Now) -> None:
    """Disconnect a client: its connection, or one producer or consumer, which then reconnects.

    ``by``: the requester, for the log.
    """
    log.info(
        "%s kicks the %s %s of %s (%s)",
        by, client.kind, client.id, client.cnx.address, client.cnx.client_version or "no name",
        extra={"fields": {"client": client.id, "kind": client.kind, "by": by, "topic": client.topic}},
    )  # fmt: skip
    if client.producer is not None:
        client.producer.disconnect(now)
    elif client.consumer is not None:
        consumer = client.consumer
        consumer.subscription.remove_consumer(consumer, now)
        consumer.disconnect(now)
    else:
        client.cnx.turn_away(f"kicked by {by}")
