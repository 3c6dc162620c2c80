"""Base class of dialogs: modal screens above a faint picture of the screen below.

Textual mixes the colors of the screen below with the background. Colors of the terminal's palette cannot be mixed, so
that with such a theme the screen below would look as if it were in use. It is gray instead, with the same marks.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Static

from pulsarbox.cleaning import clean

if TYPE_CHECKING:
    from textual.screen import Screen

    _Base = Screen[Any]
else:
    _Base = object

_FAINT = Style(color="bright_black")
_FAINT_LIGHT = Style(color="bright_black", dim=True)
"""On a light background, because there some palettes have a bright black that is as dark as black."""
_FAINT_COLORLESS = Style(dim=True)
_NULL = Style.null()
_HEIGHTS: Final = [(0, "-short"), (30, "-tall")]
"""Classes of dialogs, by the lines of the screen: short ones have small margins, and no blank lines at their edges."""


class FaintBelow(_Base):
    """Mixin for a modal screen; list it first. In themes of the terminal's colors, the screen below is gray."""

    def render(self) -> RenderableType:
        """See textual.screen.Screen."""
        shown = super().render()
        if not isinstance(shown, BackgroundScreen):
            return shown
        if self.app.native_ansi_color:
            return _FaintScreen(shown.screen, shown.color, self._faint_style)
        return _ColorlessScreen(shown.screen, shown.color) if self.app.no_color else shown

    @property
    def _faint_style(self) -> Style:
        if self.app.no_color:
            return _FAINT_COLORLESS
        return _FAINT if self.app.current_theme.dark else _FAINT_LIGHT


class Dialog(FaintBelow, ModalScreen[ScreenResultType]):
    """A modal screen with a ``#box``: its ``#body`` scrolls if it is too long, its ``#foot`` is always visible.

    The foot holds buttons, keys and errors.
    """

    DEFAULT_CSS = """
    Dialog #body { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
    Dialog #foot { dock: bottom; height: auto; padding-top: 1; }
    Dialog.-short > #box { padding: 0 2; max-height: 92%; }
    Dialog #wrong { display: none; color: $text-error; text-style: bold; margin-bottom: 1; }
    """
    VERTICAL_BREAKPOINTS = _HEIGHTS

    def refuse(self, reason: str) -> None:
        """Show an error in ``#wrong``; an empty one removes it."""
        shown = self.query_one("#wrong", Static)
        shown.update(f"✕ {clean(reason)}")
        shown.display = bool(reason)


class _FaintScreen(BackgroundScreen):
    """A screen whose texts all have the same color."""

    def __init__(self, screen: object, color: object, style: Style) -> None:
        super().__init__(screen, color)  # type: ignore[arg-type]
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from faint(console.render(self.screen._compositor, options), self._style)


class _ColorlessScreen(BackgroundScreen):
    """A screen whose texts without colors are dimmed, because only colors can be mixed with the background."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for each in super().__rich_console__(console, options):
            assert isinstance(each, Segment)
            yield Segment(each.text, (each.style or _NULL) + _FAINT_COLORLESS) if _is_colorless(each) else each


def _is_colorless(segment: Segment) -> bool:
    style = segment.style
    return not segment.control and style is not None and style.color is None and style.bgcolor is None


def faint(segments: Iterable[Segment], style: Style) -> Iterable[Segment]:
    """Return segments with this style, which has no background. Filled cells stay so, as do bold and underlined texts.

    Otherwise the screen below would lose its scroll bars, the row of the cursor, the current tab and the alarms.
    """
    return (each if each.control else Segment(each.text, style + _marks_of(each.style)) for each in segments)


def _marks_of(style: Style | None) -> Style:
    if style is None:
        return _NULL
    is_filled = style.reverse or (style.bgcolor is not None and not style.bgcolor.is_default)
    return Style(bold=style.bold, underline=style.underline, reverse=is_filled)
