"""Preview of a message: its metadata and its payload, with JSON in the colors of the viewer."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rich.text import Text
from textual.visual import Visual, visualize
from textual.widgets import Static

from pulsarbox.tui.widgets.payload_view import WrappedLines
from pulsarbox.tui.widgets.styles import ColorNames, Looks

PAINTED_MAX: Final = 1000
"""Number of lines with colors; those below are rarely scrolled to."""
_TOKENS: Final = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*+")(?=:)|(?P<string>"(?:[^"\\]|\\.)*+"?)'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null)"
)
"""Tokens of one line of indented JSON."""


class MessagePreview(Looks, Static):
    """The lines of a message."""

    looks: Mapping[str, ColorNames] = {
        "name": ColorNames("text-primary"),
        "string": ColorNames("text-success"),
        "number": ColorNames("text-secondary"),
        "word": ColorNames("text-accent", bold=True),
    }

    def __init__(self) -> None:
        super().__init__("", id="message", markup=False)
        self._parts: Sequence[tuple[Sequence[str], bool]] = ()
        self._shown: WrappedLines | None = None
        """The lines with colors; None if they are to be painted again."""

    def show(self, parts: Sequence[tuple[Sequence[str], bool]]) -> None:
        """Show groups of lines in order, each with whether it is JSON."""
        self._parts, self._shown = parts, None
        self.clear_cached_dimensions()
        self.refresh(layout=True)

    def render(self) -> Visual:
        """See textual.widgets.Static. The colors are those of the theme in which the lines are drawn."""
        if self._shown is None:
            parts = self._parts
            self._shown = WrappedLines(
                [line for lines, is_json in parts for line in self._painted(lines, is_json=is_json)]
            )
        return visualize(self, self._shown)

    def notify_style_update(self) -> None:
        """See textual.dom.DOMNode."""
        self._shown = None
        super().notify_style_update()

    def _painted(self, lines: Sequence[str], *, is_json: bool) -> list[str | Text]:
        if not is_json:
            return list(lines)
        return [*map(self._line, lines[:PAINTED_MAX]), *lines[PAINTED_MAX:]]

    def _line(self, line: str) -> Text:
        text = Text(line)
        for found in _TOKENS.finditer(line):
            text.stylize(self.look(found.lastgroup or "name"), *found.span())
        return text
