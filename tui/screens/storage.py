"""Storage screen: commits, latencies and the cache, the space of the volumes, data directories, and the volumes."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Static

from pulsarbox.tui import views
from pulsarbox.tui.feed import FeedError, ViewSnapshot
from pulsarbox.tui.screens.directories import Copies, CopiesQuery, drawn, with_short_names
from pulsarbox.tui.screens.maps.space_map import CompressedQuery, OffloadedQuery, SpaceUse, space_of
from pulsarbox.tui.screens.maps.space_map import drawn as drawn_space
from pulsarbox.tui.screens.store_facts import StoreFacts, brief, refusal, store_facts
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.panel import EDGES, FRAME, TextPanel, beginning, in_a_row, in_columns, lines_of
from pulsarbox.tui.widgets.wrapping import hanging

_ROWS_LEAST: Final = 4
"""Rows that the table has at least, whatever else there is to show."""
_ROW_EDGES: Final = 3
"""Lines of the table besides its rows."""
_FACTS_LEAST: Final = 3
"""Lines of numbers without which panels with borders are not worth their lines."""
_TWO: Final = 60
"""Columns below which labels and numbers have no room in panels beside each other, and stand in lines."""
_THREE: Final = 110
"""Columns from which three panels have room beside each other."""
_FOUR: Final = 160
"""Columns from which the panel of the space has room beside them."""
_BROAD: Final = 34
"""Columns of a panel of numbers beside that of the space."""
_BAR: Final = 3
"""Lines of the bar beside the panels of numbers, which have more lines than it."""
_REFUSAL_MAX: Final = 3
_DIRECTORIES_LEAST: Final = 3
"""Lines of directories without which a border is not worth its lines."""
_PANELS: Final = ("journal", "latency", "cache")
"""Panels of numbers, in the order of ``StoreFacts``."""


class Storage(ViewScreen):
    """Panels of numbers above, then the data directories if there are several, and a table of volumes below."""

    DEFAULT_CSS = """
    Storage #refusal { height: auto; padding: 0 1; color: $text-error; text-style: bold; display: none; }
    Storage #facts { height: auto; padding: 0 1; display: none; }
    Storage #panels { layout: grid; height: auto; display: none; }
    Storage #panels TextPanel { height: 100%; }
    Storage #directories { display: none; }
    Storage #directories.-plain { padding: 0 0 1 0; }
    """
    view: ClassVar[views.TableView] = views.STORAGE
    place: ClassVar[str] = "storage"

    def __init__(self, passing: str = "") -> None:
        super().__init__(passing)
        self._has_several = False
        self._shown: tuple[ViewSnapshot, Copies | None, SpaceUse | None] | None = None
        self._grid: tuple[int, str, list[int]] | None = None
        """The layout of the panels: columns, their widths, and the heights of the rows."""

    def body(self) -> ComposeResult:
        """Compose the panels and the table."""
        yield Static("", id="refusal", markup=False)
        yield Static("", id="facts", markup=False)
        with Container(id="panels"):
            yield TextPanel("Journal", key="journal")
            yield TextPanel("Latency", key="latency")
            yield TextPanel("Decompression cache", key="cache")
            yield TextPanel("Space", key="space")
        yield TextPanel("Directories", key="directories", classes="-flush")
        yield from super().body()

    def begin(self) -> None:
        """Start with the name of the table."""
        feed = self.top.feed
        self._copies, self._compressed, self._offloaded = CopiesQuery(feed), CompressedQuery(feed), OffloadedQuery(feed)
        super().begin()
        self.table.border_title = "Volumes"

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the volumes and the directories. In history it raises FeedError.

        A running box returns all volumes, whatever the filter, the order and the offset. From the files of a stopped
        one, only the selected volumes are returned.
        """
        if self.top.at is not None:
            return _unrecorded
        query, rows, width, passes = self.query_now(), super().load(), self.size.width, self.passes()

        def ask() -> tuple[ViewSnapshot, Copies | None, SpaceUse | None]:
            found = rows()
            share = self._offloaded.ask() if found.totals.get("volumeBytes") else 0.0
            space = space_of(found.rows, found.totals, int(self._compressed.ask()), share)
            if len(found.rows) == found.total:
                part = chosen(query, found.rows, passes)
                found = found._replace(rows=part.rows, matching=part.matching, offset=part.offset)
            return found, self._copies.ask(width - FRAME), space

        return ask

    def show(self, answer: Any) -> None:
        """Draw the panels and the table."""
        rows, copies, _ = answer
        self.top.update_vitals(rows)
        super().show(rows if copies is None else rows._replace(rows=with_short_names(copies, rows.rows)))
        self._has_several, self._shown = copies is not None, answer
        self._draw()

    def unanswered(self, trouble: FeedError) -> None:
        """Empty the panels in history, which does not contain their numbers."""
        super().unanswered(trouble)
        if self.top.at is not None and not trouble.is_gone:
            self._shown = None
            for panel in ("refusal", "facts", "directories"):
                self._put(panel, "")
            self.query_one("#panels").display = False

    def _draw(self) -> None:
        """Draw the panels above the table, in as many lines as it leaves them."""
        if self._shown is None:
            return
        (rows, copies, space), width, colors = self._shown, self.size.width, self.app.theme_variables
        facts = store_facts(rows.totals)
        refused = beginning(hanging(Text(refusal(rows.totals)), width - FRAME, FRAME), _REFUSAL_MAX)
        self._put("refusal", refused)
        room = self.query_one("#body").size.height - min(rows.matching, _ROWS_LEAST) - _ROW_EDGES - lines_of(refused)
        heading = self.table.look("heading")
        directories = "" if copies is None else drawn(copies, width - FRAME, colors, heading)
        is_beside = width >= _FOUR and facts.lines > 0
        inside = width - EDGES - (_BROAD * sum(map(bool, facts.panels)) if is_beside else 0)
        used = space_lines(facts, space, inside, colors)
        if is_beside:
            beside = max(facts.lines, lines_of(used) + _BAR - 1)
            lines = divided(room, beside, 0, lines_of(directories))
            used = space_lines(facts, space, inside, colors, min(max(lines.facts - lines_of(used) + 1, 1), _BAR))
        else:
            lines = divided(room, facts.lines, lines_of(used), lines_of(directories))
        if copies is not None and 0 < lines.directories < lines_of(directories):
            directories = drawn(copies, width - FRAME, colors, heading, lines.directories)
        row = [] if lines.is_framed and width >= _TWO else brief(facts)
        framed = lines._replace(facts=0) if row else lines
        panels = self.query_one("#panels")
        panels.display = lines.is_framed and bool(framed.facts or framed.space)
        if panels.display:
            self._lay_out(facts, framed, used if is_beside or lines.space else "", is_beside=is_beside)
            row = [each for each in row if each not in facts.space]
        self._put("facts", beginning(in_a_row(row, width - FRAME, colors), lines.facts))
        self.query_one("#directories").set_class(not lines.has_framed_directories, "-plain")
        self._put("directories", directories if lines.directories else "")

    def _lay_out(self, facts: StoreFacts, lines: "PanelLines", used: str | Text, *, is_beside: bool) -> None:
        """Show the panels in a grid: two beside each other, three, or all four with that of the space."""
        width, shown = self.size.width, [bool(each and lines.facts) for each in facts.panels]
        if width < _THREE and all(shown):
            shown[2] = False
        columns = max(sum(shown), 1)
        inside = (_BROAD if is_beside else width // columns) - EDGES
        for key, group, is_shown in zip(_PANELS, facts.panels, shown, strict=True):
            panel = self.query_one(f"#{key}", TextPanel)
            panel.display = is_shown
            panel.put(in_columns(group[: lines.facts], inside, self.app.theme_variables))
        panel = self.query_one("#space", TextPanel)
        panel.display = bool(used)
        panel.put(used)
        heights = [each + FRAME for each in (lines.facts, lines.space) if each]
        widths = " ".join([str(_BROAD)] * columns + ["1fr"]) if is_beside else "1fr"
        if (grid := (columns, widths, heights)) != self._grid:
            self._grid, styles = grid, self.query_one("#panels").styles
            styles.grid_size_columns = columns + is_beside
            styles.grid_columns = widths
            styles.grid_rows = " ".join(map(str, heights))
            styles.height = sum(heights)
            panel.styles.column_span = 1 if is_beside else columns

    def _put(self, panel: str, text: str | Text) -> None:
        """Show a text in a panel, which is hidden without one. One that it shows already causes no layout."""
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


def _unrecorded() -> Any:
    raise FeedError("The view 'storage' is not recorded", 404)


class PanelLines(NamedTuple):
    """Lines of the texts above the table. 0: not shown."""

    facts: int
    space: int
    directories: int
    is_framed: bool = True
    """Whether the panels of the facts and the space have borders."""
    has_framed_directories: bool = True

    @property
    def total(self) -> int:
        """All lines, with borders or else a blank line below the directories."""
        frames = FRAME * (bool(self.facts) + bool(self.space)) if self.is_framed else 0
        below = (FRAME if self.has_framed_directories else 1) if self.directories else 0
        return self.facts + self.space + self.directories + frames + below


def divided(room: int, facts: int, space: int, directories: int) -> PanelLines:
    """Divide lines among panels of these lengths: one of the facts, then directories, other facts, and the space.

    Where lines are missing, the border around facts and space goes first, then lines of the directories, of which the
    last ones are the legend, and at last the border around these.
    """
    least = min(facts, _FACTS_LEAST)
    for bar in (space, 0):
        spare = room - PanelLines(facts, bar, directories).total
        if facts + min(spare, 0) >= least and (facts or spare >= 0):
            return PanelLines(facts + min(spare, 0), bar, directories)
    first = min(facts, 1)
    if directories and room - FRAME - first >= min(directories, _DIRECTORIES_LEAST):
        directories = min(directories, room - FRAME - first)
        return PanelLines(min(facts, room - FRAME - directories), 0, directories, is_framed=False)
    directories = max(min(directories, room - first - 1), 0)
    rest = room - directories - bool(directories)
    return PanelLines(max(min(facts, rest), 0), 0, directories, is_framed=False, has_framed_directories=False)


def space_lines(
    facts: StoreFacts, space: SpaceUse | None, width: int, colors: Mapping[str, str], height: int = 1
) -> Text:
    """Return the facts of the disk, the bar and its legend; empty if the box reports none of them.

    The bar is ``height`` lines high. Facts that do not fit on the first line are left out.
    """
    text = beginning(in_a_row(facts.space, width, colors), 1)
    if space is not None:
        text.append("\n" if text else "").append_text(drawn_space(space, width, colors, height))
    return text
