"""A box without an event loop: clients exchange frames, and the test completes commits, reads and deadlines."""

from typing import Any

from pulsarbox.broker.composition import compose
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.host import Host
from pulsarbox.broker.plugins import Plugins
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAck,
    CommandSubscribe,
    MessageIdData,
)
from pulsarbox.server.security.configured import authentication_of
from pulsarbox.server.security.credential_files import CredentialFiles
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from tests.unit.broker.core_driver import START, Connection, CoreDriver

TOPIC = "persistent://public/default/t"
AS_PULSAR: dict[str, Any] = {"unsubscribedRetentionTimeInMinutes": 0}
"""Settings under which messages without a covering subscription are trimmed as in Pulsar."""


class Box(CoreDriver):
    """A broker with an in-memory store."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        *,
        auto: bool = True,
        wall: int = START,
        plugins: Plugins | None = None,
        host: Host | None = None,
        **settings: Any,
    ) -> None:
        self.disk = disk or MemoryDisk()
        engine = self.open_engine()
        # Disable topic deletion by default: most tests advance the clock past the inactivity limit.
        self.settings = settings = {"brokerDeleteInactiveTopicsEnabled": False} | settings
        recovery, start = engine.recover(), Now(1000.0, wall)
        endpoints = Endpoints("pulsar://h:6650", "http://h:8080")
        made, files = Settings(**settings), CredentialFiles()
        authentication = authentication_of(made, files=files)
        broker = compose(made, recovery, endpoints, start, authentication, plugins, host or Host())
        files.watch(broker, start)
        super().__init__(broker, engine, start, auto=auto)

    def open_engine(self) -> Engine:
        """Open the storage engine."""
        return MemoryEngine(self.disk)

    def client(self, *, connect: bool = True, version: int = 21) -> "Client":
        """Return a connected client."""
        return Client(self, connect=connect, version=version)

    def restart(self) -> "Box":
        """Start a new box on the durable data of this one, as after kill -9."""
        return Box(self.disk, **self.settings)


class Client(Connection):
    """One connection."""

    def __init__(self, box: Box, *, connect: bool = True, version: int = 21) -> None:
        super().__init__(box)
        self.box = box
        self._request_id = 100
        if connect:
            self.ask("connect", client_version="test", protocol_version=version)
            self.take("connected")

    def request(self, field: str, **fields: Any) -> Any:
        """Send a command with a request ID and return its response of any kind."""
        self._request_id += 1
        self.ask(field, request_id=self._request_id, **fields)
        for i, (data, _) in enumerate(self.inbox):
            command = parse_command(data)
            reply = getattr(command, COMMANDS[command.type].field)
            if getattr(reply, "request_id", None) == self._request_id:
                del self.inbox[i]
                return reply
        return None

    def take(self, field: str) -> Any:
        """Consume the oldest frame, which must be this command."""
        assert self.inbox, f"{field} expected, nothing came"
        command = parse_command(self.inbox.pop(0)[0])
        assert COMMANDS[command.type].field == field, str(command)
        return getattr(command, field)

    # Shorthand

    def producer(self, producer_id: int = 1, topic: str = TOPIC, **fields: Any) -> Any:
        """Open a producer and return the response."""
        return self.request("producer", topic=topic, producer_id=producer_id, **fields)

    def send(
        self,
        sequence_id: int,
        body: bytes = b"x",
        producer_id: int = 1,
        batch: int = 0,
        highest: int = 0,
        **metadata: Any,
    ) -> None:
        """Publish one entry. A nonzero ``batch`` is its message count; ``highest`` is the last one's sequence ID."""
        metadata = {"publish_time": self.box.wall} | metadata
        self.send_entry(producer_id, sequence_id, body, batch, highest, **metadata)

    def publish(self, count: int, topic: str = TOPIC) -> list[tuple[int, int]]:
        """Publish ``count`` entries through a separate producer and return their positions."""
        producer_id = 1000 + len(self.cnx.producers)
        self.producer(producer_id, topic)
        for i in range(count):
            self.send(i, b"%d" % i, producer_id)
        receipts = [self.take("send_receipt") for _ in range(count)]
        return [(receipt.message_id.ledgerId, receipt.message_id.entryId) for receipt in receipts]

    def subscribe(self, name: str = "s", consumer_id: int = 1, topic: str = TOPIC, **fields: Any) -> Any:
        """Open a consumer and return the response. Defaults: Exclusive, from the earliest message."""
        fields = {"subType": CommandSubscribe.Exclusive, "initialPosition": CommandSubscribe.Earliest} | fields
        return self.request("subscribe", topic=topic, subscription=name, consumer_id=consumer_id, **fields)

    def flow(self, permits: int, consumer_id: int = 1) -> None:
        """Grant permits to the broker."""
        self.ask("flow", consumer_id=consumer_id, messagePermits=permits)

    def ack(self, *ids: MessageIdData | tuple[int, int], consumer_id: int = 1, **fields: Any) -> Any:
        """Acknowledge with a receipt. Return the response, or None if none arrived."""
        messages = [i if isinstance(i, MessageIdData) else MessageIdData(ledgerId=i[0], entryId=i[1]) for i in ids]
        fields = {"ack_type": CommandAck.Individual} | fields
        return self.request("ack", consumer_id=consumer_id, message_id=messages, **fields)

    def received(self) -> list[tuple[int, int]]:
        """Consume all received frames, which must be messages, and return their positions."""
        found = []
        while self.inbox:
            message = self.take("message").message_id
            found.append((message.ledgerId, message.entryId))
        return found
