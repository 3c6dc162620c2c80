"""A table of any number of rows that holds only the visible ones and draws line by line.

Textual's DataTable redraws everything on each change (55 ms for a busy screen); this table draws the visible lines in a
tenth of that. It tracks rows by identity: the cursor stays with its row while the order changes, and moves to no other
row if that leaves the view.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pulsarbox.tui.widgets.cell_text import fitted, split_blanks
from pulsarbox.tui.widgets.columns import (
    KINDS,
    TO_THE_RIGHT,
    UNREAD,
    Column,
    PlacedColumn,
    is_cut,
    is_unread,
    laid_out,
    widest,
    widest_numbers,
)
from pulsarbox.tui.widgets.empty_text import empty_lines
from pulsarbox.tui.widgets.styles import ColorNames, Looks

Row = Mapping[str, Any]
Identity = tuple[str, ...]


CURSOR_KEYS: Final[Sequence[BindingType]] = (
    Binding("up,k", "move(-1)", "Up", show=False, priority=True),
    Binding("down,j", "move(1)", "Down", show=False, priority=True),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False, priority=True),
    Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False, priority=True),
    Binding("home,g", "edge(0)", "First", show=False, priority=True),
    Binding("end,G", "edge(1)", "Last", show=False, priority=True),
)
"""Keys that move the cursor of a table or text."""

_BAR: Final = 1
"""Width of the scroll bar in cells."""
_KEPT: Final = {"good": None, "warn": None, "bad": None, "cool": None, "marked": None, "trend": 3.0}
"""Looks that stay on the row of the cursor, with the minimum contrast if it is not that of text (WCAG 2.2, 1.4.11)."""
_ALARMS: Final = ("warn", "bad")
"""Those that stay on their own background where that of the cursor would hide them."""


class Table(Looks, ScrollView, can_focus=True):
    """Rows under a fixed heading. Requests rows by ``Wanted`` and reports the cursor by ``Moved``."""

    DEFAULT_CSS = """
    Table { height: 1fr; scrollbar-gutter: stable; scrollbar-size-vertical: 1; overflow-x: hidden; }
    Table.panel { border: round $edge; border-title-color: $text; border-title-style: bold;
                  border-subtitle-color: $text-muted; }
    Table.panel:focus { border: heavy $edge-focus; }
    """
    looks: Mapping[str, ColorNames] = {
        "heading": ColorNames("text-muted", "panel", bold=True),
        "sorted": ColorNames("text", "panel", bold=True, underline=True),
        "cursor": ColorNames("block-cursor-foreground", "block-cursor-background", bold=True),
        "blurred": ColorNames(ground="blurred-background", bold=True),
        "marked": ColorNames("text-accent", bold=True),
        "marked row": ColorNames(ground="marked-background"),
        "plain": ColorNames(),
        "dim": ColorNames("text-disabled"),
        "good": ColorNames("text-success"),
        "warn": ColorNames("text-warning"),
        "bad": ColorNames("text-error", bold=True),
        "cool": ColorNames("text-secondary"),
        "trend": ColorNames("primary"),
        "command": ColorNames("text-accent", bold=True),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *CURSOR_KEYS,
        Binding("enter", "choose", "Open", show=False, priority=True),
        Binding("space", "mark", "Mark", show=False, priority=True),
    ]

    _own_style: Style | None = None
    _own_sides: tuple[list[Segment], list[Segment]] | None = None

    class Wanted(Message):
        """Rows that are not loaded came into view."""

    class Chosen(Message):
        """A row was opened with enter or a double click."""

        def __init__(self, table: "Table", row: Row) -> None:
            super().__init__()
            self.table = table
            self.row = row

    class Moved(Message):
        """The cursor moved to another row."""

    class Left(Message):
        """The cursor was moved above the first row."""

    class Sorting(Message):
        """A heading was clicked."""

        def __init__(self, column: Column) -> None:
            super().__init__()
            self.column = column

    def __init__(
        self, columns: Sequence[Column], identity: Sequence[str], *, key: str | None = None, classes: str = ""
    ) -> None:
        """``identity`` names the columns that identify a row."""
        super().__init__(id=key, classes=classes)
        self.columns = list(columns)
        self.sorted_by: tuple[str | None, bool] = (None, True)
        self.marked: dict[Identity, Row] = {}
        """Marked rows, also out of view, as they were when marked."""
        self.pointed: Row | None = None
        self.count = 0
        self.unknown: Mapping[str, str] = {}
        """Columns without known values, shown as ``?``, with the reason."""
        self.empty = ""
        """Text of an empty table."""
        self.shows_blurred_cursor = True
        """Whether the row of the cursor is marked while something else has the focus."""
        self._identity = tuple(identity)
        self._rows: Sequence[Row] = ()
        self._offset = 0
        self._cursor = 0
        self._shown_empty = ""
        self._subtitle = ""
        self._content: dict[str, int] = {}
        """Widths of the widest texts so far, by column. They only grow, so that columns do not move to and fro."""
        self._layout: tuple[tuple[int, int, str | None], list[PlacedColumn]] | None = None
        self._drawn_width: int | None = None
        """The width while lines are drawn."""
        self._row_styles: dict[tuple[str | None, Style], Style] = {}
        self._drawn: dict[int, tuple[object, Strip]] = {}
        """Rows as drawn by their lines in view, and all that they were drawn from."""

    # Rows

    def show(self, rows: Sequence[Row], offset: int, count: int) -> None:
        """Show rows from ``offset`` of ``count`` in total."""
        before = (self._rows, self._offset, self.count, self._cursor, self._shown_empty)
        self._rows, self._offset = rows, offset
        if count != self.count:
            self.count = count
            self.virtual_size = Size(self.size.width, count + 1)
        self._follow()
        self._measure(rows)
        if before[1:] != (self._offset, self.count, self._cursor, self.empty) or len(before[0]) != len(rows):
            self._shown_empty = self.empty
            self.refresh()
            return
        # do not send unchanged rows to the terminal again
        self.refresh_rows([offset + at for at, row in enumerate(rows) if row != before[0][at]])

    def _measure(self, rows: Sequence[Row]) -> None:
        """Lay out again if texts are wider than all before."""
        self._learn(widest((column for column, _, _ in self.laid_out), rows, self._content))
        if is_cut(self.laid_out, self._content):
            self._learn(widest_numbers((column for column, _, _ in self.laid_out), rows, self._content))

    def _learn(self, found: Mapping[str, int]) -> None:
        if any(self._content.get(key, -1) < wide for key, wide in found.items()):
            self._content |= found
            self._layout = None
            self.refresh()

    def set_subtitle(self, text: str) -> None:
        """Set the text at the lower edge. Only a new one: Textual then draws all rows again."""
        if text != self._subtitle:
            self._subtitle = self.border_subtitle = text

    def _follow(self) -> None:
        """Move the cursor with its row, and keep it on a row out of view."""
        if self.pointed is not None:
            wanted = self.identity(self.pointed)
            for at, each in enumerate(self._rows):
                if self.identity(each) == wanted:
                    self._cursor, self.pointed = self._offset + at, each
                    return
            if self.count and not (self.covers(self._cursor) and self._is_whole()):
                return
        self._cursor = min(self._cursor, max(self.count - 1, 0))
        row = self.row_at(self._cursor)
        if row is not None or not self.count:
            self.pointed = row
            self.post_message(self.Moved())

    def _is_whole(self) -> bool:
        return len(self._rows) >= self.count

    def identity(self, row: Row) -> Identity:
        """Return the identity of a row."""
        return tuple(str(row.get(key)) for key in self._identity)

    def row_at(self, index: int) -> Row | None:
        """Return a row if it is loaded, otherwise None."""
        at = index - self._offset
        return self._rows[at] if 0 <= at < len(self._rows) else None

    def covers(self, index: int) -> bool:
        """Return whether a row is loaded."""
        return self.row_at(index) is not None

    @property
    def cursor_in_view(self) -> bool:
        """Whether the row of the cursor is loaded at its position."""
        row = self.row_at(self._cursor)
        return row is not None and self.pointed is not None and self.identity(row) == self.identity(self.pointed)

    def at_edge(self, end: int) -> bool:
        """Return whether the cursor is on the first row (-1) or the last (1)."""
        return self._cursor == (0 if end < 0 else self.count - 1)

    @property
    def rows_below(self) -> int:
        """Number of rows below the cursor."""
        return max(self.count - 1 - self._cursor, 0)

    @property
    def chosen(self) -> list[Row]:
        """The marked rows, or else the row of the cursor."""
        return list(self.marked.values()) or ([self.pointed] if self.pointed is not None else [])

    def set_columns(self, columns: Iterable[Column]) -> None:
        """Set the columns and their order."""
        self.columns = list(columns)
        self._layout = None
        self.refresh()

    def reasons(self) -> list[tuple[str, str]]:
        """Return the titles of the shown columns with ``?`` at the cursor, and why their values are unknown."""
        row, found = self.pointed or {}, []
        for column, _, _ in self.laid_out:
            reason = self.unknown.get(column.key, "")
            if not reason and column.kind == "age" and is_unread(row.get(column.key), row):
                reason = UNREAD
            if reason:
                found.append((column.title, reason))
        return found

    # Moving

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        if by < 0 and self.at_edge(-1):
            self.post_message(self.Left())
        start = (
            self._cursor if self.cursor_in_view else self.scroll_offset.y + (0 if by > 0 else self._height() - 1) - by
        )
        self.point(start + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by pages."""
        self.point(self._cursor + by * self._height())

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or last row."""
        self.point(self.count - 1 if end else 0)

    def action_choose(self) -> None:
        """Open the row of the cursor."""
        if self.pointed is not None:
            self.post_message(self.Chosen(self, self.pointed))

    def action_mark(self) -> None:
        """Toggle the mark of the row, and move to the next."""
        if self.pointed is not None:
            mine = self.identity(self.pointed)
            if self.marked.pop(mine, None) is None:
                self.marked[mine] = self.pointed
            self.action_move(1)

    def point(self, index: int) -> None:
        """Move the cursor to a row and scroll it into view."""
        if not self.count:
            return
        self._cursor = min(max(index, 0), self.count - 1)
        self._into_view()
        self.pointed = self.row_at(self._cursor)
        self.refresh()
        self.post_message(self.Moved() if self.pointed is not None else self.Wanted())

    def seek(self, values: Row) -> bool:
        """Move the cursor to the first loaded row with these values. Return whether there is one."""
        for at, row in enumerate(self._rows):
            if all(row.get(key) == value for key, value in values.items()):
                self.point(self._offset + at)
                return True
        return False

    def shift_view(self, by: int) -> None:
        """Scroll by as many rows as were inserted before the view, which then shows the same rows as before."""
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, immediate=True, force=True)

    def _into_view(self) -> None:
        top, height = self.scroll_offset.y, self._height()
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, immediate=True, force=True)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, immediate=True, force=True)

    def _height(self) -> int:
        return max(self.size.height - 1, 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """See textual.widget.Widget."""
        super().watch_scroll_y(old_value, new_value)
        last = min(int(new_value) + self._height(), self.count) - 1
        if self.count and not (self.covers(int(new_value)) and self.covers(last)):
            self.post_message(self.Wanted())

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        """Set the position of the bar when it appears, because Textual sets it only while the bar is visible."""
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y

    def on_resize(self, event: events.Resize) -> None:
        """Request rows, because more may be visible."""
        self._layout = None
        self.virtual_size = Size(event.size.width, self.count + 1)
        if self.cursor_in_view:
            self._into_view()
        self.post_message(self.Wanted())

    def on_click(self, event: events.Click) -> None:
        """Sort by a clicked heading, select a clicked row, and open it on a double click."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == 0:
            at = self._signs
            for column, width, gap in self.laid_out:
                at += width + gap
                if offset.x < at:
                    self.post_message(self.Sorting(column))
                    return
            return
        index = self.scroll_offset.y + offset.y - 1
        if index < self.count:
            self.point(index)
            if event.chain >= 2:
                self.action_choose()

    # Drawing

    @property
    def laid_out(self) -> list[PlacedColumn]:
        """The fitting columns and their widths. Without a size yet, assumes that of a panel as wide as the screen."""
        width, signs = self._across or self.app.size.width - 2, self._signs
        key = width, signs, self.sorted_by[0]
        if self._layout is None or self._layout[0] != key:
            self._layout = key, laid_out(self.columns, width - signs - _BAR, self.sorted_by[0], self._content)
        return self._layout[1]

    @property
    def _signs(self) -> int:
        """Cells before the first column: for the sign of the cursor, and for that of a mark while rows are marked."""
        return 2 if self.marked else 1

    @property
    def _across(self) -> int:
        """The width in cells."""
        return self._drawn_width if self._drawn_width is not None else self.size.width

    def render_lines(self, crop: Region) -> list[Strip]:
        """See textual.widget.Widget.

        Rows are drawn here: Textual's general drawing of borders and filters took more time than the cells of a row.
        """
        self._drawn_width = self.size.width  # once: computing it took a sixth of the time to draw a line
        try:
            top = self.styles.gutter.top + 1
            first, end = max(crop.y, top), min(crop.bottom, top + self._rows_in_view())
            if first >= end:
                return super().render_lines(crop)
            above = super().render_lines(Region(crop.x, crop.y, crop.width, first - crop.y))
            rows = [self._row_line(y - top).crop(crop.x, crop.right) for y in range(first, end)]
            return [*above, *rows, *super().render_lines(Region(crop.x, end, crop.width, crop.bottom - end))]
        finally:
            self._drawn_width = None

    def _rows_in_view(self) -> int:
        return min(self.size.height - 1, self.count - self.scroll_offset.y)

    def _row_line(self, line: int) -> Strip:
        """Return a row with the border beside it. ``line`` counts from the first row in view."""
        index = self.scroll_offset.y + line
        row, width = self.row_at(index), self._across
        is_marked = row is not None and self.identity(row) in self.marked
        state = row, self._is_here(index), self.has_focus, is_marked, self._signs, self.laid_out, self.unknown, width
        if (kept := self._drawn.get(line)) is None or kept[0] != state:
            left, right = self._sides
            cells = self._cells(index, row, width)
            self._drawn[line] = state, Strip([*left, *cells, *right], len(left) + width + len(right))
        return self._drawn[line][1]

    @property
    def _sides(self) -> tuple[list[Segment], list[Segment]]:
        """The border beside each line, as that of the heading."""
        if self._own_sides is None:
            gutter = self.styles.gutter
            heading = list(super().render_lines(Region(0, gutter.top, self.outer_size.width, 1))[0])
            self._own_sides = heading[: gutter.left], heading[len(heading) - gutter.right :]
        return self._own_sides

    def render_line(self, y: int) -> Strip:
        """See textual.scroll_view.ScrollView."""
        width = self._across
        if y == 0:
            return self._heading().adjust_cell_length(width, self.look("heading"))
        index = self.scroll_offset.y + y - 1
        if index >= self.count:
            said = self._hint() if not self.count else []
            text, look = said[y - 1] if y <= len(said) else ("", "dim")
            return Strip([Segment(f" {text}", self.look(look))]).adjust_cell_length(width, self._ground)
        return Strip(self._cells(index, self.row_at(index), width), width)

    def _hint(self) -> list[tuple[str, str]]:
        """Return the lines of the text of an empty table, with their looks."""
        return empty_lines(self.empty, max(self.size.width - 2, 1), self._height())

    def _heading(self) -> Strip:
        plain, hot = (self.look(name) for name in ("heading", "sorted"))
        segments = [Segment(" " * self._signs, plain)]
        key, descending = self.sorted_by
        for column, width, gap in self.laid_out:
            is_sorted = column.orders(key)
            text = column.title + (("▾" if descending else "▴") if is_sorted else "")
            before, word, behind = split_blanks(fitted(text, width, column.kind in TO_THE_RIGHT))
            segments += [Segment(before, plain), Segment(word, hot if is_sorted else plain)]
            segments.append(Segment(f"{behind}{' ' * gap}", plain))
        return Strip(segments)

    def _base(self, index: int, *, is_marked: bool) -> Style:
        if self._is_here(index):
            return self.look("cursor" if self.has_focus else "blurred")
        return self.look("marked row") if is_marked else self._ground

    def _is_here(self, index: int) -> bool:
        """Whether a row shows the cursor."""
        return index == self._cursor and self.cursor_in_view and (self.has_focus or self.shows_blurred_cursor)

    @property
    def _ground(self) -> Style:
        """The style of the widget, cached because computing it took a quarter of the time to draw a line."""
        if self._own_style is None:
            self._own_style = self.rich_style
        return self._own_style

    def notify_style_update(self) -> None:
        """See textual.dom.DOMNode."""
        self._own_style = self._own_sides = None
        self._row_styles.clear()
        self._drawn.clear()
        super().notify_style_update()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """See textual.widget.Widget."""
        if not regions:
            self._drawn.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _row_style(self, look: str | None, base: Style) -> Style:
        """Return the style of a cell in a row, filtered as Textual filters whole lines."""
        if (look, base) not in self._row_styles:
            style = self._on_row(look, base)
            segments = [Segment(" ", style)]
            for each in self.get_line_filters():
                segments = each.apply(segments, self.background_colors[1])
            self._row_styles[look, base] = segments[0].style or Style.null()
        return self._row_styles[look, base]

    def _on_row(self, look: str | None, base: Style) -> Style:
        if look is None:
            return base
        if base == self.look("cursor"):
            is_kept = look in _ALARMS or (look in _KEPT and self.is_legible_on(look, base, _KEPT[look]))
            return self.kept_on(look, base, _KEPT[look]) if is_kept else base
        return self.look(look) + Style(bgcolor=base.bgcolor, bold=base.bold)

    def _cells(self, index: int, row: Row | None, across: int) -> list[Segment]:
        """Draw a row over ``across`` cells, None for one that is not loaded."""
        is_marked = row is not None and self.identity(row) in self.marked
        base = self._base(index, is_marked=is_marked)
        if row is None:
            return [Segment(" ·".ljust(across), self._row_style("dim", base))]
        is_here = self._is_here(index)
        is_hot = is_here and self.has_focus
        told = row if isinstance(row, dict) else dict(row)
        signs = (">" if is_here else " ") + (("●" if is_marked else " ") if self.marked else "")
        # adjacent cells of one look are drawn and sent together
        runs: list[tuple[str | None, list[str]]] = [(None, [signs[:1]]), ("marked" if is_marked else None, [signs[1:]])]
        used = len(signs)
        for column, width, gap in self.laid_out:
            used += width + gap
            value = told.get(column.key)
            unknown = value is None and column.key in self.unknown
            text, look = ("?", "dim") if unknown else KINDS[column.kind](value, told, width)
            if is_marked and not (look or is_hot) and column is self.laid_out[0].column:
                look = "marked"
            wanted = None if is_hot and look not in _KEPT else look or "plain"
            cell = fitted(text, width, column.kind in TO_THE_RIGHT) + " " * gap
            if is_hot and wanted is not None:  # only the words have a background of their own
                blank, cell, behind = split_blanks(cell)
                runs += [(None, [blank]), (wanted, [cell]), (None, [behind])]
                continue
            if runs[-1][0] != wanted:
                runs.append((wanted, []))
            runs[-1][1].append(cell)
        segments = [Segment("".join(texts), self._row_style(look, base)) for look, texts in runs if any(texts)]
        if used < across:
            segments.append(Segment(" " * (across - used), self._row_style(None, base)))
        return segments if used <= across else list(Strip(segments, used).crop(0, across))

    def refresh_rows(self, indexes: Sequence[int]) -> None:
        """Redraw the visible ones of some rows."""
        first, room = self.scroll_offset.y, self.size.height - 1
        lines = [index - first + 1 for index in indexes if 0 <= index - first < room]
        # with the border, as whole lines need no cropping
        left, width = self.styles.gutter.left, self.outer_size.width
        if lines:
            self.refresh(*(Region(-left, line, width, 1) for line in lines))
