"""What changes something at the box: what is asked of its Admin API, and the ``pulsarbox`` command that does the same.

A deed is data and two pure functions of a row and of what was typed in. The row is the one that stood there when the
dialog opened: what comes later does not move a deed to another target.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pulsarbox.client.admin import path_of, quoted
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


class Wrong(ValueError):
    """What was typed in cannot be used. The text says why."""


@dataclass(frozen=True, slots=True)
class Field:
    """Something to type in."""

    name: str
    title: str
    default: str = ""
    hint: str = ""
    choices: tuple[str, ...] = ()
    """Where there are few: the only ones that are taken."""


@dataclass(frozen=True, slots=True)
class Deed:
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
    return of_topic(row, "subscription", quoted(real(row, "subscription")), *more)


def whole_number(values: Values, name: str, least: int = 0) -> int:
    """Raises Wrong."""
    text = values.get(name, "").strip().replace(",", "")
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise Wrong(f"{name}: '{text}' is no number of at least {least}")
    return int(text)


def _subscription(row: Row) -> str:
    return real(row, "subscription")


def _topic(row: Row) -> str:
    return short(row)


def _with(*words: str) -> Callable[[Row, Values], Sequence[str]]:
    """Words of a command; ``{topic}`` and the like are filled in."""

    def filled(row: Row, values: Values) -> list[str]:
        known = {"topic": short(row), "subscription": real(row, "subscription"), **values}
        return [word.format_map(known) if word.startswith("{") else word for word in words]

    return filled


def _one(method: str, *more: str, of: Callable[..., str] = of_subscription) -> Callable[[Row, Values], list[Request]]:
    return lambda row, values: [Request(method, of(row, *more))]


_FORCE: Final = Field("force", "Also while clients are connected", "no", choices=("no", "yes"))


def _forced(row: Row, values: Values) -> str:
    return "?force=true" if values.get("force") == "yes" else ""


def _seek(row: Row, values: Values) -> list[Request]:
    from pulsarbox.tui.places import place

    where = place(values.get("where", ""))
    if isinstance(where, int):
        return [Request("POST", of_subscription(row, "resetcursor", str(where)))]
    return [Request("POST", of_subscription(row, "resetcursor"), where)]


def _expire(row: Row, values: Values) -> list[Request]:
    from pulsarbox.tui.places import span

    return [Request("POST", of_subscription(row, "expireMessages", str(span(values.get("older", "")))))]


_SUBSCRIPTIONS: Final = (
    Deed(
        "sub seek",
        "Set the subscription somewhere else",
        ("subscription",),
        _with("sub", "seek", "{topic}", "{subscription}", "{where}"),
        _seek,
        _subscription,
        "Its consumers are sent away, come back, and begin there. What lies between is skipped, or comes again.",
        (Field("where", "Where", "latest", "earliest, latest, @-1h, @2026-11-21T10:00, ledger:entry"),),
        danger=True,
    ),
    Deed(
        "sub skip",
        "Skip the next messages",
        ("subscription",),
        _with("sub", "skip", "{topic}", "{subscription}", "{count}"),
        lambda row, values: [Request("POST", of_subscription(row, "skip", str(whole_number(values, "count", 1))))],
        _subscription,
        "They are acknowledged unread. A batch counts as one.",
        (Field("count", "How many", "1"),),
        danger=True,
    ),
    Deed(
        "sub expire",
        "Acknowledge what is old",
        ("subscription",),
        _with("sub", "expire", "{topic}", "{subscription}", "--older", "{older}", "--yes"),
        _expire,
        _subscription,
        "What was published longer ago is acknowledged unread.",
        (Field("older", "Published longer ago than", "1d", "30m, 2h, 7d"),),
        danger=True,
    ),
    Deed(
        "sub clear",
        "Clear the whole backlog",
        ("subscription",),
        _with("sub", "clear", "{topic}", "{subscription}", "--yes"),
        _one("POST", "skip_all"),
        _subscription,
        "All that the subscription has not acknowledged is acknowledged unread.",
        danger=True,
    ),
    Deed(
        "sub delete",
        "Delete the subscription",
        ("subscription",),
        lambda row, values: [
            *("sub", "delete", short(row), real(row, "subscription")),
            *(["--force"] if values.get("force") == "yes" else []),
            "--yes",
        ],
        lambda row, values: [Request("DELETE", of_subscription(row) + _forced(row, values))],
        _subscription,
        "What only it has not acknowledged is gone with it.",
        (_FORCE,),
        danger=True,
    ),
)

_TOPICS: Final = (
    Deed(
        "topic unload",
        "Let the topic out of memory; clients come back by themselves",
        ("topic", "subscription"),
        _with("topic", "unload", "{topic}"),
        _one("PUT", "unload", of=of_topic),
        _topic,
        "Its clients are disconnected and connect again.",
    ),
    Deed(
        "topic compact",
        "Compact the topic",
        ("topic",),
        _with("topic", "compact", "{topic}"),
        _one("PUT", "compaction", of=of_topic),
        _topic,
        "Readers of the compacted view get the latest message of every key. The log stays what it is.",
    ),
    Deed(
        "sub create",
        "Make a subscription that keeps what comes",
        ("topic", "deadletters"),
        _with("sub", "create", "{topic}", "{name}", "--at", "{at}"),
        lambda row, values: [
            Request(
                "PUT",
                of_topic(row, "subscription", quoted(_needed(values, "name"))),
                {"ledgerId": -1, "entryId": -1}
                if values.get("at") == "earliest"
                else {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1},
            )
        ],
        _topic,
        "A dead letter topic without a subscription keeps nothing.",
        (Field("name", "Name", "keep"), Field("at", "From", "earliest", choices=("earliest", "latest"))),
    ),
    Deed(
        "topic terminate",
        "End the topic: nothing can be published to it any more",
        ("topic",),
        _with("topic", "terminate", "{topic}", "--yes"),
        _one("POST", "terminate", of=of_topic),
        _topic,
        "For good. What it holds stays, and can be consumed.",
        danger=True,
    ),
    Deed(
        "topic delete",
        "Delete the topic with all its messages and subscriptions",
        ("topic", "deadletters"),
        lambda row, values: [
            *("topic", "delete", short(row)),
            *(["--force"] if values.get("force") == "yes" else []),
            "--yes",
        ],
        lambda row, values: [Request("DELETE", of_topic(row) + _forced(row, values))],
        _topic,
        "Nothing of it can be had back.",
        (_FORCE,),
        danger=True,
    ),
)

_CLIENTS: Final = (
    Deed(
        "client kick",
        "Close the client's connection; a client that works comes back",
        ("client",),
        lambda row, values: ["client", "kick", str(row.get("connection"))],
        lambda row, values: [Request("POST", f"/pulsarbox/v1/clients/{quoted(str(row.get('connection')))}/kick")],
        lambda row: f"{row.get('connection')} ({row.get('address')})",
        "What its consumers have not acknowledged goes to others.",
    ),
)


def _needed(values: Values, name: str) -> str:
    text = values.get(name, "").strip()
    if not text:
        raise Wrong(f"{name}: this is to be said")
    return text


DEEDS: Final = (*_SUBSCRIPTIONS, *_TOPICS, *_CLIENTS)
BY_NAME: Final = {deed.name: deed for deed in DEEDS}
