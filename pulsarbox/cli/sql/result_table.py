"""Rows as a table on the terminal, or one field per line if the terminal is too narrow."""

import shutil
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pulsarbox.cli.common.terminal_text import coloured
from pulsarbox.cli.sql.result_values import cell

PAGE: Final = 1000
"""Rows whose widths are adjusted together."""
_TEXT_MAX: Final = 60
_TEXT_MIN: Final = 12
"""Widths that texts are shortened to, if the table is wider than the terminal."""
_NULL: Final = "NULL"
Row = dict[str, Any]


class ResultTable:
    """Formatter of rows. The widths of the first page apply to the later ones."""

    def __init__(self, names: Sequence[str], width: int | None = None) -> None:
        """``width``: None for the terminal's."""
        self._names = list(names)
        self._width = shutil.get_terminal_size().columns if width is None else width
        self._widths: list[int] | None = None
        self._is_narrow = False
        self._count = 0

    def lines(self, rows: Sequence[Row]) -> Iterator[str]:
        """Yield the lines of some rows, with a header before the first ones."""
        cells = [[cell(row[name]) for name in self._names] for row in rows]
        if self._widths is None:
            self._widths = self._fitted(cells)
            self._right = [_are_numbers([row[name] for row in rows]) for name in self._names]
            if not self._is_narrow:
                yield coloured(self._joined(self._names).rstrip(), bold=True)
        for row, texts in zip(rows, cells, strict=True):
            self._count += 1
            if self._is_narrow:
                yield from self._record(row, texts)
            else:
                yield self._joined(texts, row).rstrip()

    def _fitted(self, cells: list[list[str]]) -> list[int]:
        widths = [max(map(len, column)) for column in zip(self._names, *cells, strict=True)]
        widths = [max(each, len(_NULL)) for each in widths]
        for most in (_TEXT_MAX, _TEXT_MAX // 2, _TEXT_MIN):
            if sum(widths) + 2 * (len(widths) - 1) <= self._width:
                return widths
            widths = [min(each, max(most, len(name))) for each, name in zip(widths, self._names, strict=True)]
        self._is_narrow = sum(widths) + 2 * (len(widths) - 1) > self._width
        return widths

    def _joined(self, texts: Sequence[str], row: Row | None = None) -> str:
        assert self._widths is not None
        parts = []
        for name, text, width, right in zip(self._names, texts, self._widths, self._right, strict=True):
            is_null = row is not None and row[name] is None
            shown = _shortened(_NULL if is_null else text, width)
            padded = shown.rjust(width) if right else shown.ljust(width)
            parts.append(coloured(padded, dim=True) if is_null else padded)
        return "  ".join(parts)

    def _record(self, row: Row, texts: Sequence[str]) -> Iterator[str]:
        width = max(map(len, self._names))
        yield coloured(f"row {self._count}", bold=True)
        for name, text in zip(self._names, texts, strict=True):
            shown = coloured(_NULL, dim=True) if row[name] is None else text
            yield f"  {name.ljust(width)}  {shown}".rstrip()


def _are_numbers(values: Sequence[Any]) -> bool:
    found = [each for each in values if each is not None]
    return bool(found) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in found)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
