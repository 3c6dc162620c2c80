"""Durations and sizes in user notation, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.quantities import (
    BYTES,
    DAYS,
    GIBIBYTES,
    MEBIBYTES,
    MILLISECONDS,
    MINUTES,
    QUANTITIES,
    SECONDS,
    Quantity,
)


@pytest.mark.parametrize(
    ("quantity", "text", "number"),
    [
        (MINUTES, "7d", 10_080),
        (MINUTES, "90", 90),
        (MINUTES, "1h30m", 90),
        (MINUTES, "1h 30min", 90),
        (MINUTES, "1.5h", 90),
        (MINUTES, "-1", -1),
        (MINUTES, " 2 w ", 20_160),
        (SECONDS, "1y", 31_536_000),
        (SECONDS, "1500ms", None),
        (MILLISECONDS, "1.5s", 1500),
        (DAYS, "2w", 14),
        (DAYS, "36h", None),
        (BYTES, "4096", 4096),
        (BYTES, "1.5G", 3 << 29),
        (BYTES, "5 MB", 5 << 20),
        (BYTES, "5MiB", 5 << 20),
        (BYTES, "10k", 10_240),
        (BYTES, "7b", 7),
        (BYTES, "0.3K", None),
        (MEBIBYTES, "1.5G", 1536),
        (MEBIBYTES, "512K", None),
        (GIBIBYTES, "2T", 2048),
    ],
)
def test_an_amount_is_a_whole_number_of_units(quantity: Quantity, text: str, number: int | None) -> None:
    if number is not None:
        assert quantity.parse(text) == number
        return
    with pytest.raises(ValueError, match=f"^'{text}' is not a whole number of {quantity.unit}$"):
        quantity.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", "d", "7x", "7D", "7d!", "1d 2", "1e3s", "-1h", "\u0663d", "1,5h", "x" * 200, "9" * 200, "9s" * 90],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number of seconds, or a duration such as 90s") as raised:
        SECONDS.parse(text)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("text", ["1G 2M", "1GM", "5 bytes", "5i", "ib"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number of bytes, or a size such as 500K"):
        BYTES.parse(text)


@pytest.mark.parametrize(
    ("quantity", "number", "text"),
    [
        (MINUTES, 10_080, "7d"),
        (MINUTES, 90, "1h30m"),
        (MINUTES, 0, "0"),
        (MINUTES, -1, "-1"),
        (MILLISECONDS, 1500, "1s500ms"),
        (DAYS, 400, "400d"),
        (BYTES, 1 << 30, "1GiB"),
        (BYTES, 3 << 29, "1.5GiB"),
        (BYTES, (1 << 30) + 1, "1073741825B"),
        (BYTES, 5_000_000, "5000000B"),
        (BYTES, 1_500_000_000, "1500000000B"),
        (BYTES, 9999 << 10, "9999KiB"),
        (BYTES, 10_001 << 10, "10241024B"),
        (BYTES, 20_480 << 40, "20PiB"),
        (MEBIBYTES, 15_001, "15001MiB"),
        (MEBIBYTES, 1536, "1.5GiB"),
        (MEBIBYTES, 100, "100MiB"),
    ],
)
def test_a_number_is_shown_in_its_largest_units(quantity: Quantity, number: int, text: str) -> None:
    assert quantity.text(number) == text


@given(st.sampled_from(list(QUANTITIES.values())), st.integers(-1, 1 << 62))
def test_what_is_shown_can_be_typed(quantity: Quantity, number: int) -> None:
    assert quantity.parse(quantity.text(number)) == number
