"""Keys that users choose: they work, and hints, help, palette and advice show them."""

import json
from pathlib import Path
from typing import Final

import pytest

from pulsarbox.tui.actions.action_table import CONTENT, REGISTRY
from pulsarbox.tui.actions.advice import advice
from pulsarbox.tui.actions.key_bindings import (
    DEFAULT_KEYS,
    bindings,
    key_or_command,
    shown_keys,
    working_keys,
)
from pulsarbox.tui.preferences import Preferences
from tests.unit.tui.driving import Driver, dashboard

CHOSEN: Final = {"filter": "ctrl+f", "topics": "T,ctrl+t", "export csv": "!", "help": "s"}
TITLES: Final = ("Filter the rows", "Choose the sort column", "Write the rows of the table to a file, as CSV")


def choosing(**keys: str) -> Preferences:
    """Return preferences with keys."""
    kept = Preferences(None)
    kept.set("keys", keys)
    return kept


@pytest.mark.parametrize("kind", ["", CONTENT])
@pytest.mark.parametrize("chosen", [{}, {"wrap": ("s",)}, {"sort": ("slash",), "topics": ("slash",)}])
def test_every_key_runs_one_action(kind: str, chosen: dict[str, tuple[str, ...]]) -> None:
    keys = [each.key for each in bindings(working_keys(kind, chosen))]
    assert len(keys) == len(set(keys))


def test_without_choice_every_action_has_its_keys() -> None:
    for action in REGISTRY:
        names = working_keys(CONTENT if action.on == (CONTENT,) else "")[action.name]
        assert len(names) == len([key for key in action.keys.split(",") if key])


def test_a_chosen_key_is_no_longer_that_of_another_action() -> None:
    keys = working_keys("", {"sort": ("slash",)})
    assert keys["sort"] == ("slash",) and keys["filter"] == ()
    assert working_keys("", {"sort": ("slash",), "topics": ("slash",)})["filter"] == ()


def test_of_two_actions_with_the_same_chosen_key_the_second_keeps_its_default() -> None:
    keys = working_keys("", {"sort": ("w",), "filter": ("w",)})
    assert keys["filter"] == ("w",) and keys["sort"] == ("s",)


def test_on_a_message_its_own_actions_come_first() -> None:
    keys = working_keys(CONTENT, {"topics": ("w", "ctrl+t"), "live": ("L",)})
    assert keys["wrap"] == ("w",) and keys["topics"] == ("ctrl+t",)
    assert keys["live"] == ("L",) and keys["next match"] == ("n",)
    assert working_keys(CONTENT)["live"] == ()
    assert working_keys("", {"wrap": ("s",)})["sort"] == ("s",), "the keys of a message mean nothing elsewhere"
    assert working_keys(CONTENT, {"wrap": ("s",)})["sort"] == ()


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        *(("slash", "/"), ("plus", "+"), ("minus", "-"), ("at", "@"), ("exclamation_mark", "!"), ("space", "space")),
        *(("escape", "esc"), ("shift+left", "shift+←"), ("ctrl+t", "ctrl+t"), ("enter", "enter"), ("f1", "f1")),
    ],
)
def test_keys_are_shown_by_what_is_on_them(key: str, shown: str) -> None:
    assert shown_keys([key]) == shown


def test_advice_names_the_chosen_key_or_the_command_of_an_action_without_one() -> None:
    keys = {**DEFAULT_KEYS, "clients": ("ctrl+k",), "menu": ()}
    assert advice("no-permits", keys).endswith("; ctrl+k shows their rates")
    assert ":menu disconnects it" in advice("chunks", keys)
    assert key_or_command(keys, "menu") == ":menu"


async def shows(driver: Driver, *texts: str) -> None:
    await driver.until(lambda: all(text in driver.text() for text in texts))


async def test_hints_tabs_help_and_palette_show_the_chosen_keys(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"keys": CHOSEN}))
    async with dashboard(size=(120, 40), place="topics", kept=Preferences(path)) as driver:
        await shows(driver, "ctrl+f filter", "s help", "T Topics")
        assert "/ filter" not in driver.text() and "sort" not in driver.told("hints")
        await driver.press("s")
        await driver.at("TextDialog", answered=False)
        lines = [line.partition("│")[2].strip(" │") for line in driver.lines()]
        assert any(line.startswith("ctrl+f ") and ":filter" in line for line in lines)
        assert any(line.startswith(":sort ") for line in lines)
        await driver.press("escape")
        await driver.at("TopicsScreen")
        await driver.press("ctrl+p")
        await shows(driver, "Filter the rows", "Write the rows of the table to a file, as CSV")
        before = {title: line.split(title)[0].split() for title in TITLES for line in driver.lines() if title in line}
        keys = [before[title][-1].rpartition("│")[2] for title in TITLES]
        assert keys == ["ctrl+f", "", "!"], "sorting has lost its key"


async def test_chosen_keys_work_and_those_that_they_replace_do_not() -> None:
    async with dashboard(place="subscriptions", kept=choosing(**CHOSEN)) as driver:
        await driver.press("slash")
        await driver.press("ctrl+f")
        await driver.until(lambda: driver.screen.query("#prompt"))
        await driver.type("abc")
        assert driver.screen.query_one("#prompt").value == "abc"
        await driver.press("escape", "exclamation_mark")
        await driver.at("Question", answered=False)
        await driver.press("escape", "ctrl+t")
        await driver.at("TopicsScreen")
        await driver.press("3", "T")
        await driver.at("TopicsScreen")


async def test_chosen_keys_work_on_a_message_beside_its_own() -> None:
    async with dashboard(place="topics", kept=choosing(live="L", topics="w,ctrl+t")) as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.press("enter")
        await driver.at("MessageViewer")
        pressed: list[str] = []
        driver.screen.act = pressed.append
        await driver.press("w", "L", "n", "ctrl+t")
        await driver.until(lambda: pressed == ["wrap", "live", "next match", "topics"])
