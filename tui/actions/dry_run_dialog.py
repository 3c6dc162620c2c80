"""Dialog with the result of a dry run, which offers the same operation for real."""

from textual.app import ComposeResult

from pulsarbox.tui.actions.dialogs import ChoiceDialog
from pulsarbox.tui.widgets.wrapping import HangingText

RUN = "run"
BACK = "back"


class DryRunDialog(ChoiceDialog):
    """The result first, then the operation for real, unless it would change nothing, and the way back.

    The way back is highlighted first, because enter has just started the dry run.
    """

    DEFAULT_CSS = """
    DryRunDialog #result { text-style: bold; margin-bottom: 1; }
    """

    def __init__(self, result: str, action: str) -> None:
        """``action`` names the operation for real, empty if there is nothing to do."""
        offered = [(RUN, action, "")] if action else []
        super().__init__("Result of the dry run", [*offered, (BACK, "Back", "")], BACK)
        self._result = result

    def head(self) -> ComposeResult:
        """Compose the result."""
        yield HangingText(self._result, 0, key="result")
