"""A box without a loop: clients talk in frames, the test says when a commit, a read or a deadline is done."""

from typing import Any

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.housekeeping import carry_out
from pulsarbox.broker.outbox import Outbox
from pulsarbox.broker.plugins import Plugins
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.commands import COMMANDS, encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSend,
    CommandSubscribe,
    MessageIdData,
    MessageMetadata,
)
from pulsarbox.server.security.configured import authentication_of
from pulsarbox.server.security.credential_files import CredentialFiles
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine

TOPIC = "persistent://public/default/t"
AS_PULSAR: dict[str, Any] = {"unsubscribedRetentionTimeInMinutes": 0}
"""Settings with which messages that no subscription has covered are trimmed as in Pulsar."""
TYPE_OF = {spec.field: number for number, spec in COMMANDS.items()}


class Box:
    """A broker over a store in memory. With ``auto`` every turn ends with its commit and its reads done."""

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        *,
        auto: bool = True,
        wall: int = 1_700_000_000_000,
        plugins: Plugins | None = None,
        **settings: Any,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.engine = self.open_engine()
        self.auto = auto
        # Topics stay, unless a test is about that: most let the clock run for longer than topics may be unused.
        self.settings = settings = {"brokerDeleteInactiveTopicsEnabled": False} | settings
        self.time = 1000.0
        self.wall = wall
        recovery, start = self.engine.recover(), Now(self.time, self.wall)
        endpoints = Endpoints("pulsar://h:6650", "http://h:8080")
        made, files = Settings(**settings), CredentialFiles()
        authentication = authentication_of(made, files=files)
        self.broker = Broker(made, recovery, endpoints, start, authentication, plugins)
        files.watch(self.broker, start)
        self.outboxes: dict[Outbox, Client] = {}
        self.turn()

    def open_engine(self) -> Engine:
        """What stores."""
        return MemoryEngine(self.disk)

    @property
    def now(self) -> Now:
        """This instant."""
        offset = self.broker.clock.offset
        return Now(self.time, self.wall + offset, offset)

    def client(self, *, connect: bool = True, version: int = 21) -> "Client":
        """A client that has connected."""
        return Client(self, connect=connect, version=version)

    def turn(self) -> None:
        """End a turn: with ``auto`` until nothing is left to do."""
        self.flush()
        while self.auto and (self.commit() or self.read() or self.chore() or self.verify()):
            self.flush()

    def flush(self) -> None:
        """Give the clients what the outboxes hold."""
        for outbox in self.broker.take_waiting():
            client = self.outboxes[outbox]
            client.inbox += FrameDecoder.feed(client.decoder, outbox.take())
            if outbox.close_reason is not None and not client.closed:
                client.closed = True
                client.cnx.closed(self.now)

    def commit(self, error: Exception | None = None) -> bool:
        """Commit the batch that is due; with ``error`` it fails. Whether there was one."""
        batch = self.broker.take_batch(self.now)
        if batch is None:
            return False
        if error is None:
            self.engine.commit(batch)
        self.broker.committed(batch, self.now, error)
        self.flush()
        return True

    def read(self, error: Exception | None = None) -> bool:
        """Carry out the reads that are asked for; whether there were any."""
        requests = self.broker.take_reads()
        for request in requests:
            entries, failure = [], error
            if error is None:
                try:
                    entries = self.engine.read(request)
                except PersistenceError as raised:
                    failure = raised
            self.broker.read_done(request.token, entries, self.now, failure)
        self.flush()
        return bool(requests)

    def chore(self, error: Exception | None = None) -> bool:
        """Carry out the chore that is due; whether there was one."""
        chore = self.broker.take_chore(self.now)
        if chore is None:
            return False
        reclaimed = carry_out(chore, self.engine) if error is None else None
        self.broker.chore_done(chore, self.now, error, reclaimed)
        return True

    def verify(self, error: Exception | None = None) -> bool:
        """Verify the passwords that wait; whether there were any."""
        checks = self.broker.take_password_checks()
        for check in checks:
            self.broker.password_checked(check, error is None and check.work(), self.now, error)
        self.flush()
        return bool(checks)

    def advance(self, seconds: float) -> None:
        """Let both clocks go on, deadline by deadline."""
        end = self.time + seconds
        while (at := self._next_deadline()) is not None and at <= end:
            self._set_time(max(self.time, at))
            self.broker.on_timer(self.now)
            self.turn()
        self._set_time(end)
        self.turn()

    def _next_deadline(self) -> float | None:
        """On the monotonic clock."""
        monotonic, wall = self.broker.next_timer()
        due = [] if monotonic is None else [monotonic]
        if wall is not None:
            due.append(self.time + max(0, wall - self.now.wall) / 1000)
        return min(due, default=None)

    def _set_time(self, at: float) -> None:
        self.wall += round((at - self.time) * 1000)
        self.time = at

    def restart(self) -> "Box":
        """A new box on what this one has made durable, as after kill -9."""
        return Box(self.disk, **self.settings)


