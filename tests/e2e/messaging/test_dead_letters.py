"""Dead letters written by official clients, and those moved by the box."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests.e2e import commands
from tests.e2e.clients import EARLIEST, admin_path, connect, is_quiet, numbered, receive, send_all, take, until
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess, admin

SHARED, KEY_SHARED = pulsar.ConsumerType.Shared, pulsar.ConsumerType.KeyShared
Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Order(pulsar.schema.Record):  # type: ignore[misc]
    """Message with a schema."""

    number = pulsar.schema.Integer()


pytestmark = pytest.mark.usefixtures("ours")


def subscribe(client: Any, topic: str, name: str = "s", kind: Any = SHARED, **options: Any) -> Any:
    return client.subscribe(topic, name, kind, initial_position=EARLIEST, **options)


def fail(consumer: Any, times: int) -> bytes:
    """Negatively acknowledge the next message the given number of times."""
    data = b""
    for _ in range(times):
        message = receive(consumer)
        data = message.data()
        consumer.negative_acknowledge(message)
    return data


# Written by clients


def test_a_client_that_names_nothing_but_a_count(client: Any, topic: str, run: Run) -> None:
    """Names are the client's defaults; an initial subscription retains dead letters before the first consumer."""
    policy = pulsar.ConsumerDeadLetterPolicy(1, initial_subscription_name="kept")
    consumer = subscribe(client, topic, negative_ack_redelivery_delay_ms=20, dead_letter_policy=policy)
    producer = client.create_producer(topic, schema=pulsar.schema.StringSchema())
    sent = producer.send("poison", properties={"colour": "red"}, partition_key="k")
    fail(consumer, 2)
    producer.send("good")
    assert take(consumer, 1) == [b"good"]

    def listed() -> list[tuple[str, bool, list[str]]]:
        of_this = f"startswith(name, '{short(topic)}')"
        rows = json.loads(run("dlq", "list", "-o", "json", "--filter", of_this).stdout)
        return [(row["name"], row["lost"], row["subscriptions"]) for row in rows]

    until(lambda: listed() == [(f"{short(topic)}-s-DLQ", False, ["kept"])])  # created asynchronously
    letter = receive(subscribe(client, f"{topic}-s-DLQ", "kept"))
    assert (letter.data(), letter.partition_key()) == (b"poison", "k")
    told = letter.properties()
    assert (told["REAL_TOPIC"], told["colour"]) == (topic, "red")
    assert f"{sent.ledger_id()},{sent.entry_id()}" in told["ORIGIN_MESSAGE_ID"]


# Moved by the box


def short(topic: str) -> str:
    return topic.removeprefix("persistent://public/default/")


def set_policy(run: Run, topic: str, count: int, *more: str) -> None:
    done = run("sub", "dead-letter", topic, "s", str(count), *more)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"set the dead letter policy of subscription s on {short(topic)}\n"


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_a_client_that_knows_of_no_dead_letters(client: Any, topic: str, run: Run, kind: Any) -> None:
    consumer = subscribe(client, topic, kind=kind, negative_ack_redelivery_delay_ms=20)
    set_policy(run, topic, 2)
    producer = client.create_producer(topic)
    sent = producer.send(b"poison", properties={"colour": "red"}, partition_key="k", event_timestamp=77)
    assert fail(consumer, 3) == b"poison"
    letters = subscribe(client, f"{topic}-s-DLQ", "dead-letters")
    letter = receive(letters)
    assert (letter.data(), letter.partition_key(), letter.event_timestamp()) == (b"poison", "k", 77)
    told = letter.properties()
    assert (told["colour"], told["REAL_TOPIC"], told["REAL_SUBSCRIPTION"]) == ("red", topic, "s")
    assert told["ORIGIN_MESSAGE_ID"] == f"{sent.ledger_id()}:{sent.entry_id()}:-1"
    assert told["DEAD_LETTER_REASON"] == "redelivered 3 times without being acknowledged, 2 allowed"
    producer.send(b"good", partition_key="k")
    assert take(consumer, 1) == [b"good"]
    assert is_quiet(letters)
    (row,) = json.loads(run("sub", "list", topic, "-o", "json").stdout)
    assert row["dead_letters"] == 1


def test_of_a_batch_what_was_not_acknowledged(client: Any, topic: str, run: Run, box: Running) -> None:
    consumer = subscribe(client, topic, negative_ack_redelivery_delay_ms=20, batch_index_ack_enabled=True)
    set_policy(run, topic, 0, "--to", f"{topic}-dead", "--keep-for", "triage")
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=5_000, compression_type=pulsar.CompressionType.ZSTD
    )
    for payload in numbered(4):
        producer.send_async(payload, None)
    producer.flush()
    messages = [receive(consumer) for _ in range(4)]
    for message in (messages[0], messages[2]):
        consumer.acknowledge(message)
    stats = admin_path(topic) + "/stats"
    until(lambda: json.loads(box.admin("GET", stats))["subscriptions"]["s"]["backlogMessages"] == 2)
    for message in (messages[1], messages[3]):
        consumer.negative_acknowledge(message)
    letters = subscribe(client, f"{topic}-dead", "triage")
    found = [receive(letters) for _ in range(2)]
    assert [each.data() for each in found] == [b"1", b"3"]
    assert [each.properties()["ORIGIN_MESSAGE_ID"].split(":")[-1] for each in found] == ["1", "3"]
    assert is_quiet(consumer)


