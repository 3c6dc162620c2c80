"""Lines of columns whose further rows begin below the last column."""

import pytest
from rich.cells import cell_len
from rich.text import Text

from pulsarbox.tui.widgets.command_lines import parted
from pulsarbox.tui.widgets.wrapping import breaks, hanging, rows_with_command


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


NAME = "persistent://a-tenant-with-a-long-name/department.of_incoming-goods/orders-from-all-countries-and-all-shops-v2"
CLEAR = f"pulsarbox sub clear {NAME} billing --yes"


@pytest.mark.parametrize("indent", [0, 2, None])
@pytest.mark.parametrize("text", [CLEAR, f"topic   {NAME}", f"{NAME} of {NAME}"])
def test_names_break_behind_their_signs(text: str, indent: int | None) -> None:
    """No row ends inside of a word, at any width with room for the longest one, and nothing gets lost."""
    for width in range(32, 200):
        rows = hanging(Text(text), width, indent).plain.split("\n")
        assert max(map(len, rows)) <= width
        assert {row[-1] for row in rows[:-1]} <= set(" ,/-._")
        assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_further_rows_of_a_command_begin_behind_its_indent() -> None:
    text = Text("pulsarbox one two three\npulsarbox four")
    assert hanging(text, 16, 2).plain.split("\n") == ["pulsarbox one ", "  two three", "pulsarbox four"]


ADVICE = "No dead letters. Keep messages that fail: pulsarbox sub dead-letter my-topic my-sub --max-redeliveries 3"


@pytest.mark.parametrize("width", range(30, 120))
def test_a_command_has_rows_of_its_own_and_no_word_of_it_is_broken(width: int) -> None:
    sentences, command = parted(ADVICE)
    rows = rows_with_command(ADVICE, width, 9)
    assert all(cell_len(row) <= width for row, _ in rows)
    assert " ".join(row for row, is_command in rows if not is_command) == sentences
    parts = [row for row, is_command in rows if is_command]
    assert " ".join(part.strip() for part in parts) == command
    assert all(part.startswith("  ") for part in parts[1:])


@pytest.mark.parametrize("width", range(30, 130))
def test_in_little_room_a_command_is_whole_or_not_shown(width: int) -> None:
    for lines in (1, 2, 3):
        rows = rows_with_command(ADVICE, width, lines)
        told = " ".join(row.strip() for row, _ in rows)
        assert len(rows) <= lines and told in (ADVICE, "No dead letters.")
    assert rows_with_command(ADVICE, len(ADVICE), 1) == [(ADVICE, False)]
