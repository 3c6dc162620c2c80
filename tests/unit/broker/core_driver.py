"""Driver of a broker without an event loop: turns, commits, reads, chores, timers, and connections that send frames."""

from collections.abc import Mapping
from typing import Any, Protocol

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.persistence.housekeeping import carry_out
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.commands import COMMANDS, encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend, MessageMetadata
from pulsarbox.storage.engine import Engine

START = 1_700_000_000_000
"""Wall clock at the start of a test, in milliseconds."""
TYPE_OF = {spec.field: number for number, spec in COMMANDS.items()}


class Flushed(Protocol):
    """A connection that reads its outbox itself."""

    def flush(self) -> None:
        """Take the contents of the outbox."""


class CoreDriver:
    """The event loop of one broker. With ``auto``, every turn completes its commits, reads, chores and checks."""

    def __init__(self, broker: Broker, engine: Engine, now: Now, *, auto: bool = True) -> None:
        self.broker = broker
        self.engine = engine
        self.auto = auto
        self.time, self.wall = now.monotonic, now.wall
        """The two clocks in seconds and milliseconds, without the offset of the virtual clock."""
        self.outboxes: dict[Outbox, Connection] = {}
        self.others: Mapping[Outbox, Flushed] = {}
        """Connections that read their outboxes themselves."""
        self.turn()

    @property
    def now(self) -> Now:
        """The current time."""
        offset = self.broker.clock.offset
        return Now(self.time, self.wall + offset, offset)

    def turn(self) -> None:
        """End a turn. With ``auto``, repeat until no work is left."""
        self.flush()
        while self.auto and (self.commit() or self.read() or self.chore() or self.verify()):
            self.flush()

    def flush(self) -> None:
        """Deliver the contents of the outboxes to the clients."""
        for outbox in self.broker.take_waiting():
            client = self.outboxes.get(outbox)
            if client is None:  # a connection that the test created itself
                if outbox in self.others:
                    self.others[outbox].flush()
                continue
            client.inbox += FrameDecoder.feed(client.decoder, outbox.take())
            if outbox.close_reason is not None and not client.closed:
                client.closed = True
                client.cnx.closed(self.now)

    def commit(self, error: Exception | None = None) -> bool:
        """Commit the pending batch, or fail it with ``error``. Return whether a batch was pending."""
        batch = self.broker.take_batch(self.now)
        if batch is None:
            return False
        if error is None:
            self.engine.commit(batch)
        self.broker.committed(batch, self.now, error)
        self.flush()
        return True

    def read(self, error: Exception | None = None) -> bool:
        """Execute the requested reads. Return whether there were any."""
        requests = self.broker.take_reads()
        for request in requests:
            entries, failure = [], error
            if error is None:
                try:
                    entries = self.engine.read(request)
                except PulsarBoxError as raised:
                    failure = raised
            self.broker.read_done(request.token, entries, self.now, failure)
        self.flush()
        return bool(requests)

    def chore(self, error: Exception | None = None) -> bool:
        """Execute the pending chore. Return whether there was one."""
        chore = self.broker.take_chore(self.now)
        if chore is None:
            return False
        reclaimed = carry_out(chore, self.engine) if error is None else None
        self.broker.chore_done(chore, self.now, error, reclaimed)
        return True

    def verify(self, error: Exception | None = None) -> bool:
        """Verify the queued passwords. Return whether there were any."""
        checks = self.broker.take_password_checks()
        for check in checks:
            self.broker.password_checked(check, error is None and check.work(), self.now, error)
        self.flush()
        return bool(checks)

    def advance(self, seconds: float) -> None:
        """Advance both clocks, deadline by deadline."""
        end = self.time + seconds
        while (at := self._next_deadline()) is not None and at <= end:
            self._set_time(max(self.time, at))
            self.broker.on_timer(self.now)
            self.turn()
        self._set_time(end)
        self.turn()

    def _next_deadline(self) -> float | None:
        """Advance the monotonic clock."""
        monotonic, wall = self.broker.next_timer()
        due = [] if monotonic is None else [monotonic]
        if wall is not None:
            due.append(self.time + max(0, wall - self.now.wall) / 1000)
        return min(due, default=None)

    def _set_time(self, at: float) -> None:
        self.wall += round((at - self.time) * 1000)
        self.time = at


class Connection:
    """One binary protocol connection to the broker of a driver."""

    def __init__(self, core: CoreDriver, address: str = "127.0.0.1:1") -> None:
        self._core = core
        self.decoder = FrameDecoder(10 << 20)
        self._to_box = FrameDecoder(10 << 20)
        self.inbox: list[tuple[bytes, bytes]] = []
        self.closed = False
        self.outbox = core.broker.new_outbox()
        core.outboxes[self.outbox] = self
        self.cnx: ServerCnx = core.broker.connected(self.outbox, address, core.now)

    def raw(self, data: bytes) -> None:
        """Send raw bytes."""
        for frame in self._to_box.feed(data):
            self.cnx.receive(frame, self._core.now)
        if self._to_box.error is not None:
            self.cnx.broken(self._to_box.error)
        self.settle()

    def settle(self) -> None:
        """End the turn in which the broker received the bytes."""
        self._core.turn()

    def ask(self, field: str, **fields: Any) -> None:
        """Send a command by its field name in BaseCommand."""
        command = BaseCommand(type=TYPE_OF[field])  # type: ignore[arg-type]
        part = getattr(command, field)
        part.SetInParent()
        part.MergeFrom(type(part)(**fields))
        self.raw(encode_frame(command))

    def send_entry(
        self, producer_id: int, sequence_id: int, body: bytes, batch: int = 0, highest: int = 0, **metadata: Any
    ) -> None:
        """Publish one entry. A nonzero ``batch`` is its message count; ``highest`` is the last one's sequence ID."""
        if batch:
            metadata["num_messages_in_batch"] = batch
        fields: dict[str, Any] = {"producer_name": "p", "sequence_id": sequence_id} | metadata
        send = CommandSend(producer_id=producer_id, sequence_id=sequence_id, num_messages=batch or 1)
        if highest:
            send.highest_sequence_id = highest
        payload = encode_entry(MessageMetadata(**fields), body)
        self.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))

    def commands(self) -> list[BaseCommand]:
        """Consume all received frames and return their commands."""
        taken, self.inbox = self.inbox, []
        return [parse_command(data) for data, _ in taken]

    def names(self) -> list[str]:
        """Consume all received frames and return the names of their commands."""
        return [COMMANDS[each.type].field for each in self.commands()]
