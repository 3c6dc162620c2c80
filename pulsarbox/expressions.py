"""Filter expressions: for command lines, dashboard screens and requests to the box.

The syntax is a subset of Python's: comparisons, and, or, not, in, names, numbers, strings and a few functions:
matches(text, pattern), startswith, endswith, contains, lower, len, time("-1h"). An expression is parsed to a syntax
tree and compiled to closures of this module; nothing is evaluated as Python. A missing value is None, which is neither
less nor greater than anything. For objects with searchable texts, ``/pattern`` selects those with a match and
``!/pattern`` the others. A search sees a topic name in its short form, ``tenant/namespace/topic``: the common
``persistent://`` is searched only if the pattern contains ``://``.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from pulsarbox.times import moment

Value = Callable[[Any], Any]


class Pattern(Protocol):
    """A compiled regular expression."""

    def search(self, text: str, /) -> object:
        """Return a match in ``text``, or None."""


DEPTH_MAX: Final = 50
LENGTH_MAX: Final = 10_000
"""Characters in an expression."""
_INDEX_DIGITS_MAX: Final = 9
_WORDS: Final = {"true": True, "false": False, "null": None}


def _texts(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of strings so that it returns None for any other argument."""
    return lambda *values: call(*values) if all(isinstance(each, str) for each in values) else None


_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Any]]]] = {
    "startswith": (2, _texts(str.startswith)),
    "endswith": (2, _texts(str.endswith)),
    "contains": (2, _texts(operator.contains)),
    "lower": (1, _texts(str.lower)),
    "len": (1, lambda value: len(value) if isinstance(value, str | list | dict) else None),
}
_CALLED: Final = ", ".join([*_FUNCTIONS, "matches", "time"])


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        try:
            return left is not None and right is not None and compare(left, right)
        except (TypeError, RecursionError):  # a string and a number; lists that are nested too deeply
            return False

    return holds


def _is_equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except RecursionError:
        return False


def _is_in(left: Any, right: Any) -> bool:
    try:
        return left is not None and left in right
    except (TypeError, RecursionError):
        return False


_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: _is_equal,
    ast.NotEq: lambda left, right: not _is_equal(left, right),
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: _is_in,
    ast.NotIn: lambda left, right: not _is_in(left, right),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


_USUAL_SCHEME: Final = "persistent://"
_SCHEME_MARK: Final = "://"