class Client:
    """One connection."""

    def __init__(self, box: Box, *, connect: bool = True, version: int = 21) -> None:
        self.box = box
        self.decoder = FrameDecoder(10 << 20)
        self._to_box = FrameDecoder(10 << 20)
        self.inbox: list[tuple[bytes, bytes]] = []
        self.closed = False
        self.outbox = box.broker.new_outbox()
        box.outboxes[self.outbox] = self
        self.cnx = box.broker.connected(self.outbox, "127.0.0.1:1", box.now)
        self._request_id = 100
        if connect:
            self.ask("connect", client_version="test", protocol_version=version)
            self.take("connected")

    def raw(self, data: bytes) -> None:
        """Send raw bytes."""
        for frame in self._to_box.feed(data):
            self.cnx.receive(frame, self.box.now)
        if self._to_box.error is not None:
            self.cnx.broken(self._to_box.error)
        self.box.turn()

    def ask(self, field: str, **fields: Any) -> None:
        """Send a command by the name of its field in BaseCommand."""
        command = BaseCommand(type=TYPE_OF[field])  # type: ignore[arg-type]
        part = getattr(command, field)
        part.SetInParent()
        part.MergeFrom(type(part)(**fields))
        self.raw(encode_frame(command))

    def request(self, field: str, **fields: Any) -> Any:
        """Send a command with a request id and give its reply, whatever it is."""
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
        """Take the oldest frame, which must be this command."""
        assert self.inbox, f"{field} expected, nothing came"
        command = parse_command(self.inbox.pop(0)[0])
        assert COMMANDS[command.type].field == field, str(command)
        return getattr(command, field)

    def names(self) -> list[str]:
        """Take all frames; the names of their commands."""
        taken, self.inbox = self.inbox, []
        return [COMMANDS[parse_command(data).type].field for data, _ in taken]

    # Shorthand

    def producer(self, producer_id: int = 1, topic: str = TOPIC, **fields: Any) -> Any:
        """Open a producer; the reply."""
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
        """Publish one entry; ``batch`` messages in it where that is not 0, the last one's sequence id ``highest``."""
        if batch:
            metadata["num_messages_in_batch"] = batch
        fields: dict[str, Any] = {
            "producer_name": "p",
            "sequence_id": sequence_id,
            "publish_time": self.box.wall,
        } | metadata
        send = CommandSend(producer_id=producer_id, sequence_id=sequence_id, num_messages=batch or 1)
        if highest:
            send.highest_sequence_id = highest
        payload = encode_entry(MessageMetadata(**fields), body)
        self.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))

    def publish(self, count: int, topic: str = TOPIC) -> list[tuple[int, int]]:
        """Publish ``count`` entries through a producer of their own; their positions."""
        producer_id = 1000 + len(self.cnx.producers)
        self.producer(producer_id, topic)
        for i in range(count):
            self.send(i, b"%d" % i, producer_id)
        receipts = [self.take("send_receipt") for _ in range(count)]
        return [(receipt.message_id.ledgerId, receipt.message_id.entryId) for receipt in receipts]

    def subscribe(self, name: str = "s", consumer_id: int = 1, topic: str = TOPIC, **fields: Any) -> Any:
        """Open a consumer, Exclusive and from the earliest message unless the fields say otherwise; the reply."""
        fields = {"subType": CommandSubscribe.Exclusive, "initialPosition": CommandSubscribe.Earliest} | fields
        return self.request("subscribe", topic=topic, subscription=name, consumer_id=consumer_id, **fields)

    def flow(self, permits: int, consumer_id: int = 1) -> None:
        """Let the broker send."""
        self.ask("flow", consumer_id=consumer_id, messagePermits=permits)

    def ack(self, *ids: MessageIdData | tuple[int, int], consumer_id: int = 1, **fields: Any) -> Any:
        """Acknowledge with a receipt; the reply, None where it did not come."""
        messages = [i if isinstance(i, MessageIdData) else MessageIdData(ledgerId=i[0], entryId=i[1]) for i in ids]
        fields = {"ack_type": CommandAck.Individual} | fields
        return self.request("ack", consumer_id=consumer_id, message_id=messages, **fields)

    def received(self) -> list[tuple[int, int]]:
        """Take all frames, which must be messages; their positions."""
        found = []
        while self.inbox:
            message = self.take("message").message_id
            found.append((message.ledgerId, message.entryId))
        return found
