"""Dialog to choose and order columns."""

from collections.abc import Collection, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from pulsarbox.tui.widgets.columns import Column
from pulsarbox.tui.widgets.dialogs.dialog import Dialog
from pulsarbox.tui.widgets.dialogs.dialog_keys import key_hints

_SIGNS: Final = "● shown   ◌ no room on this terminal   ○ hidden"
"""Legend of the signs before the columns."""


class ColumnsDialog(Dialog[list[Column] | None]):
    """List of all columns with their visibility and order."""

    DEFAULT_CSS = """
    ColumnsDialog { align: center middle; background: $background 60%; }
    ColumnsDialog > #box { width: 80; max-width: 96%; height: auto; max-height: 90%; padding: 1 2; background: $surface;
      border: round $primary; border-title-color: $accent; border-title-style: bold; }
    ColumnsDialog OptionList { height: auto; max-height: 1fr; background: $surface; border: none; padding: 0; }
    ColumnsDialog OptionList:focus { border: none; background-tint: transparent; }
    ColumnsDialog #signs, ColumnsDialog #foot { height: auto; color: $text-muted; padding-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("space", "show_or_not", show=False, priority=True),
        Binding("enter", "take", show=False, priority=True),
        Binding("j", "point(1)", show=False),
        Binding("k", "point(-1)", show=False),
        Binding("shift+down,J", "shift(1)", show=False, priority=True),
        Binding("shift+up,K", "shift(-1)", show=False, priority=True),
        Binding("d", "usual", show=False),
    ]

    def __init__(self, known: Sequence[Column], shown: Sequence[Column], fitting: Collection[str]) -> None:
        """``fitting`` has the keys of the columns for which the table has room."""
        super().__init__()
        self._fitting = fitting
        self._known = tuple(known)
        self._order = [*shown, *(column for column in known if column not in shown)]
        self._shown = set(shown)

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        with Vertical(id="box") as box:
            box.border_title = "Columns"
            yield OptionList()
            yield Static(_SIGNS, id="signs", markup=False)
            keys = (
                ("space", "show"),
                ("shift+↑↓", "move"),
                ("d", "defaults"),
                ("enter", "apply"),
                ("esc", "back"),
            )
            yield Static(key_hints(*keys), id="foot")

    def on_mount(self) -> None:
        """List the columns."""
        self._list(0)
        self.set_focus(self.query_one(OptionList))

    def _list(self, at: int) -> None:
        listed = self.query_one(OptionList)
        listed.clear_options()
        wide = max(len(column.title) for column in self._order)
        listed.add_options(
            Option(f"{self._sign(column)} {column.title:<{wide}}  {column.meaning}") for column in self._order
        )
        listed.highlighted = at

    def _sign(self, column: Column) -> str:
        if column not in self._shown:
            return "○"
        return "●" if column.key in self._fitting else "◌"

    def _at(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def action_show_or_not(self) -> None:
        """Show or hide the column; at least one stays visible."""
        column = self._order[self._at()]
        if column not in self._shown:
            self._shown.add(column)
        elif len(self._shown) > 1:
            self._shown.remove(column)
        self._list(self._at())

    def action_shift(self, by: int) -> None:
        """Move the column up or down in the order."""
        at = self._at()
        to = min(max(at + by, 0), len(self._order) - 1)
        self._order.insert(to, self._order.pop(at))
        self._list(to)

    def action_point(self, by: int) -> None:
        """Move the cursor, as the arrow keys do."""
        listed = self.query_one(OptionList)
        (listed.action_cursor_down if by > 0 else listed.action_cursor_up)()

    def action_usual(self) -> None:
        """Restore the default columns and order."""
        self._order, self._shown = list(self._known), set(self._known)
        self._list(0)

    def action_take(self) -> None:
        """Close with the chosen columns."""
        self.dismiss([column for column in self._order if column in self._shown])

    def action_leave(self) -> None:
        """Close without a change."""
        self.dismiss(None)
