"""Connections between clients and the box: streams of bytes that are cut anywhere, delayed, congested, dropped.

A stream keeps its order and loses nothing until it is dropped. A silent one loses everything and tells nobody.
"""

from collections.abc import Callable
from typing import Protocol

from tests.simulation.world import World

HIGH_WATER = 6_000
"""Bytes on their way to a client above which the box is told to stop."""
LOW_WATER = 2_000


class Peer(Protocol):
    """Either end of a link."""

    def bytes_came(self, link: "Link", data: bytes) -> None:
        """The next bytes of the stream."""

    def link_is_gone(self, link: "Link") -> None:
        """The stream has ended."""


class Link:
    """One connection."""

    def __init__(self, world: World, number: int, client: Peer, box: Peer, relieved: Callable[["Link"], None]) -> None:
        self.world = world
        self.number = number
        self.client = client
        self.box = box
        self.slow = world.chance(world.faults.congestion)
        self.reads_nothing = False
        """The client takes no bytes out of its socket."""
        self.silent = False
        self.box_open = self.client_open = True
        self.in_transit = 0
        """Bytes on their way to the client."""
        self._relieved = relieved
        self._congested = False
        self._to_box = self._to_client = 0.0
        """When the last bytes on their way arrive, so that nothing overtakes them."""

    def from_client(self, data: bytes) -> None:
        """The client writes."""
        if not self.silent:
            for piece in self._cut(data):
                self._to_box = self._arrival(self._to_box, 0.001)
                self._at(self._to_box, lambda piece=piece: self._into_box(piece))  # type: ignore[misc]

    def from_box(self, data: bytes) -> None:
        """The box writes."""
        self.in_transit += len(data)
        if self.silent or self.reads_nothing:
            return
        for piece in self._cut(data):
            self._to_client = self._arrival(self._to_client, 0.05 if self.slow else 0.001)
            self._at(self._to_client, lambda piece=piece: self._into_client(piece))  # type: ignore[misc]

    @property
    def congested(self) -> bool:
        """Whether the box should write no more for now."""
        if self.in_transit > HIGH_WATER:
            self._congested = True
        elif self.in_transit < LOW_WATER:
            self._congested = False
        return self._congested

    def drop(self) -> None:
        """Both ends lose the connection, each in its own time; what was on its way is lost."""
        self.silent = True
        self.world.after(self.world.soon(0.02), self.close_box_end)
        self.world.after(self.world.soon(0.02), self.close_client_end)

    def closed_by_box(self) -> None:
        """The box closes; what it wrote before still arrives."""
        self.box_open = False
        if not self.silent:
            self._to_client = self._arrival(self._to_client, 0.002)
            self._at(self._to_client, self.close_client_end)

    def closed_by_client(self) -> None:
        """The client closes; what it wrote before still arrives."""
        self.client_open = False
        if not self.silent:
            self._to_box = self._arrival(self._to_box, 0.002)
            self._at(self._to_box, self.close_box_end)

    def close_box_end(self) -> None:
        """The box learns that the connection is gone."""
        if self.box_open:
            self.box_open = False
            self.box.link_is_gone(self)

    def close_client_end(self) -> None:
        """The client learns that the connection is gone."""
        if self.client_open:
            self.client_open = False
            self.client.link_is_gone(self)

    def _cut(self, data: bytes) -> list[bytes]:
        random = self.world.random
        pieces = []
        while len(data) > 1 and random.random() < 0.3:
            at = random.randrange(1, len(data))
            pieces.append(data[:at])
            data = data[at:]
        return [*pieces, data]

    def _arrival(self, last: float, mean: float) -> float:
        return max(last, self.world.monotonic + self.world.soon(mean))

    def _at(self, when: float, action: Callable[[], None]) -> None:
        self.world.at(when, action)

    def _into_box(self, data: bytes) -> None:
        if self.box_open and not self.silent:
            self.box.bytes_came(self, data)

    def _into_client(self, data: bytes) -> None:
        was_congested = self._congested
        self.in_transit -= len(data)
        if self.client_open and not self.silent:
            self.client.bytes_came(self, data)
        if was_congested and self.box_open and not self.congested:
            self._relieved(self)
