"""A JSON-like document as a flat list of nodes in reading order. It grows while it is read and is then complete."""

import json
from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from pulsarbox.cleaning import clean

NODES_MAX: Final = 250_000
"""Maximum number of nodes of a document; the rest is left out, which ``trouble`` reports."""
SHOWN_MAX: Final = 4000
"""Maximum number of characters shown of one value."""
_PATH_SHOWN: Final = 40
"""Maximum number of steps of a path shown at its beginning and at its end."""


class Kind(IntEnum):
    """Type of a node."""

    OBJECT = 0
    ARRAY = 1
    STRING = 2
    NUMBER = 3
    WORD = 4
    """true, false or null"""


class Document:
    """Nodes by number. A container precedes its descendants, which end before ``end_of``."""

    def __init__(self, source: str = "") -> None:
        """``source`` is the text from which nodes are read, empty if they come from values."""
        self.source = source
        self.kinds = bytearray()
        self.depths = array("l")
        self.names: list[str | int] = []
        """Name in the object, or index in the array, of each node."""
        self.is_complete = False
        self.trouble = ""
        """Why the document is not whole; empty if it is."""
        self._parents = array("l")
        self._ends = array("l")
        """The number after the last descendant; 0 for a container that is still open."""
        self._sizes = array("l")
        """The number of children; for a scalar of ``source``, the end of its text."""
        self._starts = array("l")
        """The start of the node's text in ``source``; -1 for a node from a value."""
        self._stops: dict[int, int] = {}
        """The end in ``source`` of the text of each closed container."""
        self._values: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.kinds)

    # Growing

    def open(self, name: str | int, kind: Kind, parent: int, start: int = -1) -> int:
        """Add a container and return its number."""
        return self._add(name, kind, parent, 0, start, 0)

    def close(self, node: int, count: int, stop: int = 0) -> None:
        """End a container with a number of children. ``stop`` is the end of its text in ``source``."""
        self._ends[node] = len(self.kinds)
        self._sizes[node] = count
        self._stops[node] = stop

    def count(self, node: int, count: int) -> None:
        """Set the number of children of an open container."""
        self._sizes[node] = count

    def read(self, name: str | int, kind: Kind, parent: int, start: int, end: int) -> int:
        """Add a scalar with its place in ``source``."""
        return self._add(name, kind, parent, len(self.kinds) + 1, start, end)

    def put(self, name: str | int, kind: Kind, parent: int, value: Any) -> int:
        """Add a scalar with its value."""
        node = self._add(name, kind, parent, len(self.kinds) + 1, -1, 0)
        self._values[node] = value
        return node

    def _add(self, name: str | int, kind: Kind, parent: int, end: int, start: int, size: int) -> int:
        self.kinds.append(kind)
        self.names.append(name)
        self.depths.append(self.depths[parent] + 1 if parent >= 0 else 0)
        self._parents.append(parent)
        self._ends.append(end)
        self._sizes.append(size)
        self._starts.append(start)
        return len(self.kinds) - 1

    # Reading

    def is_container(self, node: int) -> bool:
        """Return whether a node is an object or array."""
        return self.kinds[node] <= Kind.ARRAY

    def parent_of(self, node: int) -> int:
        """Return the container of a node, -1 for the root."""
        return self._parents[node]

    def end_of(self, node: int) -> int:
        """Return the number after the last descendant read so far."""
        return self._ends[node] or len(self.kinds)

    def size_of(self, node: int) -> int:
        """Return the number of children of a container read so far."""
        return self._sizes[node]

    def span_of(self, node: int) -> tuple[int, int] | None:
        """Return start and end of a node's text in ``source``; None for a node from a value."""
        start = self._starts[node]
        if start < 0:
            return None
        if not self.is_container(node):
            return start, self._sizes[node]
        return start, self._stops.get(node) or len(self.source)

    def text_of(self, node: int, most: int | None = None) -> str:
        """Return the JSON text of a scalar, or only the first characters of it."""
        start = self._starts[node]
        if start >= 0:
            end = self._sizes[node]
            return self.source[start : end if most is None else min(end, start + most)]
        value = self._values[node]
        if most is not None and isinstance(value, str):
            value = value[:most]
        return json.dumps(value, ensure_ascii=False)

    def length_of(self, node: int) -> int:
        """Return the approximate number of characters of a scalar."""
        start = self._starts[node]
        if start >= 0:
            return self._sizes[node] - start
        value = self._values[node]
        return len(value) + 2 if isinstance(value, str) else len(str(value))

    def shown(self, node: int, most: int = SHOWN_MAX) -> str:
        """Return the text of a scalar for display: decoded escapes, without control characters, cut if too long."""
        length = self.length_of(node)
        if length <= SHOWN_MAX:
            return clean(self._plain(node)[:most])
        return f"{clean(self.text_of(node, most))} ... ({length:,} characters)"

    def searched(self, node: int) -> str:
        """Return the text of a scalar in which a search looks, empty for a container."""
        if self.is_container(node):
            return ""
        return self._plain(node) if self.length_of(node) <= SHOWN_MAX else self.text_of(node)

    def _plain(self, node: int) -> str:
        text = self.text_of(node)
        is_escaped = self._starts[node] >= 0 and self.kinds[node] == Kind.STRING and "\\" in text
        return json.dumps(unescaped(text), ensure_ascii=False) if is_escaped else text

    def name_of(self, node: int) -> str:
        """Return the name of a node for display, empty for the root."""
        name = self.names[node]
        return clean(name[:SHOWN_MAX]) if isinstance(name, str) else str(name)

    def children_of(self, node: int) -> Iterator[int]:
        """Yield the numbers of the children read so far."""
        at, end = node + 1, self.end_of(node)
        while at < end:
            yield at
            at = self.end_of(at)

    def path_of(self, node: int) -> str:
        """Return the path of a node, such as ``items[3].name``; the middle of a very long one is left out."""
        nodes = list[int]()
        while self._parents[node] >= 0:
            nodes.append(node)
            node = self._parents[node]
        nodes.reverse()
        left_out = len(nodes) - 2 * _PATH_SHOWN
        if left_out <= 0:
            return "".join(map(self._step_of, nodes)).removeprefix(".")
        begin, end = ("".join(map(self._step_of, some)) for some in (nodes[:_PATH_SHOWN], nodes[-_PATH_SHOWN:]))
        return f"{begin} ... {left_out:,} more ... {end}".removeprefix(".")

    def _step_of(self, node: int) -> str:
        name = self.name_of(node)
        return f"[{name}]" if self.kinds[self._parents[node]] == Kind.ARRAY else _step(name)


def unescaped(raw: str) -> str:
    """Return the value of a string in quotes; the characters between them if its escapes are invalid."""
    try:
        return str(json.loads(raw, strict=False)) if "\\" in raw else raw[1:-1]
    except ValueError:
        return raw[1:-1]


def _step(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"
