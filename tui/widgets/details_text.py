"""Texts of dialogs with the details of a row: a label and a value per line, and errors, in the colors of tables."""

from typing import Final, Self

from rich.text import Text

from pulsarbox.tui.widgets.table import Table

_LABELS: Final = 16
"""Least width of the labels. Two blanks follow, behind which further rows of a value begin."""


class DetailsText:
    """A text that grows line by line. Its styles are names of colors, as a ``HangingText`` resolves them."""

    def __init__(self) -> None:
        self.text = Text()

    def fact(self, label: str, value: str, look: str = "") -> Self:
        """Append a line with a label and a value, with a look of tables."""
        self.text.append(f"{label:<{_LABELS}}", style="$text-muted").append("  ")
        return self.line(value, look)

    def line(self, text: str, look: str = "") -> Self:
        """Append a text as lines of their own, with a look of tables."""
        self.text.append(text, style=_style(look)).append("\n")
        return self


def _style(look: str) -> str:
    if not look:
        return ""
    names = Table.looks[look]
    return f"bold ${names.ink}" if names.bold else f"${names.ink}"
