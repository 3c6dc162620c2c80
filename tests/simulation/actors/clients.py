"""Common behaviour of clients: reconnecting, frames, requests, keep-alive."""

from __future__ import annotations

from typing import Any

from pulsarbox.protocol.commands import COMMANDS, encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder, max_frame_size
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandConnect, FeatureFlags
from tests.simulation.box import SimulatedBox
from tests.simulation.model.history import Violation
from tests.simulation.network import Link
from tests.simulation.world import World

SILENCE = 12.0
"""Seconds without inbound data after which a client closes its connection."""

FIELDS = {spec.name: spec for spec in COMMANDS.values()}


class Client:
    """A client that connects, answers PING, and reconnects after a connection loss."""

    pace = 0.05
    """Mean seconds between its steps."""

    def __init__(self, world: World, box: SimulatedBox, name: str) -> None:
        self.world = world
        self.box = box
        self.name = name
        self.link: Link | None = None
        self.ready = False
        self.calm = False
        """Whether the client only completes pending work and injects no more faults."""
        self.stopped = False
        self.patience = 0.0
        """Mean seconds to wait after a rejected request; 0: retry immediately."""
        self.refused_until = 0.0
        self._request_id = 0
        self._away_until = 0.0
        self._heard = 0.0

    # Life cycle

    def start(self) -> None:
        """Schedule the first connection and the first step."""
        self.world.after(self.world.soon(0.2), self._connect)
        self.world.after(self.world.soon(self.pace), self._step)

    def _connect(self) -> None:
        if self.link is not None or self.stopped:
            return
        if self.world.monotonic < self._away_until:
            self.world.after(self._away_until - self.world.monotonic + self.world.soon(0.1), self._connect)
            return
        self.ready = False
        self._heard = self.world.monotonic
        self.decoder = FrameDecoder(max_frame_size(5 << 20))
        self.link = self.box.connect(self)
        if self.link is None:
            self.world.after(0.1 + self.world.soon(0.2), self._connect)
            return
        flags = FeatureFlags(supports_broker_entry_metadata=False)
        self.send("CONNECT", client_version=self.name, protocol_version=20, feature_flags=flags)

    def _step(self) -> None:
        if self.stopped:
            return
        world = self.world
        self.world.after(world.soon(self.pace * (3 if self.calm else 1)), self._step)
        link = self.link
        if link is None:
            return
        if world.monotonic - self._heard > SILENCE:
            self.give_up()
        elif world.chance(world.faults.drop):
            world.note(self.name, "drops")
            link.drop()
        elif world.chance(world.faults.silence):
            world.note(self.name, "falls silent")
            link.silent = True
            link.client_open = False
            self.link_is_gone(link)
        elif self.ready:
            self.act()

    def go_away(self, seconds: float) -> None:
        """Disconnect, and reconnect after ``seconds``."""
        self._away_until = self.world.monotonic + seconds
        self.give_up()

    def refused(self) -> None:
        """Back off after a rejected request if ``patience`` is set."""
        if self.patience and not self.calm:
            self.refused_until = self.world.monotonic + self.world.soon(self.patience)

    def give_up(self) -> None:
        """Close the connection from the client."""
        link = self.link
        if link is not None:
            link.closed_by_client()
            self.link_is_gone(link)

    def link_is_gone(self, link: Link) -> None:
        """See Peer."""
        if link is self.link:
            self.link = None
            self.ready = False
            self.lost()
            self.world.after(0.05 + self.world.soon(0.1), self._connect)

    # Overridden by subclasses

    def act(self) -> None:
        """Perform one step while connected."""

    def connected(self) -> None:
        """Called after the handshake."""

    def lost(self) -> None:
        """Called after the connection is lost."""

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """Called for every command except PING and CONNECTED."""

    # Frames

    def bytes_came(self, link: Link, data: bytes) -> None:
        """See Peer."""
        if link is not self.link:
            return
        self._heard = self.world.monotonic
        for command, payload in self.decoder.feed(data):
            self._frame(parse_command(command), payload)
        if self.decoder.error is not None:
            raise Violation("stream", f"the box sends what is no frame: {self.decoder.error}")

    def _frame(self, command: BaseCommand, payload: bytes) -> None:
        spec = COMMANDS[command.type]
        if spec.name == "PING":
            self.send("PONG")
        elif spec.name == "CONNECTED":
            self.ready = True
            self.connected()
        else:
            self.on(spec.name, getattr(command, spec.field), payload)

    def send(self, name: str, **fields: Any) -> None:
        """Send a command."""
        if self.link is not None:
            self.link.from_client(encode_frame(self.command(name, **fields)))

    def request(self, name: str, **fields: Any) -> int:
        """Send a command with a request ID, and return the ID."""
        self._request_id += 1
        self.send(name, request_id=self._request_id, **fields)
        return self._request_id

    def command(self, name: str, **fields: Any) -> BaseCommand:
        """Build a command."""
        spec = FIELDS[name]
        made: Any = BaseCommand
        body = CommandConnect(**fields) if name == "CONNECT" else spec.message_class(**fields)
        return made(type=spec.number, **{spec.field: body})  # type: ignore[no-any-return]
