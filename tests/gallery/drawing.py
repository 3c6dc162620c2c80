"""Drawing of views: opens them one after the other, and draws each in several themes."""

import io
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest import mock

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI
from textual.widgets import OptionList

from pulsarbox.tui.once import self_contained
from pulsarbox.tui.widgets.tour_guide import TourGuide
from tests.gallery.views import View, Walk
from tests.unit.tui.driving import Driver, dashboard
from tests.unit.tui.legibility import wearing

NO_COLOR: Final = "no-color"
THEMES: Final = {
    "dark": "pulsarbox",
    "light": "pulsarbox-light",
    "contrast": "pulsarbox-contrast",
    "ansi-dark": "ansi-dark",
    "ansi-light": "ansi-light",
    NO_COLOR: "pulsarbox",
}
"""Themes of the dashboard by the names of the gallery."""
SIZES: Final = ((80, 24), (120, 40), (200, 50))
"""Columns and lines."""
QUIET: Final = 2
"""Looks at an unchanged screen after which a view is complete."""


class Picture(NamedTuple):
    """A drawn view."""

    view: str
    theme: str
    size: tuple[int, int]
    svg: str


@contextmanager
def environment_of(themes: Sequence[str]) -> Iterator[None]:
    """Set or remove NO_COLOR, which an application reads when it starts."""
    with mock.patch.dict("os.environ", {"NO_COLOR": "1"} if NO_COLOR in themes else {}):
        yield


async def drawn(
    walk: Walk, size: tuple[int, int], themes: Sequence[str], is_wanted: Callable[[str], bool] = lambda view: True
) -> AsyncGenerator[Picture, None]:
    """Yield the pictures of a walk. ``themes`` is NO_COLOR alone, or others."""
    options = {**walk.options, "guide": TourGuide() if walk.is_tour else None}
    with environment_of(themes):
        async with dashboard(walk.box(), size, wearing(THEMES[themes[0]]), every_frame=True, **options) as driver:
            for view in walk.views:
                await reach(driver, view)
                for theme in themes if is_wanted(view.name) else ():
                    await wear(driver, THEMES[theme])
                    yield Picture(view.name, theme, size, svg_of(driver, theme))


async def reach(driver: Driver, view: View) -> None:
    """Open a view from the previous one, and wait until all of it is shown."""
    driver.app._disable_notifications = False  # Pilot disables them
    driver.app.clear_notifications()
    try:
        await _go(driver, view)
    except AssertionError as error:
        error.add_note(f"view: {view.name}")
        raise


async def _go(driver: Driver, view: View) -> None:
    if view.change is not None:
        view.change(driver)
    for key in view.keys.split():
        await driver.press(key)
        await settled(driver)
    if view.act:
        driver.screen.act(view.act)
    await driver.until(lambda: type(driver.screen).__name__ == view.screen and view.shows in driver.text())
    await settled(driver)


async def settled(driver: Driver) -> None:
    """Wait until the screen has its response, and no longer changes."""
    shown, quiet = "", 0
    while quiet < QUIET:
        await driver.pilot.pause(0.01)
        is_asking = getattr(driver.screen, "_asking", False) and not getattr(driver.box, "is_held", False)
        text = driver.text()
        quiet, shown = (quiet + 1 if text == shown and not is_asking else 0), text


async def wear(driver: Driver, theme: str) -> None:
    """Change the theme unless it is the current one."""
    if driver.app.theme != theme:
        driver.app.theme = theme
        await driver.pilot.pause(0)
        driver.app.stylesheet.update(driver.screen)  # the palette, isolated by Textual, is not updated on its own
        for listed in driver.screen.query(OptionList):
            listed._clear_caches()  # parts of options have colors of the former theme, which no user sees change
        driver.app.refreshed()
        await settled(driver)
        await driver.pilot.pause(0)


def svg_of(driver: Driver, theme: str) -> str:
    """Return the screen as SVG, as Textual's export_screenshot, which has no argument for the colors of a terminal.

    The ansi themes use those colors, so ansi-light needs others than ansi-dark.
    """
    app: Any = driver.app
    width, height = app.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        safe_box=False,
    )
    console.print(app.screen._compositor.render_update(full=True, screen_stack=app._background_screens))
    colors = DEFAULT_TERMINAL_THEME if theme == "ansi-light" else DIMMED_MONOKAI
    return self_contained(console.export_svg(title="pulsarbox top", theme=colors))
