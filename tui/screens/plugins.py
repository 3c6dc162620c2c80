"""``8``: the plugins that the box uses: what they cost, what went wrong, who goes by them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rich.text import Text

from pulsarbox.tui import figures, views
from pulsarbox.tui.dialogs import Reading
from pulsarbox.tui.screens.listed import ListScreen
from pulsarbox.tui.table import Row


class Plugins(ListScreen):
    """A row each; enter shows the last error whole."""

    view: ClassVar[views.View] = views.PLUGINS
    place: ClassVar[str] = "plugins"
    kind: ClassVar[str] = "plugin"

    def path(self) -> str:
        """All that were asked for."""
        return "/pulsarbox/v1/plugins"

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """With the number of subscriptions in place of their names."""
        return [{**row, "users": len(row.get("subscriptions") or ())} for row in super().rows_in(told)]

    def opened(self, row: Row) -> None:
        """All about it."""
        text = Text()
        for name in ("kind", "name", "state", "version", "source"):
            if row.get(name):
                text.append(f"{name:<14} {row[name]}\n")
        text.append(
            f"{'calls':<14} {figures.count(row.get('calls'))}, {figures.count(row.get('errors'))} of them failed\n"
        )
        text.append(
            f"{'a call':<14} {figures.nanoseconds(row.get('p50Nanos'))}, "
            f"one in a hundred {figures.nanoseconds(row.get('p99Nanos'))} or longer\n"
        )
        for each in row.get("subscriptions") or ():
            text.append(f"{'goes by it':<14} {each.get('subscription')}  of  {each.get('topic')}\n")
        if row.get("lastError"):
            text.append(f"\n{row['lastError']}\n")
        self.app.push_screen(Reading(f"Plugin {row.get('name')}", text, self.command_line()))

    def command_line(self) -> str:
        """All about the plugin."""
        row = self.table.pointed
        return self.line("plugins", "info", str(row.get("name"))) if row is not None else self.line("plugins", "list")
