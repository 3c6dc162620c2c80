"""Lines of columns whose further rows begin below the last column."""

from rich.cells import cell_len
from rich.text import Text

from pulsarbox.tui.widgets.wrapping import breaks, hanging


def test_a_long_value_continues_below_its_beginning() -> None:
    text = Text("it failed\n\nonly      reason is a timeout and more\nstate     done")
    assert hanging(text, 24).plain.split("\n") == [
        *("it failed", ""),
        *("only      reason is a ", "          timeout and ", "          more"),
        "state     done",
    ]


def test_half_of_a_narrow_dialog_remains_for_values() -> None:
    rows = hanging(Text(f"{'subscription':<16}  of orders"), 20).plain.split("\n")
    assert max(map(len, rows)) <= 20 and rows[1] == " " * 10 + "of orders"


def test_styles_are_kept() -> None:
    text = Text("one two three", style="bold")
    text.append(" four", style="red")
    rows = hanging(text, 8)
    assert [rows.plain[span.start : span.end] for span in rows.spans if span.style == "red"] == [" ", "four"]
    assert (0, 8, "bold") in rows.spans


def test_wide_characters_count_as_two_cells() -> None:
    assert breaks("漢字漢字", 4, 4) == [2]
    assert breaks("漢字", 1, 1) == [1]
    assert all(cell_len(text) <= 5 for text in hanging(Text("a漢 漢字b 字"), 5).plain.split("\n"))
