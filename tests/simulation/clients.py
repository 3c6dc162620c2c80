"""What all clients have in common: a connection that comes back, frames, requests, keep-alive."""

from __future__ import annotations

from typing import Any

from pulsarbox.protocol.commands import COMMANDS, encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder, max_frame_size
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandConnect, FeatureFlags
from tests.simulation.box import Box
from tests.simulation.history import Violation
from tests.simulation.network import Link
from tests.simulation.world import World

SILENCE = 12.0
"""Seconds without a byte after which a client gives its connection up."""

FIELDS = {spec.name: spec for spec in COMMANDS.values()}


class Client:
    """A client that connects, answers PING, and connects again when it loses the connection."""

    pace = 0.05
    """Mean seconds between its steps."""

    def __init__(self, world: World, box: Box, name: str) -> None:
        self.world = world
        self.box = box
        self.name = name
        self.link: Link | None = None
        self.ready = False
        self.calm = False
        """No more pranks: finish what is open."""
        self.stopped = False
        self.patience = 0.0
        """Mean seconds that it waits where it was refused: nothing else would happen for long."""
        self.refused_until = 0.0
        self._request_id = 0
        self._away_until = 0.0
        self._heard = 0.0

    # Life

    def start(self) -> None:
        """Begin."""
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
        """Leave, and come back after a while."""
        self._away_until = self.world.monotonic + seconds
        self.give_up()

    def refused(self) -> None:
        """What it asked for is not to be had: wait a little before it asks again."""
        if self.patience and not self.calm:
            self.refused_until = self.world.monotonic + self.world.soon(self.patience)

    def give_up(self) -> None:
        """Close the connection from this side."""
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

    # To be overridden

    def act(self) -> None:
        """Do something, connected."""

    def connected(self) -> None:
        """The handshake is done."""

    def lost(self) -> None:
        """The connection is gone."""

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """A command came."""

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
        """Send a command that is answered; gives the id of the request."""
        self._request_id += 1
        self.send(name, request_id=self._request_id, **fields)
        return self._request_id

    def command(self, name: str, **fields: Any) -> BaseCommand:
        """A command."""
        spec = FIELDS[name]
        made: Any = BaseCommand
        body = CommandConnect(**fields) if name == "CONNECT" else spec.message_class(**fields)
        return made(type=spec.number, **{spec.field: body})  # type: ignore[no-any-return]
