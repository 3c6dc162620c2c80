"""What changes something at the box: what is asked of its Admin API, and the ``pulsarbox`` command that does the same.

A deed is data and two pure functions of a row and of what was typed in. The row is the one that stood there when the
dialog opened: what comes later does not move a deed to another target.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pulsarbox.client.admin import path_of, subscription_segment
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.tui.feed import real

Row = Mapping[str, Any]
Values = Mapping[str, str]


class Request(NamedTuple):
    """One question to the box."""

    method: str
    target: str
    body: object = None


def default_of(field: "Field", row: Row) -> str:
    """What stands in a field at first."""
    if callable(field.default):
        return field.default(row)
    if field.default.startswith("="):
        found = row.get(field.default[1:])
        return str(found) if found is not None else ""
    return field.default


class Wrong(ValueError):
    """What was typed in cannot be used. The text says why."""


class Field(NamedTuple):
    """Something to type in."""

    name: str
    title: str
    default: str | Callable[[Row], str] = ""
    """What stands there at first; of a row, where it begins with ``=`` its value of that name."""
    hint: str = ""
    choices: tuple[str, ...] = ()
    """Where there are few: the only ones that are taken."""


class Deed(NamedTuple):
    """One change."""

    name: str
    title: str
    on: tuple[str, ...]
    """Kinds of rows."""
    words: Callable[[Row, Values], Sequence[str]]
    """Those behind ``pulsarbox``."""
    requests: Callable[[Row, Values], Sequence[Request]]
    """Raises Wrong."""
    target: Callable[[Row], str]
    """What it is done to, by name: what has to be typed in where it is dangerous."""
    explained: str = ""
    fields: tuple[Field, ...] = ()
    danger: bool = False
    """It cannot be taken back: the name is to be typed in."""
    keys: str = ""
    fits: Callable[[Row], bool] = lambda row: True


def topic_of(row: Row, key: str = "topic") -> TopicName:
    """Raises Wrong."""
    try:
        return parse_topic(real(row, key))
    except PulsarBoxError as error:
        raise Wrong(str(error)) from None


def short(row: Row, key: str = "topic") -> str:
    """The topic as commands take it, without what they fill in."""
    name = real(row, key)
    return name.removeprefix("persistent://").removeprefix("public/default/")


def of_topic(row: Row, *more: str) -> str:
    """The path of a topic of the Admin API, and what is below it."""
    return f"/admin/v2{path_of(topic_of(row))}" + "".join(f"/{part}" for part in more)


def of_subscription(row: Row, *more: str) -> str:
    """The same for a subscription."""
    return of_topic(row, "subscription", subscription_segment(real(row, "subscription")), *more)


def whole_number(values: Values, name: str, least: int = 0) -> int:
    """Raises Wrong."""
    text = values.get(name, "").strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise Wrong(f"{name}: '{text}' is no number of at least {least}")
    return int(text)


def with_words(*words: str) -> Callable[[Row, Values], Sequence[str]]:
    """Words of a command; ``{topic}`` and the like are filled in."""

    def filled(row: Row, values: Values) -> list[str]:
        known = {"topic": short(row), "subscription": real(row, "subscription"), **values}
        return [word.format_map(known) if word.startswith("{") else word for word in words]

    return filled


def one_request(
    method: str, *more: str, of: Callable[..., str] = of_subscription
) -> Callable[[Row, Values], list[Request]]:
    return lambda row, values: [Request(method, of(row, *more))]


def needed(values: Values, name: str) -> str:
    text = values.get(name, "").strip()
    if not text:
        raise Wrong(f"{name}: this is to be said")
    return text
