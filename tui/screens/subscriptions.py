"""Subscriptions screen: backlogs, their causes, and the time to drain them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import real
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part, reasons
from pulsarbox.tui.widgets.columns import cause_look, subscription_title
from pulsarbox.tui.widgets.table import Row

if TYPE_CHECKING:
    from pulsarbox.tui.widgets.row_details import Note


class Subscriptions(ViewScreen):
    """All subscriptions, or those of one topic; enter shows one with its consumers."""

    view: ClassVar[views.TableView] = views.SUBSCRIPTIONS
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "subscription"
    opens: ClassVar[str] = "details"
    hinted_wide: ClassVar[Sequence[str]] = ("messages", "cursor map", "key map", *ViewScreen.hinted_wide)

    def opened(self, row: Row) -> None:
        """Show the details of the subscription."""
        self.top.open("subscription:SubscriptionDetails", row)

    def title_of(self, row: Row) -> str:
        """Return the name of the subscription."""
        return subscription_title(row)

    def notes(self, row: Row) -> "list[Note]":
        """Return why the subscription gets no messages, and what helps."""
        from pulsarbox.tui.widgets.row_details import Note

        if not _is_held(row):
            return []
        cause, remedy = str(row.get("causeText") or ""), self.advice_on(row)
        return [
            Note(name, text, look)
            for name, text, look in (("cause", cause, cause_look(row) or "plain"), ("advice", remedy, "plain"))
            if text
        ]

    def status_line(self) -> list[Part]:
        """Return why the subscription gets no messages, and the command that explains it."""
        row, unknown = self.table.pointed, reasons(self.table.reasons())
        if row is None or not row.get("causeText") or not _is_held(row):
            return self.with_command(unknown)
        cause: list[Part] = [(" ", "plain", ""), (str(row["causeText"]), cause_look(row) or "plain", "")]
        return self.with_command([*cause, ("  ", "plain", ""), *unknown] if unknown else cause)

    def command_line(self) -> str:
        """Return the command that explains the backlog."""
        row = self.table.pointed
        if row is None:
            return super().command_line()
        return self.line("quota", "explain", short(row), real(row, "subscription"))


def _is_held(row: Row) -> bool:
    """Return whether there is a backlog that is not just in flight."""
    return row.get("cause") != "end-of-log" and not numbers.keeps_up(dict(row))
