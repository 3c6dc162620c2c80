"""Measures whether drawn text can be read: contrast ratios (WCAG 2.2) of the cells on the screen."""

import math
from collections.abc import Iterator
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color, rgb_to_lab
from textual.geometry import Region

from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.widgets.box_label import contrast
from tests.unit.tui.driving import Driver

READABLE: Final = 4.5
"""Minimum contrast according to WCAG 2.2, 1.4.3."""
HIGH: Final = 7.0
"""Minimum of the theme of high contrast (1.4.6)."""
TERMINAL: Final = ("ansi-dark", "ansi-light")
"""Themes of the terminal's colors."""


def wearing(theme: str) -> Preferences:
    """Return preferences with a theme."""
    kept = Preferences(None)
    kept.set("theme", theme)
    return kept


def least_of(theme: str) -> float:
    """Return the least contrast of text in a theme."""
    return HIGH if theme == "pulsarbox-contrast" else READABLE


def drawn_in(driver: Driver, region: Region) -> Iterator[Segment]:
    """Return the segments of a part of the screen."""
    for strip in driver.strips()[region.y : region.bottom]:
        yield from strip.crop(region.x, region.right)


def measured(segment: Segment) -> tuple[str, str, float] | None:
    """Return a text, its colors and their contrast; None without letters, digits or colors."""
    style, text = segment.style, segment.text.strip()
    if style is None or style.color is None or style.bgcolor is None or not any(each.isalnum() for each in text):
        return None
    ink, ground = (Color.from_rich_color(each) for each in (style.color, style.bgcolor))
    if style.dim:
        ink = ground.blend(ink, 0.5)
    return text[:20], f"{ink.hex} on {ground.hex}", contrast(ink, ground)


def poor_in(driver: Driver, region: Region, least: float) -> set[tuple[str, str, float]]:
    """Return the texts in a part of the screen with less contrast."""
    found = (measured(segment) for segment in drawn_in(driver, region))
    return {told for told in found if told is not None and told[2] < least}


def distance(one: str, other: str) -> float:
    """Return how much two colors differ (CIE 1976): about 2 is just noticeable, 100 is that of black and white."""
    (light, a, b), (other_light, other_a, other_b) = (rgb_to_lab(Color.parse(each)) for each in (one, other))
    return math.dist((light, a, b), (other_light, other_a, other_b))


def style_of(driver: Driver, line: str, text: str) -> Style:
    """Return the style of a text in the first line of the screen that contains another text."""
    strip = next(strip for strip in driver.strips() if line in strip.text)
    return next(each.style for each in strip if text in each.text and each.style)


def colors_of(style: Style) -> tuple[Color, Color]:
    """Return the text color and the background of a style."""
    assert style.color is not None and style.bgcolor is not None
    ink, ground = Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor)
    return (ground, ink) if style.reverse else (ink, ground)


def is_set_apart(one: Style, other: Style, least: float) -> bool:
    """Return whether two styles differ in more than hues: reversed, underlined, or by the contrast of their grounds."""
    if (bool(one.reverse), bool(one.underline)) != (bool(other.reverse), bool(other.underline)):
        return True
    grounds = [style.bgcolor for style in (one, other)]
    if all(ground is not None and ground.triplet is not None for ground in grounds):
        return contrast(*(Color.from_rich_color(ground) for ground in grounds)) >= least
    return len({ground is None or ground.is_default for ground in grounds}) == 2  # one has a color of the terminal
