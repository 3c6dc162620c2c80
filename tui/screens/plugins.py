"""Plugins screen: plugins of the box with their cost, errors and users."""

from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.actions.dialogs import TextDialog
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import state_look
from pulsarbox.tui.widgets.details_text import DetailsText
from pulsarbox.tui.widgets.table import Row


class PluginsScreen(ViewScreen):
    """Plugins, one per row; enter shows the full last error."""

    view: ClassVar[views.TableView] = views.PLUGINS
    place: ClassVar[str] = "plugins"
    kind: ClassVar[str] = "plugin"

    def opened(self, row: Row) -> None:
        """Show the details of the plugin."""
        details = DetailsText()
        for name in ("kind", "name", "state", "source"):
            if row.get(name):
                details.fact(name, str(row[name]), state_look(row[name]) if name == "state" else "")
        calls, errors = numbers.count(row.get("calls")), numbers.count(row.get("errors"))
        details.fact("calls", f"{calls}, {errors} failed")
        usual, long = numbers.nanoseconds(row.get("p50Nanos")), numbers.nanoseconds(row.get("p99Nanos"))
        details.fact("duration", f"median {usual}, 99th percentile {long}")
        details.fact("used by", numbers.counted(row.get("subscriptions"), "subscription"))
        if row.get("lastError"):
            details.line("").line(str(row["lastError"]), "bad")
        self.app.push_screen(TextDialog(f"Plugin {row.get('name')}", details.text, self.command_line()))

    def command_line(self) -> str:
        """Return the command that shows the plugin."""
        row = self.table.pointed
        return self.line("plugins", "info", str(row.get("name"))) if row is not None else self.line("plugins", "list")
