"""Storage screen: memory map, readers, commits, syncs, data directories, and volumes with their live data."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.widgets import Static

from pulsarbox.tui import views
from pulsarbox.tui.feed import ViewSnapshot
from pulsarbox.tui.screens.directories import Copies, CopiesQuery, drawn, with_short_names
from pulsarbox.tui.screens.space_map import CompressedQuery, OffloadedQuery, SpaceUse, space_of
from pulsarbox.tui.screens.space_map import drawn as drawn_space
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers

_ROWS_LEAST: Final = 4
"""Rows that the table has at least, whatever else there is to show."""
_ROW_EDGES: Final = 3
"""Lines of the table besides its rows."""
_FACTS_LEAST: Final = 3
"""Lines of numbers that are more important than the bar of the space."""


class Storage(ViewScreen):
    """Numbers above, then the data directories if there are several, and a table of volumes below."""

    DEFAULT_CSS = """
    Storage #facts { height: auto; padding: 0 1 1 1; display: none; }
    Storage #space, Storage #directories { height: auto; padding: 0 0 1 0; display: none; }
    """
    view: ClassVar[views.TableView] = views.STORAGE
    place: ClassVar[str] = "storage"

    def __init__(self, passing: str = "") -> None:
        super().__init__(passing)
        self._copies: CopiesQuery | None = None
        self._parts: tuple[CompressedQuery, OffloadedQuery] | None = None
        self._has_several = False
        self._shown: tuple[ViewSnapshot, Copies | None, SpaceUse | None] | None = None

    def body(self) -> ComposeResult:
        """Compose the numbers, the directories and the table."""
        yield Static("", id="facts", markup=False)
        yield Static("", id="space", markup=False)
        yield Static("", id="directories", markup=False)
        yield from super().body()

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the visible rows and, unless in history, the directories."""
        rows, width, is_live = super().load(), self.size.width, self.top.at is None
        if self._copies is None:
            self._copies = CopiesQuery(self.top.feed)
        if self._parts is None:
            self._parts = CompressedQuery(self.top.feed), OffloadedQuery(self.top.feed)
        copies, (compressed, offloaded) = self._copies, self._parts

        def ask() -> tuple[ViewSnapshot, Copies | None, SpaceUse | None]:
            found = rows()
            if not is_live:
                return found, None, None
            share = offloaded.ask() if found.totals.get("volumeBytes") else 0.0
            space = space_of(found.rows, found.totals, int(compressed.ask()), share)
            return found, copies.ask(width), space

        return ask

    def show(self, answer: Any) -> None:
        """Draw the numbers, the directories and the table."""
        rows, copies, _ = answer
        self.top.update_vitals(rows)
        super().show(rows if copies is None else rows._replace(rows=with_short_names(copies, rows.rows)))
        self._has_several, self._shown = copies is not None, answer
        self._draw()

    def _draw(self) -> None:
        """Draw the panels above the table, in as many lines as it leaves them."""
        if self._shown is None:
            return
        (rows, copies, space), width, colors = self._shown, self.size.width, self.app.theme_variables
        bar = "" if space is None else drawn_space(space, width, colors)
        room = self.query_one("#body").size.height - min(rows.matching, _ROWS_LEAST) - _ROW_EDGES
        numbers_text = facts(rows.totals, width)
        directories = "" if copies is None else drawn(copies, width, colors)
        lines = divided(room, *(_lines(text) for text in (numbers_text, bar, directories)))
        if 0 < lines.facts < _lines(numbers_text):
            numbers_text = facts(rows.totals, width, lines.facts)
        if copies is not None and 0 < lines.directories < _lines(directories):
            directories = drawn(copies, width, colors, lines.directories)
        self._put("facts", numbers_text if lines.facts else "")
        self._put("space", bar if lines.space else "")
        self._put("directories", directories if lines.directories else "")

    def _put(self, panel: str, text: str | Text) -> None:
        """Show a text in a panel. One that it shows already causes no layout."""
        shown = self.query_one(f"#{panel}", Static)
        if shown.content != text:
            shown.display = bool(text)
            shown.update(text)

    def on_resize(self, event: events.Resize) -> None:
        """Draw the panels for the new size, once the layout has it."""
        self.call_after_refresh(self._draw)

    def command_line(self) -> str:
        """Return the command that shows the storage of the directory."""
        if self._has_several:
            return self.line("storage", "members")
        return self.line("storage", "stat") if self.top.target[:1] == ("--data-dir",) else super().command_line()


class PanelLines(NamedTuple):
    """Lines of the panels above the table, each without the blank line behind it. 0: not shown."""

    facts: int
    space: int
    directories: int


def divided(room: int, facts: int, space: int, directories: int) -> PanelLines:
    """Divide lines among panels of these lengths: directories first, then the most important numbers, then the bar."""
    directories = max(min(directories, room - 1), 0)
    room -= directories + 1 if directories else 0
    is_space = space > 0 and room - space - 1 > min(facts, _FACTS_LEAST)
    room -= space + 1 if is_space else 0
    return PanelLines(max(min(facts, room - 1), 0), space if is_space else 0, directories)


def _lines(text: str | Text) -> int:
    plain = str(text).rstrip("\n")
    return plain.count("\n") + 1 if plain else 0


def facts(totals: Any, width: int, lines: int | None = None) -> str:
    """Return numbers with their names in as many columns as fit; only the most important if lines do not suffice."""
    told = {
        name: (_spaced(name), _written(name, value))
        for name, value in totals.items()
        if not isinstance(value, dict | list)
    }
    columns = _columns(list(told.values()), width)
    if lines is not None and len(told) > lines * columns:
        order = [*filter(told.__contains__, _IMPORTANT), *(name for name in told if name not in _IMPORTANT)]
        kept = set(order[: lines * columns])
        told = {name: each for name, each in told.items() if name in kept}
    return _in_columns(list(told.values()), columns)


def _columns(told: Sequence[tuple[str, str]], width: int) -> int:
    return max((width - 2) // _broad(told), 1) if told else 1


def _broad(told: Sequence[tuple[str, str]]) -> int:
    return max(len(name) for name, _ in told) + max(len(value) for _, value in told) + 5


def _in_columns(told: Sequence[tuple[str, str]], columns: int) -> str:
    if not told:
        return ""
    broad, height = _broad(told), -(-len(told) // columns)
    names = max(len(name) for name, _ in told)
    lines = []
    for row in range(height):
        cells = [f"{name:<{names}}  {value}" for name, value in told[row::height]]
        lines.append("".join(cell.ljust(broad) for cell in cells).rstrip())
    return "\n".join(lines)


_IMPORTANT: Final = (
    *("refusal", "diskFree", "volumeBytes", "liveBytes", "commitP99", "receiptP99", "checkpointLag", "commitsFailed"),
    *("reserveHeld", "diskTotal"),
)
"""Numbers that remain on a screen with few lines, in this order."""


def _spaced(name: str) -> str:
    """Return the words of a name, without its unit, which the value has."""
    return "".join(f" {one.lower()}" if one.isupper() else one for one in name).removesuffix(" ms")


def _written(name: str, value: Any) -> str:
    low = name.lower()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return numbers.NOTHING if value in (None, "") else str(value)
    if low.endswith(("p50", "p99", "millis", "ms")):
        return numbers.milliseconds(value)
    if any(word in low for word in ("bytes", "used", "free", "size", "disk", "memory", "lag")) and "pages" not in low:
        return numbers.size(value)
    if low.endswith(("ratio", "share")):
        return f"{value:.2f}"
    return numbers.count(value)
