"""Deliberately expensive schema definitions, and the steps to process them."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from pulsarbox.protocol.schema.steps import Steps
from tests.unit.protocol.schema.schemas import field, record


class Work(NamedTuple):
    """The result and the cost of a computation."""

    result: Any
    steps: int
    longest: int
    """Steps between two suspension points."""


def worked(steps: Steps[Any]) -> Work:
    """Run a computation to completion or to its error."""
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
    """A record with a union of records, each with a common field and a field named after the tag."""
    branches = [record(f"{names}{i}", field("a"), field(tag)) for i in range(count)]
    return record("Envelope", field("event", branches))


def nested_unions(levels: int, width: int, tag: str) -> dict[str, Any]:
    """Nested unions of records that differ only in the innermost field, so each pair is compared to its full depth."""
    kind: Any = [record(f"L{tag}{i}", field(tag)) for i in range(width)]
    for level in range(levels):
        names = [each if isinstance(each, str) else each["name"] for each in kind]
        first = record(f"N{tag}{level}x0", field("a", kind))
        kind = [first, *(record(f"N{tag}{level}x{i}", field("a", names)) for i in range(1, width))]
    return record("Envelope", field("event", kind))


def doubling(levels: int) -> dict[str, Any]:
    """Records that each contain the next one twice: an empty value has 2**levels parts."""
    kind: Any = record("D0")
    for level in range(levels):
        kind = record(f"D{level + 1}", field("a", kind, default={}), field("b", f"D{level}", default={}))
    return dict(kind)


def chain(length: int, end: str) -> list[Any]:
    """A flat list of records, each containing the previous one: nesting is as deep as the list is long."""
    first = record(f"C{end}0", field("z", end))
    return [first, *(record(f"C{end}{i}", field("a", f"C{end}{i - 1}")) for i in range(1, length))]


def growth(work: Callable[[int], int], size: int) -> float:
    """Ratio of the work for an input four times as large: 4 for linear work, 16 for quadratic work."""
    return work(4 * size) / work(size)


def text(told: Any) -> bytes:
    """Return a definition as JSON."""
    return json.dumps(told, separators=(",", ":")).encode()
