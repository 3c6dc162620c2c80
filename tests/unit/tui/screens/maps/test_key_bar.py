"""The bar of hash ranges: who owns each cell, and the worst key in it."""

from typing import Any

import pytest
from rich.console import Console
from textual.theme import Theme

from pulsarbox.tui.screens.maps.key_bar import LETTERS, STATES, cells_of, consumer_style, drawn, key_bar, sign_of
from pulsarbox.tui.screens.maps.key_map import keys_of
from pulsarbox.tui.themes import DARK, REPLACED
from pulsarbox.tui.widgets.columns import KINDS
from pulsarbox.tui.widgets.styles import ink_of
from pulsarbox.tui.widgets.table import Table
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox, subscription
from tests.unit.tui.framing import framed

CONSOLE = Console()
COLORS = DARK.to_color_system().generate() | DARK.variables


def consumer(name: str, *ranges: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {"name": name, "ranges": [list(each) for each in ranges], "unacked": 3, **more}


def owners(told: dict[str, Any], width: int) -> str:
    return "".join(sign_of(each) for each in key_bar(told, (), width).owners)


def test_a_cell_has_the_letter_of_the_consumer_with_most_of_it() -> None:
    halves = {"slots": 100, "consumers": [consumer("a", (0, 49)), consumer("b", (50, 99))]}
    assert owners(halves, 10) == "AAAAABBBBB"
    parts = {"slots": 100, "consumers": [consumer("a", (0, 53), (90, 99)), consumer("b", (54, 79))]}
    assert owners(parts, 10) == "AAAAABBB·A"
    assert owners({"slots": 100}, 4) == "····"
    many = [consumer(str(at), (at, at)) for at in range(14)]
    assert owners({"slots": 14, "consumers": many}, 14) == LETTERS + "++"


def test_ranges_cover_parts_of_cells() -> None:
    assert cells_of([[0, 24]], 100, 10) == {0: 1.0, 1: 1.0, 2: 0.5}
    assert cells_of([[99, 99]], 100, 10) == {9: 0.09999999999999964}
    assert cells_of([], 100, 10) == {}


def test_a_cell_shows_the_worst_of_its_keys() -> None:
    told = {
        "stuck": [{"slot": 5, "waiting": 2, "behind": "1:2"}, {"slot": 25, "waiting": 1, "behind": None}],
        "draining": [{"slot": 26, "blocked": 1}, {"slot": 95}],
        "busiest": [{"slot": 5, "unacked": 1}, {"slot": 6, "unacked": 9}, {"slot": 55, "unacked": 1}],
    }
    keys = keys_of(told, {})
    assert [key["stands"] for key in keys] == ["stuck", "waiting", "draining", "draining", "in flight", "in flight"]
    assert list(key_bar({"slots": 100}, keys, 10).states) == [
        *("stuck", "", "waiting", "", "", "in flight", "", "", "", "draining")
    ]


def test_signs_and_legends_tell_all_that_colors_tell() -> None:
    told = {
        "slots": 100,
        "consumers": [consumer("one\x1b", (0, 49), share=0.5, blocked=True), consumer("two", (50, 99), share=0.5)],
        "consumersTotal": 2,
        "stuck": [{"slot": 5, "waiting": 2, "behind": "1:2"}],
    }
    keys = keys_of(told, {})
    text = drawn(told, key_bar(told, keys, 64), keys, COLORS)
    lines = text.plain.split("\n")
    assert lines[0].startswith("0 ") and lines[0].endswith(" 99") and len(lines[0]) == 64
    assert lines[1] == "A" * 32 + "B" * 32
    assert lines[2] == "   !" + " " * 60
    assert lines[3].split("   ") == ["! 1 stuck", "▴ 0 waiting for a consumer", "~ 0 draining", ""]
    assert lines[4].strip() == "• 0 in flight"
    assert lines[5].split() == ["A", "one\\x1b", "50%", "0", "keys,", "3", "unacked", "blocked"]
    assert lines[6].split() == ["B", "two", "50%", "0", "keys,", "3", "unacked"]
    assert all(len(line.rstrip()) <= 64 for line in lines)
    high = drawn(told, key_bar(told, keys, 64), keys, COLORS, 3).plain.split("\n")
    assert high[1:4] == [lines[1]] * 3 and [*high[:2], *high[4:7], *high[8:]] == lines, "only the bar is higher"
    assert "No client is connected." in drawn({}, key_bar({}, (), 20), (), COLORS).plain
    many = {"consumers": [consumer(str(at)) for at in range(20)], "consumersTotal": 20}
    assert "+ 8 other consumers" in drawn(many, key_bar(many, (), 80), (), COLORS).plain


def test_a_state_has_one_color_in_the_bar_in_its_legend_and_in_the_table() -> None:
    told = {
        "stuck": [{"slot": 5, "waiting": 2, "behind": "1:2"}, {"slot": 25, "waiting": 1, "behind": None}],
        "draining": [{"slot": 46, "blocked": 1}],
        "busiest": [{"slot": 75, "unacked": 9}],
    }
    keys = keys_of(told, {})
    text = drawn(told, key_bar({"slots": 100}, keys, 64), keys, COLORS)
    looks = {"stuck": "bad", "waiting": "warn", "draining": "warn", "in flight": "good"}
    for name, sign, _ in STATES:
        color = ink_of(COLORS, Table.looks[looks[name]].ink).color
        drawn_signs = [at for at, each in enumerate(text.plain) if each == sign]
        assert len(drawn_signs) == 2
        assert {text.get_style_at_offset(CONSOLE, at).color for at in drawn_signs} == {color}, name
        assert KINDS["state"](name, {}, 20) == (name, looks[name])


def test_no_consumer_has_the_color_of_an_alarm() -> None:
    alarms = {ink_of(COLORS, Table.looks[look].ink).color for look in ("bad", "warn")}
    assert not alarms & {consumer_style(number, COLORS).color for number in range(-1, 14)}


@pytest.mark.parametrize("theme", REPLACED, ids=lambda theme: theme.name)
def test_the_first_consumers_differ_in_the_colors_of_the_terminal(theme: Theme) -> None:
    colors = theme.to_color_system().generate() | theme.variables
    styles = [consumer_style(number, colors) for number in range(4)]
    assert len({(str(style.color), style.reverse) for style in styles}) == 4
    alarms = {ink_of(colors, Table.looks[look].ink).color for look in ("bad", "warn")}
    assert not alarms & {style.color for style in styles}


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_hash_ranges_are_a_panel_as_wide_as_the_screen(size: tuple[int, int]) -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number, type="Key_Shared") for number in range(3)]
    async with dashboard(box, size, place="subscriptions") as driver:
        await driver.press("K")
        await driver.at("KeyMapScreen")
        await driver.until(lambda: "customer-9" in driver.text())
        (region,) = [framed(driver)["Hash ranges: billing of orders-0"]]
        lines = driver.lines()
        assert region.width == size[0] and lines[3].endswith(" 65,535 │"), "the scale ends at the border"
        bars = [line for line in lines if "AAAA" in line]
        assert len(bars) == (1 if size == SMALL else 3)
        assert all(len(bar.strip("│ ")) == size[0] - 4 for bar in bars)
        assert "A c0 3 keys, 3 unacked" in driver.text() and "B c1 0 keys, 0 unacked" in driver.text()
