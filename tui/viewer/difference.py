"""Differences of two documents by field: what was added, removed and changed. Order of fields is no difference."""

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from pulsarbox.tui.viewer.document import Document, Kind

CHANGES_MAX: Final = 10_000
"""Maximum number of differences to find."""
_NODES: Final = 256
"""Nodes compared between two pauses."""


class Difference(NamedTuple):
    """One difference, with the nodes in both documents; -1 where there is none."""

    before: int
    after: int

    @property
    def sign(self) -> str:
        """``+`` for an addition, ``-`` for a removal, ``~`` for a change."""
        return "+" if self.before < 0 else "-" if self.after < 0 else "~"


def digests(document: Document) -> Iterator["array[int] | None"]:
    """Yield a hash of each node with its descendants, at last; before it, None for pauses."""
    found = array("q", bytes(8 * len(document)))
    for node in range(len(document) - 1, -1, -1):
        if node % _NODES == 0:
            yield None
        kind = document.kinds[node]
        # An open sum: children come first in this order, and have added themselves to their container.
        own = found[node] if document.is_container(node) else hash(document.searched(node))
        found[node] = hash((kind, document.size_of(node) if kind <= Kind.ARRAY else 0, own))
        parent = document.parent_of(node)
        if parent >= 0:
            part = hash((document.names[node], found[node]))
            found[parent] = _wrapped(found[parent] + part)
    yield found


def _wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def differences(first: Document, second: Document) -> Iterator[Difference | None]:
    """Yield the differences in the order of the first document, and None for pauses."""
    if not len(first) or not len(second):
        if len(first) or len(second):
            yield Difference(0 if len(first) else -1, 0 if len(second) else -1)
        return
    sums = []
    for document in (first, second):
        for digest in digests(document):
            if digest is None:
                yield None
            else:
                sums.append(digest)
    yield from _Comparison(first, second, sums[0], sums[1]).changes()


class _Comparison:
    def __init__(self, first: Document, second: Document, ones: "array[int]", twos: "array[int]") -> None:
        self._first = first
        self._second = second
        self._ones = ones
        self._twos = twos

    def changes(self) -> Iterator[Difference | None]:
        pending = [Difference(0, 0)]
        found = steps = 0
        while pending and found < CHANGES_MAX:
            steps += 1
            if steps % _NODES == 0:
                yield None
            change = pending.pop()
            if change.sign != "~":
                found += 1
                yield change
                continue
            one, two = change
            if self._ones[one] == self._twos[two]:
                continue
            kind = self._first.kinds[one]
            if kind != self._second.kinds[two] or kind > Kind.ARRAY:
                found += 1
                yield change
                continue
            inner: list[Difference] = []
            for each in self._objects(one, two) if kind == Kind.OBJECT else self._arrays(one, two):
                if each is None:
                    yield None
                else:
                    inner.append(each)
            pending += reversed(inner)

    def _objects(self, one: int, two: int) -> Iterator[Difference | None]:
        """Pair the fields of two objects by name. Of a repeated name, the last field counts."""
        theirs: dict[str | int, int] = {}
        for child in self._second.children_of(two):
            yield None
            theirs[self._second.names[child]] = child
        mine: dict[str | int, int] = {}
        for child in self._first.children_of(one):
            yield None
            mine[self._first.names[child]] = child
        for name, child in mine.items():
            yield Difference(child, theirs.get(name, -1))
        for name, child in theirs.items():
            if name not in mine:
                yield Difference(-1, child)

    def _arrays(self, one: int, two: int) -> Iterator[Difference | None]:
        """Pair the elements of two arrays, without equal ones at the beginning and at the end."""
        mine, theirs = list[int](), list[int]()
        for document, node, children in ((self._first, one, mine), (self._second, two, theirs)):
            for child in document.children_of(node):
                yield None
                children.append(child)
        begin, end = 0, 0
        least = min(len(mine), len(theirs))
        while begin < least and self._ones[mine[begin]] == self._twos[theirs[begin]]:
            yield None
            begin += 1
        while end < least - begin and self._ones[mine[-1 - end]] == self._twos[theirs[-1 - end]]:
            yield None
            end += 1
        left, right = mine[begin : len(mine) - end], theirs[begin : len(theirs) - end]
        for at in range(max(len(left), len(right))):
            yield Difference(left[at] if at < len(left) else -1, right[at] if at < len(right) else -1)
