"""``6``: who is connected, with what, and how fast."""

from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import short_topic
from pulsarbox.tui.widgets.table import Row


class Clients(ViewScreen):
    """Producers, consumers, and connections that have neither."""

    view: ClassVar[views.View] = views.CLIENTS
    place: ClassVar[str] = "clients"
    kind: ClassVar[str] = "client"

    def title_of(self, row: Row) -> str:
        """What it is, with what, and from where."""
        told = (row.get("kind"), short_topic(str(row.get("topic") or "")), row.get("subscription"), row.get("address"))
        return "  ".join(str(each) for each in told if each)

    def told(self) -> list[Part]:
        """Why the client at the cursor waits."""
        parts, row = super().told(), self.table.pointed
        if row is None or not row.get("causeText"):
            return parts
        return [(" ", "plain", ""), (str(row["causeText"]), "warn", ""), ("  ", "plain", ""), *parts]

    def command_line(self) -> str:
        """All of them."""
        words = ["client", "list", *self.top.feed.scope_words]
        if self.filter:
            words += ["--filter", self.filter]
        return self.line(*words)
