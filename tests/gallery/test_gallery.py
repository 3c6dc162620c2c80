"""The gallery draws every screen and dialog, and one picture of each kind of theme."""

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from textual.screen import Screen

import pulsarbox.tui
from pulsarbox.tui.actions.operations import DEEDS
from pulsarbox.tui.themes import CONTRAST
from tests.gallery.__main__ import main, tasks
from tests.gallery.drawing import NO_COLOR, SIZES, THEMES, drawn, reach
from tests.gallery.page import file_of, page_of
from tests.gallery.views import WALKS, views
from tests.unit.tui.driving import SMALL, dashboard


def screen_classes() -> Iterator[type]:
    """Yield the classes of screens without those that are only bases of others."""
    for module in pkgutil.walk_packages(pulsarbox.tui.__path__, "pulsarbox.tui."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, type) and issubclass(each, Screen) and each.__module__ == module.name:
                if not any(sub.__module__.startswith("pulsarbox.") for sub in each.__subclasses__()):
                    yield each


def test_each_screen_and_each_action_has_a_view() -> None:
    shown = {view.screen for view in views().values()}
    assert {each.__name__ for each in screen_classes()} - shown == set()
    assert {f"dialog-{deed.name.replace(' ', '-')}" for deed in DEEDS} <= set(views())


async def test_a_view_is_drawn_in_the_colors_of_its_theme() -> None:
    (walk,) = (each._replace(views=each.views[:1]) for each in WALKS if each.name == "main")
    found = {}
    async with aclosing(drawn(walk, SMALL, ("dark", "contrast"))) as pictures:
        async for picture in pictures:
            found[picture.theme] = picture.svg
    assert all("1.23M" in svg and svg.startswith("<svg") for svg in found.values())
    cursor = CONTRAST.variables["block-cursor-background"].lower()
    assert cursor in found["contrast"] and cursor not in found["dark"]


@pytest.mark.parametrize("size", SIZES)
async def test_the_table_of_the_overview_has_the_focus(size: tuple[int, int]) -> None:
    (walk,) = (each for each in WALKS if each.name == "main")
    async with dashboard(walk.box(), size, every_frame=True) as driver:
        for view in walk.views[:2]:
            await reach(driver, view)
        assert view.name == "overview-table" and driver.app.focused is driver.screen.query_one("#subscriptions")


def test_tasks_cover_what_is_asked_for() -> None:
    found = list(tasks(["light", NO_COLOR], SIZES[:1], "jobs.*", Path()))
    assert [(WALKS[task.walk].name, task.themes) for task in found] == [("main", ("light",)), ("main", (NO_COLOR,))]
    assert len(list(tasks(list(THEMES), SIZES, ".*", Path()))) == 2 * len(SIZES) * len(WALKS)
    assert len(list(tasks([NO_COLOR], SIZES, ".*", Path()))) == len(SIZES) * len(WALKS)


def test_a_page_has_a_picture_per_theme_and_size(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = page_of(["jobs", "help"], ["dark", "light"], [(80, 24)])
    assert page.count("<img") == 4 and f'src="{file_of("help", "light", (80, 24))}"' in page
    assert main(["--view", "nothing", "--folder", str(tmp_path)]) == 2
    assert "no view matches 'nothing'" in capsys.readouterr().err and not list(tmp_path.iterdir())
