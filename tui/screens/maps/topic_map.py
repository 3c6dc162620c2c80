"""Topics as areas in proportion to their backlogs, rates or sizes."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content

from pulsarbox.names import short_topic
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import Row, short
from pulsarbox.tui.feed import FeedError, RowQuery, ShownRow, ViewSnapshot, real
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import shortened
from pulsarbox.tui.widgets.dialogs.plain_title import plain_title
from pulsarbox.tui.widgets.graphs.treemap import NO_OTHERS, SIGNS, Others, Tile, Treemap

TOPICS_MAX: Final = 100
"""Maximum number of topics to request; one area stands for all others."""
MEASURES: Final[tuple[tuple[str, str, str, Callable[[Any], str]], ...]] = (
    ("backlog", "backlog", "unacknowledged messages", numbers.count),
    ("publishRate", "in", "messages published per second", lambda value: f"{numbers.rate(value)}/s"),
    ("size", "size", "bytes stored", numbers.size),
)
"""Measures that areas can represent: field of a topic, name, meaning, and format."""
_TITLES: Final = {"backlog": "backlog", "publishRate": "publish rate", "size": "size"}
_TITLE_EDGES: Final = 4
"""Cells of a border beside its title."""
_ADVICE: Final = "Publish a message: pulsarbox produce hello 'Hello, world'"


class TopicMap(TopScreen):
    """Treemap of the topics; enter shows the subscriptions of one."""

    place: ClassVar[str] = "topics"
    kind: ClassVar[str] = "topic"
    opens: ClassVar[str] = "subscriptions"
    hinted: ClassVar[Sequence[str]] = ("sort", "messages", "menu", "copy", "pause", "back", "help", "quit")

    def __init__(self, measure: str = "backlog") -> None:
        super().__init__()
        self._measure = next((at for at, each in enumerate(MEASURES) if each[0] == measure), 0)
        self._rows: dict[str, ShownRow] = {}

    def body(self) -> ComposeResult:
        """Compose the map."""
        yield Treemap(key="map")

    @property
    def map(self) -> Treemap:
        """The map."""
        return self.query_one("#map", Treemap)

    def begin(self) -> None:
        """Start the refresh."""
        super().begin()
        self.map.empty, self.map.limit = numbers.LOADING, "of the quota"
        self.set_focus(self.map)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the topics with the largest values, and the sum of all if there are others."""
        measure, feed, at = MEASURES[self._measure][0], self.top.feed, self.top.at
        columns = ("topic", "backlog", "publishRate", "size", "quota")
        query = RowQuery("topics", measure, True, 0, TOPICS_MAX, f"{measure} > 0", at, columns)

        def ask() -> tuple[str, ViewSnapshot, float | None]:
            found = feed.view(query)
            if found.matching <= len(found.rows):
                return measure, found, None
            try:
                totals = feed.view(RowQuery("overview", limit=1, at=at, columns=(measure,))).totals
            except FeedError:  # as for a role without access to all tenants
                return measure, found, None
            return measure, found, totals.get(measure)

        return ask

    def show(self, answer: Any) -> None:
        """Draw the topics, unless another measure has been chosen since."""
        measure, snapshot, whole = answer
        assert isinstance(snapshot, ViewSnapshot)
        self.top.update_vitals(snapshot)
        if measure != MEASURES[self._measure][0]:
            return
        tiles = tiles_of(snapshot.rows, self._measure)
        self._rows = {short_topic(str(row.get("topic"))): row for row in snapshot.rows}
        nothing = command_lines.told_with_target(
            f"No topic has {MEASURES[self._measure][2]}. {_ADVICE}", self.top.target
        )
        self.map.empty = "" if tiles else self.advising(nothing)
        others = others_of(tiles, snapshot.matching, whole)
        self.map.show(tiles, MEASURES[self._measure][3], others)
        self._show_title(snapshot.matching, len(tiles) + others.number)

    def _show_title(self, total: int, divided: int) -> None:
        """Name the measure in the border, and explain the signs and the fill of the areas.

        ``divided`` is the number of topics for which the areas stand.
        """
        field, _, what, _ = MEASURES[self._measure]
        shown, width = self.map.own, self.map.size.width
        largest = f"the {divided} largest of " if divided < total else ""
        part = f"{shown} of " if shown < divided else ""
        others = f"   {part}{largest}{numbers.counted(total, 'topic')}" if part or largest else ""
        title, meaning = f"Topics by {_TITLES[field]}", f" ({what})"
        if len(title + meaning + others) > width - _TITLE_EDGES:
            meaning = ""
        self.map.border_title = plain_title(f"{title}{meaning}{others}", width)
        if not self.map.tiles:
            self.map.border_subtitle = ""
            return
        fill = "backlog quota: " if self.app.current_theme.ansi else "fill: used backlog quota, "
        self.map.border_subtitle = Content.assemble(
            fill,
            (f"{SIGNS['warm']} from 80%", "$text-warning"),
            "  ",
            (f"{SIGNS['hot']} from 100%", "$text-error"),
        )

    def do_sort(self) -> None:
        """Let areas stand for the next measure."""
        self._measure = (self._measure + 1) % len(MEASURES)
        self.ask_again()

    @on(Treemap.Moved)
    def _moved(self) -> None:
        self.refresh_status_lines()

    @on(Treemap.Chosen)
    def _chosen(self) -> None:
        if self.map.is_at_merged:
            self._open_merged()
            return
        row = self.row_meant()
        if row is not None:
            self.top.open("subscriptions:Subscriptions", f"topic == {quoted(real(row, 'topic'))}")

    def _open_merged(self) -> None:
        """List the topics without areas of their own: those with at most the largest value of them."""
        measure, shown = MEASURES[self._measure][0], self.map
        most = math.ceil((shown.merged or shown.tiles[:-1])[0 if shown.merged else -1].value)
        self.top.open("topics:TopicsScreen", f"{measure} > 0 and {measure} <= {most}")

    def rows_chosen(self) -> Sequence[Row]:
        """Return the topic of the cursor."""
        tile = self.map.pointed if self.is_mounted and not self.map.is_at_merged else None
        row = None if tile is None else self._rows.get(tile.name)
        return [] if row is None else [row]

    def status_line(self) -> list[Part]:
        """Return the values of the topic."""
        row = self.row_meant()
        if row is None and self.is_mounted and self.map.is_at_merged:
            topics = numbers.counted(self.map.merged_count, "smaller topic")
            return [(" enter ", "key", ""), (f"lists the {topics}", "plain", "")]
        if row is None:
            return super().status_line()
        told = "   ".join(f"{word} {form(row.get(name))}" for name, word, _, form in MEASURES)
        room = self.size.width - len(told) - 5 - sum(cell_len(text) for text, _, _ in self.copy_hint)
        name = shortened(short_topic(str(row.get("topic"))), room)
        return self.with_command([(f" {name}", "name", ""), (f"   {told}", "plain", "")])

    def command_line(self) -> str:
        """Return the command that shows the statistics of the topic."""
        row = self.row_meant()
        if row is None:
            return self.line("top", *self._printing(), *self.top.feed.scope_words)
        return self.line("topic", "stats", short(row))

    def past_command(self) -> str:
        """Return the command that prints the topics at the time of history."""
        return self.past_line(*self._printing())

    def _printing(self) -> list[str]:
        """Return the arguments of ``top`` that print the topics in the order of their areas."""
        measure = MEASURES[self._measure][0]
        return ["topics", "--once", *([] if measure == views.TOPICS.sort else ["--sort", measure])]

    def advised_command(self) -> str:
        """Return the command that a map without areas advises."""
        return command_lines.parted(self.map.empty)[1] if self.answered and not self.map.tiles else ""


def others_of(tiles: Sequence[Tile], matching: int, whole: float | None) -> Others:
    """Return the topics besides ``tiles``: their number and sum. None of them if their sum is unknown.

    ``whole`` is the sum of all topics, None if it is unknown. It may be of a slightly different time than the tiles.
    """
    count, rest = matching - len(tiles), (whole or 0) - sum(tile.value for tile in tiles)
    return Others(count, rest) if count > 0 and rest > 0 else NO_OTHERS


def tiles_of(rows: Sequence[ShownRow], measure: int) -> list[Tile]:
    """Return the tiles of topics, largest first, with the used shares of their backlog quotas."""
    name, _, _, form = MEASURES[measure]
    tiles = []
    for row in rows:
        value = row.get(name) or 0
        if value > 0:
            tiles.append(Tile(short_topic(str(row.get("topic"))), value, form(value), row.get("quota")))
    return sorted(tiles, key=lambda tile: -tile.value)