@pytest.mark.parametrize("by_index", [True, False])
def test_one_rejected_message_of_a_batch(client: Any, topic: str, run: Run, by_index: bool) -> None:
    """One of 20 messages is rejected repeatedly, the others are acknowledged: the client determines the box's view."""
    consumer = subscribe(client, topic, negative_ack_redelivery_delay_ms=20, batch_index_ack_enabled=by_index)
    done = run("sub", "dead-letter", topic, "s", "1")
    assert "one rejected message moves its whole batch" in done.stderr
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=5_000)
    for payload in numbered(20):
        producer.send_async(payload, None)
    producer.flush()
    for each in range(2):
        for _ in range(1 if by_index and each else 20):
            message = receive(consumer)
            if message.data() == b"7":
                consumer.negative_acknowledge(message)
            else:
                consumer.acknowledge(message)
    letters = subscribe(client, f"{topic}-s-DLQ", "dead-letters")
    first = receive(letters)
    reason = first.properties()["DEAD_LETTER_REASON"]
    assert reason.startswith("redelivered 2 times without being acknowledged, 1 allowed")
    if by_index:
        assert (first.data(), reason.count(";")) == (b"7", 0)
        assert is_quiet(letters)
    else:
        assert take(letters, 19) == numbered(20)[1:]
        assert "; all 20 messages of its batch were moved: no consumer has acknowledged by batch index" in reason


def test_a_message_with_a_schema(client: Any, topic: str, run: Run) -> None:
    schema = pulsar.schema.JsonSchema(Order)
    consumer = subscribe(client, topic, schema=schema, negative_ack_redelivery_delay_ms=20)
    set_policy(run, topic, 0)
    client.create_producer(topic, schema=schema).send(Order(number=7))
    fail(consumer, 1)
    letter = receive(subscribe(client, f"{topic}-s-DLQ", "dead-letters", schema=schema))
    assert letter.value().number == 7


def test_a_policy_is_shown_and_taken_away(client: Any, topic: str, run: Run) -> None:
    subscribe(client, topic)
    assert run("sub", "dead-letter", topic, "s").stdout == "none: clients handle their dead letters\n"
    set_policy(run, topic, 3)
    shown = run("sub", "dead-letter", topic, "s").stdout.splitlines()
    assert shown[:2] == ["redelivered  3 times", f"moved to     {short(topic)}-s-DLQ"]
    assert f"0 moved to {short(topic)}-s-DLQ, each after 3 redeliveries" in run("sub", "stats", topic, "s").stdout
    assert run("sub", "dead-letter", topic, "s", "--unset").returncode == 0
    row = json.loads(run("sub", "dead-letter", topic, "s", "-o", "json").stdout)
    assert row == {"topic": topic, "subscription": "s"}


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("z", "3"), 3, "no subscription 'z' on"),
        (("s", "3", "--to", "non-persistent://public/default/x"), 2, "stores no messages"),
        (("s", "3", "--unset"), 2, "cannot be combined with other arguments"),
        (("s", "--to", "x"), 2, "specify the maximum redeliveries"),
    ],
)
def test_what_cannot_be_set(client: Any, topic: str, run: Run, words: tuple[str, ...], code: int, says: str) -> None:
    subscribe(client, topic)
    done = run("sub", "dead-letter", topic, *words)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_a_topic_that_loses_dead_letters_is_pointed_out(client: Any, topic: str, run: Run, box: Running) -> None:
    name = f"{topic}-DLQ"
    producer = client.create_producer(name)
    send_all(producer, numbered(2))
    assert "LOST" not in run("topic", "stats", name).stdout, "what no subscription has covered is kept"
    setting = "brokers/configuration/unsubscribedRetentionTimeInMinutes"
    box.admin("POST", f"{setting}/0")
    try:
        assert "LOST" in run("topic", "stats", name).stdout
        rows = run("dlq", "list", "--filter", "lost", "-o", "name").stdout.splitlines()
        assert name in rows
    finally:
        box.admin("DELETE", setting)
    run("sub", "create", name, "keeper", "--at", "earliest")
    assert "LOST" not in run("topic", "stats", name).stdout
    assert json.loads(box.admin("GET", admin_path(name) + "/stats")).get("deadLettersLost") is None


CRASHING = """
import os, sys
import pulsar
client = pulsar.Client(sys.argv[1], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe(sys.argv[2], "s", pulsar.ConsumerType.Shared)
print(consumer.receive(60_000).data().decode(), flush=True)
os._exit(1)
"""


def test_what_crashes_its_consumer_is_a_dead_letter_once_over_three_restarts(own_box: BoxProcess) -> None:
    topic = "persistent://public/default/crashing"
    own_box.start()
    client = connect(own_box.url)
    subscribe(client, topic).close()
    commands.run("sub", "dead-letter", topic, "s", "3", "--admin-url", own_box.web_url)
    client.create_producer(topic).send(b"poison")
    client.close()
    for life in range(4):
        crashed = subprocess.run(
            [sys.executable, "-c", CRASHING, own_box.url, topic], capture_output=True, text=True, check=False
        )
        assert (crashed.returncode, crashed.stdout.splitlines()[-1:]) == (1, ["poison"]), crashed
        if life < 3:
            settle(own_box, topic)
            own_box.kill()
            own_box.start()
    client = connect(own_box.url)
    consumer = subscribe(client, topic)
    letters = client.create_reader(f"{topic}-s-DLQ", pulsar.MessageId.earliest)
    letter = letters.read_next(20_000)
    assert letter.data() == b"poison"
    assert letter.properties()["DEAD_LETTER_REDELIVERIES"] == "4"
    assert is_quiet(consumer)
    assert not letters.has_message_available()
    client.close()


def settle(box: BoxProcess, topic: str) -> None:
    """Wait until the box has registered the disconnect and has stored the redelivery counts."""
    path = admin_path(topic) + "/stats"
    until(lambda: not json.loads(admin(box.web_url, "GET", path))["subscriptions"]["s"]["consumers"])
    client = connect(box.url)
    client.create_producer("persistent://public/default/other").send(b"the journal has one order")
    client.close()
