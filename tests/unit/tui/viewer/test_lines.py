"""Lines of text and bytes: found from any line in both directions, without reading the rest."""

import random

import pytest
from rich.cells import cell_len

from pulsarbox.tui.viewer.lines import BLOCK, HEX_WIDTHS, LINE, HexLines, Lines, TextLines, hex_columns, places_of

TEXTS = (
    b"one",
    b"one\n",
    b"one\ntwo\r\n\nthree",
    b"x" * LINE,
    b"x" * LINE + b"\n" + b"y" * (LINE + 1),
    b"x" * (3 * LINE) + b"\n\n",
    "ж😀é".encode() * 500,
    bytes(range(256)) * 10,
    b"\x80" * (2 * LINE),
    random.Random(1).randbytes(5000),
    b"word " * 300 + b"\n" + b"y" * (LINE - 2) + b" \n" + b" " * LINE + b"\n" + "ж ".encode() * 300,
    b"a " * (LINE // 2) + b"\n" + b"b" * (LINE - 10) + b" bcde\nfg " + b"x" * (2 * LINE) + b"\t" + b"z" * LINE,
)


def walked(lines: Lines) -> list[int]:
    at, found = lines.first, []
    while at is not None:
        found.append(at)
        at = lines.after(at)
    return found


def shown(lines: Lines, at: int) -> str:
    return "".join(piece.text for piece in lines.pieces(at, 80))


@pytest.mark.parametrize("data", TEXTS)
def test_the_lines_of_a_text_are_the_same_in_both_directions(data: bytes) -> None:
    lines = TextLines(data)
    forward = walked(lines)
    at, backward = lines.last, []
    while at is not None:
        backward.append(at)
        at = lines.before(at)
    assert backward[::-1] == forward
    assert [max(line for line in forward if line <= place) for place in range(len(data))] == [
        lines.at(place) for place in range(len(data))
    ]
    ends = [*forward[1:], len(data)]
    assert b"".join(data[at:end] for at, end in zip(forward, ends, strict=True)) == data
    assert all(end - at <= LINE + 80 for at, end in zip(forward, ends, strict=True))


@pytest.mark.parametrize("width", [1, 7, 80])
@pytest.mark.parametrize("data", [*TEXTS, random.Random(2).randbytes(3 * BLOCK).replace(b"\n", b" ")])
def test_rows_of_a_width_are_the_same_in_both_directions(data: bytes, width: int) -> None:
    lines = TextLines(data)
    assert lines.fit(width) and not lines.fit(width)
    forward = walked(lines)
    at, backward = lines.last, []
    while at is not None:
        backward.append(at)
        at = lines.before(at)
    assert backward[::-1] == forward
    ends = [*forward[1:], len(data)]
    assert b"".join(data[at:end] for at, end in zip(forward, ends, strict=True)) == data
    for at, end in zip(forward, ends, strict=True):
        assert lines.at(at) == lines.at(max(end - 1, at)) == at
        if width == 80:
            assert cell_len(shown(lines, at)) <= width


def test_rows_of_a_long_line_are_full_and_end_behind_words() -> None:
    words = random.Random(3)
    text = " ".join("x" * words.randint(1, 20) for _ in range(9000))
    lines = TextLines(text.encode())
    lines.fit(60)
    rows = [shown(lines, at) for at in walked(lines)]
    assert "".join(rows) == text and all(row.endswith(" ") for row in rows[:-1])
    short = [row for row in rows if len(row) < 60 - 21]
    assert len(short) <= len(text) // BLOCK + 1, "only at the end of a block"


def test_a_place_in_a_huge_line_is_found_without_reading_all_of_it() -> None:
    lines = TextLines(b"word " * (4 << 20))
    lines.fit(100)
    middle = lines.at(10 << 20)
    assert middle <= 10 << 20 < (lines.after(middle) or 0)
    assert sum(map(len, lines._kept.values())) < 2 * BLOCK // 95


def test_long_lines_are_divided_behind_blanks() -> None:
    words = random.Random(3)
    text = " ".join("x" * words.randint(1, 70) for _ in range(2000))
    lines = TextLines(text.encode())
    parts = [shown(lines, at) for at in walked(lines)]
    assert "".join(parts) == text and all(part.endswith(" ") for part in parts[:-1])
    assert [lines.at(text.index("x", at)) for at in walked(lines)] == walked(lines)


def test_text_is_fit_for_a_terminal() -> None:
    lines = TextLines("a\x1b[2Jb\r\n\u202ewide 漢字\xff".encode() + b"\xff")
    assert [shown(lines, at) for at in walked(lines)] == ["a\\x1b[2Jb", "\\u202ewide 漢字ÿ\\xff"]
    assert shown(TextLines(("ж" * 500).encode()), 0) == "ж" * 200


@pytest.mark.parametrize("width", HEX_WIDTHS)
def test_the_rows_of_a_dump_stand_beside_their_text(width: int) -> None:
    data = b"Hello, world\x00\x1b and more, and more"
    lines = HexLines(data, width)
    rows = [shown(lines, at) for at in walked(lines)]
    assert len(rows) == -(-len(data) // width) and len({len(row) for row in rows}) == 1
    assert len(rows[0]) == hex_columns(width)
    assert rows[0].startswith("000000  48 65 6c 6c 6f 2c 20 77  "[: 8 + 3 * width])
    assert rows[1].startswith(f"0000{width:02x}  ")
    assert "".join(row[-width:] for row in rows).strip() == "Hello, world.. and more, and more"
    last = (len(rows) - 1) * width
    assert (lines.last, lines.before(0), lines.after(last), lines.before(last)) == (last, None, None, last - width)
    assert lines.at(len(data) - 1) == last


def test_nothing_has_no_lines() -> None:
    for lines in (TextLines(b""), HexLines(b"")):
        assert (lines.first, lines.last, walked(lines)) == (None, None, [])


@pytest.mark.parametrize(
    ("room", "width"), [(10, 4), (40, 4), (41, 8), (73, 8), (74, 16), (139, 16), (140, 32), (900, 32)]
)
def test_a_dump_has_rows_as_long_as_fit(room: int, width: int) -> None:
    lines = HexLines(bytes(100), 16)
    assert lines.fit(room) == (width != 16) and not lines.fit(room)
    assert lines.after(0) == width and lines.at(99) == 99 // width * width
    assert hex_columns(width) <= room or width == 4


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 9), (7, 16), (0, 32), (8, 8), (31, 40)])
def test_some_bytes_of_a_dump_are_marked(width: int, first: int, last: int) -> None:
    data = bytes(range(32))
    lines = HexLines(data, width)
    lines.marked = first, last
    marked = [piece.text for at in walked(lines) for piece in lines.pieces(at, 80) if piece.look == "marked"]
    assert bytes.fromhex("".join(marked[::2])) == data[first:last]
    assert sum(map(len, marked[1::2])) == len(data[first:last])
    assert all(text == text.strip() for text in marked[::2])


