"""A pager over lines that are computed when they come into view: with a cursor, wrapping, and highlighted matches."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.viewer.lines import HexLines, LinePart, Lines, TextLines
from pulsarbox.tui.widgets.styles import ColorNames, Looks
from pulsarbox.tui.widgets.table import CURSOR_KEYS
from pulsarbox.tui.widgets.wrapping import breaks

SHIFT_MAX: Final = 4000
"""Maximum number of characters to the left of the view."""
_WHEEL: Final = 3
_HANGING: Final = 4
"""Further indentation of the rows of a line after the first."""


class Pager(Looks, Widget, can_focus=True):
    """Lines of a message. The mark ``>`` shows the cursor."""

    DEFAULT_CSS = """
    Pager { height: 1fr; width: 1fr; }
    """
    looks: Mapping[str, ColorNames] = {
        "plain": ColorNames(),
        "dim": ColorNames("text-muted"),
        "name": ColorNames("text-primary"),
        "string": ColorNames("text-success"),
        "number": ColorNames("text-secondary"),
        "word": ColorNames("text-accent", bold=True),
        "mark": ColorNames("accent", bold=True),
        "found": ColorNames("background", "warning", bold=True, underline=True),
        "marked": ColorNames("text-accent", "marked-background", underline=True),
        "found here": ColorNames("block-cursor-background", "block-cursor-foreground", bold=True, underline=True),
        "added": ColorNames("text-success"),
        "removed": ColorNames("text-error"),
        "changed": ColorNames("text-warning"),
        "cursor": ColorNames("block-cursor-foreground", "block-cursor-background", bold=True),
        "blurred": ColorNames(ground="blurred-background", bold=True),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *CURSOR_KEYS,
        Binding("shift+left", "shift(-1)", "Left", show=False, priority=True),
        Binding("shift+right", "shift(1)", "Right", show=False, priority=True),
    ]

    class Moved(Message):
        """The cursor is on another line."""

    class Divided(Message):
        """Text or bytes are divided into other lines, because the width or the wrapping has changed."""

    class Chosen(Message):
        """The line of the cursor was clicked again."""

    def __init__(self, *, key: str | None = None) -> None:
        super().__init__(id=key)
        self.lines: Lines | None = None
        self.cursor: int | None = None
        self.is_wrapped = True
        self.searched = ""
        self.empty = ""
        """Text in place of lines if there are none."""
        self.has_cursor = True
        self._top: int | None = None
        self._skipped = 0
        """Rows of the top line above the view."""
        self._shift = 0
        self._rows: list[tuple[int, list[LinePart]]] | None = None

    def show(self, lines: Lines | None, cursor: int | None = None) -> None:
        """Show other lines, from the beginning or around a line. Text and bytes have a line at each place."""
        self.lines, self._skipped, self._shift = lines, 0, 0
        self._top = None if lines is None else lines.first
        self.cursor = self._top
        self.highlight(self.searched)
        self._fit()
        if cursor is not None:
            self.point(cursor)
        self.changed()

    def _fit(self) -> bool:
        """Divide text or bytes into rows of the width of the view, and stay at the same place.

        Return whether they were divided in another way before.
        """
        lines = self.lines
        if not isinstance(lines, TextLines | HexLines) or not self.size.width:
            return False
        is_other = lines.fit(self._room if self.is_wrapped or isinstance(lines, HexLines) else 0)
        if is_other:
            self._top, self.cursor = (None if at is None else lines.at(at) for at in (self._top, self.cursor))
        return is_other

    def _fit_again(self) -> None:
        if self._fit() and self.has_cursor:
            self.post_message(self.Divided())

    def highlight(self, text: str) -> None:
        """Highlight a text from now on, empty for none."""
        self.searched = text
        if isinstance(self.lines, HexLines):
            self.lines.searched = text.encode("utf-8", "replace")
        self.changed()

    def changed(self) -> None:
        """Draw again, because lines have been added, folded or unfolded."""
        if self._top is None and self.lines is not None:
            self._top = self.cursor = self.lines.first
        self._rows = None
        self.refresh()

    # Moving

    def point(self, line: int) -> None:
        """Move the cursor to a line and scroll it into view."""
        self.cursor = self.lines.at(line) if isinstance(self.lines, TextLines | HexLines) else line
        self._into_view()
        self.changed()
        if self.has_cursor:  # a pager without one follows another, which would follow it in turn
            self.post_message(self.Moved())

    def action_move(self, by: int) -> None:
        """Move the cursor by lines; within a line longer than the view, scroll by rows."""
        if self.lines is None or self.cursor is None or self._scrolled_inside(by):
            return
        at = self.cursor
        for _ in range(abs(by)):
            found = self.lines.after(at) if by > 0 else self.lines.before(at)
            if found is None:
                break
            at = found
        self.point(at)

    def _scrolled_inside(self, by: int) -> bool:
        """Scroll in the line of the cursor if the view shows only a part of it. Return whether that was possible."""
        if self.cursor != self._top or self.cursor is None:
            return False
        if by < 0 and self._skipped:
            self._skipped -= 1
        elif by > 0 and self._height_of(self.cursor) - self._skipped > self.size.height:
            self._skipped += 1
        else:
            return False
        self.changed()
        return True

    def action_page(self, by: int) -> None:
        """Move the cursor by pages."""
        lines = len({line for line, _ in self.rows})
        self.action_move(by * max(lines - 1, 1))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or last line."""
        if self.lines is not None:
            at = self.lines.last if end else self.lines.first
            if at is not None:
                self.point(at)

    def action_shift(self, by: int) -> None:
        """Scroll sideways, unless lines are wrapped."""
        if not self.is_wrapped:
            self._shift = min(max(self._shift + by * max(self.size.width // 2, 1), 0), SHIFT_MAX)
            self.changed()

    def wrap(self) -> None:
        """Start or stop wrapping lines."""
        self.is_wrapped, self._shift, self._skipped = not self.is_wrapped, 0, 0
        self._fit_again()
        if self.cursor is not None:
            self.point(self.cursor)

    def _into_view(self) -> None:
        if self.lines is None or self.cursor is None or self._top is None:
            return
        if self.cursor <= self._top:
            self._top, self._skipped = self.cursor, 0
            return
        room = self.size.height + self._skipped
        at: int | None = self._top
        while room > 0 and at is not None and at < self.cursor:
            room -= self._height_of(at)
            at = self.lines.after(at)
        if at == self.cursor and self._height_of(self.cursor) <= room:
            return
        self._end_at(self.cursor)

    def _end_at(self, line: int) -> None:
        """Scroll so that a line is the last one in view."""
        assert self.lines is not None
        self._top, self._skipped = line, 0
        room = self.size.height - self._height_of(line)
        while (before := self.lines.before(self._top)) is not None and room >= self._height_of(before):
            room -= self._height_of(before)
            self._top = before

    # Drawing

    def _height_of(self, line: int) -> int:
        return len(self._drawn(line)) if self.is_wrapped else 1

    @property
    def _room(self) -> int:
        return max(self.size.width - 2, 1)

    def _drawn(self, line: int) -> list[list[LinePart]]:
        """Return the rows of a line."""
        assert self.lines is not None
        if self.is_wrapped:
            return wrapped(self.lines.pieces(line, SHIFT_MAX), self._room)
        return [self.lines.pieces(line, self._shift + self._room)]

    @property
    def rows(self) -> list[tuple[int, list[LinePart]]]:
        """The rows in view, each with its line."""
        if self._rows is None:
            self._rows = self._laid_out()
        return self._rows

    def _laid_out(self) -> list[tuple[int, list[LinePart]]]:
        found = list[tuple[int, list[LinePart]]]()
        at, skipped = self._top, self._skipped
        while self.lines is not None and at is not None and len(found) < self.size.height:
            found += [(at, row) for row in self._drawn(at)[skipped:]]
            at, skipped = self.lines.after(at), 0
        return found[: self.size.height]

    def on_resize(self) -> None:
        """Lay out again."""
        self._rows = None
        if not self.has_cursor and self.lines is not None:
            self._top = self.lines.first  # it was placed before its height was known, if it was hidden
        self._fit_again()
        self._into_view()
        self.changed()

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        width = self.size.width
        if y >= len(self.rows):
            told = self.empty if y == 0 and self.lines is not None and self.lines.first is None else ""
            return Strip([Segment(f"  {told}", self.look("dim"))]).adjust_cell_length(width, self.rich_style)
        line, pieces = self.rows[y]
        is_here = self.has_cursor and line == self.cursor
        is_focused = is_here and self.has_focus
        base = self.look("cursor" if is_focused else "blurred") if is_here else self.rich_style
        found = self.look("found here" if is_focused else "found")
        segments = [
            Segment(piece.text, found if piece.look == "found" else base if is_here else self.look(piece.look))
            for piece in (pieces if isinstance(self.lines, HexLines) else highlighted(pieces, self.searched))
        ]
        strip = Strip(segments)
        if self._shift:
            strip = strip.crop(self._shift, self._shift + self._room)
        first = y == 0 or self.rows[y - 1][0] != line
        mark = Segment("> " if is_here and first else "  ", base)
        return Strip([mark, *strip]).adjust_cell_length(width, base)

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a line; a click on the line of the cursor chooses it."""
        if event.y < len(self.rows):
            line = self.rows[event.y][0]
            if line == self.cursor:
                self.post_message(self.Chosen())
            else:
                self.point(line)

    def on_mouse_scroll_down(self) -> None:
        """Move the cursor down."""
        self.action_move(_WHEEL)

    def on_mouse_scroll_up(self) -> None:
        """Move the cursor up."""
        self.action_move(-_WHEEL)


def wrapped(pieces: Sequence[LinePart], width: int) -> list[list[LinePart]]:
    """Break a line into rows of a width in cells, between words where possible.

    Rows after the first are indented more, where there is room.
    """
    first = pieces[0].text if pieces else ""
    hanging = min(len(first) + _HANGING, width // 3) if first.isspace() else 0
    ends = breaks("".join(piece.text for piece in pieces), width, width - hanging)
    rows, at = [list[LinePart]()], 0
    for piece in pieces:
        start = at
        at += len(piece.text)
        for end in (*(each for each in ends if start <= each < at), at):
            if end > start:
                rows[-1].append(LinePart(piece.text[start - at : end - at or None], piece.look))
            if end < at:
                rows.append([LinePart(" " * hanging)] if hanging else [])
            start = end
    return rows


def highlighted(pieces: Sequence[LinePart], text: str) -> list[LinePart]:
    """Split pieces so that occurrences of a text have the look ``found``, regardless of case."""
    if not text:
        return list(pieces)
    low, found = text.lower(), list[LinePart]()
    for piece in pieces:
        folded = piece.text.lower()
        if len(folded) != len(piece.text):  # some letters have another length in lower case
            folded = piece.text
        start = 0
        while (at := folded.find(low, start)) >= 0:
            found += [LinePart(piece.text[start:at], piece.look), LinePart(piece.text[at : at + len(text)], "found")]
            start = at + len(text)
        found.append(LinePart(piece.text[start:], piece.look))
    return [piece for piece in found if piece.text]
