"""YAML text as nodes with their lines, within bounds of size, nesting and number.

The subset of YAML 1.2 that JSON can express: no anchors, aliases, tags or merge keys, so no document expands to more
than its text. Plain ``no``, ``on`` and ``1:30`` are strings, as in YAML 1.2, and keys are always strings. Source:
https://yaml.org/spec/1.2.2/#103-core-schema.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml

from pulsarbox.declaration.places import DeclarationProblem, InvalidDeclaration, Place

BYTES_MAX: Final = 4 << 20
"""Size of a file: some 20,000 topics with policies. The C parser reads it in 2 s."""
NODES_MAX: Final = 1_000_000
DEPTH_MAX: Final = 60
"""Nesting: inline schemas are the deepest."""
DIGITS_MAX: Final = 40
"""Digits of a number; longer ones are strings, which no number accepts."""

_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_FLAGS: Final = {
    word: value for value, name in ((True, "true"), (False, "false")) for word in (name, name.title(), name.upper())
}
_WHOLE: Final = re.compile(r"[-+]?[0-9]+")
_FRACTION: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

YamlValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """A string, number, boolean or null."""

    place: Place
    value: YamlValue
    text: str
    """As written: ``1.10`` for a property that is a version."""


@dataclass(frozen=True, slots=True)
class YamlList:
    """A sequence."""

    place: Place
    items: "list[YamlNode]"


@dataclass(frozen=True, slots=True)
class YamlMap:
    """A mapping, in the order of the file."""

    place: Place
    members: "dict[str, YamlMember]"


@dataclass(frozen=True, slots=True)
class YamlMember:
    """A member of a mapping; the place is that of its key."""

    place: Place
    node: "YamlNode"


YamlNode = YamlScalar | YamlList | YamlMap


def read_document(text: str, file: str) -> YamlNode | None:
    """Return the document of a file; None for an empty one. ``file`` names it in errors. Raises InvalidDeclaration."""
    if len(text.encode(errors="replace")) > BYTES_MAX:
        _refuse(Place(file, 1), f"the file has more than {BYTES_MAX >> 20} MiB: split it, and name each with -f")
    try:
        return _DocumentReader(file, yaml.parse(text, Loader=_LOADER)).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _refuse(Place(file, mark.line + 1 if mark else 1), f"invalid YAML: {error.problem or error.context}")
    except yaml.YAMLError as error:
        _refuse(Place(file, _line_of(text, error)), f"invalid YAML: {str(error).splitlines()[0]}")


def plain(node: YamlNode) -> Any:
    """Return a node as a JSON value."""
    if isinstance(node, YamlMap):
        return {name: plain(member.node) for name, member in node.members.items()}
    return [plain(each) for each in node.items] if isinstance(node, YamlList) else node.value


class _DocumentReader:
    """Builds nodes from the events of the parser, and counts them."""

    def __init__(self, file: str, events: Iterator[Any]) -> None:
        self._file = file
        self._events = events
        self._nodes = 0

    def read(self) -> YamlNode | None:
        found: YamlNode | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    _refuse(
                        self._place(event), "only one document per file is supported: split it, and name each with -f"
                    )
                found = self._node(next(self._events), 1)
        return None if isinstance(found, YamlScalar) and found.value is None else found

    def _node(self, event: Any, depth: int) -> YamlNode:
        place = self._place(event)
        self._check(event, place, depth)
        if isinstance(event, yaml.ScalarEvent):
            return YamlScalar(place, _value(event), str(event.value))
        if isinstance(event, yaml.SequenceStartEvent):
            return YamlList(place, [self._node(each, depth + 1) for each in self._until(yaml.SequenceEndEvent)])
        return YamlMap(place, self._members(depth))

    def _check(self, event: Any, place: Place, depth: int) -> None:
        self._nodes += 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            _refuse(place, "anchors (&name) and aliases (*name) are not supported: repeat the value")
        if event.tag is not None:
            _refuse(place, f"tags are not supported: remove {event.tag[:40]}")
        if depth > DEPTH_MAX:
            _refuse(place, f"nested deeper than {DEPTH_MAX} levels")
        if self._nodes > NODES_MAX:
            _refuse(place, f"more than {NODES_MAX:,} values: split the file, and name each with -f")

    def _members(self, depth: int) -> dict[str, YamlMember]:
        found: dict[str, YamlMember] = {}
        for event in self._until(yaml.MappingEndEvent):
            key, place = self._key(event, depth), self._place(event)
            if key in found:
                _refuse(place, f"'{key[:80]}' is declared twice, first in line {found[key].place.line}")
            found[key] = YamlMember(place, self._node(next(self._events), depth + 1))
        return found

    def _key(self, event: Any, depth: int) -> str:
        self._check(event, self._place(event), depth)
        if not isinstance(event, yaml.ScalarEvent):
            _refuse(self._place(event), "a key must be a string")
        if event.value == "<<":
            _refuse(self._place(event), "merge keys (<<) are not supported: repeat the members")
        return str(event.value)

    def _until(self, end: type) -> Iterator[Any]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield event

    def _place(self, event: Any) -> Place:
        return Place(self._file, event.start_mark.line + 1)


def _value(event: Any) -> YamlValue:
    """Return the value of a scalar: of a plain one by the core schema, of a quoted one its text."""
    text = str(event.value)
    if event.style:
        return text
    if text in _NULL:
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    if len(text) <= DIGITS_MAX and _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if len(text) <= DIGITS_MAX and _FRACTION.fullmatch(text) else text


def _line_of(text: str, error: yaml.YAMLError) -> int:
    position = getattr(error, "position", None)
    return text.count("\n", 0, position) + 1 if isinstance(position, int) else 1


def _refuse(place: Place, text: str) -> NoReturn:
    raise InvalidDeclaration([DeclarationProblem(place, text)])
