"""The consumers that blocked keys wait for."""

from typing import Any

import pytest

from pulsarbox.cli.commands.key_blocked_text import blocked_words, naming_consumers
from pulsarbox.client.admin import Admin, AdminRefused
from pulsarbox.names import parse_topic


def key(waiting: int, holder: str | None, owner: str | None = None, since: int | None = None) -> dict[str, Any]:
    return {"waiting": waiting, "holder": holder, "owner": owner, "since": since}


def consumer(name: str, unacked: int, permits: int) -> dict[str, Any]:
    return {"name": name, "unacked": unacked, "permits": permits}


def key_map(*stuck: dict[str, Any], total: int = 0) -> dict[str, Any]:
    consumers = [consumer("slow", 1000, 0), consumer("full", 0, -3), consumer("busy", 5, 70)]
    return {"stuck": list(stuck), "stuckTotal": total or len(stuck), "consumers": consumers}


@pytest.mark.parametrize(
    ("found", "text", "since"),
    [
        (
            key_map(key(200, "slow", since=20), key(19, "slow", since=10)),
            "219 messages wait for slow, which has 1,000 unacknowledged and requests no more",
            10,
        ),
        (
            key_map(key(1, None, "full"), key(7, "busy", since=5)),
            "7 messages wait for busy, which has 5 unacknowledged; 1 message waits for full, which requests no more",
            5,
        ),
        (key_map(key(2, "gone"), total=80), "at least 2 messages wait for gone", 0),
        (key_map(key(2, None)), "", 0),
        (
            key_map(*(key(number, f"c{number}") for number in range(1, 6))),
            "5 messages wait for c5; 4 messages wait for c4; 3 messages wait for c3; others for 2 more consumers",
            0,
        ),
    ],
)
def test_consumers_are_named_by_what_waits_for_them(found: dict[str, Any], text: str, since: int) -> None:
    assert blocked_words(found) == (text, since)


class Box(Admin):
    """A box with one slow consumer, or a refusal."""

    def __init__(self, error: AdminRefused | None = None) -> None:
        super().__init__([("nowhere", 1)])
        self.error = error

    def own(self, path: str) -> dict[str, Any]:
        assert path == "/maps/keys/public/default/orders/billing"
        if self.error is not None:
            raise self.error
        return key_map(key(200, "slow", since=20))


BLOCKED: dict[str, Any] = {"why": {"reason": "key-blocked", "since": 900, "text": "the remaining messages have keys"}}


def named(admin: Admin, stats: dict[str, Any]) -> dict[str, Any]:
    return naming_consumers(admin, parse_topic("orders"), "billing", stats)


def test_only_blocked_keys_of_a_box_get_another_text() -> None:
    why = named(Box(), BLOCKED)["why"]
    assert (why["text"].partition(",")[0], why["since"]) == ("200 messages wait for slow", 20)
    assert BLOCKED["why"]["since"] == 900, "the response itself is unchanged"
    assert named(Box(AdminRefused(404, "no such topic", "GET")), BLOCKED) is BLOCKED
    other: dict[str, Any] = {"why": {"reason": "no-consumer", "since": 1, "text": "no consumer is connected"}}
    assert named(Box(), other) is other
    assert named(Box(), {}) == {}
