"""Storage screen: memory map, readers, commits, syncs, data directories, and volumes with their live data."""

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from pulsarbox.tui import views
from pulsarbox.tui.feed import ViewSnapshot
from pulsarbox.tui.screens.directories import Copies, CopiesQuery, drawn, with_short_names
from pulsarbox.tui.screens.space_map import CompressedQuery, OffloadedQuery, SpaceUse, space_of
from pulsarbox.tui.screens.space_map import drawn as drawn_space
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers


class Storage(ViewScreen):
    """Numbers above, then the data directories if there are several, and a table of volumes below."""

    DEFAULT_CSS = """
    Storage #facts { height: auto; max-height: 50%; padding: 0 1 1 1; }
    Storage.-copies #facts { max-height: 25%; }
    Storage #space { height: auto; padding: 0 0 1 0; display: none; }
    Storage #space.-shown { display: block; }
    Storage #directories { display: none; height: auto; max-height: 60%; padding: 0 0 1 0; overflow-y: auto; }
    Storage.-copies #directories { display: block; }
    """
    view: ClassVar[views.TableView] = views.STORAGE
    place: ClassVar[str] = "storage"

    def __init__(self, passing: str = "") -> None:
        super().__init__(passing)
        self._copies: CopiesQuery | None = None
        self._parts: tuple[CompressedQuery, OffloadedQuery] | None = None
        self._has_several = False

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
        rows, copies, space = answer
        self.top.update_vitals(rows)
        super().show(rows if copies is None else rows._replace(rows=with_short_names(copies, rows.rows)))
        self.query_one("#facts", Static).update(facts(rows.totals, self.size.width))
        self._show_copies(copies)
        bar = self.query_one("#space", Static)
        bar.set_class(space is not None, "-shown")
        if space is not None:
            bar.update(drawn_space(space, self.size.width, self.app.theme_variables))

    def _show_copies(self, copies: Copies | None) -> None:
        self._has_several = copies is not None
        self.set_class(self._has_several, "-copies")
        if copies is not None:
            text = drawn(copies, self.size.width, self.app.theme_variables)
            self.query_one("#directories", Static).update(text)

    def command_line(self) -> str:
        """Return the command that shows the storage of the directory."""
        if self._has_several:
            return self.line("storage", "members")
        return self.line("storage", "stat") if self.top.target[:1] == ("--data-dir",) else super().command_line()


def facts(totals: Any, width: int) -> str:
    """Return numbers with their names in as many columns as fit."""
    told = [
        (_spaced(name), _written(name, value)) for name, value in totals.items() if not isinstance(value, dict | list)
    ]
    if not told:
        return ""
    broad = max(len(name) for name, _ in told) + max(len(value) for _, value in told) + 5
    columns = max((width - 2) // broad, 1)
    height = -(-len(told) // columns)
    names = max(len(name) for name, _ in told)
    lines = []
    for row in range(height):
        cells = [f"{name:<{names}}  {value}" for name, value in told[row::height]]
        lines.append("".join(cell.ljust(broad) for cell in cells).rstrip())
    return "\n".join(lines)


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
