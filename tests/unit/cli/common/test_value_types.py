"""Rates, durations and shares of options: plain numbers, or as people write them."""

from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.value_types import BoundedInteger, ByteRate, MessageRate, Seconds, Share, ValueType
from pulsarbox.quantities import BYTES, MILLISECONDS

TYPES = (Seconds(), Seconds(0.1, 60), Seconds(above=True), MessageRate(), ByteRate(), Share(), Share(off=True))


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (BoundedInteger(1), "abc", "expected a whole number of at least 1, not 'abc'"),
        (BoundedInteger(1), "0", "expected a whole number of at least 1, not '0'"),
        (BoundedInteger(0, 9), "1.5", "expected a whole number from 0 to 9, not '1.5'"),
    ],
)
def test_a_number_that_is_not_whole_or_out_of_bounds_is_refused_by_its_bounds(
    kind: BoundedInteger, text: str, words: str
) -> None:
    with pytest.raises(click.BadParameter) as raised:
        kind.convert(text, None, None)
    assert raised.value.message.startswith(words)
    assert kind.convert("7", None, None) == 7


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        (Seconds(), "0", 0),
        (Seconds(), "5", 5),
        (Seconds(), ".5", 0.5),
        (Seconds(0.1), "500ms", 0.5),
        (Seconds(), "1m30s", 90),
        (MessageRate(), "100", 100),
        (MessageRate(), "0.01", 0.01),
        (MessageRate(), "100/s", 100),
        (MessageRate(), "600 / min", 10),
        (MessageRate(), "0", 0),
        (MessageRate(), "off", 0),
        (MessageRate(None), "Unlimited", None),
        (ByteRate(), "20M", 20 << 20),
        (ByteRate(), "5 MB/s", 5 << 20),
        (ByteRate(), "1/h", 1),
        (ByteRate(), "0", 0),
        (ByteRate(), "off", 0),
        (Share(), "20%", 0.2),
        (Share(), "0.2", 0.2),
        (Share(), "1", 1),
        (Share(off=True), "off", 0),
    ],
)
def test_what_is_accepted(kind: ValueType, text: str, number: Any) -> None:
    assert kind.parse(text) == number


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (Seconds(0.1), "0.05", "expected a duration of at least 100ms such as 500ms or 1m, or a number of seconds"),
        (Seconds(0.1, 60), "61s", "expected a duration of at least 100ms and at most 1m"),
        (Seconds(above=True), "0", "expected a duration of more than 0"),
        (Seconds(), "-1", "expected a duration such as 500ms"),
        (Seconds(), "nan", "not 'nan'"),
        (MessageRate(), "1k/s", "expected a rate of messages such as 100/s, a number per second, or off, not '1k/s'"),
        (MessageRate(), "0/s", "expected a rate of messages"),
        (MessageRate(None), "0", "expected a rate of messages"),
        (ByteRate(), "-5", "expected a rate such as 20M or 5MB/s, a number of bytes per second, or off, not '-5'"),
        (ByteRate(), "5 xB/s", "not '5 xB/s'"),
        (Share(), "120%", "expected a share such as 20%, or a number from 0 to 1, not '120%'"),
        (Share(), "off", "expected a share"),
        (Share(off=True), "x", "or off, not 'x'"),
    ],
)
def test_an_error_names_what_is_accepted(kind: ValueType, text: str, words: str) -> None:
    @click.command()
    @click.option("--value", type=kind)
    def command(value: Any) -> None:
        pass

    refused = CliRunner().invoke(command, ["--value", text])
    assert refused.exit_code == 2
    assert words in refused.output


@pytest.mark.parametrize("kind", TYPES)
def test_examples_are_accepted(kind: ValueType) -> None:
    assert kind.examples
    for each in kind.examples:
        kind.parse(each)


@given(st.integers(1, 1 << 40))
def test_shown_quantities_are_accepted(number: int) -> None:
    assert Seconds().parse(MILLISECONDS.text(number)) == number / 1000
    assert ByteRate().parse(f"{BYTES.text(number)}/s") == number
