"""Pipelines screen: Spark queries with state, lag and last error."""

from typing import Any, ClassVar

from pulsarbox.cleaning import clean
from pulsarbox.tui import views
from pulsarbox.tui.actions.dialogs import TextDialog
from pulsarbox.tui.feed import real
from pulsarbox.tui.screens.jobs import written
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part, by_enter
from pulsarbox.tui.widgets.columns import state_look
from pulsarbox.tui.widgets.details_text import DetailsText
from pulsarbox.tui.widgets.table import Row


class PipelinesScreen(ViewScreen):
    """Queries reported by runners, one per row; enter shows the full last error."""

    view: ClassVar[views.TableView] = views.PIPELINES
    place: ClassVar[str] = "pipelines"
    kind: ClassVar[str] = "pipeline"
    opens: ClassVar[str] = "details"

    def show(self, answer: Any) -> None:
        """Draw the rows, with the first line of each error."""
        for row in answer.rows:
            if "\n" in real(row, "lastError"):
                row["lastError"] = f"{_error(row)[0]}…"
        super().show(answer)

    def opened(self, row: Row) -> None:
        """Show the details of the query."""
        error = _error(row)
        details = DetailsText()
        details.line(*((error[0], "bad") if error else ("No errors.", "good"))).line("")
        for name, title in _FACTS:
            value = row.get(name)
            if value not in (None, "", []):
                details.fact(title, _shown(name, value), state_look(value) if name == "state" else "")
        if len(error) > 1:
            details.line("").line("\n".join(error))
        title = f"Pipeline {row.get('pipeline')}: {row.get('query')}"
        self.app.push_screen(TextDialog(title, details.text, self.command_line()))

    def status_line(self) -> list[Part]:
        """Return the last error, if any."""
        row = self.table.pointed
        if row is not None and row.get("lastError"):
            return self.with_command(by_enter("\n".join(_error(row)), "bad", self.size.width))
        return super().status_line()

    def row_meant(self) -> Row | None:
        """Return the row with its output topic, None if it writes files."""
        row = super().row_meant()
        if row is None:
            return None
        output = real(row, "output")
        if "://" not in output:
            self.top.notify("The query does not write to a topic", severity="warning")
            return None
        return {**row, "topic": output}


_FACTS = (
    *(("state", "state"), ("inputs", "reads"), ("output", "writes"), ("lag", "lag")),
    *(("rows", "rows"), ("rowsPerSecond", "rows/s"), ("deadLetters", "dead letters"), ("batch", "micro-batch")),
    *(("lastBatchMs", "batch duration"), ("stages", "stages"), ("watermark", "watermark")),
    *(("stateRows", "state rows"), ("stateBytes", "state size")),
    *(("master", "Spark master"), ("ui", "Spark UI"), ("host", "host"), ("pid", "process")),
    *(("startedAt", "started"), ("reportedAt", "last report"), ("by", "role")),
)


def _error(row: Row) -> list[str]:
    """Return the lines of the last error, without control characters."""
    return [clean(line) for line in real(row, "lastError").splitlines()]


def _shown(name: str, value: Any) -> str:
    if name in ("startedAt", "reportedAt", "watermark"):
        return numbers.instant(value)
    if name == "stages":
        return ", ".join(f"{stage} {numbers.milliseconds(each)}" for stage, each in value.items())
    if name == "stateBytes":
        return numbers.size(value)
    if name == "lastBatchMs":
        return numbers.milliseconds(value)
    if name == "rowsPerSecond":
        return numbers.rate(value)
    if isinstance(value, list):
        return "\n".ljust(19).join(str(each) for each in value)
    return str(value) if name == "pid" else written(value)
