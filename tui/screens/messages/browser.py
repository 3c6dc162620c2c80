"""Message browser of a topic, from any position in both directions, without cursors or acknowledgements.

It holds a window of messages, which grows at the end being viewed and shrinks at the other.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from pulsarbox.cleaning import clean
from pulsarbox.names import short_topic
from pulsarbox.protocol.dead_letters.properties import REAL_TOPIC
from pulsarbox.tui import views
from pulsarbox.tui.actions.box_queries import WIDE
from pulsarbox.tui.actions.dialogs import Question
from pulsarbox.tui.actions.operation import Wrong, short
from pulsarbox.tui.actions.replay_operations import is_dead_letter
from pulsarbox.tui.feed import FeedError, ShownRow, aside
from pulsarbox.tui.position_input import instant
from pulsarbox.tui.screens.messages.message_facts import facts, fitted_facts, state_of
from pulsarbox.tui.screens.messages.message_source import MessageSource
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers, payload_view
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import short_id
from pulsarbox.tui.widgets.dialogs.plain_title import plain_title
from pulsarbox.tui.widgets.message_preview import MessagePreview
from pulsarbox.tui.widgets.table import Row as TableRow
from pulsarbox.tui.widgets.table import Table

if TYPE_CHECKING:
    from pulsarbox.expressions import Language

PAGE: Final = 100
HELD_MAX: Final = 2000
"""Maximum number of messages held."""
_LOW: Final = 30
"""Lines of a terminal below which the preview begins with the payload: the table has some of the metadata."""
HELD_BYTES: Final = 16 << 20
"""Approximate maximum size of the messages held."""
_FACT_BESIDE: Final = 45
"""Cells beside a long value of the metadata, which has one line: edges, its title and its length."""
_FACT_MIN: Final = 20
_KEY_MAX: Final = 24
"""Characters of a key in the title of the preview."""


_AGAIN: Final = 400
"""Messages that are read again at most: the box returns at most 500 at once."""
_LETTERS: Final = ("-DLQ", "-RETRY")
"""Ends of the default names of dead letter and retry letter topics."""
UNACKNOWLEDGED: Final = "unacknowledged"
"""Position of the first unacknowledged message of the subscription."""


class Wish(NamedTuple):
    """The next messages to read."""

    start: str
    """Position in the syntax of the box."""
    forward: bool
    is_new: bool
    """Whether to replace the messages held."""
    last: int = 0
    """Number of messages; 0 for a page."""


class Browser(ViewScreen):
    """A table of messages, with the full message of the cursor below."""

    DEFAULT_CSS = """
    Browser #panes { height: 1fr; }
    Browser #content { height: 45%; border: round $edge; border-title-color: $text; border-title-style: bold;
                       padding: 0 1; scrollbar-size-vertical: 1; }
    Browser #content Static { padding: 0 1 0 0; }
    Browser.-wide #panes { layout: horizontal; }
    Browser.-wide #panes Table { width: 3fr; }
    Browser.-wide #content { width: 2fr; height: 100%; }
    """
    view: ClassVar[views.TableView] = views.MESSAGES
    place: ClassVar[str] = "topics"
    kind: ClassVar[str] = "message"
    opens: ClassVar[str] = "message"
    has_details: ClassVar[bool] = False
    hinted: ClassVar[Sequence[str]] = (
        "go to",
        "follow",
        "form",
        "edit",
        "dlq replay",
        "filter",
        "back",
        "help",
        "quit",
    )

    def __init__(
        self, topic: str, subscription: str = "", passing: str = "", start: str = "", *, dead_letters: bool = False
    ) -> None:
        """``start`` is a position, by default the first unacknowledged message of ``subscription``, or the end.

        ``dead_letters``: whether the box counts the topic as one of dead letters, whatever its name.
        """
        super().__init__(passing)
        self._are_dead_letters = dead_letters or topic.endswith(_LETTERS)
        start = start or (UNACKNOWLEDGED if subscription else "latest")
        self.topic = topic
        self.subscription = subscription
        self.messages: list[ShownRow] = []
        self.following = False
        self.form = "auto"
        self.around: tuple[str | None, str | None] = (None, None)
        """Positions to continue reading before and after the messages held; None if there are no more."""
        self.ended = False
        """Whether the messages held reach the end of the topic."""
        self._stays = ""
        """ID of the message of the cursor that is read again; empty for none."""
        self._wish: Wish | None = Wish(start, start in ("earliest", UNACKNOWLEDGED), True)

    def body(self) -> ComposeResult:
        """Compose the table and the message."""
        filtered, table = super().body()
        yield filtered
        with Vertical(id="panes"):
            yield table
            with VerticalScroll(id="content", can_focus=False):
                yield MessagePreview()

    def on_resize(self, event: events.Resize) -> None:
        """Show the message beside the table if there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self._show_title()
        self.call_after_refresh(self._show_message)

    def begin(self) -> None:
        """Set up the table and start reading."""
        super().begin()
        self.table.sorted_by = (None, True)
        self._show_title()

    def _show_title(self) -> None:
        width = self.app.size.width
        self.table.border_title = plain_title(short_topic(self.topic), width * 3 // 5 if width >= WIDE else width)

    # Queries

    def load(self) -> Callable[[], Any]:
        """Return a function that reads the next messages; while following, the new ones."""
        wish = self._wish
        if wish is None and self.following and self.around[1] is not None:
            wish = Wish(self.around[1], True, False)
        if wish is None:
            return lambda: None
        asked = {
            "from": wish.start,
            "direction": "forward" if wish.forward else "backward",
            "limit": str(wish.last or PAGE),
        }
        if self.filter:
            asked["filter"] = self.filter
        source = MessageSource(self.top.feed, self.topic, self.subscription)
        return lambda: (wish, source.page(asked))

    def show(self, answer: Any) -> None:
        """Add the messages to the window."""
        if answer is None:
            return
        wish, told = answer
        if wish == self._wish:
            self._wish = None
        found = [self._row(each) for each in told.get("messages") or ()]
        before, behind, ended = told.get("previous"), told.get("next"), bool(told.get("ended"))
        if wish.is_new:
            self.messages, self.around = found, (before, behind)
            self.ended = ended or not wish.forward
        elif wish.forward:
            dropped = surplus(found[::-1] + self.messages[::-1])
            self.messages = (self.messages + found)[dropped:]
            self.around = (str(self.messages[0]["id"]) if dropped else self.around[0], behind)
            self.ended = ended
        else:
            self.messages = found + self.messages
            dropped = surplus(self.messages)
            del self.messages[len(self.messages) - dropped :]
            self.around = (before, str(self.messages[-1]["id"]) if dropped else self.around[1])
            self.ended = self.ended and not dropped
        if not found and ended and wish == Wish(UNACKNOWLEDGED, True, True):
            self._wish = Wish("latest", False, True)
            self.call_later(self.ask_again)
        place = behind if wish.forward else before
        if not found and not ended and place is not None and self._wish is None:
            # A page without matching messages: read on.
            self._wish = Wish(place, wish.forward, wish.is_new)
            self.call_later(self.ask_again)
        self._list(wish, len(found))

    def _row(self, told: Mapping[str, Any]) -> ShownRow:
        row = ShownRow({name: value for name, value in told.items() if name not in ("payload", "decoded")})
        row["payload"], row["decoded"] = (
            told.get("payload"),
            payload_view.as_text(told.get("decoded")),
        )  # cleaned when shown
        row["state"] = state_of(row)
        row["shown"], row["told"], row["topic"] = payload_view.brief(row), payload_view.properties(row), self.topic
        row["isDeadLetter"] = self._are_dead_letters or REAL_TOPIC in (told.get("properties") or {})
        return row

    def _list(self, wish: Wish, count: int) -> None:
        table = self.table
        nothing = f"No message matches the filter: {clean(self.filter)}  ({self.key_of('back')}: clear the filter)"
        table.empty = nothing if self.filter else self.nothing()
        self._show_filter(f"{len(self.messages):,} read so far" if self._wish is None else numbers.LOADING)
        if wish.is_new:
            table.pointed = None
        table.show(self.messages, 0, len(self.messages))
        if wish.is_new and self.messages:
            ids = [str(each["id"]) for each in self.messages]
            end = 0 if wish.forward else len(ids) - 1
            table.point(ids.index(self._stays) if self._stays in ids else end)
            self._stays = ""
        elif self.following and count:
            table.point(len(self.messages) - 1)
        elif not wish.forward:
            table.shift_view(count)
        self._show_message()

    def nothing(self) -> str:
        """Return the command that publishes a message."""
        return f"No messages. Publish one: {self.line('produce', short({'topic': self.topic}), 'Hello, world')}"

    @on(Table.Moved)
    def _reached(self) -> None:
        """Read more at the edges."""
        table = self.table
        if self._wish is None and self.messages and table.pointed is not None:
            before, behind = self.around
            if table.at_edge(-1) and before is not None:
                self.wish(Wish(before, False, False))
            elif table.at_edge(1) and behind is not None:
                self.wish(Wish(behind, True, False))
        self._show_message()

    def can_mark(self) -> bool:
        """Whether there are messages to compare."""
        return self.table.count > 1

    def do_refresh(self) -> None:
        """Read the messages around the cursor again, because a replay may have acknowledged some of them."""
        row, ids = self.table.pointed, [str(each["id"]) for each in self.messages]
        if row is not None and str(row["id"]) in ids and self._wish is None:
            self._stays = str(row["id"])
            first = max(ids.index(self._stays) - _AGAIN // 2, 0)
            self._wish = Wish(ids[first], True, True, min(len(ids) - first, _AGAIN))
        super().do_refresh()

    def wish(self, wish: Wish) -> None:
        """Read these messages next."""
        self._wish = wish
        self.ask_again()

    def language(self) -> "Language":
        """Return the language of message filters, because the box and not the table applies them."""
        from pulsarbox.protocol.dead_letters.message_filter import message_language

        return message_language()

    def filtered(self, text: str) -> None:
        """Apply a filter from the current position."""
        before = self.filter
        super().filtered(text)
        if self.filter != before:
            self.wish(Wish(str(self.messages[0]["id"]) if self.messages else "latest", bool(self.messages), True))

    # Order

    def applies(self, name: str, rows: Sequence[TableRow]) -> bool:
        """See ViewScreen. Messages cannot be sorted."""
        return name != "sort" and super().applies(name, rows)

    def do_sort(self) -> None:
        """Report that messages have an order of their own."""
        self.top.notify("Messages have the order of the topic", severity="warning")

    def do_reverse(self) -> None:
        """Report that messages have an order of their own."""
        self.do_sort()

    # Message

    def _show_message(self) -> None:
        row = self.table.pointed
        box, shown = self.query_one("#content", VerticalScroll), self.query_one("#message", MessagePreview)
        if row is None:
            box.border_title = ""
            shown.show(())
            return
        width = box.size.width or self.size.width
        box.border_title = plain_title(preview_title(row, self.form), width)
        payload = payload_view.lines_of(row, self.form)
        most, height, is_low = max(width - _FACT_BESIDE, _FACT_MIN), box.size.height, self.app.size.height < _LOW
        if is_low or not height:
            told = facts(row, most)
        else:  # the payload is in view, after a blank line
            told = fitted_facts(row, most, height - 1 - min(len(payload), height // 2))
        is_json = self.form == "auto" and payload_view.is_json(row, payload)
        parts = [(told, False), ([""], False), (payload, is_json)]
        if is_low:
            parts.reverse()
        shown.show(parts)
        box.scroll_home(animate=False)

    def status_line(self) -> list[Part]:
        """Return the command, and how far the end is, or whether it is followed."""
        parts: list[Part] = [(f" {self.key_of('copy')} ", "key", "copy"), (f"{self.command_line()}  ", "dim", "copy")]
        return [*parts, self._place()]

    def _place(self) -> Part:
        """Return the place of the cursor, which is unknown unless the messages held reach the end of the topic."""
        below = self.table.rows_below
        if self.following:
            return "following", "good", "follow"
        if not self.ended or not self.messages:
            return "", "plain", ""
        return ("at the end", "good", "follow") if not below else (f"{below:,} before the end", "plain", "follow")

    def opened(self, row: TableRow) -> None:
        """Show the whole message."""
        self.top.open("messages.message_viewer:MessageViewer", self.topic, self.subscription, str(row["id"]))

    def command_line(self) -> str:
        """Return the command that shows the message."""
        row = self.table.pointed if self.is_mounted else None
        words = ["peek", short({"topic": self.topic})]
        if row is not None:
            words += ["--from", str(row.get("id")), "-n", "1"]
        return self.line(*words)

    def past_command(self) -> str:
        """Return the command that shows the message, which is the same at any time."""
        return self.command_line()

    # Deeds

    def rows_chosen(self) -> Sequence[TableRow]:
        """Return the chosen messages as targets of jobs."""
        return [self._as_target(row) for row in super().rows_chosen()]

    def _as_target(self, row: TableRow) -> dict[str, Any]:
        only = f"id == {quoted(str(row.get('id')))}"
        return {**row, "filter": only, "only": only, "keptBy": self.subscription}

    def do_edit(self) -> None:
        """Edit a dead letter and replay it."""
        row = self.table.pointed
        if row is None:
            return
        if not is_dead_letter(row):
            self.top.notify("'edit' applies to dead letters: 4 lists them", severity="warning", markup=False)
            return
        if self.top.read_only:
            self.top.notify("'edit' changes the box, and the dashboard is read-only", severity="warning", markup=False)
            return
        self.run_worker(self._edit(row), group="deed")

    async def _edit(self, row: TableRow) -> None:
        from pulsarbox.tui.actions.operations import BY_NAME
        from pulsarbox.tui.screens.editing import Editing

        try:
            whole = await self._whole(row)
        except FeedError as trouble:
            self.top.notify(
                str(trouble), title="The message is not available as a whole", severity="error", markup=False
            )
            return
        edit = await self.app.push_screen_wait(Editing(whole))
        if edit:
            await self._deed(BY_NAME["dlq replay"], [self._as_target(row) | {"edit": edit, "dry": "no"}])

    async def _whole(self, row: TableRow) -> TableRow:
        """Return a message with its full payload, unless too large to edit. Raises FeedError."""
        large = (row.get("size") or 0) > payload_view.SHOWN_MAX
        if not row.get("truncated") or row.get("encrypted") or large:
            return row
        asked = {
            "from": str(row["id"]),
            "direction": "forward",
            "limit": "1",
            "maxPayload": str(payload_view.SHOWN_MAX),
        }
        source = MessageSource(self.top.feed, self.topic)
        found = (await aside(lambda: source.page(asked))).get("messages")
        if not found or found[0].get("id") != row["id"]:
            raise FeedError(f"message {row['id']} no longer exists", 404)
        return {**row, "payload": found[0].get("payload"), "truncated": found[0].get("truncated")}

    # Navigation

    def do_go_to(self) -> None:
        """Ask for a position and go there."""
        self.run_worker(self._go_to(), group="dialog")

    async def _go_to(self) -> None:
        hint = (
            "earliest, latest, unacknowledged, -10 (before the end)\n"
            "-1h, 03:12, 2026-11-21T10:00\n"
            "ledger:entry; 12:34 is a time, 12:34:-1 an ID"
        )
        found = await self.app.push_screen_wait(Question("Go to a position", hint, "", self._start))
        if found is not None:
            self.following = False
            self.wish(self._start(found))

    def _start(self, text: str) -> Wish:
        return start_of(text, self.top.box_now())

    def do_follow(self) -> None:
        """Start or stop following new messages."""
        self.following = not self.following
        if self.following:
            self.wish(Wish("latest", False, True))
        self.refresh_status_lines()

    def do_form(self) -> None:
        """Switch the payload format."""
        self.form = payload_view.FORMS[(payload_view.FORMS.index(self.form) + 1) % len(payload_view.FORMS)]
        self._show_message()

    def do_difference(self) -> None:
        """Show the difference of two marked messages."""
        rows = list(self.table.chosen)
        if len(rows) != 2:
            self.top.notify(
                f"Mark two messages (space), then press {self.key_of('difference')} to compare them", severity="warning"
            )
            return
        first, second = ((self.topic, self.subscription, str(row["id"])) for row in rows)
        self.top.open("messages.message_difference:MessageDifference", first, second)


_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")
"""A time of day. A message ID of this form needs its partition, ``12:34:-1``."""

_POSITIONS: Final = "earliest, latest, unacknowledged, -10, ledger:entry, or a time: -1h, 03:12, 2026-11-21T10:00"


def start_of(text: str, now: int | None = None) -> Wish:
    """Parse a position to go to. ``now`` is the time of the box (ms since 1970). Raises Wrong."""
    text = text.strip()
    if text in ("earliest", "latest", UNACKNOWLEDGED):
        return Wish(text, text != "latest", True)
    if re.fullmatch(r"-[1-9]\d{0,3}", text):
        return Wish("latest", False, True, int(text[1:]))
    if not _CLOCK.fullmatch(text) and re.fullmatch(r"\d+:\d+(:-?\d+)*", text):
        return Wish(text, True, True)
    try:
        where = instant(text, now)
    except Wrong:
        raise Wrong(f"invalid position '{text}': expected {_POSITIONS}") from None
    since = text.removeprefix("@")
    return Wish(since if since[:1] == "-" else str(where), True, True)  # the box resolves relative times


def surplus(rows: Sequence[ShownRow]) -> int:
    """Return how many messages at the end exceed the limits. The first one is always kept."""
    held = 0
    for at, row in enumerate(rows):
        found = row.get("properties")
        texts = [row.get("payload"), row.get("decoded"), row.get("key"), *(found.values() if found else ())]
        held += sum(len(text) for text in texts if isinstance(text, str))
        if at and (at >= HELD_MAX or held > HELD_BYTES):
            return len(rows) - at
    return 0


def preview_title(row: Mapping[str, Any], form: str) -> str:
    """Return the ID, key, size and form of a message."""
    key = "" if row.get("key") is None else f"  key {payload_view.cut(row['key'], _KEY_MAX)}"
    size = numbers.size(row.get("size"))
    return f"{short_id(row.get('id'))}{key}  {size}  {payload_view.named_form(row, form)}"
