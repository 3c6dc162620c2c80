"""A screen that is one view of the box as a table: filter, order, columns, marks, export, history."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.box_queries import chosen_columns, chosen_order, of_view
from pulsarbox.tui.feed import Query, Row, Snapshot, Trouble, aside, real
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.views import View
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Line, Part
from pulsarbox.tui.widgets.columns import Column, short_topic
from pulsarbox.tui.widgets.table import Row as TableRow
from pulsarbox.tui.widgets.table import Table

_WORD: Final = re.compile(r"[\w.:@-]+")
EXPORTED_MAX: Final = 100_000
_PORTION: Final = 500


class ViewScreen(TopScreen):
    """One table. What a view has of its own stands in ``views``."""

    DEFAULT_CSS = """
    ViewScreen #filtered { display: none; }
    ViewScreen #filtered.-shown { display: block; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""
    view: ClassVar[View]

    def __init__(self, passing: str = "") -> None:
        super().__init__()
        self.filter = passing
        self._given = passing
        """What this was opened with: to be without it is to go back."""
        self._question: Query | None = None
        """What was asked last."""

    def body(self) -> ComposeResult:
        """The table, and the filter where there is one."""
        yield Line(key="filtered")
        yield Table(self.view.columns, self.view.identity, key="table")

    @property
    def table(self) -> Table:
        """The table."""
        return self.query_one("#table", Table)

    def begin(self) -> None:
        """With the columns and the order of the last time."""
        table = self.table
        table.set_columns(chosen_columns(self.view, self.top.kept))
        table.sorted_by = chosen_order(self.view, self.top.kept)
        table.empty = "asking the box ..."
        if self.top.filter:  # of the first screen that takes one
            self.filter, self.top.filter = self.top.filter, ""
        super().begin()
        self.set_focus(table)  # at once: keys may follow

    # Asking

    def query_now(self) -> Query:
        """What is in view."""
        table = self.table
        shown = [column for column, _ in table.laid_out]
        lines, top = self.app.size.height, table.scroll_offset.y
        return of_view(self.view, shown, table.sorted_by, lines, top, self.filter, self.top.at)

    def load(self) -> Callable[[], Any]:
        """Those rows."""
        query, feed = self.query_now(), self.top.feed
        self._question = query
        return lambda: feed.view(query)

    def show(self, answer: Any) -> None:
        """Draw them."""
        assert isinstance(answer, Snapshot)
        table = self.table
        nothing = (
            f"No row passes the filter: {clean(self.filter)}  (esc: without it)" if self.filter else self.view.empty
        )
        table.empty = nothing if not answer.matching else ""
        table.unknown = answer.unknown
        table.show(answer.rows, answer.offset, answer.matching)
        self._tell_filter(how_many(answer.matching, answer.total))

    def told(self) -> list[Part]:
        """What a ``?`` in a column means, where there is one."""
        table = self.table
        parts: list[Part] = []
        for column, _ in table.laid_out:
            if column.key in table.unknown:
                parts += [(f" {column.title} ? ", "key", ""), (f"{table.unknown[column.key]} ", "dim", "")]
        return [*parts, *super().told()]

    def unanswered(self, trouble: Trouble) -> None:
        """The filter may be what is wrong."""
        if not self.answered:
            self.table.empty = "there is nothing to show yet"
            self.table.refresh()

    def _tell_filter(self, told: str) -> None:
        """What is filtered by, and what is known of what passes."""
        shown = self.query_one("#filtered", Line)
        shown.set_class(bool(self.filter), "-shown")
        if self.filter:
            back = "esc: back " if self.filter == self._given else "esc: without it "
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
        self.retell()

    @on(Table.Sorting)
    def _sorting(self, event: Table.Sorting) -> None:
        self.sort_by(event.column)

    @on(Table.Chosen)
    def _chosen(self, event: Table.Chosen) -> None:
        self.opened(event.row)

    def opened(self, row: TableRow) -> None:
        """Enter on a row."""

    # Filter

    def do_filter(self) -> None:
        """``/``"""
        self.open_prompt("/", self.filter)

    def filtered(self, text: str) -> None:
        """Ask for rows that pass; what cannot be read is said at once."""
        from pulsarbox.tui.widgets.local_rows import language_of

        if text and _WORD.fullmatch(text):
            text = f"/{text}"
        try:
            if text:
                language_of(self.view).parse(text, now_ms())
        except ValueError as error:
            self.top.notify(str(error), title="Filter", severity="error", timeout=8, markup=False)
            self.open_prompt("/", text)
            return
        self.filter = text
        self._tell_filter("asking")
        self.table.point(0)
        self.ask_again()

    def passes(self) -> Callable[[Any], bool]:
        """The filter, for rows that are here."""
        from pulsarbox.tui.widgets.local_rows import passing_of

        return passing_of(self.view, self.filter)

    def do_back(self) -> None:
        """Away with the filter, then back."""
        if self.filter != self._given:
            self.filtered(self._given)
        else:
            super().do_back()

    # Order and columns

    def sort_by(self, column: Column) -> None:
        """By this, and the other way round where it is so already."""
        key = column.sorted_by
        if key is None:
            self.top.notify(f"{column.title} is nothing to sort by", severity="warning", markup=False)
            return
        table = self.table
        was, descending = table.sorted_by
        is_text = column.kind in ("text", "topic", "state", "line")
        table.sorted_by = (key, not descending if was == key else not is_text)
        self.top.kept.set(f"sort.{self.view.name}", list(table.sorted_by))
        table.refresh()
        self.ask_again()

    def do_sort(self) -> None:
        """``s``"""
        self.run_worker(self._choose_sort(), group="dialog")

    async def _choose_sort(self) -> None:
        from pulsarbox.tui.actions.dialogs import Choice

        known = {column.key: column for column in self.table.columns if column.sorted_by is not None}
        options = [(key, f"{column.title:<14} {column.meaning}", "") for key, column in known.items()]
        found = await self.app.push_screen_wait(Choice("Sort by", options, self.table.sorted_by[0] or ""))
        if found is not None:
            self.sort_by(known[found])

    def do_reverse(self) -> None:
        """``S``"""
        sort, descending = self.table.sorted_by
        self.table.sorted_by = (sort, not descending)
        self.top.kept.set(f"sort.{self.view.name}", [sort, not descending])
        self.table.refresh()
        self.ask_again()

    def do_columns(self) -> None:
        """``c``"""
        self.run_worker(self._choose_columns(), group="dialog")

    async def _choose_columns(self) -> None:
        from pulsarbox.tui.screens.columns import Columns

        found = await self.app.push_screen_wait(Columns(self.view.columns, self.table.columns))
        if found is not None:
            keys = [column.key for column in found]
            is_usual = keys == [column.key for column in self.view.columns]
            self.top.kept.set(f"columns.{self.view.name}", None if is_usual else keys)
            self.table.set_columns(found)

    # Rows

    def rows_chosen(self) -> Sequence[TableRow]:
        """The marked ones, else the one that is pointed at."""
        return self.table.chosen

    def title_of(self, row: TableRow) -> str:
        """What a row is about, in a title."""
        return "  ".join(short_topic(str(row.get(key) or "")) for key in self.view.identity)

    def meanings(self) -> str:
        """What the columns mean, for the help."""
        width = max(len(column.title) for column in self.view.columns)
        return "\n".join(f"  {column.title:<{width}}  {column.meaning}" for column in self.view.columns)

    def row_meant(self) -> TableRow | None:
        """What this is about: the row that is pointed at."""
        return self.table.pointed

    def do_clear_marks(self) -> None:
        """``u``"""
        self.table.marked.clear()
        self.table.refresh()

    def command_line(self) -> str:
        """What prints this table."""
        sort, descending = self.table.sorted_by
        words = ["top", self.view.name, "--once"]
        if sort and (sort, descending) != (self.view.sort, self.view.descending):
            words += ["--sort", sort if descending else f"-{sort}"]
        if self.filter:
            words += ["--filter", self.filter]
        return self.line(*words, *self.top.feed.scope_words)

    # Export

    def do_export(self) -> None:
        """``e``"""
        self.run_worker(self._export("ndjson"), group="dialog")

    def do_export_csv(self) -> None:
        """CSV."""
        self.run_worker(self._export("csv"), group="dialog")

    async def _export(self, form: str) -> None:
        from pulsarbox.tui.actions.dialogs import Question

        stamp = time.strftime("%Y%m%d-%H%M%S")
        name = f"pulsarbox-{self.view.name}-{stamp}.{form}"
        path = await self.app.push_screen_wait(
            Question("Write all rows to", "a file; one that exists is not written over", name)
        )
        if not path:
            return
        try:
            count = await aside(lambda: self._written(Path(path).expanduser(), form))
        except (OSError, Trouble) as error:
            self.top.notify(str(error), title="Not written", severity="error", markup=False)
        else:
            self.top.notify(f"{count:,} rows in {path}", markup=False)

    def _written(self, path: Path, form: str) -> int:
        rows: list[dict[str, Any]] = []
        query = self.query_now()
        while len(rows) < EXPORTED_MAX:
            found = self.top.feed.view(
                Query(query.view, query.sort, query.descending, len(rows), _PORTION, query.filter, query.at)
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


def how_many(matching: int, total: int) -> str:
    """Of rows, how many pass."""
    return f"{numbers.count(matching)} of {numbers.count(total)}"


def _real_row(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    return {key: real(row, key) if isinstance(value, str) else value for key, value in row.items()}
