"""Wrapping and highlighting of lines."""

import random

from rich.cells import cell_len

from pulsarbox.tui.viewer.lines import LinePart
from pulsarbox.tui.widgets.pager import highlighted, wrapped


def test_lines_are_wrapped_by_cells_and_keep_their_text() -> None:
    chance = random.Random(2)
    for _ in range(200):
        pieces = [LinePart("".join(chance.choices("ab漢é😀 ", k=chance.randrange(30))), str(at)) for at in range(4)]
        width = chance.randrange(2, 20)
        rows = wrapped([LinePart("x"), *pieces], width)
        assert all(sum(cell_len(piece.text) for piece in row) <= width for row in rows)
        assert "".join(piece.text for row in rows for piece in row) == "x" + "".join(piece.text for piece in pieces)
    assert wrapped([], 10) == [[]]


def test_wrapped_rows_are_indented_more_where_there_is_room() -> None:
    rows = wrapped([LinePart("  "), LinePart("a" * 30)], 20)
    assert ["".join(piece.text for piece in row) for row in rows] == ["  " + "a" * 18, "      " + "a" * 12]


def test_rows_end_between_words_unless_a_word_is_longer_than_a_row() -> None:
    def rows(text: str, width: int) -> list[str]:
        return [
            "".join(piece.text for piece in row) for row in wrapped([LinePart(text[:7]), LinePart(text[7:])], width)
        ]

    assert rows("the quota of orders-0 is reached", 12) == ["the quota ", "of orders-0 ", "is reached"]
    assert rows('{"id":249,"customer":"a-b"}', 20) == ['{"id":249,', '"customer":"a-b"}']
    assert rows("/srv/box/volumes/0001", 12) == ["/srv/box/", "volumes/0001"]
    assert rows("to x" + "y" * 20, 10) == ["to xyyyyyy", "yyyyyyyyyy", "yyyy"]


def test_matches_are_highlighted_whatever_their_case() -> None:
    found = highlighted([LinePart("A needle, a NEEDLE", "x"), LinePart("need"), LinePart("İneedle")], "Needle")
    assert [piece.text for piece in found if piece.look == "found"] == ["needle", "NEEDLE", "needle"]
    assert "".join(piece.text for piece in found) == "A needle, a NEEDLEneedİneedle"
    assert highlighted([LinePart("a")], "") == [LinePart("a")]
