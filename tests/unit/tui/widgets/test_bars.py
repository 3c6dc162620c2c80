"""Lines at the top and bottom of a screen."""

import pytest
from rich.cells import cell_len

from pulsarbox.tui.actions.action_table import PLACES
from pulsarbox.tui.widgets.bars import Part, by_enter, fitted, hints, tabs, vitals


def test_keys_with_the_same_word_share_it() -> None:
    assert "".join(text for text, _, _ in hints(["earlier", "later", "live", "help"])) == " ← → step  n now  ? help  "
    assert [action for _, look, action in hints(["earlier", "later"]) if look == "key"] == ["earlier", "later"]


@pytest.mark.parametrize("right", [[], [("now ", "dim", "")]])
def test_the_last_cell_of_a_line_stays_blank(right: list[Part]) -> None:
    for width in range(10, 60):
        for left in (
            [("a word" * 9, "plain", "")],
            hints(["help", "quit"]),
            [("x" * at, "key", "") for at in range(9)],
        ):
            text = "".join(part for part, _, _ in fitted(left, right, width))
            assert cell_len(text) == width and text.endswith(" ")
    assert "q quit" in "".join(part for part, _, _ in fitted(hints(["quit"]), [], 8)), "its blanks may be left out"


def test_two_blanks_or_more_are_between_the_left_and_the_right() -> None:
    totals = {"publishRate": 12_300, "deliverRate": 12_000, "backlog": 1_230_000, "p99": 8.4, "memory": 54_001_664}
    badge = [(" read-only ", "badge", ""), (" ", "plain", ""), ("every 1m00s ", "dim", "")]
    for right in (badge, badge[1:], [("esc: clear the filter ", "dim", "")]):
        told = "".join(text for text, _, _ in right)
        for width in range(len(told) + 2, 200):
            for left in (vitals("", {"lostDirectories": 1, **totals}, width), [("a word " * 30, "plain", "")]):
                shown = "".join(text for text, _, _ in fitted(left, right, width))
                assert cell_len(shown) == width and shown.endswith(f"  {told}")


@pytest.mark.parametrize("width", [120, 160, 200])
def test_each_tab_has_one_place_on_all_screens(width: int) -> None:
    texts = {"".join(part for part, _, _ in tabs(name, width)).rstrip() for name, *_ in PLACES}
    assert len(texts) == 1


@pytest.mark.parametrize("text", ["it failed", "it failed " * 9, "first\nsecond", "漢字" * 30, f"{'x' * 79}\ny", ""])
def test_a_text_that_does_not_fit_says_how_to_read_the_rest(text: str) -> None:
    for width in range(20, 120):
        shown = "".join(part for part, _, _ in by_enter(text, "bad", width))
        assert cell_len(shown) < width, "the last cell stays blank"
        assert shown == f" {text}" or shown.endswith("…  enter shows all")
        assert (shown == f" {text}") == ("\n" not in text and cell_len(text) < width - 1)
