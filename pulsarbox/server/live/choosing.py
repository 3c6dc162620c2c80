"""Choosing: of many things those that pass a filter, in order, from one place on; a little at a time.

It yields wherever the loop may serve others in between. Only as many things are kept as are asked for, unless somebody
leafs far into a long list.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

Key = Callable[[Any], Any]

FEW: Final = 2000
"""So many are kept of what has been looked at; of more the whole is sorted, piece by piece."""
CHUNK: Final = 2000
"""Things at once that cost next to nothing each."""
DEAR_CHUNK: Final = 100
"""Things at once of which something has to be made."""
SHORT_FILTER: Final = 50
"""Characters of a filter that costs next to nothing; one of twice as many takes twice as long."""


class Order(NamedTuple):
    """How things are ordered: what is not known, or does not apply, comes last either way."""

    key: Callable[[Any], Any]
    descending: bool = True


class Chosen(NamedTuple):
    """What was chosen."""

    total: int
    matching: int
    things: list[Any]
    looked: int = 0
    """Steps that it took to find them, of those who look for the next too."""


def chunk_of(filter_text: str, *, dear: bool) -> int:
    """How many things may be looked at in one turn; ``dear``: for the key, or the filter, a value is made of each."""
    if dear:
        return DEAR_CHUNK
    return max(DEAR_CHUNK, CHUNK * SHORT_FILTER // max(len(filter_text), SHORT_FILTER))


def ranked(order: Order) -> Key:
    """A key by which the greatest comes first: numbers before texts before what is not known."""
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
    """The places of so many values as come first; of values that are equal as they came. Where they are numbers or
    texts, as in most columns, the interpreter has a tenth of the steps to do."""
    places: Iterable[int] = range(len(values))
    unknown: list[int] = []
    kinds = set(map(type, values))
    if type(None) in kinds:
        kinds.remove(type(None))
        unknown = [at for at, value in enumerate(values) if value is None]
        places = [at for at, value in enumerate(values) if value is not None]
    if kinds <= _NUMBERS:
        total = sum([values[at] for at in places]) if unknown else sum(values)
        plain = total == total  # else one of them is no number, and neither less nor more than any
    else:
        plain = kinds == _TEXTS
    if not plain:
        return sorted(range(len(values)), key=lambda at: _rank(values[at], order), reverse=True)[:most]
    best = sorted(places, key=values.__getitem__, reverse=order.descending)[:most]
    return [*best, *unknown[: most - len(best)]]


class _Backwards:
    """A text that is ordered the other way round."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: "_Backwards") -> bool:
        return other.text < self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]  # nobody keeps them


def choose(
    things: Iterable[Any],
    wanted: Callable[[Any], bool] | None,
    order: Order,
    window: tuple[int, int],
    *,
    at_once: int = CHUNK,
) -> Generator[None, None, Chosen]:
    """Of the things that are wanted those of ``window``, a place and how many from there. Things that are equal stay
    in the order in which they came; None among them is a step of somebody who looks for the next. Their values are
    made once each.

    ``at_once``: how many are looked at between two yields.
    """
    offset, limit = window
    left: Iterator[Any] = iter(things)
    best: list[Any] = []
    values: list[Any] = []
    """Of the best."""
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
