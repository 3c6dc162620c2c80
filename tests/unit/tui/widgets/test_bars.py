"""Lines at the top and bottom of a screen."""

from pulsarbox.tui.widgets.bars import hints


def test_keys_with_the_same_word_share_it() -> None:
    assert "".join(text for text, _, _ in hints(["earlier", "later", "live", "help"])) == " ← → step  n now  ? help  "
    assert [action for _, look, action in hints(["earlier", "later"]) if look == "key"] == ["earlier", "later"]
