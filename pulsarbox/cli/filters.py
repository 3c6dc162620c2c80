"""``--filter``: which messages, by an expression such as ``key == "a" and size > 100 and json.user.age >= 18``.

Expressions have the form of Python's, of which this takes comparisons, and, or, not, in, names, numbers, texts and a
few functions. They are taken apart and put together from functions of this module: nothing is ever evaluated as Python.

Names: topic, partition, id, key, payload (text), size, props.name or props["name"], json.a.b (of the payload),
publish_time, event_time, deliver_at, seq, producer, redelivery, tombstone. Functions: matches(text, pattern),
startswith, endswith, contains, lower, len, time("-1h"). What is not there is None, and is neither more nor less than
anything.
"""

import ast
import operator
import re
from collections.abc import Callable
from typing import Any, Final

from pulsarbox.cli.formats import json_at
from pulsarbox.cli.times import moment
from pulsarbox.client.incoming import Message

Filter = Callable[[Message], bool]
_Value = Callable[[Message], Any]

DEPTH_MAX: Final = 50
NAMES: Final[dict[str, _Value]] = {
    "topic": lambda message: message.topic,
    "partition": lambda message: message.partition,
    "id": lambda message: str(message.id),
    "key": lambda message: message.key,
    "payload": lambda message: None if message.payload is None else message.payload.decode("utf-8", "replace"),
    "size": lambda message: len(message.payload or b""),
    "publish_time": lambda message: message.publish_time,
    "event_time": lambda message: message.event_time or None,
    "deliver_at": lambda message: message.deliver_at or None,
    "seq": lambda message: message.sequence_id,
    "producer": lambda message: message.producer_name,
    "redelivery": lambda message: message.entry.redelivery,
    "tombstone": lambda message: message.payload is None,
}


def _texts(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of texts, None where it is given anything else."""
    return lambda *values: call(*values) if all(isinstance(each, str) for each in values) else None


_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Any]]]] = {
    "startswith": (2, _texts(str.startswith)),
    "endswith": (2, _texts(str.endswith)),
    "contains": (2, _texts(operator.contains)),
    "lower": (1, _texts(str.lower)),
    "len": (1, lambda value: len(value) if isinstance(value, str | list | dict) else None),
}
_KNOWN: Final = ", ".join([*NAMES, "props.name", "json.path"])
_CALLED: Final = ", ".join([*_FUNCTIONS, "matches", "time"])


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        try:
            return left is not None and right is not None and compare(left, right)
        except TypeError:  # a text and a number
            return False

    return holds


def _is_in(left: Any, right: Any) -> bool:
    try:
        return left is not None and left in right
    except TypeError:
        return False


_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: _is_in,
    ast.NotIn: lambda left, right: not _is_in(left, right),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def parse_filter(text: str) -> Filter:
    """What tells whether a message is wanted. Raises ValueError, in words."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"'{text}' cannot be read: {reason}") from None
    value = _value(tree, 0)
    return lambda message: bool(value(message))


def _value(node: ast.expr, depth: int) -> _Value:
    if depth > DEPTH_MAX:
        raise ValueError(f"the expression is nested more than {DEPTH_MAX} deep")
    make = _NODES.get(type(node))
    if make is None:
        raise ValueError(f"'{ast.unparse(node)}' is not taken: there are comparisons, and, or, not, in, and functions")
    return make(node, depth + 1)


def _constant(node: ast.Constant, depth: int) -> _Value:
    value = node.value
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"'{ast.unparse(node)}' is neither text nor number")
    return lambda message: value


def _name(node: ast.Name, depth: int) -> _Value:
    known = {"true": True, "false": False, "null": None}
    if node.id in known:
        constant = known[node.id]
        return lambda message: constant
    if node.id == "props":
        return lambda message: dict(message.properties)
    if node.id == "json":
        return lambda message: json_at(message.payload or b"", [])
    if node.id not in NAMES:
        raise ValueError(f"'{node.id}' is not known: there are {_KNOWN}")
    return NAMES[node.id]


def _path(node: ast.expr) -> tuple[str, list[str]] | None:
    """``props.a``, ``props["a"]``, ``json.a.b[0]``: what it is of, and the path."""
    path: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            path.insert(0, str(node.slice.value))
            node = node.value
        else:
            return (node.id, path) if isinstance(node, ast.Name) else None


def _member(node: ast.expr, depth: int) -> _Value:
    found = _path(node)
    if found is not None and found[0] == "json":
        path = found[1]
        return lambda message: json_at(message.payload or b"", path)
    if found is not None and found[0] == "props" and len(found[1]) == 1:
        name = found[1][0]
        return lambda message: dict(message.properties).get(name)
    raise ValueError(f"'{ast.unparse(node)}' is not known: there are {_KNOWN}")


def _all_or_any(node: ast.BoolOp, depth: int) -> _Value:
    values = [_value(each, depth) for each in node.values]
    if isinstance(node.op, ast.And):
        return lambda message: all(each(message) for each in values)
    return lambda message: any(each(message) for each in values)


def _unary(node: ast.UnaryOp, depth: int) -> _Value:
    value = _value(node.operand, depth)
    if isinstance(node.op, ast.Not):
        return lambda message: not value(message)
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        if isinstance(number, int | float):
            return lambda message: -number
    raise ValueError(f"'{ast.unparse(node)}' is not taken")


def _compare(node: ast.Compare, depth: int) -> _Value:
    values = [_value(each, depth) for each in (node.left, *node.comparators)]
    holds = [_COMPARISONS[type(each)] for each in node.ops]
    if len(holds) == 1:
        left, right, one = values[0], values[1], holds[0]
        return lambda message: one(left(message), right(message))

    def all_hold(message: Message) -> bool:
        found = [value(message) for value in values]
        return all(hold(found[at], found[at + 1]) for at, hold in enumerate(holds))

    return all_hold


def _list(node: ast.List | ast.Tuple, depth: int) -> _Value:
    values = [_value(each, depth) for each in node.elts]
    return lambda message: [value(message) for value in values]


def _call(node: ast.Call, depth: int) -> _Value:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name == "matches":
        return _matches(node, depth)
    if name == "time":
        return _moment(node)
    if name not in _FUNCTIONS:
        raise ValueError(f"'{name}(...)' is not known: there are {_CALLED}")
    count, call = _FUNCTIONS[name]
    if len(node.args) != count or node.keywords:
        raise ValueError(f"{name} takes {count} value{'s' * (count > 1)}: '{ast.unparse(node)}'")
    values = [_value(each, depth) for each in node.args]
    return lambda message: call(*[value(message) for value in values])


def _matches(node: ast.Call, depth: int) -> _Value:
    if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant) or not isinstance(node.args[1].value, str):
        raise ValueError('matches takes a value and a regular expression: matches(key, "^a")')
    value = _value(node.args[0], depth)
    try:
        pattern = re.compile(node.args[1].value)
    except re.error as error:
        raise ValueError(f"'{node.args[1].value}' is no regular expression: {error}") from None
    return lambda message: isinstance(found := value(message), str) and pattern.search(found) is not None


def _moment(node: ast.Call) -> _Value:
    if len(node.args) != 1 or not isinstance(node.args[0], ast.Constant) or not isinstance(node.args[0].value, str):
        raise ValueError('time takes a text: time("-1h"), time("2026-11-21")')
    when = moment(node.args[0].value)
    return lambda message: when


_NODES: Final[dict[type[ast.expr], Callable[[Any, int], _Value]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _member,
    ast.Subscript: _member,
    ast.BoolOp: _all_or_any,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.List: _list,
    ast.Tuple: _list,
    ast.Call: _call,
}
