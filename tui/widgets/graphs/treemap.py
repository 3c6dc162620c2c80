"""A treemap: values as areas, largest first, with their names, and a cursor that follows a value by its name.

An area may be filled by a share of a limit, from left to right, as a gauge.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.widgets.columns import shortened
from pulsarbox.tui.widgets.empty_text import empty_lines
from pulsarbox.tui.widgets.numbers import percent
from pulsarbox.tui.widgets.styles import ColorNames, Looks

ASPECT: Final = 2
"""Height of a cell in widths of a cell."""
FULL: Final = 1.0
NEARLY_FULL: Final = 0.8
"""Shares from which a limit is used up, and nearly so."""
SIGNS: Final = {"hot": "!", "warm": "▲"}
"""Signs of shares, so that color carries no information alone."""
_LABEL_LEAST: Final = 5
"""Least width of a shortened name."""
_LEAST: Final = 1 + _LABEL_LEAST
"""Least width of an area, for its edge and a part of its name."""


class Area(NamedTuple):
    """The cells of a value."""

    number: int
    """Index of the value."""
    x: int
    y: int
    width: int
    height: int


def areas(values: Sequence[float], width: int, height: int) -> list[Area]:
    """Divide a rectangle of cells among positive values, given largest first. Values without room are left out.

    The values are split into two groups of about the same sum, side by side along the longer side, and so on.
    """
    found: list[Area] = []
    pending = [(0, sum(1 for value in values if value > 0), 0, 0, width, height)]
    while pending:
        first, last, x, y, broad, high = pending.pop()
        if last - first < 1 or broad < 1 or high < 1:
            continue
        if last - first == 1 or (broad < 2 * _LEAST and high < 2):
            found.append(Area(first, x, y, broad, high))
            continue
        middle, share = _half(values, first, last)
        if (broad >= ASPECT * high and broad >= 2 * _LEAST) or high < 2:
            part = min(max(round(broad * share), _LEAST), broad - _LEAST)
            sides = ((x, y, part, high), (x + part, y, broad - part, high))
        else:
            part = min(max(round(high * share), 1), high - 1)
            sides = ((x, y, broad, part), (x, y + part, broad, high - part))
        pending += [(middle, last, *sides[1]), (first, middle, *sides[0])]
    return found


def _half(values: Sequence[float], first: int, last: int) -> tuple[int, float]:
    """Return where to split values into two groups, and the share of the first group."""
    total, sum_before, at = sum(values[first:last]), values[first], first + 1
    while at < last - 1 and sum_before + values[at] <= total / 2:
        sum_before += values[at]
        at += 1
    return at, sum_before / total


class Others(NamedTuple):
    """Values that are too small to be given one by one."""

    number: int = 0
    value: float = 0
    """Their sum."""


NO_OTHERS: Final = Others()


def named(
    tiles: Sequence["Tile"], width: int, height: int, form: Callable[[float], str], others: Others = NO_OTHERS
) -> "Division":
    """Divide a rectangle of cells among tiles, largest first. Those without room for a name become one at the end.

    That one stands for ``others`` too. ``form`` formats its value. Without room even for that tile, names are left out.
    """
    low, high = 0, len(tiles)
    whole = _division(tiles, high, width, height, form, others)
    if _is_named(whole):
        return whole
    found: Division | None = None
    while low < high:
        middle = (low + high) // 2
        tried = _division(tiles, middle, width, height, form, others)
        if _is_named(tried):
            found, low = tried, middle + 1
        else:
            high = middle
    return found or whole


class Division(NamedTuple):
    """Tiles with their areas; the last one may stand for all further ones."""

    tiles: "Sequence[Tile]"
    areas: list[Area]
    own: int
    """Number of the tiles that stand for one value."""


def _division(
    tiles: Sequence["Tile"], own: int, width: int, height: int, form: Callable[[float], str], others: Others
) -> Division:
    """Divide a rectangle among the first ``own`` tiles and one for all others."""
    count, rest = len(tiles) - own + others.number, sum(tile.value for tile in tiles[own:]) + others.value
    shown = [*tiles[:own], *([Tile(f"+{count} more", rest, form(rest))] if count else [])]
    return Division(shown, sorted(areas([tile.value for tile in shown], width, height)), own)


def _is_named(division: Division) -> bool:
    """Return whether every tile has an area with room for its name."""
    labels = (division.tiles[area.number].label_in(area.width - 1) for area in division.areas)
    return len(division.areas) == len(division.tiles) and all(labels)


class Tile(NamedTuple):
    """A value to show."""

    name: str
    """Its identity and label, without control characters."""
    value: float
    told: str
    """The value as text."""
    share: float | None = None
    """Used share of a limit, 1 for all of it; None without a limit."""

    @property
    def look(self) -> str:
        """The severity of the share, as in a column of shares."""
        return "hot" if (self.share or 0) >= FULL else "warm" if (self.share or 0) >= NEARLY_FULL else "cool"

    def label_in(self, room: int) -> str:
        """Return the name, with a sign for a share that is nearly or fully used; empty if only a few letters fit.

        A long name is shortened in the middle, or else to its end, as names of neighbors often begin equally.
        """
        sign = f"{SIGNS[self.look]} " if self.look in SIGNS else ""
        if room < min(_LABEL_LEAST, cell_len(sign + self.name)):
            return ""
        return sign + shortened(self.name, room - len(sign), ends=True)


class Treemap(Looks, Widget, can_focus=True):
    """Areas with names, separated by edges. ``>`` and thick sides show the cursor."""

    DEFAULT_CSS = """
    Treemap { height: 1fr; width: 1fr; border: round $edge; border-title-color: $text; border-title-style: bold;
              border-subtitle-color: $text-muted; }
    Treemap:focus { border: heavy $edge-focus; }
    """
    looks: Mapping[str, ColorNames] = {
        "plain": ColorNames(),
        "dim": ColorNames("text-muted"),
        "command": ColorNames("text-accent", bold=True),
        "edge": ColorNames("text-disabled"),
        "cool": ColorNames(),
        "warm": ColorNames("text-warning", bold=True),
        "hot": ColorNames("text-error", bold=True),
        "cool-fill": ColorNames(ground="fill"),
        "warm-fill": ColorNames(ground="warning-muted", bold=True),
        "hot-fill": ColorNames(ground="error-muted", bold=True),
        "cursor": ColorNames("block-cursor-foreground", "block-cursor-background", bold=True),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Larger", show=False, priority=True),
        Binding("down,j", "move(1)", "Smaller", show=False, priority=True),
        Binding("home,g", "move(-100000)", "Largest", show=False, priority=True),
        Binding("end,G", "move(100000)", "Smallest", show=False, priority=True),
        Binding("enter", "choose", "Open", show=False, priority=True),
    ]

    class Moved(Message):
        """The cursor is on another tile."""

    class Chosen(Message):
        """The tile of the cursor was opened."""

    def __init__(self, *, key: str | None = None) -> None:
        super().__init__(id=key)
        self.tiles: Sequence[Tile] = ()
        """The tiles that are shown; the last one may stand for ``merged``."""
        self.merged: Sequence[Tile] = ()
        """Tiles without room for their names, largest first."""
        self._others = NO_OTHERS
        self._all: Sequence[Tile] = ()
        self._form: Callable[[float], str] = str
        self.empty = ""
        self.limit = ""
        """Words after the share of a tile, such as ``of the quota``."""
        self._at = 0
        self._areas: list[Area] = []

    @property
    def pointed(self) -> Tile | None:
        """The tile of the cursor."""
        return self.tiles[self._at] if self._at < len(self._areas) else None

    @property
    def is_at_merged(self) -> bool:
        """Whether the cursor is on the tile that stands for several."""
        return bool(self.merged_count) and self._at == len(self.tiles) - 1

    @property
    def merged_count(self) -> int:
        """Number of values without an area of their own."""
        return len(self.merged) + self._others.number

    @property
    def own(self) -> int:
        """Number of tiles with an area of their own."""
        return len(self._areas) - bool(self.merged_count)

    def show(self, tiles: Sequence[Tile], form: Callable[[float], str] = str, others: Others = NO_OTHERS) -> None:
        """Show tiles, largest first, and one for all ``others``. The cursor follows its tile.

        ``form`` formats the value of several tiles.
        """
        self._all, self._form, self._others = tiles, form, others
        self._lay_out()

    def _lay_out(self) -> None:
        was = None if self.is_at_merged else self.pointed
        self.tiles, self._areas, own = named(self._all, self.size.width, self.size.height, self._form, self._others)
        self.merged = self._all[own:]
        names = [tile.name for tile in self.tiles]
        if was is not None and was.name in names:
            self._at = names.index(was.name)
        self._at = min(self._at, max(len(self._areas) - 1, 0))
        self.refresh()

    def on_resize(self) -> None:
        """Divide the new room."""
        self._lay_out()

    def action_move(self, by: int) -> None:
        """Move the cursor to a smaller or larger tile."""
        self._at = min(max(self._at + by, 0), max(len(self._areas) - 1, 0))
        self.refresh()
        self.post_message(self.Moved())

    def action_choose(self) -> None:
        """Open the tile of the cursor."""
        if self.pointed is not None:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked tile; open it on a double click."""
        offset = event.get_content_offset(self)
        for at, area in enumerate(self._areas if offset is not None else ()):
            assert offset is not None
            if area.x <= offset.x < area.x + area.width and area.y <= offset.y < area.y + area.height:
                self._at = at
                self.action_move(0)
                if event.chain >= 2:
                    self.action_choose()

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        width = self.size.width
        if not self._areas:
            lines = empty_lines(self.empty, max(width - 2, 1), self.size.height)
            text, look = lines[y] if y < len(lines) else ("", "dim")
            return Strip([Segment(f" {text}", self.look(look))]).adjust_cell_length(width, self.rich_style)
        here = sorted((area for area in self._areas if area.y <= y < area.y + area.height), key=lambda area: area.x)
        segments = [segment for area in here for segment in self._segments(area, y)]
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _segments(self, area: Area, y: int) -> list[Segment]:
        """Return a row of an area. Its lower edge is a line beside the text, in the color of all edges."""
        text, tile = set_cell_size(self._text_of(area, y), area.width), self.tiles[area.number]
        if area.number == self._at and self.has_focus:
            return [Segment(f"{text[:-1]}▐" if text.endswith(" ") else text, self.look("cursor"))]
        is_filled = not self.app.current_theme.ansi  # a color of the terminal's palette is no ground for another one
        fill, edge = self.look(f"{tile.look}-fill"), self.look("edge")
        ink = self.look("plain") + Style(bold=fill.bold) if is_filled else self.look(tile.look)
        told = text.rstrip()
        is_last = y == area.y + area.height - 1 and y < self.size.height - 1
        blank = len(text) - max(len(told), 1)
        end = f"{' ' if told[1:] else ''}{'▁' * blank}"[:blank] if is_last else " " * blank
        row = [Segment(part, style) for part, style in ((text[:1], edge), (told[1:], ink), (end, edge)) if part]
        cells = round(area.width * min(tile.share or 0, 1.0)) if is_filled else 0
        if not cells:
            return row
        filled, *rest = Strip(row).divide([cells, area.width] if cells < area.width else [cells])
        ground = Style(bgcolor=fill.bgcolor)
        return [*Segment.apply_style(filled, post_style=ground), *(segment for strip in rest for segment in strip)]

    def _text_of(self, area: Area, y: int) -> str:
        tile, row = self.tiles[area.number], y - area.y
        is_pointed = area.number == self._at
        mark = ">" if is_pointed and row == 0 else "▌" if is_pointed else "▏" if area.x else " "
        is_merged = bool(self.merged_count) and area.number == self.own
        label = tile.label_in(area.width - 1)
        if is_merged and len(tile.name) >= area.width:
            label = tile.name.split(" ")[0]
        if row == 0:
            whole = f"{label} {tile.told}"
            has_room = area.height == 1 and label and cell_len(whole) < area.width
            return f"{mark}{whole if has_room else label}"
        # a number without its last digits would be another number, and one without its name says nothing
        values = self._values_of(tile, area.width - 1) if label else []
        return f"{mark}{values[row - 1] if row <= len(values) else ''}"

    def _values_of(self, tile: Tile, room: int) -> list[str]:
        """Return the texts below the name: the value, and the share of the limit, as far as they fit."""
        shares = [] if tile.share is None else [f"{percent(tile.share)} {self.limit}", percent(tile.share)]
        found = (next((form for form in forms if cell_len(form) <= room), "") for forms in ([tile.told], shares))
        return list(filter(None, found))
