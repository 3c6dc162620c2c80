"""Finds the panels on the screen, and checks that their borders are whole and their texts inside."""

from typing import Final

from textual.geometry import Region

from pulsarbox.tui.widgets.panel import TextPanel
from tests.unit.tui.driving import Driver

_SIDES: Final = {"╭": "╮", "╰": "╯", "│": "│"}


def framed(driver: Driver) -> dict[str, Region]:
    """Return the visible panels by their titles, after a check of their borders."""
    lines, found = driver.lines(), {}
    for panel in driver.screen.query(TextPanel):
        region = panel.region
        if not panel.display or not region or panel.has_class("-plain") or not panel.parent.display:
            continue
        assert region.right <= driver.app.size.width and region.bottom <= driver.app.size.height - 2
        for y in range(region.y, region.bottom):
            line = lines[y]
            sign = "╭" if y == region.y else "╰" if y == region.bottom - 1 else "│"
            assert (line[region.x], line[region.right - 1]) == (sign, _SIDES[sign]), (panel, line)
        text = panel.content
        inside = panel.content_size.width
        assert all(len(each.rstrip()) <= inside for each in str(text).split("\n")), (panel, inside, str(text))
        found[str(panel.border_title)] = region
    return found
