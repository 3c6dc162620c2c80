"""Tables as text, and their fit to a terminal."""

import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.cli.common.terminal_text import clean

_NO_TITLES: Final[Mapping[str, str]] = {}
_SIZE: Final = re.compile(r"[\d,.]+ (B|[KMG]iB)")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


_GAP: Final = "  "
_NAME: Final = re.compile(r"\S+")


class FittedTable(NamedTuple):
    """Lines of a table, and the columns that did not fit."""

    lines: list[str]
    hidden: list[str]


def terminal_width() -> int | None:
    """Return the columns of the terminal that is stdout; None if it is none, where a table may have any width."""
    if not sys.stdout.isatty():
        return None
    import shutil  # imports compression libraries

    return shutil.get_terminal_size().columns


def fitted(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    cut: Mapping[str, int],
    width: int | None,
    least: Sequence[str] = (),
) -> FittedTable:
    """Return a table of at most ``width`` characters, if that is possible.

    Shortens the texts of the columns in ``cut``, by no more than is needed and to no less than the given width each.
    Then hides columns: those in ``least``, in order but those without any value first, then the others from the right,
    likewise. The first column always stays. Shortened texts get the room that hidden columns leave.
    """
    drawn = {name: _Column(head_of(name, titles), [row.get(name) for row in rows]) for name in columns}
    natural = {name: each.width for name, each in drawn.items()}
    if width is None or _total(natural.values()) <= width:
        return FittedTable(_lines(drawn.values()), [])
    fewest = {
        name: min(each.width, max(cut[name], len(each.cells[0]))) if name in cut else each.width
        for name, each in drawn.items()
    }
    hidden = {}
    for name in _hideable(drawn, least):
        if _total(fewest.values()) <= width:
            break
        hidden[name] = fewest.pop(name)
    for name in reversed(hidden):  # those that fit after all because wider ones are hidden
        if not drawn[name].is_empty and _total([*fewest.values(), hidden[name]]) <= width:
            fewest[name] = hidden[name]
    for name, most in _widened(fewest, natural, width).items():
        drawn[name].shorten(most)
    shown = [name for name in columns if name in fewest]
    return FittedTable(_lines(drawn[name] for name in shown), [name for name in columns if name not in fewest])


class _Column:
    """A column as text: its title, then its cells."""

    def __init__(self, head: str, values: Sequence[Any]) -> None:
        self.cells = [head, *map(cell, values)]
        self.width = max(map(len, self.cells))
        self.is_empty = all(each == "-" for each in self.cells[1:])
        self._is_right_aligned = _is_right_aligned(values)

    def shorten(self, width: int) -> None:
        if width < self.width:
            self.cells = [shortened(each, width) for each in self.cells]
            self.width = width

    def padded(self) -> list[str]:
        return [each.rjust(self.width) if self._is_right_aligned else each.ljust(self.width) for each in self.cells]


def _lines(columns: Iterable[_Column]) -> list[str]:
    return [_GAP.join(line).rstrip() for line in zip(*(each.padded() for each in columns), strict=True)]


def _total(widths: Collection[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _hideable(drawn: Mapping[str, _Column], least: Sequence[str]) -> list[str]:
    """Return the columns that may be hidden, the least important one first."""
    others = list(drawn)[:0:-1]
    ranked = [name for name in least if name in others]
    empty = [name for name in others if drawn[name].is_empty]
    first = [name for name in empty if name in ranked or not ranked]
    return list(dict.fromkeys([*first, *ranked, *empty, *others]))


def _widened(fewest: Mapping[str, int], natural: Mapping[str, int], width: int) -> dict[str, int]:
    """Divide the room left by the fewest widths evenly among the columns whose texts need it."""
    widths = dict(fewest)
    while (room := width - _total(widths.values())) > 0:
        needy = [name for name in widths if widths[name] < natural[name]]
        if not needy:
            break
        for name in needy:
            more = min(max(room // len(needy), 1), natural[name] - widths[name], width - _total(widths.values()))
            widths[name] += more
    return widths


def shortened(value: str, width: int) -> str:
    """Return a text of at most ``width`` characters.

    Keeps the end of a path, both ends of a name or of a text with a qualified name, and the start of other texts.
    """
    if len(value) <= width:
        return value
    if value.startswith("/"):
        return f"…{value[1 - width :]}" if width > 1 else "…"
    if width > 2 and (_NAME.fullmatch(value) or "/" in value):
        end = (width - 1) // 2
        return f"{value[: width - 1 - end]}…{value[-end:]}"
    return f"{value[: width - 1]}…"


def table(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str] = _NO_TITLES
) -> list[str]:
    """Return the lines of a table: titled columns, numbers right-aligned."""
    return _lines([_Column(head_of(name, titles), [row.get(name) for row in rows]) for name in columns])


def head_of(name: str, titles: Mapping[str, str]) -> str:
    """Return the title of a column: that in ``titles``, or else the words of the field."""
    return titles.get(name) or title_of(name)


def title_of(name: str) -> str:
    """Return the title of a field: its words in capitals, ``SET BY`` for ``setBy`` and ``set_by``."""
    return _WORD_START.sub(" ", name).replace("_", " ").upper()


def _is_right_aligned(values: Sequence[object]) -> bool:
    """Return whether a column has numbers, sizes among them, and no other values but empty ones."""
    given = [value for value in values if value is not None and value != ""]
    return bool(given) and all(_is_number(value) for value in given)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return _SIZE.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: Any) -> str:
    """Format a value for a table cell."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, list | tuple):
        return clean(", ".join(map(str, value))) or "-"
    if isinstance(value, dict):
        return clean(", ".join(f"{name}={each}" for name, each in value.items())) or "-"
    return f"{value:,}" if isinstance(value, int) else clean(str(value))
