"""Keys in the texts of dialogs, set off as in the bottom line of a screen."""

from typing import Final

from textual.content import Content

KEY: Final = "bold $accent"
"""Style of keys."""
KEY_OF_OPTION: Final = "bold $text-accent"
MUTED_OF_OPTION: Final = "$option-muted"
DANGER_OF_OPTION: Final = "bold $text-error on $text-error-behind"
"""Styles of parts of an option in a list with ``LegibleParts``."""
_APART: Final = "   "


def key_hints(*hints: tuple[str, str]) -> Content:
    """Return a line of keys with their words."""
    parts = [part for key, word in hints for part in ((key, KEY), f" {word}", _APART)]
    return Content.assemble(*parts[:-1])
