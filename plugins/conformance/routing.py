"""Conformance checks of routing plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from pulsarbox.plugins.conformance.examples import ODD_KEYS, PLAIN_KEYS, side_by_side
from pulsarbox.plugins.contracts import SLOTS, Choose, Producing, Unrouted
from pulsarbox.plugins.hashing.murmur3 import Murmur3

_PARTITIONS: Final = (1, 2, 3, 16, 1000)
_SLOTS: Final = (1, 2, *range(100, SLOTS, 97), SLOTS - 1)
_SHARE_MIN: Final = 0.1
"""Minimum share of a partition relative to an even distribution."""


class Standing:
    """A consumer as routers see it."""

    def __init__(self, name: str, permits: int, unacked: int) -> None:
        self.name, self.permits, self.unacked = name, permits, unacked
        self.metadata: Mapping[str, str] = {}


def _options(plugin: Any) -> Mapping[str, str]:
    """Return the plugin's example options, which are required if it cannot be opened without options."""
    found: Mapping[str, str] = getattr(plugin, "example_options", {})
    return MappingProxyType(dict(found))


def opened(plugin: Any, waiting: tuple[int, ...] = ()) -> Choose:
    """Open a router for a producer with the plugin's example options."""
    hash32 = Murmur3().hash32
    topic = "persistent://public/default/orders"
    choose: Choose = plugin.open(Producing(topic, hash32, lambda: waiting, _options(plugin)))
    return choose


def _messages() -> list[Unrouted]:
    keys: list[bytes | None] = [*ODD_KEYS, *PLAIN_KEYS[:200], *[None] * 400]
    return [
        Unrouted(key, {"region": f"r{i % 7}"} if i % 2 else {}, i % 1000, sequence=i, batch=i // 3)
        for i, key in enumerate(keys)
    ]


def _partition_range(plugin: Any) -> Iterator[str]:
    for partitions in _PARTITIONS:
        choose = opened(plugin)
        for message in _messages():
            found: Any = choose(message, partitions)
            if type(found) is not int or not 0 <= found < partitions:
                yield f"choose returned {found!r}, expected one of {partitions} partitions"
                return


def _partition_growth(plugin: Any) -> Iterator[str]:
    choose = opened(plugin)
    for partitions in _PARTITIONS:
        for message in _messages()[:300]:
            found = choose(message, partitions)
            if not 0 <= found < partitions:
                yield f"after partitions were added, choose returned {found!r}, expected one of {partitions}"
                return


def _partition_repeats(plugin: Any) -> Iterator[str]:
    first, other = opened(plugin), opened(type(plugin)())
    for message in _messages():
        if first(message, 16) != other(message, 16):
            yield f"two producers of the same messages choose different partitions, first for the key {message.key!r}"
            return


def digest(plugin: Any) -> str:
    """Return a digest of all decisions; empty for consumer choice, which depends on the moment."""
    if hasattr(plugin, "divide"):
        divided = Divided(plugin)
        return sha256(repr([divided.owners() for _ in divided.stages()]).encode()).hexdigest()
    if not hasattr(plugin, "open"):
        return ""
    choose = opened(plugin)
    return sha256(b"".join(b"%d " % choose(message, 16) for message in _messages())).hexdigest()


def _partition_share(plugin: Any) -> Iterator[str]:
    choose = opened(plugin)
    counts = [0] * 4
    for i, key in enumerate(PLAIN_KEYS):
        counts[choose(Unrouted(key, {"region": f"r{i}"}, 100, i, i), 4)] += 1
    if min(counts) < _SHARE_MIN * len(PLAIN_KEYS) / 4:
        yield f"uneven distribution of {len(PLAIN_KEYS)} messages with different keys to 4 partitions: {counts}"


def _partition_threads(plugin: Any) -> Iterator[str]:
    def all_of_them() -> list[int]:
        choose = opened(plugin)
        return [choose(message, 16) for message in _messages()]

    one, two = side_by_side(all_of_them)
    if one != two:
        yield "producers of the same messages in two threads choose different partitions"


def _consumer_choice(plugin: Any) -> Iterator[str]:
    ready = [Standing(f"c{i % 3}", 1 + i * 7 % 5, i * 3 % 4) for i in range(6)]
    for number in range(1, len(ready) + 1):
        found = plugin.choose(ready[:number])
        if not any(found is each for each in ready[:number]):
            yield f"choose returned {found!r}, expected one of {number} consumers"
            return


class Divided:
    """A selector with consumers, which are added and removed as by the broker."""

    def __init__(self, plugin: Any) -> None:
        self.selector = plugin.divide()
        self.here: list[Standing] = []

    def come(self, number: int) -> None:
        """Add a consumer."""
        consumer = Standing(f"c{number % 5}", 1 + number, 0)
        self.here.append(consumer)
        self.selector.add(consumer)

    def go(self, index: int) -> None:
        """Remove a consumer."""
        self.selector.remove(self.here.pop(index))

    def stages(self) -> Iterator[int]:
        """Add and remove consumers; yield their number after each change."""
        for number in range(6):
            self.come(number)
            yield len(self.here)
        for index in (0, 2, 3):
            self.go(index)
            yield len(self.here)
        self.come(7)
        yield len(self.here)

    def owners(self) -> list[int]:
        """Return the owner of each sampled slot, by index; -1 for an owner that is not among the consumers."""
        places = {id(each): place for place, each in enumerate(self.here)}
        return [places.get(id(self.selector.select(slot)), -1) for slot in _SLOTS]


def _division_range(plugin: Any) -> Iterator[str]:
    divided = Divided(plugin)
    for count in divided.stages():
        owners = divided.owners()
        if -1 in owners:
            yield f"slot {_SLOTS[owners.index(-1)]} is not assigned to any of {count} consumers"
            return


def _division_repeats(plugin: Any) -> Iterator[str]:
    divided, other = Divided(plugin), Divided(type(plugin)())
    for count, _ in zip(divided.stages(), other.stages(), strict=True):
        owners = divided.owners()
        if owners != divided.owners():
            yield f"with {count} consumers the assignment changes, although none was added or removed"
            return
        if owners != other.owners():
            yield f"two subscriptions with the same {count} consumers assign keys differently"
            return


def _division_threads(plugin: Any) -> Iterator[str]:
    def all_of_them() -> list[list[int]]:
        divided = Divided(plugin)
        return [divided.owners() for _ in divided.stages()]

    one, two = side_by_side(all_of_them)
    if one != two:
        yield "subscriptions with the same consumers in two threads assign keys differently"


_PARTITION_CHECKS: Final = {
    "range": _partition_range,
    "growth": _partition_growth,
    "repeatable": _partition_repeats,
    "distribution": _partition_share,
    "threads": _partition_threads,
}


_DIVISION_CHECKS: Final = {
    "range": _division_range,
    "repeatable": _division_repeats,
    "threads": _division_threads,
}


def _of_form(name: str) -> Any:
    def check(plugin: Any) -> Iterator[str]:
        if hasattr(plugin, "open"):
            yield from _PARTITION_CHECKS[name](plugin)
        if hasattr(plugin, "divide") and name in _DIVISION_CHECKS:
            yield from _DIVISION_CHECKS[name](plugin)

    return check


def _choice(plugin: Any) -> Iterator[str]:
    if hasattr(plugin, "choose"):
        yield from _consumer_choice(plugin)


CHECKS: Final = {**{name: _of_form(name) for name in _PARTITION_CHECKS}, "choice": _choice}
