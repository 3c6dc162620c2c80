"""Deeds on topics, subscriptions and clients, and the list of all deeds."""

import re
from typing import Final

from pulsarbox.client.admin import quoted, subscription_segment
from pulsarbox.tui.actions.operation import (
    OperationField,
    OperationSpec,
    Request,
    Row,
    Values,
    needed,
    of_subscription,
    of_topic,
    one_request,
    short,
    whole_number,
    with_words,
)
from pulsarbox.tui.actions.quota_operations import LIMITS
from pulsarbox.tui.actions.replay_operations import REPLAYS
from pulsarbox.tui.feed import real
from pulsarbox.tui.widgets.columns import client_title


def _subscription(row: Row) -> str:
    return real(row, "subscription")


def _topic(row: Row) -> str:
    return short(row)


_FORCE: Final = OperationField("force", "Disconnect clients", "no", choices=("no", "yes"))


_DAY: Final = re.compile(r"\d{4}-\d\d")
"""Begins a time of a day, ``2026-11-21T10:00``."""


def _forced(row: Row, values: Values) -> str:
    return "?force=true" if values.get("force") == "yes" else ""


def _position(values: Values) -> str:
    """Return a position as the command line accepts it: ``@`` begins a time of a day."""
    text = values.get("where", "").strip()
    return f"@{text}" if _DAY.match(text) else text


def _seek(row: Row, values: Values) -> list[Request]:
    from pulsarbox.tui.position_input import place

    where = place(values.get("where", ""))
    if isinstance(where, int):
        return [Request("POST", of_subscription(row, "resetcursor", str(where)))]
    return [Request("POST", of_subscription(row, "resetcursor"), where)]


def _expire(row: Row, values: Values) -> list[Request]:
    from pulsarbox.tui.position_input import span

    return [Request("POST", of_subscription(row, "expireMessages", str(span(values.get("older", "")))))]


_SUBSCRIPTIONS: Final = (
    OperationSpec(
        "sub seek",
        "Seek the subscription",
        ("subscription",),
        lambda row, values: ["sub", "seek", short(row), real(row, "subscription"), _position(values), "--yes"],
        _seek,
        _subscription,
        "Consumers are disconnected and resume at the new position. Messages in between are skipped or redelivered.",
        (OperationField("where", "Position", "latest", "earliest, latest, -1h, 2026-11-21T10:00, ledger:entry"),),
        danger=True,
    ),
    OperationSpec(
        "sub skip",
        "Skip the next messages",
        ("subscription",),
        with_words("sub", "skip", "{topic}", "{subscription}", "{count}", "--yes"),
        lambda row, values: [Request("POST", of_subscription(row, "skip", str(whole_number(values, "count", 1))))],
        _subscription,
        "They are acknowledged without delivery. An entry is one message, or one batch of messages.",
        (OperationField("count", "Number of entries", "1"),),
        danger=True,
    ),
    OperationSpec(
        "sub expire",
        "Expire old messages",
        ("subscription",),
        with_words("sub", "expire", "{topic}", "{subscription}", "--older", "{older}", "--yes"),
        _expire,
        _subscription,
        "Older messages are acknowledged without delivery.",
        (OperationField("older", "Older than", "1d", "30m, 2h, 7d"),),
        danger=True,
    ),
    OperationSpec(
        "sub clear",
        "Clear the backlog",
        ("subscription",),
        with_words("sub", "clear", "{topic}", "{subscription}", "--yes"),
        one_request("POST", "skip_all"),
        _subscription,
        "All unacknowledged messages are acknowledged without delivery.",
        danger=True,
    ),
    OperationSpec(
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
        "Messages that only this subscription has not acknowledged are lost.",
        (_FORCE,),
        danger=True,
    ),
)

_TOPICS: Final = (
    OperationSpec(
        "topic unload",
        "Unload the topic; clients reconnect",
        ("topic", "subscription"),
        with_words("topic", "unload", "{topic}"),
        one_request("PUT", "unload", of=of_topic),
        _topic,
        "Clients are disconnected and reconnect.",
    ),
    OperationSpec(
        "topic compact",
        "Compact the topic",
        ("topic",),
        with_words("topic", "compact", "{topic}"),
        one_request("PUT", "compaction", of=of_topic),
        _topic,
        "Readers of the compacted view get the latest message of every key. The log is unchanged.",
    ),
    OperationSpec(
        "sub create",
        "Create a subscription that retains messages",
        ("topic", "deadletters"),
        with_words("sub", "create", "{topic}", "{name}", "--at", "{at}"),
        lambda row, values: [
            Request(
                "PUT",
                of_topic(row, "subscription", subscription_segment(needed(values, "name"))),
                {"ledgerId": -1, "entryId": -1}
                if values.get("at") == "earliest"
                else {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1},
            )
        ],
        _topic,
        "Without a subscription or retention, a topic keeps no messages.",
        (
            OperationField("name", "Name", "keep"),
            OperationField("at", "From", "earliest", choices=("earliest", "latest")),
        ),
    ),
    OperationSpec(
        "topic terminate",
        "Terminate the topic: it accepts no more messages",
        ("topic",),
        with_words("topic", "terminate", "{topic}", "--yes"),
        one_request("POST", "terminate", of=of_topic),
        _topic,
        "Irreversible. Stored messages remain and can be consumed.",
        danger=True,
    ),
    OperationSpec(
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
        "The data cannot be recovered.",
        (_FORCE,),
        danger=True,
    ),
)

_KICKED: Final = {
    "producer": "Closes the producer. Its client publishes messages without a receipt again.",
    "consumer": "Closes the consumer. Its unacknowledged messages are redelivered.",
    "connection": "Closes the connection and its producers and consumers. Unacknowledged messages are redelivered.",
}
"""Effect by kind of client."""
_CLIENTS: Final = (
    OperationSpec(
        "client kick",
        "Disconnect the client; healthy clients reconnect",
        ("client",),
        lambda row, values: ["client", "kick", str(row.get("id")), "--yes"],
        lambda row, values: [Request("POST", f"/pulsarbox/v1/clients/{quoted(str(row.get('id')))}/kick")],
        client_title,
        lambda row: _KICKED.get(str(row.get("kind")), _KICKED["connection"]),
        fits=lambda row: row.get("id") is not None,
    ),
)


DEEDS: Final = (*_SUBSCRIPTIONS, *_TOPICS, *REPLAYS, *LIMITS, *_CLIENTS)
BY_NAME: Final = {deed.name: deed for deed in DEEDS}
