"""Lines at the top and bottom of a screen."""

import pytest
from rich.cells import cell_len

from pulsarbox.tui.widgets.bars import by_enter, hints


def test_keys_with_the_same_word_share_it() -> None:
    assert "".join(text for text, _, _ in hints(["earlier", "later", "live", "help"])) == " ← → step  n now  ? help  "
    assert [action for _, look, action in hints(["earlier", "later"]) if look == "key"] == ["earlier", "later"]


@pytest.mark.parametrize("text", ["it failed", "it failed " * 9, "first\nsecond", "漢字" * 30, f"{'x' * 79}\ny", ""])
def test_a_text_that_does_not_fit_says_how_to_read_the_rest(text: str) -> None:
    for width in range(20, 120):
        shown = "".join(part for part, _, _ in by_enter(text, "bad", width))
        assert cell_len(shown) <= width
        assert shown == f" {text}" or shown.endswith("…  enter shows all ")
        assert (shown == f" {text}") == ("\n" not in text and cell_len(text) < width)
