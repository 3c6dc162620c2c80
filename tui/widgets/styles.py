"""Looks of widget parts: theme colours by name, resolved on first use.

Textual's CSS component classes took longer to parse and match than drawing the rest of the first screen: a table has a
dozen, of which an idle screen draws three.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.style import Style
from textual.color import Color

from pulsarbox.tui.widgets.box_label import contrast

if TYPE_CHECKING:
    from textual.widget import Widget as _Base
else:
    _Base = object

LEAST_CONTRAST: Final = 4.5
"""Minimum contrast of text (WCAG 2.2, 1.4.3). A theme can ask for more: its variable ``least-contrast``."""
_AUTO: Final = "auto"
"""The value of a theme variable that stands for black or white, whichever contrasts with the background."""


def theme_color(value: str) -> Color:
    """Return the color of a theme variable: ``#5ba4e6``, ``ansi_blue``, ``transparent`` or ``auto``.

    A percentage behind the name (``auto 60%``, ``ansi_default 50%``) is the color's opacity.
    """
    name, _, percentage = value.partition(" ")
    opacity = float(percentage.strip(" %") or 100)
    if name == _AUTO:
        return Color.automatic(opacity)
    return Color.parse(name)._replace(a=opacity / 100) if percentage else Color.parse(name)


def ink_of(colors: Mapping[str, str], name: str, ground: Color | None = None) -> Style:
    """Return the style of a text in a color of the theme on a background, by default that of screens.

    ``colors`` are the variables of the theme.
    """
    ink, ground = theme_color(colors[name]), ground or theme_color(colors["background"])
    return Style(color=(ground + ink).rich_color, dim=_is_dim(ink))


def _is_dim(ink: Color) -> bool | None:
    """Whether a color is dimmed, as one of the terminal's palette cannot be blended with the background."""
    return True if ink.ansi is not None and ink.a < 1 else None


def least_contrast(variables: Mapping[str, str]) -> float:
    """Return the minimum contrast of text in a theme."""
    return float(variables.get("least-contrast", LEAST_CONTRAST))


class ColorNames(NamedTuple):
    """Colours by their names of CSS variables."""

    ink: str = "foreground"
    ground: str = ""
    """Background colour, empty for that of the widget."""
    bold: bool | None = None
    underline: bool | None = None
    share: float = 1.0
    """Share of the ink over the background, for gradients. Colors of the terminal's palette are not mixed."""
    flat: bool = False
    """Whether it is underlined, not reversed, where NO_COLOR removes its background: a reversed row may be below it."""


class Looks(_Base):
    """Mixin for a widget; list it before other bases."""

    looks: Mapping[str, ColorNames] = {}
    """Looks of parts by name."""
    _found: dict[str, Style] | None = None
    _own_ground: Color | None = None

    def look(self, name: str) -> Style:
        """Return the style of a look."""
        if self._found is None:
            self._found = {}
        if name not in self._found:
            self._found[name] = self._made(self.looks[name])
        return self._found[name]

    def is_legible_on(self, name: str, ground: Style, least: float | None = None) -> bool:
        """Return whether the ink of a look can be read on the background of a style.

        ``least`` is the minimum contrast, by default that of text in the theme. Colors of the terminal's palette are
        unknown, so that they are legible on its default background only.
        """
        ink, color = self.look(name).color, ground.bgcolor
        if ink is None or color is None or ink.triplet is None or color.triplet is None:
            return False
        wanted = least or least_contrast(self.app.theme_variables)
        return contrast(Color.from_rich_color(ink), Color.from_rich_color(color)) >= wanted

    def kept_on(self, name: str, ground: Style, least: float | None = None) -> Style:
        """Return a look, in bold, on the background of a style, or on its own one if it can only be read there.

        With NO_COLOR it is that style: without a color to preserve, the own background would be a hole in the line.
        """
        if self.app.no_color:
            return ground
        own = self.look(name) + Style(bold=True)
        return own + Style(bgcolor=ground.bgcolor) if self.is_legible_on(name, ground, least) else own

    def _made(self, look: ColorNames) -> Style:
        variables = self.app.theme_variables
        if self._own_ground is None:
            self._own_ground = self.background_colors[1]
        ground = self._own_ground + theme_color(variables[look.ground]) if look.ground else self._own_ground
        ink = theme_color(variables[look.ink])
        if self._loses_ground(look):
            return Style(reverse=not look.flat, bold=look.bold, underline=look.flat or look.underline)
        if look.ink == "background" and ink.ansi is not None:
            # As an ink, the default color is the terminal's foreground. Reversing yields its background.
            return Style(color=ground.rich_color, reverse=True, bold=look.bold, underline=look.underline)
        is_dim = _is_dim(ink)
        share = max(look.share, float(variables.get("least-share", 0)))
        if share < 1 and ink.ansi is None and ground.ansi is None:
            ink = ground.blend(ink, share)
        return Style(
            color=(ground + ink).rich_color,
            bgcolor=ground.rich_color,
            bold=look.bold,
            dim=is_dim,
            underline=look.underline,
        )

    def _loses_ground(self, look: ColorNames) -> bool:
        """Whether NO_COLOR removes the background of a look, as for colors of the terminal's palette."""
        ground = theme_color(self.app.theme_variables[look.ground]).ansi if look.ground else None
        return self.app.no_color and self.app.native_ansi_color and ground is not None and ground >= 0

    def notify_style_update(self) -> None:
        """See textual.dom.DOMNode."""
        self._found = self._own_ground = None
        super().notify_style_update()
