"""Plugins screen: plugins of the box with their cost, errors and users."""

from typing import ClassVar

from rich.text import Text

from pulsarbox.tui import views
from pulsarbox.tui.actions.dialogs import TextDialog
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.table import Row


class PluginsScreen(ViewScreen):
    """Plugins, one per row; enter shows the full last error."""

    view: ClassVar[views.TableView] = views.PLUGINS
    place: ClassVar[str] = "plugins"
    kind: ClassVar[str] = "plugin"
    opens: ClassVar[str] = "details"

    def opened(self, row: Row) -> None:
        """Show the details of the plugin."""
        text = Text()
        for name in ("kind", "name", "state", "source"):
            if row.get(name):
                text.append(f"{name:<14}  {row[name]}\n")
        calls, errors = numbers.count(row.get("calls")), numbers.count(row.get("errors"))
        text.append(f"{'calls':<14}  {calls}, {errors} failed\n")
        usual, long = numbers.nanoseconds(row.get("p50Nanos")), numbers.nanoseconds(row.get("p99Nanos"))
        text.append(f"{'duration':<14}  median {usual}, 99th percentile {long}\n")
        text.append(f"{'used by':<14}  {numbers.counted(row.get('subscriptions'), 'subscription')}\n")
        if row.get("lastError"):
            text.append(f"\n{row['lastError']}\n")
        self.app.push_screen(TextDialog(f"Plugin {row.get('name')}", text, self.command_line()))

    def command_line(self) -> str:
        """Return the command that shows the plugin."""
        row = self.table.pointed
        return self.line("plugins", "info", str(row.get("name"))) if row is not None else self.line("plugins", "list")
