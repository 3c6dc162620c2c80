"""Definitions made to be expensive, and what it takes to work on them."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pulsarbox.protocol.schema.steps import Steps
from tests.unit.protocol.schema.schemas import field, record


class Work(NamedTuple):
    """What a computation took, and what came of it."""

    result: Any
    steps: int
    longest: int
    """Steps between two points at which it can be suspended."""


def worked(steps: Steps[Any]) -> Work:
    """Run a computation to its end, or to its error."""
    total, longest = 0, 0
    while True:
        try:
            count = next(steps)
        except StopIteration as end:
            return Work(end.value, total, longest)
        except Exception as error:
            return Work(error, total, longest)
        total, longest = total + count, max(longest, count)


def union_of_records(count: int, tag: str, *, names: str = "R") -> dict[str, Any]:
    """A record with a union of records whose fields are those of no record with another tag."""
    branches = [record(f"{names}{i}", field("a"), field(tag)) for i in range(count)]
    return record("Envelope", field("event", branches))


def nested_unions(levels: int, width: int, tag: str) -> dict[str, Any]:
    """Records with unions of records that are all alike but for the innermost field, so that each pair has to be
    compared to its depth."""
    kind: Any = [record(f"L{tag}{i}", field(tag)) for i in range(width)]
    for level in range(levels):
        names = [each if isinstance(each, str) else each["name"] for each in kind]
        first = record(f"N{tag}{level}x0", field("a", kind))
        kind = [first, *(record(f"N{tag}{level}x{i}", field("a", names)) for i in range(1, width))]
    return record("Envelope", field("event", kind))


def doubling(levels: int) -> dict[str, Any]:
    """A record that holds two of a record that holds two of a record ...: a value of no bytes has 2**levels parts."""
    kind: Any = record("D0")
    for level in range(levels):
        kind = record(f"D{level + 1}", field("a", kind, default={}), field("b", f"D{level}", default={}))
    return dict(kind)


def chain(length: int, end: str) -> list[Any]:
    """Records each of which holds the one before, defined side by side: as deep as the list is long."""
    first = record(f"C{end}0", field("z", end))
    return [first, *(record(f"C{end}{i}", field("a", f"C{end}{i - 1}")) for i in range(1, length))]


def growth(work: Callable[[int], int], size: int) -> float:
    """How often the work of an input goes into that of one four times as large: 4 if it is linear, 16 if quadratic."""
    return work(4 * size) / work(size)


def text(told: Any) -> bytes:
    """A definition as JSON."""
    return json.dumps(told, separators=(",", ":")).encode()