def compiled(text: str) -> Pattern:
    """Return a compiled Python regular expression. Raises ValueError with a readable message.

    Some patterns take exponential time: for patterns from untrusted clients, pass ``Language`` another function.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"invalid regular expression '{text}': {error}") from None


class Language:
    """Filter expressions on objects of one kind; ``names`` and ``member`` resolve their names and paths."""

    def __init__(
        self,
        names: Callable[[str], Value | None],
        member: Callable[[str, list[str]], Value | None],
        known: str,
        *,
        searched: Callable[[Any], Iterable[str]] | None = None,
        compiled: Callable[[str], Pattern] = compiled,
    ) -> None:
        """``known`` lists the names for error messages. ``member`` gets a name and the path behind it; ``searched``
        returns an object's texts for ``/pattern``; ``compiled`` compiles patterns and raises ValueError if one is
        invalid.
        """
        self._names = names
        self._member_of = member
        self._known = known
        self._searched = searched
        self._compiled = compiled
        self._now = 0
        self._nodes: dict[type[ast.expr], Callable[[Any, int], Value]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._member,
            ast.Subscript: self._member,
            ast.BoolOp: self._all_or_any,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.List: self._list,
            ast.Tuple: self._list,
            ast.Call: self._call,
        }

    def parse(self, text: str, now: int) -> Callable[[Any], bool]:
        """Return the predicate for an expression; ``now`` (ms since 1970) is the base of relative times such as "-1h".

        Raises ValueError with a readable message.
        """
        self._now = now
        if len(text) > LENGTH_MAX:
            raise ValueError(f"the expression is too long: {len(text)} characters, the maximum is {LENGTH_MAX}")
        if self._searched is not None and text.lstrip("! \t").startswith("/"):
            return self._search(text, self._searched)
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise ValueError(
                f"invalid expression '{text}': {reason}. Use comparisons (x == 'a', x > 1, 'a' in x), and, or, not, "
                f"and functions such as contains(x, 'a'): {_CALLED}"
            ) from None
        try:
            value = self._value(tree, 0)
        except RecursionError:  # raised by ast.unparse for an error message
            raise ValueError(f"the expression is nested more than {DEPTH_MAX} levels deep") from None
        return lambda thing: bool(value(thing))

    def _search(self, text: str, searched: Callable[[Any], Iterable[str]]) -> Callable[[Any], bool]:
        before, _, pattern = text.strip().partition("/")
        if before.strip() not in ("", "!"):
            raise ValueError(f"invalid search '{text}': expected /pattern or !/pattern")
        search, wanted = self._compiled(pattern).search, "!" not in before
        unseen = "" if _SCHEME_MARK in pattern else _USUAL_SCHEME
        return lambda thing: any(search(each.removeprefix(unseen)) is not None for each in searched(thing)) is wanted

    def _name(self, node: ast.Name, depth: int) -> Value:
        if node.id in _WORDS:
            constant = _WORDS[node.id]
            return lambda thing: constant
        value = self._names(node.id)
        if value is None:
            raise ValueError(f"unknown name '{node.id}': expected one of {self._known}")
        return value

    def _member(self, node: ast.expr, depth: int) -> Value:
        found = _path(node)
        value = self._member_of(*found) if found is not None else None
        if value is None:
            raise ValueError(f"unknown name '{ast.unparse(node)}': expected one of {self._known}")
        return value

    def _value(self, node: ast.expr, depth: int) -> Value:
        if depth > DEPTH_MAX:
            raise ValueError(f"the expression is nested more than {DEPTH_MAX} levels deep")
        make = self._nodes.get(type(node))
        if make is None:
            text = ast.unparse(node)
            raise ValueError(f"'{text}' is not supported: use comparisons, and, or, not, in, and functions")
        return make(node, depth + 1)

    def _constant(self, node: ast.Constant, depth: int) -> Value:
        value = node.value
        if value is not None and not isinstance(value, str | int | float):
            raise ValueError(f"'{ast.unparse(node)}' is neither a string nor a number")
        return lambda thing: value

    def _all_or_any(self, node: ast.BoolOp, depth: int) -> Value:
        values = [self._value(each, depth) for each in node.values]
        if isinstance(node.op, ast.And):
            return lambda thing: all(each(thing) for each in values)
        return lambda thing: any(each(thing) for each in values)

    def _unary(self, node: ast.UnaryOp, depth: int) -> Value:
        value = self._value(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return lambda thing: not value(thing)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            number = node.operand.value
            if isinstance(number, int | float):
                return lambda thing: -number
        raise ValueError(f"'{ast.unparse(node)}' is not supported")

    def _compare(self, node: ast.Compare, depth: int) -> Value:
        values = [self._value(each, depth) for each in (node.left, *node.comparators)]
        holds = [_COMPARISONS[type(each)] for each in node.ops]
        if len(holds) == 1:
            left, right, one = values[0], values[1], holds[0]
            return lambda thing: one(left(thing), right(thing))

        def all_hold(thing: Any) -> bool:
            found = [value(thing) for value in values]
            return all(hold(found[at], found[at + 1]) for at, hold in enumerate(holds))

        return all_hold

    def _list(self, node: ast.List | ast.Tuple, depth: int) -> Value:
        values = [self._value(each, depth) for each in node.elts]
        return lambda thing: [value(thing) for value in values]

    def _call(self, node: ast.Call, depth: int) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if name == "matches":
            return self._matches(node, depth)
        if name == "time":
            return self._moment(node)
        if name not in _FUNCTIONS:
            raise ValueError(f"unknown function '{name}': expected one of {_CALLED}")
        count, call = _FUNCTIONS[name]
        if len(node.args) != count or node.keywords:
            raise ValueError(f"{name} takes {count} argument{'s' * (count > 1)}: '{ast.unparse(node)}'")
        values = [self._value(each, depth) for each in node.args]
        return lambda thing: call(*[value(thing) for value in values])

    def _matches(self, node: ast.Call, depth: int) -> Value:
        if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant) or not isinstance(node.args[1].value, str):
            raise ValueError('matches takes a value and a regular expression: matches(key, "^a")')
        value = self._value(node.args[0], depth)
        search = self._compiled(node.args[1].value).search
        return lambda thing: isinstance(found := value(thing), str) and search(found) is not None

    def _moment(self, node: ast.Call) -> Value:
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Constant) or not isinstance(node.args[0].value, str):
            raise ValueError('time takes a string: time("-1h"), time("2026-11-21")')
        when = moment(node.args[0].value, self._now)
        return lambda thing: when


def _path(node: ast.expr) -> tuple[str, list[str]] | None:
    """Return the name and the path of ``props.a``, ``props["a"]`` or ``json.a.b[0]``; None for anything else."""
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


def inside(value: Any, path: Iterable[str]) -> Any:
    """Return the value at a path of names and indexes within objects and lists, or None."""
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and len(name) <= _INDEX_DIGITS_MAX and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value
