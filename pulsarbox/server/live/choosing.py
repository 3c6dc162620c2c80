"""Selection of the items in view: filtered, sorted, from an offset on; a few at a time.

Yields whenever the loop may serve others. Keeps only as many items as requested, unless the offset is far into a long
list.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

Key = Callable[[Any], Any]

FEW: Final = 2000
"""Maximum number of best items kept in one list; beyond it, all items are sorted as runs and merged."""
CHUNK: Final = 2000
"""Items per step if each is cheap."""
DEAR_CHUNK: Final = 100
"""Items per step if a value is computed for each."""
SHORT_FILTER: Final = 50
"""Characters of a cheap filter; the cost grows linearly beyond it."""


class Order(NamedTuple):
    """The sort order of items: unknown or inapplicable values come last in both directions."""

    key: Callable[[Any], Any]
    descending: bool = True


class Chosen(NamedTuple):
    """The selected items."""

    total: int
    matching: int
    things: list[Any]
    looked: int = 0
    """Steps taken to find them, including skipped items."""


def chunk_of(filter_text: str, *, dear: bool) -> int:
    """Return how many items to process per turn; ``dear`` if the key or the filter computes a value for each."""
    if dear:
        return DEAR_CHUNK
    return max(DEAR_CHUNK, CHUNK * SHORT_FILTER // max(len(filter_text), SHORT_FILTER))


def ranked(order: Order) -> Key:
    """Return a key function for a descending sort: numbers before texts before unknown values."""
    key = order.key
    return lambda thing: _rank(key(thing), order)


def _rank(value: Any, order: Order) -> Any:
    if value is None or value != value:
        return _NOTHING
    if isinstance(value, bool | int | float):
        return 2, (value if order.descending else -value)
    text = value if isinstance(value, str) else str(value)
    return 1, (text if order.descending else _Backwards(text))


_NOTHING: Final = (0, 0)
_NUMBERS: Final = frozenset({int, float, bool})
_TEXTS: Final = frozenset({str})


def placed(values: list[Any], order: Order, most: int) -> list[int]:
    """Return the indexes of the first ``most`` values in order; equal values keep their order.

    Pure numbers or pure texts, as in most columns, take a tenth of the time.
    """
    places: Iterable[int] = range(len(values))
    unknown: list[int] = []
    kinds = set(map(type, values))
    if type(None) in kinds:
        kinds.remove(type(None))
        unknown = [at for at, value in enumerate(values) if value is None]
        places = [at for at, value in enumerate(values) if value is not None]
    if kinds <= _NUMBERS:
        total = sum([values[at] for at in places]) if unknown else sum(values)
        plain = total == total  # NaN compares neither less nor greater
    else:
        plain = kinds == _TEXTS
    if not plain:
        return sorted(range(len(values)), key=lambda at: _rank(values[at], order), reverse=True)[:most]
    best = sorted(places, key=values.__getitem__, reverse=order.descending)[:most]
    return [*best, *unknown[: most - len(best)]]


class _Backwards:
    """A text with inverted order."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: "_Backwards") -> bool:
        return other.text < self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]  # never hashed


def choose(
    things: Iterable[Any],
    wanted: Callable[[Any], bool] | None,
    order: Order,
    window: tuple[int, int],
    *,
    at_once: int = CHUNK,
) -> Generator[None, None, Chosen]:
    """Select ``window`` (offset, count) of the items that pass the filter; yields after every ``at_once`` items.

    Equal items keep their order. None among the items counts as a skipped step. Sort keys are computed once per item.
    """
    offset, limit = window
    left: Iterator[Any] = iter(things)
    best: list[Any] = []
    values: list[Any] = []
    """Sort keys of ``best``."""
    runs: list[list[Any]] = []
    few = offset + limit <= FEW
    total = matching = looked = 0
    while some := list(islice(left, at_once)):
        looked += len(some)
        some = [thing for thing in some if thing is not None]
        total += len(some)
        if wanted is not None:
            some = [thing for thing in some if wanted(thing)]
        matching += len(some)
        if few:
            best, values = [*best, *some], [*values, *map(order.key, some)]
            places = placed(values, order, offset + limit)
            best, values = [best[at] for at in places], [values[at] for at in places]
        else:
            places = placed(list(map(order.key, some)), order, len(some))
            runs.append([some[at] for at in places])
        yield
    if few:
        return Chosen(total, matching, best[offset:], looked)
    found: list[Any] = []
    merged = islice(merge(*runs, key=ranked(order), reverse=True), offset + limit)
    while some := list(islice(merged, at_once)):
        found = [*found, *some][-limit:] if limit else []
        yield
    found = found[-max(0, min(limit, matching - offset)) :] if matching > offset else []
    return Chosen(total, matching, found, looked)
