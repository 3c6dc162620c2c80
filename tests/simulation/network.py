"""Connections between clients and the box: byte streams that are split, delayed, congested and dropped.

A stream preserves order and loses no data until it is dropped. A silent one loses all data without notifying either
end.
"""

from collections.abc import Callable
from typing import Protocol

from tests.simulation.world import World

HIGH_WATER = 6_000
"""Bytes in transit to a client above which the box must pause writing."""
LOW_WATER = 2_000


class Peer(Protocol):
    """Either end of a link."""

    def bytes_came(self, link: "Link", data: bytes) -> None:
        """Receive the next bytes of the stream."""

    def link_is_gone(self, link: "Link") -> None:
        """Handle the end of the stream."""


class Link:
    """One connection."""

    def __init__(self, world: World, number: int, client: Peer, box: Peer, relieved: Callable[["Link"], None]) -> None:
        self.world = world
        self.number = number
        self.client = client
        self.box = box
        self.slow = world.chance(world.faults.congestion)
        self.reads_nothing = False
        """Whether the client does not read from its socket."""
        self.silent = False
        self.box_open = self.client_open = True
        self.in_transit = 0
        """Bytes in transit to the client."""
        self._relieved = relieved
        self._congested = False
        self._to_box = self._to_client = 0.0
        """Arrival times of the last bytes in each direction, which preserve order."""

    def from_client(self, data: bytes) -> None:
        """Send data from the client."""
        if not self.silent:
            for piece in self._cut(data):
                self._to_box = self._arrival(self._to_box, 0.001)
                self._at(self._to_box, lambda piece=piece: self._into_box(piece))  # type: ignore[misc]

    def from_box(self, data: bytes) -> None:
        """Send data from the box."""
        self.in_transit += len(data)
        if self.silent or self.reads_nothing:
            return
        for piece in self._cut(data):
            self._to_client = self._arrival(self._to_client, 0.05 if self.slow else 0.001)
            self._at(self._to_client, lambda piece=piece: self._into_client(piece))  # type: ignore[misc]

    @property
    def congested(self) -> bool:
        """Whether the box should pause writing."""
        if self.in_transit > HIGH_WATER:
            self._congested = True
        elif self.in_transit < LOW_WATER:
            self._congested = False
        return self._congested

    def drop(self) -> None:
        """Drop the connection at both ends after separate delays; data in transit is lost."""
        self.silent = True
        self.world.after(self.world.soon(0.02), self.close_box_end)
        self.world.after(self.world.soon(0.02), self.close_client_end)

    def closed_by_box(self) -> None:
        """Close the box's end; data already written still arrives."""
        self.box_open = False
        if not self.silent:
            self._to_client = self._arrival(self._to_client, 0.002)
            self._at(self._to_client, self.close_client_end)

    def closed_by_client(self) -> None:
        """Close the client's end; data already written still arrives."""
        self.client_open = False
        if not self.silent:
            self._to_box = self._arrival(self._to_box, 0.002)
            self._at(self._to_box, self.close_box_end)

    def close_box_end(self) -> None:
        """Notify the box of the closed connection."""
        if self.box_open:
            self.box_open = False
            self.box.link_is_gone(self)

    def close_client_end(self) -> None:
        """Notify the client of the closed connection."""
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
