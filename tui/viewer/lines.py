"""Lines of a message's contents, addressed by number, so that only the visible ones are computed."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Final, NamedTuple, Protocol

from pulsarbox.cleaning import clean, hex_rows
from pulsarbox.tui.widgets.wrapping import breaks

LINE: Final = 400
"""Maximum number of bytes of one line of text; longer lines continue on the next."""
_BACK: Final = 80
"""Number of bytes at the end of such a line of which the last blank ends it, so that words remain whole."""
BLOCK: Final = 16 << 10
"""Maximum number of bytes that are divided into rows at once, so that a row of a huge line is found in bounded time."""
_KEPT: Final = 16
"""Number of blocks whose rows are kept."""
_NEWLINE: Final = 10
_CONTINUES: Final = re.compile(rb"[\x80-\xbf]")
_WINDOW: Final = 1 << 16
"""Bytes searched between two pauses."""
HEX_WIDTHS: Final = (32, 16, 8, 4)
"""Numbers of bytes in a row of a dump."""


class LinePart(NamedTuple):
    """A part of a line."""

    text: str
    look: str = "plain"


class Lines(Protocol):
    """Lines that are numbered in order, but not consecutively."""

    @property
    def first(self) -> int | None:
        """The first line, None without any."""

    @property
    def last(self) -> int | None:
        """The last line, None without any."""

    def after(self, at: int) -> int | None:
        """Return the line after a line, None at the end."""

    def before(self, at: int) -> int | None:
        """Return the line before a line, None at the beginning."""

    def pieces(self, at: int, room: int) -> list[LinePart]:
        """Return a line for display; at least its first ``room`` characters."""

    def share(self, at: int) -> float:
        """Return how far a line is from the beginning, from 0 to 1."""

    def found(self, text: str) -> Iterator[int | None]:
        """Search for a text in all lines, regardless of case. Yields lines in order, and None between them."""


class TextLines:
    """Lines of UTF-8 text, each numbered by the position of its first byte. Other bytes appear as escapes.

    Long lines of the text are divided into parts of ``LINE`` bytes; once fitted to a width, into rows of that width.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._width = 0
        self._kept: dict[int, list[int]] = {}
        """Beginnings of the rows of some blocks, by the beginning of the block."""

    def fit(self, width: int) -> bool:
        """Divide lines at words into rows of a width in cells; 0: into long parts. Return whether this is a change."""
        if width == self._width:
            return False
        self._width = width
        self._kept.clear()
        return True

    @property
    def _part(self) -> int:
        """Maximum number of bytes that are divided at once, independently of what precedes them."""
        return BLOCK if self._width else LINE

    @property
    def first(self) -> int | None:
        """See Lines."""
        return 0 if self._data else None

    @property
    def last(self) -> int | None:
        """See Lines."""
        return self.at(len(self._data)) if self._data else None

    def at(self, place: int) -> int:
        """Return the line with a byte."""
        part = self._part_at(place)
        if not self._width:
            return part
        rows = self._rows(part)
        return rows[bisect_right(rows, place) - 1]

    def _part_at(self, place: int) -> int:
        """Return the beginning of the part with a byte."""
        data = self._data
        if place >= len(data) and not data.endswith(b"\n"):
            place = max(len(data) - 1, 0)
        start = data.rfind(b"\n", 0, place) + 1
        for number in range((place - start) // self._part + 1, 0, -1):
            cut = self._cut(start, number)
            if cut <= place and self._is_longer(place, start + number * self._part):
                return cut
        return start

    def _rows(self, part: int) -> list[int]:
        """Return where the rows of a part begin."""
        rows = self._kept.get(part)
        if rows is None:
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            rows = self._kept[part] = _rows_in(
                self._data[part : self._part_end(part)].removesuffix(b"\r"), part, self._width
            )
        return rows

    def _is_longer(self, place: int, end: int) -> bool:
        """Return whether the line of text with a byte extends beyond ``end``."""
        return end < len(self._data) and self._data.find(b"\n", place, end + 1) < 0

    def _cut(self, start: int, number: int) -> int:
        """Return where a part of a long line begins: behind a blank, else at no byte that continues a character."""
        at = start + number * self._part
        blank = max(self._data.rfind(each, at - _BACK, at) for each in (b" ", b"\t"))
        if blank >= 0:
            return blank + 1
        for back in range(4):
            if not _CONTINUES.match(self._data, at - back):
                return at - back
        return at

    def after(self, at: int) -> int | None:
        """See Lines."""
        end = self._end(at)
        if end >= len(self._data):
            return None
        return end + 1 if self._data[end] == _NEWLINE else end

    def _end(self, at: int) -> int:
        """Return the position behind the last byte of a line."""
        if not self._width:
            return self._part_end(at)
        part = self._part_at(at)
        rows = self._rows(part)
        following = bisect_right(rows, at)
        return rows[following] if following < len(rows) else self._part_end(part)

    def _part_end(self, at: int) -> int:
        """Return the position behind the last byte of a part."""
        start = self._data.rfind(b"\n", 0, at) + 1
        number = (at - start + _BACK - 1) // self._part + 1
        newline = self._data.find(b"\n", at, at + self._part + _BACK)
        end = len(self._data) if newline < 0 else newline
        return end if end <= start + number * self._part else self._cut(start, number)

    def before(self, at: int) -> int | None:
        """See Lines."""
        return self.at(at - 1) if at else None

    def pieces(self, at: int, room: int) -> list[LinePart]:
        """See Lines."""
        text = self._data[at : self._end(at)].decode("utf-8", "backslashreplace")
        return [LinePart(clean(text.removesuffix("\r")))]

    def share(self, at: int) -> float:
        """See Lines."""
        return at / max(len(self._data), 1)

    def found(self, text: str) -> Iterator[int | None]:
        """See Lines. Ignores the case of ASCII letters only."""
        return _lines_with(self._data, text, self.at)


class HexLines:
    """Lines of a hex dump, each numbered by its first byte. Once fitted to a width, they have as many bytes as fit."""

    def __init__(self, data: bytes, width: int = 16) -> None:
        """``width`` is one of ``HEX_WIDTHS``."""
        self._data = data
        self._width = width
        self.marked: tuple[int, int] | None = None
        """First byte, and the one after the last, of a value to mark."""
        self.searched = b""
        """Bytes to highlight, regardless of the case of ASCII letters."""

    def fit(self, width: int) -> bool:
        """Use the longest rows that fit into so many cells. Return whether this is a change."""
        was = self._width
        self._width = next((each for each in HEX_WIDTHS if hex_columns(each) <= width), HEX_WIDTHS[-1])
        return self._width != was

    @property
    def first(self) -> int | None:
        """See Lines."""
        return 0 if self._data else None

    @property
    def last(self) -> int | None:
        """See Lines."""
        return self.at(len(self._data) - 1) if self._data else None

    def at(self, place: int) -> int:
        """Return the line with a byte."""
        return place // self._width * self._width

    def after(self, at: int) -> int | None:
        """See Lines."""
        return at + self._width if at + self._width < len(self._data) else None

    def before(self, at: int) -> int | None:
        """See Lines."""
        return self.at(at - 1) if at else None

    def pieces(self, at: int, room: int) -> list[LinePart]:
        """See Lines."""
        rows = list(hex_rows(self._data[at : at + self._width]))
        cells = "  ".join(row.hex for row in rows)
        end = _cell(self._width - 1, 3) + 2
        text, looks = "".join(row.text for row in rows), self._looks(at)
        parts = [LinePart(f"{at:06x}  ", "dim"), *_with_looks(cells[:end].ljust(end), looks, 3), LinePart("  ")]
        return [*parts, *_with_looks(text.ljust(self._width), looks, 1)]

    def _looks(self, at: int) -> list[str]:
        """Return the look of each byte of a row."""
        looks = ["plain"] * self._width
        if self.marked is not None:
            first, last = (min(max(place - at, 0), self._width) for place in self.marked)
            looks[first:last] = ["marked"] * (last - first)
        length = len(self.searched)
        begin = max(at - length + 1, 0)  # a match may begin in a row above, and end in one below
        for place in places_of(self._data[begin : at + self._width + length - 1], self.searched):
            if place is not None:
                first, last = max(begin + place - at, 0), min(begin + place - at + length, self._width)
                looks[first:last] = ["found"] * (last - first)
        return looks

    def share(self, at: int) -> float:
        """See Lines."""
        return at / max(len(self._data), 1)

    def found(self, text: str) -> Iterator[int | None]:
        """See Lines. Ignores the case of ASCII letters only."""
        return _lines_with(self._data, text, self.at)


def hex_columns(width: int) -> int:
    """Return the cells of a row of a dump with so many bytes."""
    return len("000000  ") + _cell(width - 1, 3) + 2 + len("  ") + width


def _with_looks(text: str, looks: Sequence[str], each: int) -> list[LinePart]:
    """Split the cells of a row of bytes by their looks; ``each`` is the width of a cell."""
    parts, place, byte = list[LinePart](), 0, 0
    for look, some in groupby(looks):
        begin, byte = byte, byte + len(list(some))
        if look != "plain":
            start, end = _cell(begin, each), _cell(byte - 1, each) + (each + 1) // 2
            parts += [LinePart(text[place:start]), LinePart(text[start:end], look)]
            place = end
    return [part for part in (*parts, LinePart(text[place:])) if part.text]


def _rows_in(data: bytes, start: int, width: int) -> list[int]:
    """Return where the rows of a part of a line begin, which begins at ``start``."""
    text = data.decode("utf-8", "surrogateescape")
    shown = clean(data.decode("utf-8", "backslashreplace"))
    if shown == text:
        places, found = breaks(text, width, width), [start]
        for begin, end in pairwise([0, *places]):
            found.append(found[-1] + len(text[begin:end].encode()))
        return found
    return _rows_of_escapes(text, start, width)


def _rows_of_escapes(text: str, start: int, width: int) -> list[int]:
    """Return where rows begin, with characters that are shown as escapes, which remain whole."""
    raw = [each.encode("utf-8", "surrogateescape") for each in text]
    cells = [clean(each.decode("utf-8", "backslashreplace")) for each in raw]
    shown, ends = "".join(cells), list(accumulate(map(len, cells)))
    found, place, number = [start], 0, 0
    while following := breaks(shown[place : place + 3 * width], width, width):
        last = max(bisect_right(ends, place + following[0]), number + 1)
        if last == len(raw):
            break
        found.append(found[-1] + sum(map(len, raw[number:last])))
        number, place = last, ends[last - 1]
    return found


def _cell(number: int, each: int) -> int:
    """Return where the cell of a byte begins; groups of eight bytes in hex are one more space apart."""
    return number * each + (number // 8 if each > 1 else 0)


def _lines_with(data: bytes, text: str, line_of: Callable[[int], int]) -> Iterator[int | None]:
    """Yield the lines in which a text occurs, each once, and None between windows."""
    was = None
    for place in places_of(data, text.encode("utf-8", "replace")):
        line = None if place is None else line_of(place)
        if line is None or line != was:
            yield line
        was = line if line is not None else was


def places_of(data: bytes, wanted: bytes) -> Iterator[int | None]:
    """Yield the positions of some bytes, regardless of the case of ASCII letters, and None between windows."""
    if not wanted:
        return
    low = wanted.lower()
    for start in range(0, len(data), _WINDOW):
        window = data[start : start + _WINDOW + len(low) - 1].lower()
        at = window.find(low)
        while 0 <= at < _WINDOW:
            yield start + at
            at = window.find(low, at + len(low))
        yield None
