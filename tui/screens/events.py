"""Events screen: quotas reached, messages evicted, clients disconnected, plugins failed, jobs ended."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from pulsarbox.tui import views
from pulsarbox.tui.actions.dialogs import TextDialog
from pulsarbox.tui.feed import EVENTS, ViewSnapshot
from pulsarbox.tui.screens.jobs import written
from pulsarbox.tui.screens.listed import ListScreen, fetch
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part, by_enter
from pulsarbox.tui.widgets.columns import state_look
from pulsarbox.tui.widgets.details_text import DetailsText
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.table import Row

_AT_ONCE: Final = 500
_KEPT: Final = 5000
_IDS: Final = frozenset({"entry", "job", "ledger", "status"})
"""Fields with numbers that are no quantities."""
_LOOKS: Final = {"warning": "warn", "error": "bad"}


class EventsScreen(ListScreen):
    """Events, newest first. Requests only new ones."""

    view: ClassVar[views.TableView] = views.EVENTS
    place: ClassVar[str] = "events"
    opens: ClassVar[str] = "details"

    def __init__(self, passing: str = "") -> None:
        super().__init__(passing)
        self._known: dict[int, Mapping[str, Any]] = {}
        self._next: int | None = None
        self._of: tuple[str, int | None] = ("", None)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries new events, or all after a change of filter or time."""
        query, feed, at = self.query_now(), self.top.feed, self.top.at
        if self._of != (self.filter, at):
            self._known, self._next, self._of = {}, None, (self.filter, at)
        passing = self.filter
        if at is not None:
            passing = self._before(at) or passing
        asked = {"limit": str(_AT_ONCE)} | ({"filter": passing} if passing else {})
        if self._next is not None:
            asked["after"] = str(self._next)
        known = self._known

        def ask() -> ViewSnapshot:
            told = fetch(feed, f"{EVENTS}?{urlencode(asked)}")
            for event in told.get("events") or ():
                if at is None or (event.get("time") or 0) <= at:
                    known[event["sequence"]] = event
            while len(known) > _KEPT:
                del known[min(known)]
            self._next = told.get("next") if at is None else None
            return chosen(query, list(known.values()), lambda row: True)

        return ask

    def _before(self, at: int) -> str:
        """Return the filter that also excludes events after a time; empty for a pattern, which cannot be combined."""
        if self.filter.startswith(("/", "!")):
            return ""
        return f"({self.filter}) and time <= {at}" if self.filter else f"time <= {at}"

    def opened(self, row: Row) -> None:
        """Show the full event."""
        look = state_look(row.get("severity"))
        details = DetailsText().line(str(row.get("text") or ""), _LOOKS.get(str(row.get("severity")), ""))
        details.line("").fact("time", numbers.instant(row.get("time")))
        details.fact("severity", str(row.get("severity")), look).fact("kind", str(row.get("kind")))
        if row.get("subject"):
            details.fact("subject", str(row["subject"]))
        for name, value in (row.get("fields") or {}).items():
            details.fact(name, str(value) if name in _IDS else written(value))
        if (row.get("count") or 1) > 1:
            details.fact("count", f"{row['count']:,}")
        self.app.push_screen(TextDialog(f"Event {row.get('sequence')}", details.text, self.copied_command()))

    def status_line(self) -> list[Part]:
        """Return the full text of the event, which the table may truncate."""
        row = self.table.pointed
        if row is None or not row.get("text"):
            return super().status_line()
        look = _LOOKS.get(str(row.get("severity")), "plain")
        return self.with_command(by_enter(str(row["text"]), look, self.size.width))

    def command_line(self) -> str:
        """Return the command that shows the events."""
        return self._line(self.filter)

    def past_command(self) -> str:
        """Return the command that shows the newest events of the time of history, empty if the filter is a pattern."""
        passing = "" if self.top.at is None else self._before(self.top.at)
        return self._line(passing) if passing else ""

    def _line(self, passing: str) -> str:
        return self.line("events", *(["--filter", passing] if passing else []), *self.top.feed.scope_words)
