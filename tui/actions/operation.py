"""Deeds, which change the box: their Admin API requests, and the equivalent ``pulsarbox`` command.

A deed is data and two pure functions of a row and the typed values. The row is fixed when the dialog opens, so later
refreshes cannot change the target.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pulsarbox.client.admin import path_of, subscription_segment
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, parse_topic, short_topic
from pulsarbox.tui.feed import real

Row = Mapping[str, Any]
Values = Mapping[str, str]


class Request(NamedTuple):
    """One request to the box."""

    method: str
    target: str
    body: object = None


def default_of(field: "OperationField", row: Row) -> str:
    """Return the initial value of a field."""
    if callable(field.default):
        return field.default(row)
    if field.default.startswith("="):
        found = row.get(field.default[1:])
        return str(found) if found is not None else ""
    return field.default


class Wrong(ValueError):
    """Invalid input. The text has the reason."""


class OperationField(NamedTuple):
    """An input field."""

    name: str
    title: str
    default: str | Callable[[Row], str] = ""
    """Initial value; with a leading ``=``, the row's value of that name."""
    hint: str = ""
    choices: tuple[str, ...] = ()
    """Allowed values, empty for any."""


class OperationSpec(NamedTuple):
    """A change to the box."""

    name: str
    title: str
    on: tuple[str, ...]
    """Kinds of rows it applies to."""
    words: Callable[[Row, Values], Sequence[str]]
    """Arguments of the equivalent ``pulsarbox`` command."""
    requests: Callable[[Row, Values], Sequence[Request]]
    """Admin API requests. Raises Wrong."""
    target: Callable[[Row], str]
    """Name of the target, which must be typed for a dangerous deed."""
    explained: str | Callable[[Row], str] = ""
    """Its effect, in one or two sentences."""
    fields: tuple[OperationField, ...] = ()
    danger: bool = False
    """Whether it cannot be undone, so that the name must be typed."""
    keys: str = ""
    fits: Callable[[Row], bool] = lambda row: True


def explained_of(spec: OperationSpec, rows: Sequence[Row]) -> str:
    """Return the effect of an operation on rows, each sentence once."""
    explained = spec.explained
    return explained if isinstance(explained, str) else " ".join(dict.fromkeys(map(explained, rows)))


def topic_of(row: Row, key: str = "topic") -> TopicName:
    """Return the topic of a row. Raises Wrong."""
    try:
        return parse_topic(real(row, key))
    except PulsarBoxError as error:
        raise Wrong(str(error)) from None


def short(row: Row, key: str = "topic") -> str:
    """Return the short topic name, as accepted by commands."""
    return short_topic(real(row, key))


def of_topic(row: Row, *more: str) -> str:
    """Return the Admin API path of a topic, with further segments."""
    return f"/admin/v2{path_of(topic_of(row))}" + "".join(f"/{part}" for part in more)


def of_subscription(row: Row, *more: str) -> str:
    """Return the Admin API path of a subscription, with further segments."""
    return of_topic(row, "subscription", subscription_segment(real(row, "subscription")), *more)


def whole_number(values: Values, name: str, least: int = 0) -> int:
    """Return the integer in a field. Raises Wrong."""
    text = values.get(name, "").strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise Wrong(f"{name}: '{text}' is not a number of at least {least}")
    return int(text)


def with_words(*words: str) -> Callable[[Row, Values], Sequence[str]]:
    """Return a function that fills in ``{topic}`` and other placeholders in the arguments of a command."""

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
        raise Wrong(f"{name}: a value is required")
    return text
