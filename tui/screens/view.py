"""Base class of screens with one view of the box as a table: filter, order, columns, marks, export, history."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal

from pulsarbox.cleaning import clean
from pulsarbox.names import short_topic
from pulsarbox.tui import views
from pulsarbox.tui.actions.action_table import PLACES
from pulsarbox.tui.actions.box_queries import WIDE, chosen_columns, chosen_order, of_view
from pulsarbox.tui.actions.key_bindings import shown_keys
from pulsarbox.tui.feed import FeedError, RowQuery, ShownRow, ViewSnapshot, aside, real
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.trouble import ScreenFacts, no_rows
from pulsarbox.tui.views import TableView
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.bars import Line, Part, reasons
from pulsarbox.tui.widgets.columns import Column
from pulsarbox.tui.widgets.key_hints import MARK
from pulsarbox.tui.widgets.table import Row as TableRow
from pulsarbox.tui.widgets.table import Table

if TYPE_CHECKING:
    from pulsarbox.expressions import Language
    from pulsarbox.tui.widgets.row_details import Note

FILTER_HINT: Final = "word, /pattern, !/pattern or condition: "
"""Begins the hint of the filter line; an example of the view follows."""
_WORD: Final = re.compile(r"[\w.:@-]+")
_EXPRESSED: Final = re.compile(
    r"[<>=\"']|\b(and|or|not|in)\b|\b(matches|startswith|endswith|contains|lower|len|time)\("
)
"""Parts of an expression: a text with one is not taken as a pattern, so that its mistakes are reported."""
_TITLES: Final = {name: title for name, title, _, _ in PLACES}
_DETAILS: Final = "details"
"""Name of the preference whether details of a row are shown."""
_IN_MENU: Final = "In the menu:"
"""Heading of several actions without keys, behind the key of the menu."""
_NARROW: Final = 60
"""Columns of a terminal below which the filter needs the room of words behind it."""
_REPORTED_FOR: Final = 8
"""Seconds for which the error of a filter is shown."""
EXPORTED_MAX: Final = 100_000
_PORTION: Final = 500


class ViewScreen(TopScreen):
    """A screen with one table, defined in ``views``."""

    DEFAULT_CSS = """
    ViewScreen #filtered { display: none; }
    ViewScreen #filtered.-shown { display: block; }
    ViewScreen #beside { height: 1fr; min-height: 4; }
    ViewScreen #beside Table { width: 1fr; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""
    view: ClassVar[TableView]
    noun: ClassVar[str] = ""
    """Noun for a row, if not that of the view."""
    hinted_wide: ClassVar[Sequence[str]] = (
        *("clear marks", MARK, "sort", "time travel", "pause", "columns", "export", "row details"),
    )
    has_details: ClassVar[bool] = True
    """Whether wide terminals show the details of the row beside the table."""

    def __init__(self, passing: str = "") -> None:
        super().__init__()
        self.filter = passing
        self._given = passing
        """Filter with which the screen was opened; ``esc`` then goes back instead of removing it."""
        self._question: RowQuery | None = None
        """The last query."""
        self._told = ""
        """How many rows there are, as shown."""
        self._reported = "", 0.0
        """The last error of a filter, and when it was notified."""

    def body(self) -> ComposeResult:
        """Compose the filter line and the table."""
        yield Line(key="filtered")
        table = Table(self.view.columns, self.view.identity, key="table", classes="panel")
        if self.has_details:
            with Horizontal(id="beside"):
                yield table
        else:
            yield table

    @property
    def table(self) -> Table:
        """The table."""
        return self.query_one("#table", Table)

    def begin(self) -> None:
        """Start with the user's columns and order."""
        table = self.table
        table.set_columns(chosen_columns(self.view, self.top.kept))
        table.sorted_by = chosen_order(self.view, self.top.kept)
        table.empty = numbers.LOADING
        table.border_title = self.view.name.capitalize() if self.view.name not in _TITLES else _TITLES[self.view.name]
        if self.top.filter:  # applies to the first screen with a filter
            self.filter, self.top.filter = self.top.filter, ""
        super().begin()
        self.set_focus(table)  # now: keys may follow

    # Details of the row

    @property
    def shows_details(self) -> bool:
        """Whether there are panels beside the table."""
        return self.has_details and self.app.size.width >= WIDE and self.top.kept.get(_DETAILS, True) is True

    def on_resize(self, event: events.Resize) -> None:
        """Show the panels beside the table if there is room."""
        self._place_details()

    def do_row_details(self) -> None:
        """Show or hide the panels beside the table, also in the next runs."""
        if not self.has_details or self.app.size.width < WIDE:
            self.top.notify(f"Details of a row need a terminal of {WIDE} columns; enter opens the row", timeout=4)
            return
        self.top.kept.set(_DETAILS, False if self.shows_details else None)
        self._place_details()
        self.ask_again()

    def _place_details(self) -> None:
        if self.shows_details and not self.query("#details"):
            from pulsarbox.tui.widgets.row_details import RowDetails

            self.query_one("#beside").mount(RowDetails(self.view, self.noun_of_rows))
            self.call_after_refresh(self._show_details)
        self._show_details()

    @property
    def _has_row_details(self) -> bool:
        """Whether there is a row to show details of, or may be one in the first answer."""
        return self.shows_details and (self.table.count > 0 or not (self.answered or self.trouble))

    def _show_details(self) -> None:
        self.query("#details").set(display=self._has_row_details)
        if not self._has_row_details:
            return
        from pulsarbox.tui.widgets.row_details import RowDetails

        for panels in self.query("#details").results(RowDetails):
            if panels.is_mounted and panels.children:
                row = self.table.pointed
                notes = [] if row is None else self.notes(row)
                deeds = [] if row is None else self._listed_actions(row)
                panels.show(None if row is None else self.detailed(row), self.table.unknown, notes, deeds)
                self.show_end_of_graphs()

    def detailed(self, row: TableRow) -> TableRow:
        """Return a row as its details show it."""
        return row

    def notes(self, row: TableRow) -> "list[Note]":
        """Return sentences about a row, for its details."""
        return []

    def _listed_actions(self, row: TableRow) -> list[tuple[str, str]]:
        """Return the keys and titles of the actions on a row of the table; those without a key follow the menu's."""
        if self.rows_chosen() != [row] and not self.table.marked:  # they concern another object
            return []
        found = [(shown_keys(self.keys[each.name]), each.title_on(self.kind)) for each in self.actions_for(row)]
        others = [title for keys, title in found if not keys]
        titles = [_IN_MENU, *others] if len(others) > 1 else others
        menu = [(shown_keys(self.keys["menu"]) if at == 0 else "", title) for at, title in enumerate(titles)]
        return [each for each in found if each[0]] + menu

    # Queries

    def query_now(self) -> RowQuery:
        """Return the query for the visible rows."""
        table = self.table
        shown = table.columns if self.shows_details else [column for column, _, _ in table.laid_out]
        lines, top = self.app.size.height, table.scroll_offset.y
        return of_view(self.view, shown, table.sorted_by, lines, top, self.filter, self.top.at)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the visible rows."""
        query, feed = self.query_now(), self.top.feed
        self._question = query
        return lambda: feed.view(query)

    def show(self, answer: Any) -> None:
        """Draw the rows."""
        assert isinstance(answer, ViewSnapshot)
        table = self.table
        nothing = (
            f"No row matches the filter: {clean(self.filter)}  ({self.key_of('back')}: clear the filter)"
            if self.filter
            else self.advising(self.nothing())
        )
        table.empty = nothing if not answer.matching else ""
        table.unknown = answer.unknown
        table.show(answer.rows, answer.offset, answer.matching)
        self.show_counts(*self.counted(answer))
        self._show_details()
        if self.top.guide is not None:
            self.top.guide.point(type(self).__name__, table)

    def counted(self, answer: ViewSnapshot) -> tuple[int, int]:
        """Return how many objects match the filter, and how many there are."""
        return answer.matching, answer.total

    def nothing(self) -> str:
        """Return the text of the table without any row: the state, and the next command."""
        return command_lines.told_with_target(self.view.empty, self.top.target)

    def status_line(self) -> list[Part]:
        """Explain columns with ``?``, if any, before the command."""
        return self.with_command(reasons(self.table.reasons()))

    def facts_of_trouble(self) -> ScreenFacts:
        """Return the state of this screen for the texts of an error."""
        return super().facts_of_trouble()._replace(is_filtered=bool(self.filter))

    def unanswered(self, trouble: FeedError) -> None:
        """Replace the text of a table that has never been loaded, and the rows of another time."""
        if self.filter and trouble.is_invalid:
            self._show_filter("not applied")
        is_of_another_time = self.top.at is not None and not trouble.is_gone
        if is_of_another_time or not self.answered:
            self.table.empty = no_rows(trouble, self.facts_of_trouble())
            self._place_details()
            self.table.refresh()
        if is_of_another_time:
            self.table.show((), 0, 0)
            self.show_no_counts()
            self._show_details()

    def show_counts(self, matching: int, total: int) -> None:
        """Show in the edge of the table and in the filter line how many rows there are, until the next call."""
        told = how_many(matching, total)
        self._told = told if self.filter else numbers.count(total)
        self._show_count()
        self._show_filter(told)

    def show_no_counts(self) -> None:
        """Remove the numbers of rows."""
        self._told = ""
        self._show_count()
        self._show_filter("")

    def _show_count(self) -> None:
        """Show in the edge of the table how many rows there are, and how many are marked."""
        marked = len(self.table.marked)
        link = ", " if self.filter else " of "
        self.table.set_subtitle(f"{numbers.count(marked)} marked{link}{self._told}" if marked else self._told)

    def _show_filter(self, told: str) -> None:
        """Update the filter line with the number of matching rows."""
        shown = self.query_one("#filtered", Line)
        shown.set_class(bool(self.filter), "-shown")
        if self.filter:
            clear = "clear the filter" if self.size.width >= _NARROW else "clear"
            back = f"{self.key_of('back')}: {'back' if self.filter == self._given else clear} "
            shown.put(
                [(" filter ", "key", "filter"), (clean(self.filter), "plain", "filter"), (f"  {told}", "dim", "")],
                [(back, "dim", "back")],
            )

    @on(Table.Wanted)
    def _more(self) -> None:
        if self.query_now() != self._question:
            self.ask_again()

    @on(Table.Moved)
    def _moved(self) -> None:
        self._show_count()
        self._show_details()
        self.refresh_status_lines()

    @on(Table.Sorting)
    def _sorting(self, event: Table.Sorting) -> None:
        self.sort_by(event.column)

    @on(Table.Chosen)
    def _chosen(self, event: Table.Chosen) -> None:
        self.opened(event.row)

    def opened(self, row: TableRow) -> None:
        """Open a row."""

    # Filter

    def do_filter(self) -> None:
        """Open the filter line."""
        self._open_filter(self.filter)

    def _open_filter(self, text: str) -> None:
        self.open_prompt("/", text, f"{FILTER_HINT}{self.view.example}")

    def language(self) -> "Language":
        """Return the filter language."""
        from pulsarbox.tui.widgets.local_rows import language_of

        return language_of(self.view)

    def filtered(self, text: str) -> None:
        """Apply a filter, or report a syntax error."""
        if text and (_WORD.fullmatch(text) or is_pattern(text, self.language())):
            text = f"/{text}"
        try:
            if text:
                self.language().parse(text, now_ms())
        except ValueError as error:
            self._report(str(error))
            self._open_filter(text)
            return
        self.filter = text
        self._show_filter(numbers.LOADING)
        self.table.point(0)
        self.ask_again()

    def _report(self, error: str) -> None:
        """Notify that a filter is invalid, unless the same notification is still shown."""
        told, since = self._reported
        if error != told or time.monotonic() - since >= _REPORTED_FOR:
            self._reported = error, time.monotonic()
            self.top.notify(error, title="Filter", severity="error", timeout=_REPORTED_FOR, markup=False)

    def passes(self) -> Callable[[Any], bool]:
        """Return the filter as a predicate of local rows."""
        from pulsarbox.tui.widgets.local_rows import passing_of

        return passing_of(self.view, self.filter)

    def do_back(self) -> None:
        """Remove the filter; without one, go back."""
        if self.filter != self._given:
            self.filtered(self._given)
        else:
            super().do_back()

    # Order and columns

    def sort_by(self, column: Column) -> None:
        """Sort by a column; reverse the order if already sorted by it."""
        key = column.sorted_by
        if key is None:
            self.top.notify(f"cannot sort by {column.title}", severity="warning", markup=False)
            return
        table = self.table
        was, descending = table.sorted_by
        is_text = column.kind in ("text", "topic", "state", "line")
        table.sorted_by = (key, not descending if was == key else not is_text)
        self.top.kept.set(f"sort.{self.view.name}", list(table.sorted_by))
        table.refresh()
        self.ask_again()

    def do_sort(self) -> None:
        """Choose the sort column."""
        self.run_worker(self._choose_sort(), group="dialog")

    async def _choose_sort(self) -> None:
        from pulsarbox.tui.actions.dialogs import ChoiceDialog

        known = {column.key: column for column in self.table.columns if column.sorted_by is not None}
        options = [(key, f"{column.title:<13} {column.meaning}", "") for key, column in known.items()]
        found = await self.app.push_screen_wait(ChoiceDialog("Sort by", options, self.table.sorted_by[0] or ""))
        if found is not None:
            self.sort_by(known[found])

    def do_reverse(self) -> None:
        """Reverse the order."""
        sort, descending = self.table.sorted_by
        self.table.sorted_by = (sort, not descending)
        self.top.kept.set(f"sort.{self.view.name}", [sort, not descending])
        self.table.refresh()
        self.ask_again()

    def do_columns(self) -> None:
        """Choose the columns."""
        self.run_worker(self._choose_columns(), group="dialog")

    async def _choose_columns(self) -> None:
        from pulsarbox.tui.screens.columns import ColumnsDialog

        fitting = {column.key for column, _, _ in self.table.laid_out}
        found = await self.app.push_screen_wait(ColumnsDialog(self.view.columns, self.table.columns, fitting))
        if found is not None:
            keys = [column.key for column in found]
            is_usual = keys == [column.key for column in self.view.columns]
            self.top.kept.set(f"columns.{self.view.name}", None if is_usual else keys)
            self.table.set_columns(found)

    # Rows

    def rows_chosen(self) -> Sequence[TableRow]:
        """Return the marked rows, or else the row of the cursor."""
        return self.table.chosen

    def title_of(self, row: TableRow) -> str:
        """Return the title of a row."""
        return "  ".join(short_topic(str(row.get(key) or "")) for key in self.view.identity)

    @property
    def noun_of_rows(self) -> str:
        """Noun for a row of the table."""
        return self.noun or self.view.noun

    def opens_now(self) -> str:
        """Return the name of what enter opens; empty without a row."""
        return self.opens if self.table.pointed is not None else ""

    def can_mark(self) -> bool:
        """Whether there are several rows, and an action that changes all marked ones."""
        row = self.table.pointed
        is_live = self.top.at is None and self.table.count > 1
        return is_live and row is not None and any(each.deed is not None for each in self.actions_for(row))

    def applies(self, name: str, rows: Sequence[TableRow]) -> bool:
        """Return whether an action applies to the table: columns always, others to rows, panels only beside it."""
        if name == "columns":
            return True
        if name == "row details" and not (self.has_details and self.app.size.width >= WIDE):
            return False
        if name == "clear marks":
            return bool(self.table.marked)
        if name in ("sort", "export", "row details"):
            return self.table.count > 0
        return super().applies(name, rows)

    def meanings(self) -> str:
        """Return the meanings of the columns, for the help."""
        width = max(len(column.title) for column in self.view.columns)
        return "\n".join(f"  {column.title:<{width}}  {column.meaning}" for column in self.view.columns)

    def row_meant(self) -> TableRow | None:
        """Return the row of the cursor."""
        return self.table.pointed

    def do_clear_marks(self) -> None:
        """Clear all marks."""
        self.table.marked.clear()
        self.table.refresh()
        self._show_count()

    def advised_command(self) -> str:
        """Return the command of the table without any row, empty if only a filter leaves none."""
        is_empty = self.answered and not self.table.count and not self.filter
        return command_lines.parted(self.table.empty)[1] if is_empty else ""

    def command_line(self) -> str:
        """Return the command that prints this table."""
        return self.line("top", *self._printing(), *self.top.feed.scope_words)

    def past_command(self) -> str:
        """Return the command that prints this table at the time of history, empty if it is not recorded."""
        return self.past_line(*self._printing()) if self.view.name in views.RECORDED else ""

    def _printing(self) -> list[str]:
        """Return the arguments of ``top`` that print this table, without those of its time and scope."""
        sort, descending = self.table.sorted_by
        words = [self.view.name, "--once"]
        if sort and (sort, descending) != (self.view.sort, self.view.descending):
            words += ["--sort", sort if descending else f"-{sort}"]
        if self.filter:
            words += ["--filter", self.filter]
        return words

    # Export

    def do_export(self) -> None:
        """Export the rows as NDJSON."""
        self.run_worker(self._export("ndjson"), group="dialog")

    def do_export_csv(self) -> None:
        """Export the rows as CSV."""
        self.run_worker(self._export("csv"), group="dialog")

    async def _export(self, form: str) -> None:
        from pulsarbox.tui.actions.dialogs import Question

        stamp = time.strftime("%Y%m%d-%H%M%S")
        name = f"pulsarbox-{self.view.name}-{stamp}.{form}"
        path = await self.app.push_screen_wait(
            Question("Write all rows to", "a file; existing files are not overwritten", name)
        )
        if not path:
            return
        try:
            count = await aside(lambda: self._written(Path(path).expanduser(), form))
        except (OSError, FeedError) as error:
            self.top.notify(str(error), title="The file was not written", severity="error", markup=False)
        else:
            self.top.notify(f"{count:,} {'row' if count == 1 else 'rows'} in {path}", markup=False)

    def _written(self, path: Path, form: str) -> int:
        rows: list[dict[str, Any]] = []
        query = self.query_now()
        while len(rows) < EXPORTED_MAX:
            found = self.top.feed.view(
                RowQuery(query.view, query.sort, query.descending, len(rows), _PORTION, query.filter, query.at)
            )
            rows += [_real_row(row) for row in found.rows]
            if len(found.rows) == 0 or len(rows) >= found.matching:
                break
        with path.open("x", encoding="utf-8", newline="") as out:
            if form == "csv":
                import csv

                keys = [column.key for column in self.view.columns if column.kind != "trend"]
                writer = csv.writer(out)
                writer.writerow(keys)
                writer.writerows([row.get(key) for key in keys] for row in rows)
            else:
                out.writelines(json.dumps(row) + "\n" for row in rows)
        return len(rows)


def is_pattern(text: str, language: "Language") -> bool:
    """Return whether a text is no expression, but a regular expression that looks like none."""
    if text.startswith(("/", "!/")) or _EXPRESSED.search(text):
        return False
    try:
        language.parse(text, now_ms())
    except ValueError:
        try:
            re.compile(text)
        except (re.error, RecursionError):
            return False
        return True
    return False


def how_many(matching: int, total: int) -> str:
    """Return how many of the rows match, such as ``3 of 10``."""
    return f"{numbers.count(matching)} of {numbers.count(total)}"


def _real_row(row: ShownRow | Mapping[str, Any]) -> dict[str, Any]:
    return {key: real(row, key) if isinstance(value, str) else value for key, value in row.items()}
