"""Schema resolution: whether values written with one schema can be read with another.

Records are matched by their fields, regardless of their names, as Avro for Java does.
Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution.
"""

from collections.abc import Generator
from typing import Any, Final, NamedTuple

from pulsarbox.protocol.schema.avro.definition import PRIMITIVES, Node
from pulsarbox.protocol.schema.steps import Steps, TooManyStepsError, recursive

STEPS_MAX: Final = 400_000
"""Steps of one comparison, up to seven for each pair of types: enough for two unions of 200 dissimilar records."""
DEPTH_MAX: Final = 20_000
"""Nested calls, two for each level of types."""
_NAMES_A_STEP: Final = 20
_SHOWN: Final = 5
_LOCATION_MAX: Final = 60
_PROMOTIONS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
"""The types that can read each primitive type, the type itself first."""


class Mismatch(NamedTuple):
    """The reason why one type cannot be read as another, and its location as a linked list from the root type."""

    kind: str
    message: str
    path: "_Path"

    def __str__(self) -> str:
        parts: list[str] = []
        path = self.path
        while path is not None and len(parts) < _LOCATION_MAX:
            parts.append(path[0])
            path = path[1]
        return f"{self.kind} at /{'/'.join(parts)}{'' if path is None else '/...'}: {self.message}"


_Path = tuple[str, "_Path"] | None
_Comparison = Generator[Any, Any, Mismatch | None]


def mismatch(reader: Node, writer: Node) -> Steps[Mismatch | None]:
    """Return the first reason why ``reader`` cannot read values of ``writer``, or None if it can.

    Raises TooManyStepsError beyond ``STEPS_MAX`` steps or ``DEPTH_MAX`` nested comparisons.
    """
    try:
        return (yield from recursive(_Resolution().compare(reader, writer), STEPS_MAX, DEPTH_MAX))
    except RecursionError:
        raise TooManyStepsError from None


class _Resolution:
    """One comparison, with the results of the pairs compared so far."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Mismatch | None] = {}
        """Results by pair. A pair under comparison counts as readable, because types may be recursive."""
        self._unions: dict[int, _Branches] = {}

    def compare(self, reader: Node, writer: Node) -> _Comparison:
        """Compare two types; the result for each pair is cached."""
        pair = id(reader), id(writer)
        if pair in self._known:
            return self._known[pair]
        self._known[pair] = None
        found: Mismatch | None = yield self._compare(reader, writer)
        self._known[pair] = found
        return found

    def _compare(self, reader: Node, writer: Node) -> _Comparison:
        found: Mismatch | None
        if "union" in (writer.kind, reader.kind):
            within = self._all_branches if writer.kind == "union" else self._any_branch
            found = yield within(reader, writer)
            return found
        if reader.kind != writer.kind:
            if reader.kind in _PROMOTIONS.get(writer.kind, ()):
                return None
            text = f"reader type: {reader.kind} not compatible with writer type: {writer.kind}"
            return Mismatch("type mismatch", text, None)
        if reader.kind == "record":
            found = yield self._fields(reader, writer)
            return found
        if reader.kind in ("array", "map"):
            found = yield self.compare(reader.branches[0], writer.branches[0])
            return _under(found, "items" if reader.kind == "array" else "values")
        yield (len(reader.symbols) + len(writer.symbols)) // _NAMES_A_STEP
        return None if reader.kind in PRIMITIVES else _of_named(reader, writer)

    def _fields(self, reader: Node, writer: Node) -> _Comparison:
        for number, field in enumerate(reader.fields.values()):
            written = writer.fields.get(field.name)
            if written is None and field.aliases:
                yield len(field.aliases) // _NAMES_A_STEP
                written = next((writer.fields[each] for each in field.aliases if each in writer.fields), None)
            if written is not None:
                found = yield self.compare(field.node, written.node)
                if found is not None:
                    return _under(_under(_under(found, "type"), str(number)), "fields")
            elif not field.has_default:
                path = ("fields", (str(number), None))
                return Mismatch("reader field missing default value", field.name[:100], path)
            else:
                yield None
        return None

    def _all_branches(self, reader: Node, writer: Node) -> _Comparison:
        for number, branch in enumerate(writer.branches):
            found = yield self.compare(reader, branch)
            if found is not None:
                return _under(found, str(number))
        return None

    def _any_branch(self, reader: Node, writer: Node) -> _Comparison:
        branches = self._unions.get(id(reader))
        if branches is None:
            branches = self._unions[id(reader)] = _Branches(reader)
        for each in branches.likely(writer):
            if (yield self.compare(each, writer)) is None:
                return None
        return Mismatch("missing union branch", f"reader union lacking writer type: {writer.kind.upper()}", None)


class _Branches:
    """The branches of a union, indexed by kind and name."""

    def __init__(self, union: Node) -> None:
        self._by_kind: dict[str, list[Node]] = {}
        self._by_name: dict[tuple[str, str], list[Node]] = {}
        for each in union.branches:
            self._by_kind.setdefault(each.kind, []).append(each)
            for name in {each.name, each.short_name, *each.aliases}:
                self._by_name.setdefault((each.kind, name), []).append(each)

    def likely(self, writer: Node) -> "Generator[Node, None, None]":
        """Yield the branches that may read a type, those with its name first; all records are candidates."""
        kind = writer.kind
        if kind in PRIMITIVES:
            for each in _PROMOTIONS.get(kind, (kind,)):
                yield from self._by_kind.get(each, ())
            return
        for name in dict.fromkeys((writer.name, writer.short_name)) if kind not in ("array", "map") else ():
            yield from self._by_name.get((kind, name), ())
        if kind in ("record", "array", "map"):
            yield from self._by_kind.get(kind, ())


def _of_named(reader: Node, writer: Node) -> Mismatch | None:
    """Compare two enums or two fixed types."""
    if reader.short_name != writer.short_name and writer.name not in reader.aliases:
        return Mismatch("name mismatch", f"expected: {writer.name[:100]}", ("name", None))
    if reader.size != writer.size:
        return Mismatch("fixed size mismatch", f"expected: {writer.size}, found: {reader.size}", ("size", None))
    missing = set(writer.symbols).difference(reader.symbols)
    if missing and reader.default not in reader.symbols:
        shown = ", ".join(sorted(each[:40] for each in missing)[:_SHOWN])
        text = shown if len(missing) <= _SHOWN else f"{shown} and {len(missing) - _SHOWN} more"
        return Mismatch("missing enum symbols", text, ("symbols", None))
    return None


def _under(found: Mismatch | None, part: str) -> Mismatch | None:
    return None if found is None else found._replace(path=(part, found.path))
