"""Conversion of a decoded value into a document, a little at a time and at any depth."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pulsarbox.tui.viewer.document import NODES_MAX, Document, Kind

NODES: Final = 256
"""Nodes added between two pauses."""


class ValueReader:
    """Reads one value into ``document``. Objects are mappings, and arrays are lists."""

    def __init__(self, value: Any, most: int = NODES_MAX) -> None:
        self.document = Document()
        self._value = value
        self._most = most

    def steps(self) -> Iterator[None]:
        """Read the value; the time between two values is short."""
        document = self.document
        parents: list[tuple[int, Iterator[tuple[str | int, Any]], int]] = []
        self._add("", self._value, -1, parents)
        while parents:
            if len(document) % NODES == 0:
                yield
            node, rest, size = parents[-1]
            if len(document) >= self._most:
                document.trouble = f"only the first {self._most:,} values are shown"
                rest = iter(())
            name, value = next(rest, (None, None))
            if name is None:
                parents.pop()
                document.close(node, size)
            else:
                self._add(name, value, node, parents)
        document.is_complete = True

    def _add(
        self, name: str | int, value: Any, parent: int, parents: list[tuple[int, Iterator[tuple[str | int, Any]], int]]
    ) -> None:
        document = self.document
        if isinstance(value, Mapping):
            rest: Iterator[tuple[str | int, Any]] = ((str(key), each) for key, each in value.items())
            parents.append((document.open(name, Kind.OBJECT, parent), rest, len(value)))
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            parents.append((document.open(name, Kind.ARRAY, parent), iter(enumerate(value)), len(value)))
        else:
            document.put(name, kind_of(value), parent, value)
            return
        document.count(parents[-1][0], len(value))


def kind_of(value: Any) -> Kind:
    """Return the type of a scalar."""
    if value is None or isinstance(value, bool):
        return Kind.WORD
    return Kind.NUMBER if isinstance(value, int | float) else Kind.STRING
