"""Titles of panels and dialogs from names that clients choose."""

from typing import Final

from textual.content import Content

from pulsarbox.tui.widgets.columns import shortened

EDGE: Final = 6
"""Columns of a panel that its title cannot use: its corners, and the line and the space on both sides."""


def plain_title(text: str, panel: int) -> Content:
    """Return the title of a panel of this width, shortened in the middle.

    Textual interprets a title of type ``str`` as markup, and brackets in a name may even be a syntax error.
    """
    return Content(shortened(text, max(panel - EDGE, EDGE)))
