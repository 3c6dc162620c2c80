"""``0``: the jobs of the box: dead letters put back or dropped, how far each is, and what came back."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rich.text import Text

from pulsarbox.tui import views
from pulsarbox.tui.actions.dialogs import Reading
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.feed import VIEWS
from pulsarbox.tui.screens.listed import ListScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.table import Row


class Jobs(ListScreen):
    """A row each; they go on whether somebody looks or not."""

    view: ClassVar[views.View] = views.JOBS
    place: ClassVar[str] = "jobs"
    kind: ClassVar[str] = "job"

    def path(self) -> str:
        """All of them; of a tenant alone as the live view has them."""
        return JOBS if not self.top.feed.scope else f"{VIEWS}/jobs?limit=1000"

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """With the share that is done."""
        rows = super().rows_in(told.get("rows") if isinstance(told, dict) else told)
        return [{**row, "share": _share(row)} for row in rows]

    def opened(self, row: Row) -> None:
        """What was asked for, and how it went."""
        text = Text()
        for name, title in _FACTS:
            value = row.get(name)
            if value not in (None, "", {}, []):
                shown = numbers.instant(value) if name in ("started", "ended") else written(value)
                text.append(f"{title:<16} {shown}\n")
        for name, title in (("targets", "went to"), ("returnedIn", "came back in"), ("reasons", "could not")):
            for what, count in (row.get(name) or {}).items():
                text.append(f"{title:<16} {count:,}  {what}\n")
        if row.get("error"):
            text.append(f"\n{row['error']}\n", style="bold")
        self.app.push_screen(Reading(f"Job {row.get('id')}", text, self.command_line()))

    def told(self) -> list[Part]:
        """Why it does not go on."""
        row = self.table.pointed
        if row is None or not row.get("error"):
            return super().told()
        return [(f" {row['error']}", "warn", "")]

    def command_line(self) -> str:
        """The job."""
        row = self.table.pointed
        return self.line("job", "show", str(row.get("id"))) if row is not None else self.line("job", "list")


_FACTS = (
    *(("kind", "does"), ("state", "state"), ("topic", "topic"), ("subscription", "subscription"), ("target", "to")),
    *(("filter", "only"), ("edit", "changes"), ("rate", "messages/s"), ("dryRun", "dry run"), ("total", "messages")),
    *(
        ("seen", "looked at"),
        ("done", "done"),
        ("skipped", "left out"),
        ("failed", "could not"),
        ("returned", "came back"),
    ),
    *(("started", "began"), ("ended", "ended"), ("by", "asked for by")),
)


def written(value: Any) -> str:
    """A fact in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _share(row: Mapping[str, Any]) -> float | None:
    total, seen = row.get("total"), row.get("seen")
    if seen is None:
        seen = sum(row.get(name) or 0 for name in ("done", "skipped", "failed"))
    if row.get("state") == "done":
        return 1.0
    return min(seen / total, 1.0) if total else None
