"""Clients screen: connections, producers and consumers with their rates."""

from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import cause_look, client_title
from pulsarbox.tui.widgets.table import Row


class Clients(ViewScreen):
    """Producers, consumers, and connections without either."""

    view: ClassVar[views.TableView] = views.CLIENTS
    place: ClassVar[str] = "clients"
    kind: ClassVar[str] = "client"

    def title_of(self, row: Row) -> str:
        """Return the title of a client, as in the dialogs of its actions."""
        return client_title(row)

    def status_line(self) -> list[Part]:
        """Return why the client at the cursor waits, and the command."""
        parts, row = super().status_line(), self.table.pointed
        if row is None or not row.get("causeText"):
            return parts
        return [
            (" ", "plain", ""),
            (str(row["causeText"]), cause_look(row) or "plain", ""),
            ("  ", "plain", ""),
            *parts,
        ]

    def command_line(self) -> str:
        """Return the command that lists the clients."""
        words = ["client", "list", *self.top.feed.scope_words]
        if self.filter:
            words += ["--filter", self.filter]
        return self.line(*words)
