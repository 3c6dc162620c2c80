"""Base class of dialogs: modal screens above a faint picture of the screen below.

Textual mixes the colors of the screen below with the background. Colors of the terminal's palette cannot be mixed, so
that with such a theme the screen below would look as if it were in use.
"""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, ScreenResultType

_FAINT = Style(color="bright_black")
_FAINT_COLORLESS = Style(dim=True)


class Dialog(ModalScreen[ScreenResultType]):
    """A modal screen. In themes of the terminal's colors, the screen below is drawn in one gray."""

    def render(self) -> RenderableType:
        """See textual.screen.Screen."""
        shown = super().render()
        if isinstance(shown, BackgroundScreen) and self.app.native_ansi_color:
            return _FaintScreen(shown.screen, shown.color, _FAINT_COLORLESS if self.app.no_color else _FAINT)
        return shown


class _FaintScreen(BackgroundScreen):
    """A screen whose texts all have the same style."""

    def __init__(self, screen: object, color: object, style: Style) -> None:
        super().__init__(screen, color)  # type: ignore[arg-type]
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from faint(console.render(self.screen._compositor, options), self._style)


def faint(segments: Iterable[Segment], style: Style) -> Iterable[Segment]:
    """Return segments with this style instead of their own."""
    return (each if each.control else Segment(each.text, style) for each in segments)
