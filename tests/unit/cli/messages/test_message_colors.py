"""Colours of JSON: names, texts, numbers and words, and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.messages.message_colors import KEY, painted, painted_json

_COLOR = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m", re.DOTALL)
NAME, TEXT, NUMBER, WORD = "36", "32", "35", "31"


def parts(text: str) -> list[tuple[str, str]]:
    return _COLOR.findall(painted_json(text))


def test_the_parts_of_an_object() -> None:
    assert parts('{"a": "x\\"y", "b" : [-1.5e3, true, null], "c:": {}}') == [
        (NAME, '"a"'), (TEXT, '"x\\"y"'), (NAME, '"b"'), (NUMBER, "-1.5e3"), (WORD, "true"), (WORD, "null"),
        (NAME, '"c:"'),
    ]  # fmt: skip


def test_a_truncated_object_is_coloured_as_far_as_it_goes() -> None:
    assert parts('{"a": "x... (1,000 bytes)') == [(NAME, '"a"'), (TEXT, '"x... (1,000 bytes)')]


@pytest.mark.parametrize("text", ["", "a text with 1 and true", "17", '"text"', "null"])
def test_other_text_is_unchanged(text: str) -> None:
    assert painted_json(text) == text


@given(st.text(max_size=60))
def test_without_its_colours_it_is_the_same_text(text: str) -> None:
    text = "{" + text.replace("\x1b", "")
    assert _COLOR.sub(r"\2", painted_json(text)) == text


@pytest.mark.parametrize("piece", ['"\\', '"', '" ', "-", "1", '"": ', " "])
def test_repeated_pieces_take_linear_time(piece: str) -> None:
    painted_json("{" + piece * 100_000)  # a quadratic search takes minutes


def test_nothing_is_coloured_unless_wanted() -> None:
    assert painted("k", KEY, wanted=False) == "k"
    assert painted("", KEY) == ""
