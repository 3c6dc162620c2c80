"""``5``: what is limited, how much of it is used, which level has set it, and what it holds back."""

from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.feed import real
from pulsarbox.tui.screens.view import ViewScreen


class Quotas(ViewScreen):
    """All limits that hold; enter changes one in its place."""

    view: ClassVar[views.View] = views.QUOTAS
    place: ClassVar[str] = "quotas"
    kind: ClassVar[str] = "quota"

    def command_line(self) -> str:
        """Of the limit's subject."""
        row = self.table.pointed
        if row is not None and row.get("scope") == "topic":
            return self.line("quota", "show", real(row, "subject"))
        return super().command_line()
