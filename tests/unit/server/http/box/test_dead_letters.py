"""Dead letters in the Admin API: subscription policies, statistics, metrics, and the list of topics."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Got, HttpBox

T = "persistent://public/default/t"
DLQ = f"{T}-s-DLQ"
PATH = "/persistent/public/default"
SUB = f"{PATH}/t/subscription/s"
POLICIES = "/pulsarbox/v1/dead-letter-policy/persistent/public/default"
EARLIEST = {"ledgerId": -1, "entryId": -1}


async def policy(box: HttpBox, method: str = "GET", value: Any = None, of: str = "t/s") -> Got:
    return await box.ask(method, f"{POLICIES}/{of}", value)


async def post(box: HttpBox, value: Any, of: str = "t/s") -> Got:
    return await policy(box, "POST", value, of)


def die(box: HttpBox, times: int) -> None:
    """Deliver all messages to several consumers that disconnect without acknowledging, then subscribe once more."""
    for _ in range(times + 1):
        client = Client(box)
        client.subscribe(T, "s", subType=1)
        client.ask("flow", consumer_id=1, messagePermits=100)
        box.shell.kick()
        client.cnx.closed(box.shell.now())
        box.shell.kick()


async def test_a_policy_is_set_shown_and_taken_away(box: HttpBox) -> None:
    await box.put(SUB, EARLIEST)
    assert (await policy(box)).value is None
    got = await post(box, {"maxRedeliverCount": 3})
    assert (got.status, got.text) == (204, "")
    full = {"maxRedeliverCount": 3, "deadLetterTopic": DLQ, "initialSubscriptionName": "dead-letters"}
    assert (await policy(box)).value == full
    assert (await box.get(f"{PATH}/t-s-DLQ/subscriptions")).value == ["dead-letters"]
    other = {"maxRedeliverCount": 0, "deadLetterTopic": "public/default/graves", "initialSubscriptionName": "kept"}
    await post(box, other)
    assert (await policy(box)).value == other | {"deadLetterTopic": "persistent://public/default/graves"}
    assert (await box.get(f"{PATH}/graves/subscriptions")).value == ["kept"]
    assert (await policy(box, "DELETE")).status == 204
    assert (await policy(box)).value is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "must be a JSON object"),
        ([], "must be a JSON object"),
        ({}, "maxRedeliverCount must be a whole number from 0 to 1000000, not None"),
        ({"maxRedeliverCount": -1}, "not -1"),
        ({"maxRedeliverCount": True}, "not True"),
        ({"maxRedeliverCount": "3"}, "not '3'"),
        ({"maxRedeliverCount": 1_000_001}, "not 1000001"),
        (
            {"maxRedeliveries": 3},
            "field 'maxRedeliveries' of a dead letter policy; fields: maxRedeliverCount, deadLetterTopic",
        ),
        ({"maxRedeliverCount": 3, "deadLetterTopic": 7}, "must be the name of a topic, not 7"),
        ({"maxRedeliverCount": 3, "deadLetterTopic": "a/b"}, "Invalid topic name 'a/b'"),
        ({"maxRedeliverCount": 3, "deadLetterTopic": "non-persistent://public/default/x"}, "stores no messages"),
        ({"maxRedeliverCount": 3, "deadLetterTopic": "t"}, "the topic of the subscription"),
        ({"maxRedeliverCount": 3, "deadLetterTopic": "t-partition-1"}, "the topic of the subscription"),
        ({"maxRedeliverCount": 3, "initialSubscriptionName": " "}, "must be the name of a subscription"),
        ({"maxRedeliverCount": 3, "initialSubscriptionName": 7}, "must be the name of a subscription"),
    ],
)
async def test_what_makes_no_sense_is_refused(box: HttpBox, value: Any, says: str) -> None:
    await box.put(SUB, EARLIEST)
    got = await post(box, value)
    assert got.status == 422
    assert says in got.reason
    assert (await policy(box)).value is None


async def test_where_there_can_be_none(box: HttpBox) -> None:
    value = {"maxRedeliverCount": 3}
    assert (await post(box, value)).status == 404
    Client(box).producer(T)
    got = await post(box, value)
    assert (got.status, got.reason) == (404, f"Subscription s not found for topic {T}")
    Client(box).producer("non-persistent://public/default/n")
    got = await box.ask("POST", f"{POLICIES}/n/s".replace("/persistent", "/non-persistent"), value)
    assert (got.status, "non-persistent topic is not allowed" in got.reason) == (405, True)
    Client(box).subscribe(T, "reader", durable=False)
    got = await post(box, value, "t/reader")
    assert (got.status, "durable subscription" in got.reason) == (405, True)
    got = await post(box, value | {"deadLetterTopic": "no/where/x"})
    assert got.status == 404
    await box.put(SUB, EARLIEST)
    got = await post(box, value | {"deadLetterTopic": "public/nowhere/x"})
    assert (got.status, got.reason) == (404, "Namespace not found")
    got = await post(box, value | {"initialSubscriptionName": "pulsar.dedup"})
    assert (got.status, "reserved" in got.reason) == (412, True)
    assert not box.broker.topics.exists(parse_topic(DLQ))
    assert (await policy(box)).value is None


async def test_of_a_partitioned_topic_all_partitions_have_it(box: HttpBox) -> None:
    await box.put(f"{PATH}/t/partitions", 3)
    await box.put(SUB, EARLIEST)
    await post(box, {"maxRedeliverCount": 2})
    for i in range(3):
        got = await policy(box, of=f"t-partition-{i}/s")
        assert (got.value["maxRedeliverCount"], got.value["deadLetterTopic"]) == (2, DLQ)
    await box.post(f"{PATH}/t/partitions", 5)
    got = await policy(box, of="t-partition-4/s")
    assert got.value["deadLetterTopic"] == DLQ, "a partition that is added has it too"
    told = (await box.get(f"{PATH}/t/partitioned-stats")).value["subscriptions"]["s"]["deadLetters"]
    assert (told["messages"], told["maxRedeliverCount"]) == (0, 2)
    await policy(box, "DELETE")
    assert (await policy(box, of="t-partition-4/s")).value is None


async def test_what_moved_is_told(box: HttpBox) -> None:
    await box.put(SUB, EARLIEST)
    stats = (await box.get(f"{PATH}/t/stats")).value
    assert "deadLetters" not in stats["subscriptions"]["s"]
    await post(box, {"maxRedeliverCount": 1})
    Client(box).publish(T, 3)
    die(box, 2)
    told = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]["deadLetters"]
    assert (told["messages"], told["deadLetterTopic"]) == (3, DLQ)
    assert told["lastTimestamp"] == box.shell.now().wall
    assert "refused" not in told
    metrics = (await box.ask("GET", "/metrics")).text
    assert _value(metrics, "pulsarbox_subscription_dead_letters", 'subscription="s"') == 3
    (row,) = (await box.ask("GET", "/pulsarbox/v1/dead-letters/public/default")).value
    assert (row["topic"], row["messages"], row["lost"]) == (DLQ, 3, False)
    assert row["backlogs"] == {"dead-letters": 3}


@pytest.mark.settings(Settings(unsubscribedRetentionTimeInMinutes=0))
async def test_a_topic_that_loses_dead_letters_is_told_of(box: HttpBox) -> None:
    Client(box).publish(f"{T}-x-DLQ", 2)
    Client(box).publish(f"{T}-x-RETRY", 1)
    Client(box).publish(T, 1)
    for name, lost in (("t-x-DLQ", True), ("t-x-RETRY", True), ("t", False)):
        assert (await box.get(f"{PATH}/{name}/stats")).value.get("deadLettersLost", False) is lost
        metrics = (await box.ask("GET", "/metrics")).text
        assert _value(metrics, "pulsarbox_dead_letters_lost", f'/{name}"') == int(lost)
    rows = (await box.ask("GET", "/pulsarbox/v1/dead-letters/public/default")).value
    assert [(each["topic"], each["messages"], each["lost"]) for each in rows] == [
        (f"{T}-x-DLQ", 2, True), (f"{T}-x-RETRY", 1, True),
    ]  # fmt: skip
    await box.put(f"{PATH}/t-x-DLQ/subscription/keeper", EARLIEST)
    assert "deadLettersLost" not in (await box.get(f"{PATH}/t-x-DLQ/stats")).value
    await box.post("/namespaces/public/default/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1})
    assert "deadLettersLost" not in (await box.get(f"{PATH}/t-x-RETRY/stats")).value


async def test_a_refusal_is_told(box: HttpBox) -> None:
    await box.put(SUB, EARLIEST)
    await post(box, {"maxRedeliverCount": 0})
    await box.post(f"{PATH}/t-s-DLQ/terminate")
    Client(box).publish(T, 1)
    die(box, 1)
    told = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]["deadLetters"]
    assert (told["messages"], told["refused"]) == (0, "Topic was already terminated")
    assert told["refusedSince"] == box.shell.now().wall


async def test_topics_of_many_pages_are_listed(box: HttpBox) -> None:
    for i in range(120):
        box.broker.topics.create(parse_topic(f"{T}-{i:03}{'-DLQ' if i % 2 else ''}"), box.shell.now())
    box.shell.kick()
    rows = (await box.ask("GET", "/pulsarbox/v1/dead-letters/public/default")).value
    assert [each["topic"] for each in rows] == [f"{T}-{i:03}-DLQ" for i in range(1, 120, 2)]
    got = await box.ask("GET", "/pulsarbox/v1/dead-letters/public/nowhere")
    assert got.status == 404


def _value(metrics: str, name: str, label: str) -> float:
    (line,) = [each for each in metrics.splitlines() if each.startswith(f"{name}{{") and label in each]
    return float(line.rsplit(" ", 2)[1] if line.count(" ") > 1 else line.rsplit(" ", 1)[1])
