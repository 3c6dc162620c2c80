"""The differences of two messages: their metadata, and their contents by field, or by line if they are text."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult

from pulsarbox.names import short_topic
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import aside
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.messages.message_source import LoadedMessage, MessageSource
from pulsarbox.tui.slices import in_slices
from pulsarbox.tui.viewer.difference import CHANGES_MAX, Difference, differences
from pulsarbox.tui.viewer.document import Document, Kind
from pulsarbox.tui.viewer.lines import LinePart, Lines
from pulsarbox.tui.viewer.value_reader import ValueReader
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.pager import Pager
from pulsarbox.tui.widgets.panel import PanelFrame

Address = tuple[str, str, str]
"""Topic, subscription (may be empty) and message ID."""
TEXT_LINES: Final = 1000
"""Maximum number of lines of a text that are compared."""
_COMPARED: Final = (
    *("key", "properties", "eventTime", "deliverAt", "publishTime", "producer", "sequenceId", "schemaVersion"),
    *("orderingKey", "codec", "size", "tombstone", "state"),
)
_TIMES: Final = frozenset({"eventTime", "deliverAt", "publishTime"})
"""Times in ms since 1970."""
_TO_MS: Final = len("2026-11-21 22:25:40.300")
_WORDS: Final = (("+", "added"), ("-", "removed"), ("~", "changed"))
_WORDS_FROM: Final = 60
"""Columns from which the numbers of differences have words."""
_LOOKS: Final = {"+": "added", "-": "removed", "~": "changed"}


class DifferenceLines:
    """Lines with their numbers from 0, some of them with a difference."""

    def __init__(self) -> None:
        self._lines: list[Callable[[int], list[LinePart]]] = []
        self._differences: dict[int, tuple[int, Callable[[], str]]] = {}
        """Number from 1, and path, of the difference of each line that has one."""

    def add(self, draw: Callable[[int], list[LinePart]], path: Callable[[], str] | None = None) -> None:
        """Add a line, which is drawn when it comes into view, and the path of its difference, if it has one."""
        if path is not None:
            self._differences[len(self._lines)] = len(self._differences) + 1, path
        self._lines.append(draw)

    def place_of(self, at: int) -> str:
        """Return number and path of the difference of a line; empty if it has none."""
        if at not in self._differences:
            return ""
        number, path = self._differences[at]
        return f"{number:,} of {len(self._differences):,}  {path()}".rstrip()

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def first(self) -> int | None:
        """See Lines."""
        return 0 if self._lines else None

    @property
    def last(self) -> int | None:
        """See Lines."""
        return len(self._lines) - 1 if self._lines else None

    def after(self, at: int) -> int | None:
        """See Lines."""
        return at + 1 if at + 1 < len(self._lines) else None

    def before(self, at: int) -> int | None:
        """See Lines."""
        return at - 1 if at else None

    def pieces(self, at: int, room: int) -> list[LinePart]:
        """See Lines."""
        return self._lines[at](room)

    def share(self, at: int) -> float:
        """See Lines."""
        return at / max(len(self._lines), 1)

    def found(self, text: str) -> Iterator[int | None]:
        """See Lines."""
        yield from ()


class Compared(NamedTuple):
    """Two messages."""

    first: LoadedMessage
    second: LoadedMessage


class MessageDifference(TopScreen):
    """Added (+), removed (-) and changed (~) fields of the second message."""

    place: ClassVar[str] = "topics"
    kind: ClassVar[str] = ""
    hinted: ClassVar[Sequence[str]] = ("copy", "back", "help", "quit")

    def __init__(self, first: Address, second: Address) -> None:
        super().__init__()
        self.addresses = (first, second)
        self.lines = DifferenceLines()
        self.counts = dict.fromkeys("+-~", 0)
        self._is_wanted = True

    def body(self) -> ComposeResult:
        """Compose the differences."""
        with PanelFrame(id="differences"):
            yield Pager(key="content")

    def begin(self) -> None:
        """Start to load the messages."""
        super().begin()
        pager = self.query_one(Pager)
        pager.show(self.lines)
        self._show_titles()
        self.set_focus(pager)

    def on_resize(self) -> None:
        """Shorten the titles for the new size, once the layout has it."""
        self.call_after_refresh(self._show_titles)

    @on(Pager.Moved)
    def _moved(self) -> None:
        self.refresh_status_lines()

    def load(self) -> Callable[[], Any]:
        """Return a function that loads both messages."""
        if not self._is_wanted:
            return lambda: None
        feed, addresses = self.top.feed, self.addresses

        return lambda: Compared(*(MessageSource(feed, topic, name).load(at) for topic, name, at in addresses))

    def show(self, answer: Any) -> None:
        """Compare the messages."""
        if isinstance(answer, Compared):
            self._is_wanted = False
            self._show_titles()
            self.run_worker(self._compare(answer), group="comparing", exclusive=True)

    def _show_titles(self) -> None:
        """Show the messages and the numbers of differences in the border."""
        names = [f"{at} of {short_topic(topic)}" for topic, _, at in self.addresses]
        told = [] if self._is_wanted else [self._counted()]
        self.query_one("#differences", PanelFrame).name_it(f"Differences: {names[0]} → {names[1]}", *told)

    def _counted(self) -> str:
        has_room = self.size.width >= _WORDS_FROM
        return "   ".join(f"{sign} {self.counts[sign]:,} {word if has_room else ''}".strip() for sign, word in _WORDS)

    async def _compare(self, both: Compared) -> None:
        first, second = (ValueReader(metadata(each)) for each in both)
        for steps in (first.steps(), second.steps(), both.first.contents.steps(), both.second.contents.steps()):
            await in_slices(steps, lambda _: None)
        await self._list("Metadata", first.document, second.document)
        one, two = both.first.contents.document, both.second.contents.document
        if one is not None and two is not None:
            await self._list("Contents", one, two)
        else:
            self._list_texts(await aside(lambda: text_differences(*both)))
        self.query_one(Pager).changed()
        self._show_titles()
        self.refresh_status_lines()

    async def _list(self, title: str, first: Document, second: Document) -> None:
        begin = len(self.lines)
        self.lines.add(lambda room: [LinePart(title, "name")])

        def take(change: Difference | None) -> None:
            if change is not None:
                self.counts[change.sign] += 1
                self.lines.add(lambda room: drawn(change, first, second, room), lambda: path_of(change, first, second))

        await in_slices(differences(first, second), take, self.query_one(Pager).changed)
        if len(self.lines) == begin + 1:
            self.lines.add(lambda room: [LinePart("  no difference", "dim")])

    def _list_texts(self, lines: Sequence[str]) -> None:
        self.lines.add(lambda room: [LinePart("Contents", "name")])
        for line in lines or ["no difference"]:
            sign = line[:1]
            parts = [LinePart("  "), LinePart(line, _LOOKS.get(sign, "dim"))]
            self.lines.add(lambda room, parts=parts: parts, str if sign in self.counts else None)  # type: ignore[misc]
            if sign in self.counts:
                self.counts[sign] += 1

    def status_line(self) -> list[Part]:
        """Return the difference at the cursor, and the equivalent command."""
        place = self.lines.place_of(self.query_one(Pager).cursor or 0)
        parts: list[Part] = [(f" {place}", "plain", "")] if place else []
        if sum(self.counts.values()) >= CHANGES_MAX:
            parts.append((f"  only the first {CHANGES_MAX:,} differences are shown", "warn", ""))
        return self.with_command(parts) if parts else super().status_line()

    def command_line(self) -> str:
        """Return the command that prints the second message."""
        topic, _, message_id = self.addresses[1]
        return self.line("peek", short({"topic": topic}), "--from", message_id, "-n", "1")

    def past_command(self) -> str:
        """Return the command that prints the second message, which is the same at any time."""
        return self.command_line()


def metadata(message: LoadedMessage) -> dict[str, Any]:
    """Return the metadata to compare."""
    found = {name: message.real.get(name) for name in _COMPARED}
    found |= {name: numbers.instant(value)[:_TO_MS] for name, value in found.items() if name in _TIMES and value}
    return {name: value for name, value in found.items() if value or (_is_number(value) and name not in _TIMES)}


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, which says something even if it is 0."""
    return isinstance(value, int) and not isinstance(value, bool)


