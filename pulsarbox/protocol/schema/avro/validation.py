"""Validation of JSON values against Avro definitions, as used by JSON schemas."""

from collections.abc import Callable
from typing import Any, Final

from pulsarbox.protocol.schema.avro.definition import Node

CHECKS_MAX: Final = 100_000
"""Types checked for the parts of one value; each branch of a union counts."""


def is_valid(schema: Node, value: Any) -> bool:
    """Return whether a value matches a schema; true for one that needs more than ``CHECKS_MAX`` checks.

    The first branch of a union whose own shape matches is used, regardless of its parts. A missing field is null.
    """
    left = CHECKS_MAX
    waiting = [(schema, value)]
    while waiting:
        node, value = waiting.pop()
        branches = node.branches if node.kind == "union" else (node,)
        left -= len(branches) + (len(value) if isinstance(value, dict | list) else 0)
        if left < 0:
            return True
        fitting = next((each for each in branches if _SHAPES[each.kind](each, value)), None)
        if fitting is None:
            return False
        if fitting.kind == "record":
            waiting += [(field.node, value.get(name)) for name, field in fitting.fields.items()]
        elif fitting.kind == "array":
            waiting += [(fitting.branches[0], each) for each in value]
        elif fitting.kind == "map":
            waiting += [(fitting.branches[0], each) for each in value.values()]
    return True


def _is_whole(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits


def _is_number(node: Node, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(node: Node, value: Any) -> bool:
    return isinstance(value, str)


_SHAPES: Final[dict[str, Callable[[Node, Any], bool]]] = {
    "null": lambda node, value: value is None,
    "boolean": lambda node, value: isinstance(value, bool),
    "int": lambda node, value: _is_whole(value, 31),
    "long": lambda node, value: _is_whole(value, 63),
    "float": _is_number,
    "double": _is_number,
    "bytes": _is_text,
    "string": _is_text,
    "fixed": _is_text,
    "enum": lambda node, value: isinstance(value, str) and node.number_of(value) is not None,
    "record": lambda node, value: isinstance(value, dict) and value.keys() <= node.fields.keys(),
    "array": lambda node, value: isinstance(value, list),
    "map": lambda node, value: isinstance(value, dict),
}
