"""Wrapping at words: where to break a line, and texts whose rows continue below the last column of a line."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text
from textual.color import Color
from textual.geometry import Size
from textual.widgets import Static

from pulsarbox.tui.widgets import command_lines
from pulsarbox.tui.widgets.styles import ink_of

_COLUMN: Final = re.compile(r".*\s{2,}(?=\S)")
_AFTER: Final = (" ", " ,", " ,/", " ,/-._")
"""Signs after which a row may end, preferred first: inside of names only if a name has no room in a row."""
COMMAND_INDENT: Final = 2
"""Cells before the further rows of a command, which are no rows of a text of columns."""


def breaks(text: str, first: int, others: int) -> list[int]:
    """Return the offsets at which the rows of a text begin, except the first.

    The widths of the first and the other rows are in cells. A row ends behind a blank or, in a long name, behind one of
    its signs, unless the part between two signs is longer than a row.
    """
    found, start, room = list[int](), 0, first
    while (end := start + len(_head(text[start : start + max(room, 0)], room))) < len(text):
        if end == start and room >= others:
            end += 1  # a character wider than the row
        start = _word(text, start, end, others) if end > start else end
        found.append(start)
        room = others
    return found if not found or found[-1] < len(text) else found[:-1]


def rows_of(text: str, width: int, indent: int = 0) -> list[str]:
    """Return the rows of a text, of at most ``width`` cells; further rows begin behind ``indent`` blanks."""
    offsets = [0, *breaks(text, width, width - indent), len(text)]
    rows = [text[start:end].rstrip() for start, end in pairwise(offsets)]
    return [rows[0], *(f"{' ' * indent}{row}" for row in rows[1:])]


def rows_with_command(text: str, width: int, lines: int, sentence: int = 0) -> list[tuple[str, bool]]:
    """Return the rows of a text that may end with a command line, and whether each is one of the command.

    The command starts on a new row, below the sentences, which are wrapped at ``sentence`` cells if given. If ``lines``
    are too few for that, it ends the last row of the sentences. If not even that fits, only the first sentence is
    returned.
    """
    sentences, command = command_lines.parted(text)
    apart = [(row, False) for row in rows_of(sentences, min(width, sentence or width))]
    apart += [(row, True) for row in rows_of(command, width, COMMAND_INDENT)] if command else []
    if len(apart) <= lines:
        return apart
    rows = rows_of(text, width)
    if len(rows) > lines or command not in rows[-1]:
        rows = rows_of(command_lines.first_sentence(text), width)
    return [(row, False) for row in rows]


def _head(text: str, room: int) -> str:
    """Return the beginning of a text that fits into so many cells."""
    if text.isascii() or cell_len(text) <= room:
        return text
    return chop_cells(text, room)[0] if room > 1 else ""


def _word(text: str, start: int, end: int, others: int) -> int:
    """Return where the word at ``end`` begins, or ``end`` if no row has room for the whole word."""
    for signs in _AFTER:
        begin = max(text.rfind(sign, start, end) for sign in signs) + 1
        if begin > start and text[start:begin].strip() and cell_len(_until(signs, text, begin, others)) <= others:
            return begin
    return end


def _until(signs: str, text: str, begin: int, room: int) -> str:
    """Return the word from ``begin`` to the first of some signs; only its beginning if it is longer than ``room``."""
    part = text[begin : begin + room + 2]
    return part[: min((at for sign in signs if (at := part.find(sign)) >= 0), default=len(part))]


def hanging(text: Text, width: int, indent: int | None = None) -> Text:
    """Wrap lines of columns, two blanks apart, at a width in cells. Further rows begin below the last column.

    With an ``indent``, lines have no columns, and further rows begin behind so many cells.
    """
    lines = text.split("\n", allow_blank=True)
    return Text("\n").join(row for line in lines for row in _rows(line, width, indent))


def _rows(line: Text, width: int, indent: int | None) -> Iterator[Text]:
    begin = min(_last_column(line.plain) if indent is None else indent, width // 2)
    first, *others = line.divide(breaks(line.plain, width, width - begin))
    yield first
    for row in others:
        yield Text(" " * begin).append_text(row)


def _last_column(line: str) -> int:
    """Return where the last column of a line begins, in cells."""
    before = _COLUMN.match(line)
    return cell_len(before.group()) if before else 0


def named_style(style: str, ground: Color, variables: Mapping[str, str]) -> Style:
    """Return the style of a text with a color of the theme, such as ``bold $text-error``, on a background."""
    plain, _, name = style.partition("$")
    found = Style.parse(plain)
    return found + ink_of(variables, name, ground) if name else found


class HangingText(Static):
    """A text wrapped by :func:`hanging` at the width of the widget. Its styles may have colors of the theme."""

    def __init__(
        self, text: Text | str = "", indent: int | None = None, *, key: str | None = None, classes: str | None = None
    ) -> None:
        """``indent`` is that of :func:`hanging`."""
        super().__init__(text, id=key, classes=classes, markup=False)
        self.indent = indent

    def _wrapped(self, width: int) -> Text:
        text = self.content
        return hanging(text if isinstance(text, Text) else Text(str(text)), max(width, 1), self.indent)

    def render(self) -> Text:
        """See textual.widget.Widget."""
        text, ground = self._wrapped(self.content_size.width), self.background_colors[1]
        variables = self.app.theme_variables
        text.spans = [
            span._replace(style=named_style(span.style, ground, variables)) if isinstance(span.style, str) else span
            for span in text.spans
        ]
        return text

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See textual.widget.Widget."""
        return self._wrapped(width).plain.count("\n") + 1
