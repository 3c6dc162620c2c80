"""Option types: the values that an option accepts and their parsers. Pure."""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pulsarbox.config.setting import did_you_mean
from pulsarbox.names import parse_topic
from pulsarbox.spark.decode import row_columns
from pulsarbox.spark.source import offsets
from pulsarbox.spark.topic_segments import ReadPosition
from pulsarbox.times import duration, moment

Asked = str | dict[str, ReadPosition | offsets.Mark | str]
"""Requested positions: a word, or one position per topic."""


class OptionType(NamedTuple):
    """Type of an option."""

    words: str
    """Description for users."""
    read: Callable[[str], Any]
    """Parser from text to value; raises ValueError with a message for users."""


def _text(text: str) -> str:
    return text.strip()


def _yes_or_no(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.strip().lower() == "true"


_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _size(text: str) -> int:
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    digits = number.rstrip("kmg")
    unit = number[len(digits) :]
    if not (digits.isascii() and digits.isdigit()) or unit not in _UNITS or not int(digits):
        raise ValueError("must be a number of bytes above 0, such as 1048576 or 64m")
    return int(digits) * _UNITS[unit]


def _count(text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit() and int(text)):
        raise ValueError("must be a whole number above 0")
    return int(text)


def _length(text: str) -> int:
    return int(text) if text.strip().isdigit() else duration(text.strip())


def _time(text: str) -> int:
    from time import time

    return 0 if text.strip() == "0" else moment(text.strip(), round(time() * 1000))


def _topic(text: str) -> str:
    return str(parse_topic(text.strip()))


def _topics(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(str(parse_topic(name.strip())) for name in text.split(",") if name.strip()))
    if not found:
        raise ValueError("must be names separated by commas, such as orders,bills")
    return found


def _columns(text: str) -> str:
    row_columns.chosen(text)
    return text.strip()


def one_of(*words: str) -> OptionType:
    """Return the type of an option that accepts one of ``words``, in any case."""

    def read(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}{did_you_mean(text.strip(), words).rstrip('?')}")
        return text.strip().lower()

    return OptionType(" or ".join(f"`{word}`" for word in words), read)


def places(*words: str) -> OptionType:
    """Return the type of an option that accepts one of ``words``, or positions by topic as JSON."""

    def read(text: str) -> Asked:
        if text.strip().lower() in words:
            return text.strip().lower()
        if not text.strip().startswith("{"):
            raise ValueError(f'must be {", ".join(words)}, or JSON such as {{"orders": "12:345"}}')
        try:
            return offsets.asked(json.loads(text))
        except (ValueError, TypeError) as error:
            raise ValueError(f"invalid JSON of positions by topic: {error}") from None

    return OptionType(", ".join(f"`{word}`" for word in words) + " or JSON", read)


TEXT: Final = OptionType("text", _text)
SECRET: Final = OptionType("secret", _text)
YES_OR_NO: Final = OptionType("`true` or `false`", _yes_or_no)
SIZE: Final = OptionType("bytes, such as `64m`", _size)
COUNT: Final = OptionType("number", _count)
LENGTH: Final = OptionType("milliseconds, or a duration such as `5s`", _length)
TIME: Final = OptionType("milliseconds since 1970, `-1h`, or a time such as `2026-11-21T10:00`", _time)
TOPIC: Final = OptionType("topic", _topic)
TOPICS: Final = OptionType("topics, separated by commas", _topics)
COLUMNS: Final = OptionType("`basic`, `all`, or names separated by commas", _columns)
