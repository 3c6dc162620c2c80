"""Quotas screen: limits, usage, the level that sets each, and throttled time."""

from collections.abc import Mapping
from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.actions.quota_operations import command_words
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.table import Row


class Quotas(ViewScreen):
    """Effective limits; enter changes one."""

    view: ClassVar[views.TableView] = views.QUOTAS
    place: ClassVar[str] = "quotas"
    kind: ClassVar[str] = "quota"
    opens: ClassVar[str] = "change"

    def opened(self, row: Row) -> None:
        """Change the limit."""
        self.act("quota set")

    def opens_now(self) -> str:
        """Return that enter changes the limit, unless nothing can be changed."""
        return "" if self.top.read_only or self.top.at is not None else super().opens_now()

    def command_line(self) -> str:
        """Return the command that changes the limit."""
        row = self.table.pointed
        if row is not None and isinstance(row.get("change"), Mapping):
            return self.line(*command_words(row))
        return super().command_line()
