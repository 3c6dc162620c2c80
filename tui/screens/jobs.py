"""Jobs screen: replays and drops of dead letters, with progress and messages that failed again."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.actions.dialogs import TextDialog
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.feed import VIEWS
from pulsarbox.tui.screens.listed import ListScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part, by_enter
from pulsarbox.tui.widgets.columns import state_look
from pulsarbox.tui.widgets.details_text import DetailsText
from pulsarbox.tui.widgets.table import Row


class JobsScreen(ListScreen):
    """Jobs of the box, one per row."""

    view: ClassVar[views.TableView] = views.JOBS
    place: ClassVar[str] = "jobs"
    kind: ClassVar[str] = "job"
    opens: ClassVar[str] = "details"

    def path(self) -> str:
        """Return the request path: the list of all jobs, or the live view if restricted to a scope.

        In history, it is that of the view at this time, which the box refuses: it records no jobs.
        """
        if self.top.at is not None:
            return f"{VIEWS}/jobs?at={self.top.at}"
        return JOBS if not self.top.feed.scope else f"{VIEWS}/jobs?limit=1000"

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """Return the jobs with their progress."""
        rows = super().rows_in(told.get("rows") if isinstance(told, dict) else told)
        return [{**row, "share": _share(row)} for row in rows]

    def opened(self, row: Row) -> None:
        """Show the parameters and results of the job."""
        details = DetailsText()
        if row.get("error"):
            details.line(str(row["error"]), _error_look(row)).line("")
        for name, title in _FACTS:
            value = row.get(name)
            if value not in (None, "", {}, []):
                shown = numbers.instant(value) if name in ("started", "ended") else written(value)
                details.fact(title, shown, state_look(value) if name == "state" else "")
        for name, title in (("targets", "sent to"), ("returnedIn", "returned to"), ("reasons", "failed")):
            for what, count in (row.get(name) or {}).items():
                details.fact(title, f"{count:,}  {what}")
        self.app.push_screen(TextDialog(self.title_of(row), details.text, self.command_line()))

    def title_of(self, row: Row) -> str:
        """Return the title of a job."""
        return f"Job {row.get('id')}"

    def status_line(self) -> list[Part]:
        """Return why the job stopped."""
        row = self.table.pointed
        if row is None or not row.get("error"):
            return super().status_line()
        return self.with_command(by_enter(str(row["error"]), _error_look(row), self.size.width))

    def command_line(self) -> str:
        """Return the command that shows the job."""
        row = self.table.pointed
        return self.line("job", "show", str(row.get("id"))) if row is not None else self.line("job", "list")


_FACTS = (
    *(("kind", "kind"), ("state", "state"), ("topic", "topic"), ("subscription", "subscription"), ("target", "to")),
    *(("filter", "filter"), ("edit", "changes"), ("rate", "messages/s"), ("dryRun", "dry run"), ("total", "messages")),
    *(
        ("seen", "seen"),
        ("done", "done"),
        ("skipped", "skipped"),
        ("failed", "failed"),
        ("returned", "returned"),
    ),
    *(("started", "started"), ("ended", "ended"), ("by", "started by")),
)


def _error_look(row: Row) -> str:
    """Return the look of the error of a job, which need not have ended it."""
    return "bad" if state_look(row.get("state")) == "bad" else "warn"


def written(value: Any) -> str:
    """Format a value as text."""
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
