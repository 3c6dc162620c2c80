"""The live view of dead letter topics."""

from typing import Any

from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.server.live.views import rows

NAME = "persistent://public/default"


def letters(box: Box, **query: str) -> dict[str, dict[str, Any]]:
    """Return the rows by topic."""
    return {row["topic"].rpartition("/")[2]: row for row in rows(box, "deadletters", **query)}


def test_topics_that_are_called_so_by_clients_and_where_they_come_from() -> None:
    box = Box(unsubscribedRetentionTimeInMinutes=0)
    client = box.client()
    client.subscribe("late-bills", 1, f"{NAME}/my-orders")
    client.subscribe("keep", 2, f"{NAME}/my-orders-late-bills-DLQ")
    client.publish(3, f"{NAME}/my-orders-late-bills-DLQ")
    client.publish(2, f"{NAME}/my-orders-late-bills-RETRY")
    client.publish(1, f"{NAME}/gone-s-DLQ")
    found = letters(box)
    assert set(found) == {"my-orders-late-bills-DLQ", "my-orders-late-bills-RETRY", "gone-s-DLQ"}
    row = found["my-orders-late-bills-DLQ"]
    assert (row["origin"], row["originSubscription"]) == (f"{NAME}/my-orders", "late-bills")
    assert (row["kind"], row["messages"], row["backlog"], row["subscriptions"]) == ("dead-letter", 3, 3, 1)
    assert (row["lost"], row["last"], row["first"]) == (False, box.wall, box.wall)
    assert row["size"] > 0
    assert (row["left"], row["keptBy"]) == (3, "keep")
    assert (found["gone-s-DLQ"]["left"], found["gone-s-DLQ"]["keptBy"]) == (1, None)
    retry, gone = found["my-orders-late-bills-RETRY"], found["gone-s-DLQ"]
    assert (retry["kind"], retry["lost"], retry["origin"]) == ("retry", True, f"{NAME}/my-orders")
    assert gone["origin"] is None, "there is no such topic"


def test_a_policy_of_the_box_says_where_they_come_from() -> None:
    box = Box()
    client = box.client()
    client.subscribe()
    target = f"{NAME}/bin-DLQ"
    subscription = box.broker.topics.loaded(parse_topic(TOPIC)).subscriptions["s"]  # type: ignore[union-attr]
    subscription.dead_letters.set_policy(DeadLetterPolicy(3, parse_topic(target), ""), box.now)
    client.publish(1, target)
    assert (letters(box)["bin-DLQ"]["origin"], letters(box)["bin-DLQ"]["originSubscription"]) == (TOPIC, "s")


def test_those_that_nobody_uses_are_told_of_too() -> None:
    box = Box()
    client = box.client()
    client.subscribe("keep", 2, f"{NAME}/t-s-DLQ")
    client.publish(3, f"{NAME}/t-s-DLQ")
    client.publish(1)
    box = box.restart()
    box.broker.samples.watch(box.now)
    found = letters(box)
    row = found["t-s-DLQ"]
    assert (row["loaded"], row["messages"], row["lost"], row["origin"]) == (False, 3, False, TOPIC)
    assert box.broker.topics.loaded(parse_topic(f"{NAME}/t-s-DLQ")) is None
    assert letters(box, tenant="other") == {}
    assert (row["left"], row["keptBy"]) == (3, "keep")
    assert box.broker.samples.stored.totals.letters == 3


def test_what_was_put_back_or_dropped_is_left_no_more_though_it_is_stored() -> None:
    """The count changes before the ledger is trimmed. Otherwise a replay or drop would seem to have no effect."""
    box = Box()
    client = box.client()
    client.subscribe("triage", 1, f"{NAME}/t-s-DLQ")
    ids = client.publish(4, f"{NAME}/t-s-DLQ")
    client.ack(*ids[:3])
    box.advance(30)
    row = letters(box)["t-s-DLQ"]
    assert (row["left"], row["messages"], row["keptBy"]) == (1, 4, "triage")
    assert box.broker.samples.totals.letters == 1
    client.subscribe("archive", 2, f"{NAME}/t-s-DLQ")
    box.advance(30)
    row = letters(box)["t-s-DLQ"]
    assert (row["left"], row["keptBy"]) == (4, None), "another has acknowledged nothing"