def drawn(change: Difference, first: Document, second: Document, room: int) -> list[LinePart]:
    """Return the line of a difference: its sign, its path, and what was before and after."""
    look = _LOOKS[change.sign]
    line = [LinePart("  "), LinePart(f"{change.sign} ", look)]
    line += [LinePart(path_of(change, first, second), "name"), LinePart(": ", "dim")]
    if change.before >= 0:
        line.append(LinePart(summary(first, change.before, room), "removed" if change.after >= 0 else look))
    if change.sign == "~":
        line.append(LinePart(" → ", "dim"))
    if change.after >= 0:
        line.append(LinePart(summary(second, change.after, room), "added" if change.before >= 0 else look))
    return line


def path_of(change: Difference, first: Document, second: Document) -> str:
    """Return the path of a difference."""
    path = second.path_of(change.after) if change.before < 0 else first.path_of(change.before)
    return path or "(the whole value)"


def summary(document: Document, node: int, room: int) -> str:
    """Return a scalar, or the kind of a container with the number of its values."""
    if not document.is_container(node):
        return document.shown(node, room)
    kind, value = ("object", "field") if document.kinds[node] == Kind.OBJECT else ("array", "element")
    return f"{kind} ({numbers.counted(document.size_of(node), value)})"


def text_differences(first: LoadedMessage, second: LoadedMessage) -> list[str]:
    """Return the lines of two texts with signs, up to a maximum number of lines."""
    one, two = (shown_lines(each.contents.text) for each in (first, second))
    found = difflib.unified_diff(one, two, lineterm="", n=3)
    return [line for line in found if not line.startswith(("--- ", "+++ "))]


def shown_lines(lines: Lines) -> list[str]:
    """Return the first lines of a text."""
    found, at = list[str](), lines.first
    while at is not None and len(found) < TEXT_LINES:
        found.append("".join(piece.text for piece in lines.pieces(at, 400)))
        at = lines.after(at)
    return found
