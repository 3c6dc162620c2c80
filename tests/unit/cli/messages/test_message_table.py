"""Tables of messages: title, columns that fit, one line per message on a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.text_table import terminal_width
from pulsarbox.cli.messages.message_table import MessageTable, _cells
from pulsarbox.protocol.message_encoder import Outgoing
from tests.unit.cli.incoming import received

LONG = Outgoing(b"x" * 300, "customer-7", properties=[("region", "north")])


def lines(table: MessageTable, *messages: Outgoing) -> list[str]:
    found = [received(each) for each in messages]
    return (table.begin(found) + b"".join(map(table.row, found))).decode().splitlines()


def test_columns_are_aligned_below_their_titles() -> None:
    title, first, second = lines(MessageTable(), LONG, Outgoing(b"y"))
    assert title.split() == ["TOPIC", "TIME", "ID", "KEY", "VALUE"]
    assert first.index("x") == second.index("y") == title.index("VALUE")
    assert first.index("customer-7") == second.index("- ") == title.index("KEY")


def test_redeliveries_are_a_column_of_their_own() -> None:
    title, row = lines(MessageTable(redelivery=True), LONG)
    assert row[title.index("REDELIVERED")] == "3"


@pytest.mark.parametrize(
    ("width", "several_topics", "titles"),
    [
        (120, False, ["TOPIC", "TIME", "ID", "KEY", "VALUE"]),
        (80, False, ["TIME", "ID", "KEY", "VALUE"]),
        (60, False, ["ID", "KEY", "VALUE"]),
        (80, True, ["TOPIC", "ID", "KEY", "VALUE"]),
    ],
)
def test_a_narrow_terminal_hides_the_least_columns(width: int, several_topics: bool, titles: list[str]) -> None:
    title, row = lines(MessageTable(width=width, several_topics=several_topics), LONG)
    assert title.split() == titles
    assert len(row) == width
    assert row.endswith("x…")


LETTER = Outgoing(
    b"x" * 300,
    "customer-7",
    properties=[("REAL_TOPIC", "persistent://public/default/orders"), ("DEAD_LETTER_REASON", "rejected for long")],
)


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (140, ["TOPIC", "TIME", "ID", "KEY", "ORIGIN", "REASON", "VALUE"]),
        (100, ["TIME", "ID", "KEY", "ORIGIN", "REASON", "VALUE"]),
        (80, ["ID", "KEY", "ORIGIN", "REASON", "VALUE"]),
        (60, ["ID", "KEY", "REASON", "VALUE"]),
    ],
)
def test_dead_letters_have_their_origin_and_reason(width: int, titles: list[str]) -> None:
    title, row = lines(MessageTable(width=width, several_topics=False, dead_letters=True), LETTER)
    assert title.split() == titles
    assert len(row) == width
    if "ORIGIN" in titles:
        assert row[title.index("ORIGIN") :].startswith("orders ")
    assert row[title.index("REASON") :].startswith("rejected")


def test_properties_are_shown_if_they_fit() -> None:
    small = Outgoing(b"x", properties=[("region", "north")])
    assert lines(MessageTable(width=80), small)[1].endswith("x  {region=north}")
    assert "region" not in lines(MessageTable(width=80), LONG)[1]
    assert lines(MessageTable(), LONG)[1].endswith("... (300 bytes)  {region=north}")


def test_a_later_message_with_a_longer_key_is_cut_on_a_terminal() -> None:
    table = MessageTable(width=80)
    table.begin([received(Outgoing(b"x", "k"))])
    row = table.row(received(Outgoing(b"y", "k" * 50))).decode()
    assert "kkkk…  y" in row
    assert "k" * 50 in MessageTable().row(received(Outgoing(b"y", "k" * 50))).decode()


@given(st.text(max_size=300), st.text(max_size=60), st.integers(60, 200))
def test_a_row_is_never_wider_than_the_terminal(text: str, key: str, width: int) -> None:
    payload, key = text.encode("utf-8", "replace"), key.encode("utf-8", "replace").decode()
    for row in lines(MessageTable(width=width), Outgoing(payload, key, properties=[(key, key)])):
        assert _cells(row) <= width


def test_wide_characters_take_two_cells() -> None:
    assert (_cells("ab"), _cells("日本"), _cells("e\u0301")) == (2, 4, 1)


def test_a_pipe_has_no_width() -> None:
    assert terminal_width() is None
