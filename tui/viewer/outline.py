"""A document as an outline whose containers fold: one line per value, without lines for closing brackets.

No list of lines is kept: neighbors are found from the document, so folding takes the same time in any document.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pulsarbox.tui.viewer.document import Document, Kind
from pulsarbox.tui.viewer.lines import LinePart

INDENTS_MAX: Final = 16
"""Levels that are indented; deeper ones show their depth instead."""
_BRIEF: Final = 5
"""Values shown of a folded container."""
_BRIEF_LENGTH: Final = 40
_SEARCHED: Final = 128
"""Nodes searched between two pauses."""
_LOOKS: Final = {Kind.STRING: "string", Kind.NUMBER: "number", Kind.WORD: "word"}
EVERYTHING: Final = 1 << 62
"""A depth below which nothing lies."""


class Outline:
    """Lines of a document, numbered by node. Containers from a depth on are folded, or not, with exceptions."""

    def __init__(self, document: Document, depth: int = EVERYTHING) -> None:
        """``depth`` is that from which containers are folded at first."""
        self.document = document
        self._depth = depth
        self._others: set[int] = set()
        """Containers that are not folded as their depth says."""

    # Folding

    def is_folded(self, node: int) -> bool:
        """Return whether a container is folded."""
        return (self.document.depths[node] >= self._depth) != (node in self._others)

    def toggle(self, node: int) -> int:
        """Fold or unfold a container. Return the node."""
        if self.document.is_container(node):
            self._others ^= {node}
        return node

    def fold(self, node: int) -> int:
        """Fold a container, or the one around a scalar or folded container; return the node that is now folded."""
        if not self.document.is_container(node) or self.is_folded(node):
            node = max(self.document.parent_of(node), 0)
        if self.document.is_container(node) and not self.is_folded(node):
            self.toggle(node)
        return node

    def unfold(self, node: int) -> int:
        """Unfold a container. Return the node."""
        if self.document.is_container(node) and self.is_folded(node):
            self.toggle(node)
        return node

    def fold_all(self, node: int = 0) -> int:
        """Fold everything below the root. Return the folded node with this one."""
        self._depth, self._others = 1, set()
        return self.visible(node)

    def unfold_all(self, node: int = 0) -> int:
        """Unfold everything. Return the node."""
        self._depth, self._others = EVERYTHING, set()
        return node

    def reveal(self, node: int) -> None:
        """Unfold all containers around a node."""
        node = self.document.parent_of(node)
        while node >= 0:
            self.unfold(node)
            node = self.document.parent_of(node)

    def visible(self, node: int) -> int:
        """Return the node, or the outermost folded container around it."""
        found, at = node, self.document.parent_of(node)
        while at >= 0:
            found = at if self.is_folded(at) else found
            at = self.document.parent_of(at)
        return found

    # Lines

    @property
    def first(self) -> int | None:
        """See Lines."""
        return 0 if len(self.document) else None

    @property
    def last(self) -> int | None:
        """See Lines."""
        return self.visible(len(self.document) - 1) if len(self.document) else None

    def after(self, at: int) -> int | None:
        """See Lines."""
        document = self.document
        is_closed = document.is_container(at) and self.is_folded(at)
        found = document.end_of(at) if is_closed else at + 1
        return found if found < len(document) else None

    def before(self, at: int) -> int | None:
        """See Lines."""
        if at <= 0:
            return None
        document, found = self.document, at - 1
        node, around = at - 1, document.parent_of(at)
        while node > around:
            if document.is_container(node) and self.is_folded(node):
                found = node
            node = document.parent_of(node)
        return found

    def share(self, at: int) -> float:
        """See Lines."""
        return at / max(len(self.document), 1)

    def pieces(self, at: int, room: int) -> list[LinePart]:
        """See Lines."""
        document = self.document
        depth = document.depths[at]
        line = [LinePart("  " * min(depth, INDENTS_MAX))]
        if depth > INDENTS_MAX:
            line.append(LinePart(f"{depth}· ", "dim"))
        if document.is_container(at):
            line.append(LinePart("▸ " if self.is_folded(at) else "▾ ", "mark"))
        else:
            line.append(LinePart("  "))
        name = document.name_of(at)
        if document.parent_of(at) >= 0:
            is_item = document.kinds[document.parent_of(at)] == Kind.ARRAY
            line += [LinePart(name[:room], "dim" if is_item else "name"), LinePart(": ", "dim")]
        return [*line, *self._value(at, room)]

    def _value(self, at: int, room: int) -> list[LinePart]:
        document = self.document
        if not document.is_container(at):
            return [LinePart(document.shown(at, room), _LOOKS[Kind(document.kinds[at])])]
        size = document.size_of(at)
        is_object = document.kinds[at] == Kind.OBJECT
        count = f"{{{size:,}}}" if is_object else f"[{size:,}]"
        if not self.is_folded(at) or not size:
            return [LinePart(count, "dim")]
        return [LinePart(f"{count} ", "dim"), *self._brief(at, size)]

    def _brief(self, at: int, size: int) -> list[LinePart]:
        """Return the first values of a folded container."""
        document, line = self.document, list[LinePart]()
        is_object = document.kinds[at] == Kind.OBJECT
        children = list(islice(document.children_of(at), _BRIEF))
        for child in children:
            if line:
                line.append(LinePart(", ", "dim"))
            if is_object:
                line += [LinePart(document.name_of(child)[:_BRIEF_LENGTH], "name"), LinePart(": ", "dim")]
            line.append(self._short(child))
        return [*line, LinePart(", ...", "dim")] if size > len(children) else line

    def _short(self, node: int) -> LinePart:
        document = self.document
        if document.is_container(node):
            return LinePart("{...}" if document.kinds[node] == Kind.OBJECT else "[...]", "dim")
        text = document.shown(node, _BRIEF_LENGTH + 1)
        look = _LOOKS[Kind(document.kinds[node])]
        return LinePart(text if len(text) <= _BRIEF_LENGTH else f"{text[:_BRIEF_LENGTH]}...", look)

    def found(self, text: str) -> Iterator[int | None]:
        """See Lines. Finds names and values, also in folded containers."""
        document, low = self.document, text.lower()
        for node in range(len(document)):
            if node % _SEARCHED == 0:
                yield None
            name = document.names[node]
            if (isinstance(name, str) and low in name.lower()) or low in document.searched(node).lower():
                yield node