def test_matches_in_a_dump_are_highlighted_in_hex_and_text_also_across_rows() -> None:
    lines = HexLines(b"a vip, and a ViP: 76 70", 16)
    lines.searched, lines.marked = b"vip", (2, 6)

    def looking(look: str) -> list[list[str]]:
        rows = [lines.pieces(at, 80) for at in walked(lines)]
        return [[piece.text for piece in row if piece.look == look] for row in rows]

    assert looking("found") == [["76 69 70", "56 69 50", "vip", "ViP"], []]
    assert looking("marked") == [["2c", ","], []], "a match in a marked value remains visible"
    lines.fit(41)
    assert looking("found") == [["76 69 70", "vip"], ["56 69 50", "ViP"], []]
    lines.fit(40)
    assert looking("found") == [["76 69", "vi"], ["70", "p"], [], ["56 69 50", "ViP"], [], []]


def test_a_search_goes_through_the_text_in_windows_and_ignores_case() -> None:
    data = b"a" * 65_534 + b"NeedLe" + b"b" * 70_000 + b"needle"
    assert [place for place in places_of(data, b"nEEdle") if place is not None] == [65_534, 135_540]
    assert list(places_of(data, b"needle")).count(None) == 3
    assert list(places_of(data, b"")) == []
    lines = TextLines(b"one\nneedle needle\nNEEDLE")
    assert [at for at in lines.found("needle") if at is not None] == [4, 18]
    assert [at for at in HexLines(data).found("needle") if at is not None] == [65_520, 135_536]
