"""The line of key hints: as many as fit, the most important ones first."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len

from pulsarbox.tui.widgets.bars import Part, hints

OPEN: Final = "open"
MARK: Final = "mark"
PRESSED: Final[Mapping[str, str]] = {OPEN: "enter", MARK: "space"}
"""Hints of keys of the focused widget, which are no actions of the screen; a click presses the key."""
_LAST: Final = ("back", "help", "quit")


def hint_line(names: Sequence[str], more: Sequence[str], width: int, opens: str = "", first: int = 0) -> list[Part]:
    """Return the hints of ``names``, and before the last ones those of ``more``, in its order, as far as they fit.

    ``opens`` is the object that enter opens, if ``more`` contains ``OPEN``. That hint follows the ``first`` names.
    """
    room = width - _width_of(hints(names))
    chosen = []
    for name in more:
        taken = _width_of(_hint(name, opens))
        if taken > room:
            break
        chosen.append(name)
        room -= taken
    tail = next((at for at, name in enumerate(names) if name in _LAST), len(names))
    parts = _several(names[:first])
    parts += _hint(OPEN, opens) if OPEN in chosen else []
    parts += _several(names[first:tail])
    for name in chosen:
        parts += _hint(name, opens) if name != OPEN else []
    return [(" ", "plain", ""), *parts, *_several(names[tail:])]


def _several(names: Sequence[str]) -> list[Part]:
    return hints(names)[1:] if names else []


def _hint(name: str, opens: str) -> list[Part]:
    if name in PRESSED:
        return [(PRESSED[name], "key", name), (f" {opens if name == OPEN else name}  ", "dim", name)]
    return _several([name])


def _width_of(parts: Sequence[Part]) -> int:
    return sum(cell_len(text) for text, _, _ in parts)
