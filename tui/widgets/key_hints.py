"""Keys in the texts of dialogs, set off as in the bottom line of a screen."""

from collections.abc import Mapping
from typing import Final

from textual.content import Content

from pulsarbox.tui.widgets.box_label import contrast
from pulsarbox.tui.widgets.styles import least_contrast, theme_color

_KEY: Final = "bold $accent"
_APART: Final = "   "


def key_hints(*hints: tuple[str, str]) -> Content:
    """Return a line of keys with their words."""
    parts = [part for key, word in hints for part in ((key, _KEY), f" {word}", _APART)]
    return Content.assemble(*parts[:-1])


def option_style(variables: Mapping[str, str], name: str) -> str:
    """Return the style of a bold part of an option in a color of the theme.

    The part keeps the background of the list if it could not be read on that of the highlighted option.
    """
    ink, ground = (theme_color(variables[each]) for each in (name, "block-cursor-background"))
    is_legible = ink.ansi is None and ground.ansi is None and contrast(ink, ground) >= least_contrast(variables)
    return f"bold ${name}" if is_legible else f"bold ${name} on $surface"
