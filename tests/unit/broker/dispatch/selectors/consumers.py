"""Consumers as selectors see them, and the properties required of every selector."""

from collections.abc import Iterable
from typing import TypeVar

from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta, KeySharedMode
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector

SLOTS = range(1, 65536)

T = TypeVar("T")


class Someone:
    """A consumer without a connection."""

    def __init__(self, name: str, key_shared: KeySharedMeta | None = None) -> None:
        self.name = name
        self.key_shared = key_shared

    def __str__(self) -> str:
        return f"Consumer{{{self.name}}}"


def sticky(name: str, *ranges: tuple[int, int]) -> Someone:
    """Return a consumer that requests ranges."""
    return Someone(name, KeySharedMeta(KeySharedMode.STICKY, ranges))


def owners(selector: StickyKeySelector[Someone], slots: Iterable[int] = SLOTS) -> list[Someone | None]:
    """Return the owner of each slot."""
    return [selector.select(slot) for slot in slots]


def by_ranges(selector: StickyKeySelector[Someone], size: int = 65537) -> list[Someone | None]:
    """Return the owner of each slot from 0 on, computed from the ranges. Ranges must not overlap."""
    found: list[Someone | None] = [None] * size
    for consumer, ranges in selector.ranges().items():
        assert ranges == sorted(ranges)
        for start, end in ranges:
            assert found[start : end + 1] == [None] * (end + 1 - start)
            found[start : end + 1] = [consumer] * (end + 1 - start)
    return found
