"""The dashboard starts with any preferences file, reports invalid values, and preserves all of them."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from textual.theme import BUILTIN_THEMES

from pulsarbox.tui.preferences import Preferences, place
from pulsarbox.tui.themes import DARK, OURS
from tests.tools.campaigns import short
from tests.unit.tui.driving import dashboard

UNREADABLE = {
    "not JSON": b'{"theme": ',
    "TOML": b'theme = "nord"\n',
    "not UTF-8": b'{"theme": "\xff"}',
    "empty": b"",
    "a list": b'["nord"]',
    "too deep": b"[" * 200_000,
    "too large": b'{"theme": "nord", "more": "' + b"x" * (1 << 20) + b'"}',
}


def noted(driver: Any, *texts: str) -> bool:
    return any(all(text in note for text in texts) for note in driver.said)


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
async def test_a_file_that_cannot_be_read_costs_the_preferences_and_stays_as_it_is(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "top.json"
    path.write_bytes(content)
    async with dashboard(kept=Preferences(path)) as driver:
        assert driver.app.theme == DARK.name
        assert noted(driver, f"cannot read {path}", "changes are not saved")
        await driver.press("T")
        assert driver.app.theme == OURS[1].name
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == ["top.json"]


@pytest.mark.parametrize("kind", ["directory", "named pipe", "loop"])
async def test_what_is_no_readable_file_costs_the_preferences(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    if kind == "directory":
        path.mkdir()
    elif kind == "named pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    async with dashboard(kept=Preferences(path)) as driver:
        assert noted(driver, f"cannot read {path}")


def test_a_file_of_another_user_costs_the_preferences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: object, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    with monkeypatch.context() as patch:  # the tests may run as root, which can read any file
        patch.setattr(os, "open", forbidden)
        kept = Preferences(tmp_path / "top.json")
    notes: list[str] = []
    kept.listen(notes.append)
    assert notes == [f"cannot read {tmp_path}/top.json (Permission denied): using defaults; changes are not saved"]


def test_changes_that_cannot_be_written_are_noted_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Preferences(tmp_path / "file" / "top.json")
    notes: list[str] = []
    kept.listen(notes.append)
    kept.set("theme", "nord")
    kept.set("theme", "dracula")
    assert kept.get("theme") == "dracula"
    assert len(notes) == 1 and "changes are not saved" in notes[0]


@pytest.mark.parametrize(
    ("name", "value", "note"),
    short(
        [
            ("theme", "no-such-theme", 'theme: "no-such-theme" is not a theme'),
            ("theme", 7, "theme: 7 is not a theme"),
            ("theme", ["nord"], 'theme: ["nord"] is not a theme'),
            ("theme", {"dark": True}, "is not a theme"),
            ("columns.topics", "backlog", 'columns.topics: "backlog" is not a list of columns of topics'),
            ("columns.topics", [["backlog"], 3], "is not a list of columns of topics"),
            ("columns.topics", ["no-such-column"], "is not a list of columns of topics"),
            ("sort.topics", "backlog", "sort.topics"),
            ("sort.topics", ["no-such-column", True], "sort.topics"),
            ("sort.topics", ["backlog", "yes"], "sort.topics"),
            ("sort.topics", [["backlog"], True], "sort.topics"),
            ("keys", ["t"], 'keys: ["t"] is not an object'),
            ("keys", {"no-such-action": "t"}, "no such action: 'no-such-action'"),
            ("keys", {"topics": 5}, "keys: topics: invalid key 5"),
            ("keys", {"topics": ","}, "keys: topics: invalid key ','"),
        ],
        6,
    ),
)
async def test_a_value_that_cannot_be_used_costs_itself_alone(name: str, value: Any, note: str, tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    others = {"theme": "nord", "sort.topics": ["backlog", False], "columns.topics": ["topic", "backlog"], "else": 1}
    path.write_text(json.dumps({**others, name: value}))
    async with dashboard(kept=Preferences(path), place="topics") as driver:
        assert noted(driver, note), driver.said
        table = driver.table
        assert driver.app.theme == (DARK.name if name == "theme" else "nord")
        assert name == "sort.topics" or table.sorted_by == ("backlog", False)
        assert name == "columns.topics" or [each.key for each in table.columns] == ["topic", "backlog"]
        await driver.press("S")
    left = json.loads(path.read_text())
    assert name == "sort.topics" or left[name] == value, "it stays until it is changed"
    assert left["else"] == 1


async def test_keys_that_can_be_used_are_used_beside_those_that_cannot() -> None:
    kept = Preferences(None)
    kept.set("keys", {"nonsense": "x", "topics": "ctrl+t"})
    async with dashboard(kept=kept) as driver:
        await driver.press("ctrl+t")
        await driver.at("TopicsScreen")


@pytest.mark.campaign
async def test_the_next_theme_of_each_is_kept_and_the_dashboard_starts_with_it(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    known = {theme.name for theme in OURS} | {*BUILTIN_THEMES}
    async with dashboard(kept=Preferences(path)) as driver:
        seen = [driver.app.theme]
        for _ in range(len(known)):
            await driver.press("T")
            seen.append(driver.app.theme)
            assert Preferences(path).get("theme") == driver.app.theme
    assert {*seen} == known and seen[0] == seen[-1]
    for theme in ("ansi-dark", "ansi-light"):
        Preferences(path).set("theme", theme)
        async with dashboard(kept=Preferences(path)) as driver:
            assert driver.app.theme == theme and not driver.said


def test_a_user_without_a_home_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert place({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/x/pulsarbox/top.json")
    assert place({"HOME": "/h"}) == Path("/h/.config/pulsarbox/top.json")

    def unknown(self: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    assert place({}) is None
