"""The line of key hints: as many as fit, the most important ones first."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len

from pulsarbox.tui.actions.key_bindings import DEFAULT_KEYS, Keys
from pulsarbox.tui.widgets.bars import Part, hints

OPEN: Final = "open"
MARK: Final = "mark"
PRESSED: Final[Mapping[str, str]] = {OPEN: "enter", MARK: "space"}
"""Hints of keys of the focused widget, which are no actions of the screen; a click presses the key."""
_LAST: Final = ("back", "help", "quit")
_USUAL: Final[Mapping[str, str]] = {}


def hint_line(
    names: Sequence[str],
    more: Sequence[str],
    width: int,
    opens: str = "",
    first: int = 0,
    words: Mapping[str, str] = _USUAL,
    keys: Keys = DEFAULT_KEYS,
) -> list[Part]:
    """Return the hints of ``names``, and before the last ones those of ``more``, in its order, as far as they fit.

    The ``first`` names and the last ones are always shown. ``opens`` is the object that enter opens, if ``more``
    contains ``OPEN``: that hint follows the first names, and comes before all others in importance. ``words`` are those
    of actions that are called something else at the moment.
    """
    tail = next((at for at, name in enumerate(names) if name in _LAST), len(names))
    begin, end = _several(names[:first], words, keys), _several(names[tail:], words, keys)
    room = width - 1 - _width_of([*begin, *end])
    chosen = list[str]()
    opening = [name for name in more if name == OPEN]
    for name in (*opening, *names[first:tail], *(name for name in more if name != OPEN)):
        taken = _width_of(_hint(name, opens, words, keys))
        if taken > room:
            break
        chosen.append(name)
        room -= taken
    parts = [part for name in chosen for part in _hint(name, opens, words, keys)]
    return [(" ", "plain", ""), *begin, *parts, *end]


def _several(names: Sequence[str], words: Mapping[str, str], keys: Keys) -> list[Part]:
    return hints(names, words, keys)[1:]


def _hint(name: str, opens: str, words: Mapping[str, str], keys: Keys) -> list[Part]:
    if name in PRESSED:
        return [(PRESSED[name], "key", name), (f" {opens if name == OPEN else name}  ", "dim", name)]
    return _several([name], words, keys)


def _width_of(parts: Sequence[Part]) -> int:
    return sum(cell_len(text) for text, _, _ in parts)
