"""Lists of options whose texts have parts in colors of their own."""

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widgets import OptionList

from pulsarbox.tui.widgets.box_label import contrast
from pulsarbox.tui.widgets.styles import least_contrast

if TYPE_CHECKING:
    _Base = OptionList
else:
    _Base = object


class LegibleParts(_Base):
    """Mixin for an option list; list it first.

    Parts of the highlighted option whose color cannot be read on its background have the color of its text. Only parts
    that bring a background keep their color: other ones would look like holes in the highlighted line.
    """

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        strip = super().render_line(y)
        if not any(_option_of(each) == self.highlighted for each in strip):
            return strip
        usual = self.get_visual_style("option-list--option", "option-list--option-highlighted").rich_style
        least = least_contrast(self.app.theme_variables)
        plain = Style(color=usual.color, dim=False)
        return Strip(
            (
                each._replace(style=each.style + plain) if each.style and _is_lost(each.style, usual, least) else each
                for each in strip
            ),
            strip.cell_length,
        )


def _option_of(segment: Segment) -> int | None:
    return None if segment.style is None else segment.style.meta.get("option")


def _is_lost(style: Style, usual: Style, least: float) -> bool:
    """Return whether a part cannot be read on the usual background; colors of the terminal are unknown, thus cannot."""
    ink, ground = style.color, style.bgcolor
    if ground != usual.bgcolor:
        return False
    if ink is None or ground is None or ink.triplet is None or ground.triplet is None:
        return True
    return contrast(Color.from_rich_color(ink), Color.from_rich_color(ground)) < least


class LegibleOptions(LegibleParts, OptionList):
    """An option list."""
