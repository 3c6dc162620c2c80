"""Rows of `quota list`."""

from typing import Any

import pytest

from pulsarbox.cli.commands.quota_list import COLUMNS, CUT, LEAST, limits_of_box, shown
from pulsarbox.cli.common.text_table import fitted
from pulsarbox.client.admin import Admin

TOPIC = "persistent://public/default/orders"
RATE: dict[str, Any] = {
    "scope": "subscription", "subject": f"{TOPIC} billing", "topic": TOPIC, "subscription": "billing",
    "policy": "subscription-dispatch-rate", "used": 50.0, "limit": 50.0, "unit": "messages/s", "share": 1.0,
    "level": "topic", "held": 730, "holding": True, "then": None, "evictions": None, "waiting": 1,
}  # fmt: skip
SIZE: dict[str, Any] = RATE | {
    "scope": "topic", "subject": TOPIC, "subscription": None, "policy": "backlog-quota:destination_storage",
    "used": 958_032, "limit": 1_048_576, "unit": "bytes", "share": 0.9136, "held": 0, "holding": False,
}  # fmt: skip
BROKER: dict[str, Any] = SIZE | {
    "scope": "broker", "subject": "the box", "topic": None, "policy": "brokerMaxConnections", "used": 3, "limit": 4,
    "unit": "connections", "share": None, "held": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (RATE, ["subscription-dispatch-rate", "billing on orders", "50/s", "50/s", "100%", "now, 1 s"]),
        (SIZE, ["backlog size", "orders", "936 KiB", "1.00 MiB", "91%", ""]),
        (BROKER, ["brokerMaxConnections", "the box", "3", "4", None, ""]),
    ],
)
def test_limits_are_in_their_units(row: dict[str, Any], cells: list[str | None]) -> None:
    found = shown(row)
    assert [found[name] for name in ("policy", "subject", "used", "limit", "share", "held")] == cells


def test_a_narrow_table_keeps_what_is_full_and_what_throttles() -> None:
    lines, hidden = fitted(COLUMNS, [shown(RATE), shown(SIZE)], {}, CUT, 60, LEAST)
    assert max(map(len, lines)) <= 60
    assert {"policy", "subject", "share", "held"}.isdisjoint(hidden)


def test_the_fullest_limits_of_the_scope_come_first() -> None:
    asked: list[Any] = []

    class Box(Admin):
        def top_rows(self, view: str, **query: str) -> list[dict[str, Any]]:
            asked.append((view, query))
            return [RATE, SIZE]

    found = limits_of_box(Box([("nowhere", 1)]), {"tenant": "shop"})
    assert asked == [("quotas", {"sort": "share", "order": "desc", "tenant": "shop"})]
    assert [row[found.name] for row in found.rows] == [f"{TOPIC} billing", TOPIC]
