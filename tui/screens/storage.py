"""Storage screen: memory map, readers, commits, syncs, and volumes with their live data."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from pulsarbox.tui import views
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers


class Storage(ViewScreen):
    """Numbers above, a table of volumes below."""

    DEFAULT_CSS = """
    Storage #facts { height: auto; max-height: 50%; padding: 0 1 1 1; }
    """
    view: ClassVar[views.TableView] = views.STORAGE
    place: ClassVar[str] = "storage"

    def body(self) -> ComposeResult:
        """Compose the numbers and the table."""
        yield Static("", id="facts", markup=False)
        yield from super().body()

    def show(self, answer: Any) -> None:
        """Draw the numbers and the table."""
        super().show(answer)
        self.query_one("#facts", Static).update(facts(answer.totals, self.size.width))

    def command_line(self) -> str:
        """Return the command that shows the storage of the directory."""
        return self.line("storage", "stat") if self.top.target[:1] == ("--data-dir",) else super().command_line()


def facts(totals: Any, width: int) -> str:
    """Return numbers with their names in as many columns as fit."""
    told = [
        (_spaced(name), _written(name, value)) for name, value in totals.items() if not isinstance(value, dict | list)
    ]
    if not told:
        return ""
    broad = max(len(name) for name, _ in told) + max(len(value) for _, value in told) + 4
    columns = max((width - 2) // broad, 1)
    height = -(-len(told) // columns)
    names = max(len(name) for name, _ in told)
    lines = []
    for row in range(height):
        cells = [f"{name:<{names}} {value}" for name, value in told[row::height]]
        lines.append("".join(cell.ljust(broad) for cell in cells).rstrip())
    return "\n".join(lines)


def _spaced(name: str) -> str:
    return "".join(f" {one.lower()}" if one.isupper() else one for one in name)


def _written(name: str, value: Any) -> str:
    low = name.lower()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return numbers.NOTHING if value in (None, "") else str(value)
    if low.endswith(("p50", "p99", "millis", "ms")):
        return numbers.milliseconds(value)
    if any(word in low for word in ("bytes", "used", "free", "size", "disk", "memory", "lag")) and "pages" not in low:
        return numbers.size(value)
    if low.endswith(("ratio", "share")):
        return f"{value:.2f}"
    return numbers.count(value)
