"""What parts of a widget look like: colours of the theme by their names, found when they are first drawn with.

Textual's own way is a class of CSS for each part. To read such classes and to match them took longer than to draw all
else of the first screen: tables have a dozen, of which a screen at rest draws three.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.style import Style
from textual.color import Color

if TYPE_CHECKING:
    from textual.widget import Widget as _Base
else:
    _Base = object

_AUTO: Final = "auto"
"""A colour of a theme that is black or white, whichever can be read, and how much of it: ``auto 60%``."""


class Look(NamedTuple):
    """Names of colours, as CSS has them behind a ``$``."""

    ink: str = "foreground"
    ground: str = ""
    """Empty: that of the widget."""
    bold: bool | None = None
    underline: bool | None = None


class Looks(_Base):
    """For a widget, before its other bases."""

    looks: Mapping[str, Look] = {}
    """By name, all that parts of it may look like."""
    _found: dict[str, Style] | None = None
    _own_ground: Color | None = None

    def look(self, name: str) -> Style:
        """What a part looks like that is drawn like this."""
        if self._found is None:
            self._found = {}
        if name not in self._found:
            self._found[name] = self._made(self.looks[name])
        return self._found[name]

    def _made(self, look: Look) -> Style:
        variables = self.app.theme_variables
        if self._own_ground is None:
            self._own_ground = self.background_colors[1]
        ground = self._own_ground + Color.parse(variables[look.ground]) if look.ground else self._own_ground
        told = variables[look.ink]
        if told.startswith(_AUTO):
            ink = ground.get_contrast_text(float(told.removeprefix(_AUTO).strip(" %") or 100) / 100)
        else:
            ink = Color.parse(told)
        return Style(
            color=(ground + ink).rich_color, bgcolor=ground.rich_color, bold=look.bold, underline=look.underline
        )

    def notify_style_update(self) -> None:
        """See textual.dom.DOMNode."""
        self._found = self._own_ground = None
        super().notify_style_update()
