"""Texts of dialogs with the details of a row: a label and a value per line, and errors, in the colors of tables."""

from collections.abc import Mapping
from typing import Final, Self

from rich.style import Style
from rich.text import Text

from pulsarbox.tui.widgets.styles import text_style
from pulsarbox.tui.widgets.table import Table

_LABELS: Final = 16
"""Least width of the labels. Two blanks follow, behind which further rows of a value begin."""


class DetailsText:
    """A text that grows line by line."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """``variables`` are those of the theme."""
        self.text = Text()
        self._variables = variables

    def fact(self, label: str, value: str, look: str = "") -> Self:
        """Append a line with a label and a value, with a look of tables."""
        self.text.append(f"{label:<{_LABELS}}", style=text_style(self._variables, "text-muted"))
        self.text.append("  ")
        return self.line(value, look)

    def line(self, text: str, look: str = "") -> Self:
        """Append a text as lines of their own, with a look of tables."""
        self.text.append(text, style=self._style(look)).append("\n")
        return self

    def _style(self, look: str) -> Style:
        if not look:
            return Style.null()
        names = Table.looks[look]
        return text_style(self._variables, names.ink, bold=names.bold)
