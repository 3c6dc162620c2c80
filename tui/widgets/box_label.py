"""Label of a box, such as PRODUCTION, which colours the top line of every screen."""

from typing import Final, NamedTuple

from textual.color import Color, ColorParseError

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.operation import Wrong

TEXT_MAX: Final = 24
USUAL: Final = "#b3202d"


class Label(NamedTuple):
    """Text and colours of a label."""

    text: str
    ink: str
    """Text colour ``#rrggbb``: black or white, whichever has more contrast."""
    ground: str


def label_of(text: str, color: str = "") -> Label:
    """Create a label with a CSS colour name or ``#rrggbb``. Raises Wrong."""
    shown = clean(text.strip())
    if not shown or len(shown) > TEXT_MAX:
        raise Wrong(f"expected a label of 1 to {TEXT_MAX} characters, such as PRODUCTION")
    try:
        ground = Color.parse(color or USUAL)
    except ColorParseError:
        raise Wrong(f"label color '{clean(color)}': expected a name such as red or darkgreen, or #b3202d") from None
    black, white = Color(0, 0, 0), Color(255, 255, 255)
    ink = max(black, white, key=lambda each: contrast(each, ground))
    return Label(shown, ink.hex6, ground.hex6)


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio of two colours, 1 to 21; text requires 4.5 (WCAG 2.2, 1.4.3)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
