"""Rates as seen by the official client, counted with a virtual clock and periods of an hour."""

import contextlib
import itertools
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import EARLIEST, connect, is_quiet, receive, take, until
from tests.tools.box import admin

HOUR = 3600
TYPES = [
    pulsar.ConsumerType.Exclusive,
    pulsar.ConsumerType.Shared,
    pulsar.ConsumerType.Failover,
    pulsar.ConsumerType.KeyShared,
]


@pytest.fixture(scope="module")
def hours() -> Iterator[PulsarBox]:
    """Start a box with a manual clock."""
    with PulsarBox(clock="virtual", activeConsumerFailoverDelayTimeMillis=0) as box:
        yield box


@pytest.fixture
def client(hours: PulsarBox) -> Iterator[Any]:
    opened = connect(hours.service_url)
    yield opened
    opened.close()


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Return unique names."""
    run, numbers = uuid.uuid4().hex[:8], itertools.count()
    return lambda word: f"{word}-{run}-{next(numbers)}"


def dispatch_rate(messages: int = -1, size: int = -1) -> str:
    return json.dumps(
        {
            "dispatchThrottlingRateInMsg": messages,
            "dispatchThrottlingRateInByte": size,
            "ratePeriodInSecond": HOUR,
            "relativeToPublishRate": False,
        }
    )


def ask(box: PulsarBox, method: str, path: str, body: str | None = None) -> Any:
    text = admin(box.admin_url, method, path, body)
    return json.loads(text) if text else None


def stats(box: PulsarBox, topic: str) -> Any:
    return ask(box, "GET", f"persistent/public/default/{topic}/stats")


def fill(client: Any, topic: str, count: int, batch: int = 0) -> None:
    """Publish messages, in batches of the given size unless it is 0."""
    options = {"batching_enabled": True, "batching_max_messages": batch} if batch else {"batching_enabled": False}
    options |= {"batching_max_publish_delay_ms": 60_000} if batch else {}
    producer = client.create_producer(topic, **options)
    for i in range(count):
        producer.send_async(b"%d" % i, lambda result, message_id: None, partition_key=None if batch else f"k{i}")
    producer.flush()
    producer.close()


@pytest.mark.parametrize("kind", TYPES)
def test_a_topic_gives_so_many_a_period(hours: PulsarBox, client: Any, fresh: Callable[[str], str], kind: Any) -> None:
    topic = fresh("t")
    fill(client, topic, 35)
    ask(hours, "POST", f"persistent/public/default/{topic}/dispatchRate", dispatch_rate(10))
    consumer = client.subscribe(topic, "s", kind, initial_position=EARLIEST)
    assert take(consumer, 10) == [b"%d" % i for i in range(10)]
    assert is_quiet(consumer)
    found = stats(hours, topic)["subscriptions"]["s"]
    assert found["why"]["reason"] == "throttled"
    assert found["dispatchThrottledMsgEventsByTopicLimit"] > 0
    (limit,) = found["limits"]
    assert (limit["messagesUsed"], limit["messagesLimit"], limit["periodSeconds"]) == (10, 10, HOUR)
    hours.clock.advance(hours=1)
    assert take(consumer, 10) == [b"%d" % i for i in range(10, 20)]
    assert is_quiet(consumer)
    ask(hours, "DELETE", f"persistent/public/default/{topic}/dispatchRate")
    assert take(consumer, 15) == [b"%d" % i for i in range(20, 35)]


def test_batches_counted_precisely_by_read_and_by_entry(
    hours: PulsarBox, client: Any, fresh: Callable[[str], str]
) -> None:
    def received(setting: str | None, count: int) -> None:
        topic = fresh("t")
        fill(client, topic, 90, batch=6)
        ask(hours, "POST", f"persistent/public/default/{topic}/dispatchRate", dispatch_rate(10))
        if setting is not None:
            ask(hours, "POST", f"brokers/configuration/{setting}/true")
        consumer = client.subscribe(topic, "s", initial_position=EARLIEST, receiver_queue_size=1000)
        for _ in range(count):
            receive(consumer)
        assert is_quiet(consumer)
        if setting is not None:
            ask(hours, "DELETE", f"brokers/configuration/{setting}")

    received("preciseDispatcherFlowControl", 12)  # two entries of six
    received(None, 60)  # ten entries
    received("dispatchThrottlingOnBatchMessageEnabled", 60)


def test_a_topics_rate_is_shared_and_a_subscriptions_is_its_own(
    hours: PulsarBox, client: Any, fresh: Callable[[str], str]
) -> None:
    shared, own = fresh("shared"), fresh("own")
    for topic, policy in ((shared, "dispatchRate"), (own, "subscriptionDispatchRate")):
        fill(client, topic, 30)
        ask(hours, "POST", f"persistent/public/default/{topic}/{policy}", dispatch_rate(6))
    one, two = (client.subscribe(shared, name, initial_position=EARLIEST) for name in ("one", "two"))
    three, four = (client.subscribe(own, name, initial_position=EARLIEST) for name in ("three", "four"))
    assert len(take(three, 6)) == len(take(four, 6)) == len(take(one, 6)) == 6
    assert all(is_quiet(each) for each in (one, two, three, four))
    for _ in range(4):
        hours.clock.advance(hours=1)
        assert len(take(three, 6)) == len(take(four, 6)) == 6
    counts = [0, 0]
    while sum(counts) < 24:
        for number, each in enumerate((one, two)):
            with contextlib.suppress(pulsar.Timeout):
                each.receive(timeout_millis=20)
                counts[number] += 1
    assert is_quiet(one) and is_quiet(two)
    assert min(counts) >= 6, "they take turns"


def test_bytes_of_a_namespace(hours: PulsarBox, client: Any, fresh: Callable[[str], str]) -> None:
    namespace = f"public/{fresh('n')}"
    ask(hours, "PUT", f"namespaces/{namespace}")
    topic = f"{namespace}/t"
    producer = client.create_producer(topic, batching_enabled=False)
    for _ in range(20):
        producer.send(b"x" * 1000)
    ask(hours, "POST", f"namespaces/{namespace}/dispatchRate", dispatch_rate(size=4500))
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert len(take(consumer, 5)) == 5, "with their metadata four have less than 4500 bytes"
    assert is_quiet(consumer)


def test_receipts_of_one_producer_wait_and_nobody_elses(
    hours: PulsarBox, client: Any, fresh: Callable[[str], str]
) -> None:
    slow, free = fresh("slow"), fresh("free")
    ask(hours, "PUT", f"persistent/public/default/{slow}")
    ask(
        hours,
        "POST",
        f"persistent/public/default/{slow}/publishRate",
        json.dumps({"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": -1}),
    )
    throttled = client.create_producer(slow, batching_enabled=False, send_timeout_millis=0)
    other = client.create_producer(free, batching_enabled=False)
    receipts: list[int] = []

    def arrived(i: int) -> Callable[[Any, Any], None]:
        def told(result: Any, message_id: Any) -> None:
            assert result == pulsar.Result.Ok
            receipts.append(i)

        return told

    for i in range(1000):
        throttled.send_async(b"x", arrived(i))
    other.send(b"y")
    assert len(receipts) < 1000, "a thousand would take a thousand seconds"
    until(lambda: stats(hours, slow)["publishers"][0]["held"]["receipts"] > 0)
    found = stats(hours, slow)
    (publisher,) = found["publishers"]
    assert publisher["held"]["connectionIsRead"]
    assert found["publishRateLimitedTimes"] >= 1
    until(lambda: stats(hours, slow)["msgInCounter"] == 1000)  # all of them are stored
    ask(hours, "DELETE", f"persistent/public/default/{slow}/publishRate")
    until(lambda: len(receipts) == 1000)
    assert receipts == list(range(1000))


def test_neighbours_on_the_connection_of_a_producer_that_floods_publish_on(
    hours: PulsarBox, client: Any, fresh: Callable[[str], str]
) -> None:
    flooded, neighbour, count = fresh("flooded"), fresh("neighbour"), 300
    ask(hours, "PUT", f"persistent/public/default/{flooded}")
    rate = json.dumps({"publishThrottlingRateInMsg": 20, "publishThrottlingRateInByte": -1})
    ask(hours, "POST", f"persistent/public/default/{flooded}/publishRate", rate)
    flooding = client.create_producer(flooded, batching_enabled=False, send_timeout_millis=0)
    other = client.create_producer(neighbour, batching_enabled=False)
    receipts: list[Any] = []
    for i in range(count):
        flooding.send_async(b"%03d" % i + b"x" * 100_000, lambda result, message_id: receipts.append(result))
    until(lambda: stats(hours, flooded)["publishers"][0]["held"]["suspended"])
    assert stats(hours, flooded)["publishers"][0]["why"]["reason"] == "suspended"
    for _ in range(50):
        other.send(b"y")
    assert len(receipts) < count, "at twenty a second they take fifteen seconds"
    assert "why" not in stats(hours, neighbour)["publishers"][0]

    def all_came() -> bool:
        hours.clock.advance(seconds=1)
        return len(receipts) == count

    until(all_came)
    assert receipts == [pulsar.Result.Ok] * count
    reader = client.create_reader(flooded, pulsar.MessageId.earliest)
    assert [reader.read_next(timeout_millis=60_000).data()[:3] for _ in range(count)] == [
        b"%03d" % i for i in range(count)
    ]
    assert not reader.has_message_available(), "each is stored once"


def test_an_unload_gives_out_what_is_held_back(hours: PulsarBox, client: Any, fresh: Callable[[str], str]) -> None:
    topic = fresh("t")
    rate = json.dumps({"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": -1})
    ask(hours, "PUT", f"persistent/public/default/{topic}")
    ask(hours, "POST", f"persistent/public/default/{topic}/publishRate", rate)
    producer = client.create_producer(topic, batching_enabled=False, send_timeout_millis=0)
    receipts: list[Any] = []
    for _ in range(500):
        producer.send_async(b"x", lambda result, message_id: receipts.append(result))
    until(lambda: stats(hours, topic)["msgInCounter"] == 500)
    assert len(receipts) < 500
    ask(hours, "PUT", f"persistent/public/default/{topic}/unload")
    until(lambda: len(receipts) == 500)
    assert receipts == [pulsar.Result.Ok] * 500
    assert stats(hours, topic)["msgInCounter"] == 500, "nothing had to be sent again"


def test_subscribing_too_often_is_refused(hours: PulsarBox, client: Any, fresh: Callable[[str], str]) -> None:
    topic = fresh("t")
    fill(client, topic, 1)
    rate = json.dumps({"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": HOUR})
    ask(hours, "POST", f"persistent/public/default/{topic}/subscribeRate", rate)

    def comes_and_goes() -> None:
        client = connect(hours.service_url)
        client.subscribe(topic, "s", consumer_name="c")
        client.close()

    comes_and_goes()
    comes_and_goes()
    with pytest.raises(pulsar.NotAllowedError):
        comes_and_goes()
    hours.clock.advance(hours=1)
    comes_and_goes()


def test_namespaces_of_a_group_share_its_rates(hours: PulsarBox, client: Any, fresh: Callable[[str], str]) -> None:
    group, names = fresh("g"), [f"public/{fresh('n')}" for _ in range(2)]
    ask(hours, "PUT", f"resourcegroups/{group}", json.dumps({"dispatchRateInMsgs": 5}))
    for name in names:
        ask(hours, "PUT", f"namespaces/{name}")
        ask(hours, "POST", f"namespaces/{name}/resourcegroup/{group}")
        fill(client, f"{name}/t", 10)
    consumers = [client.subscribe(f"{name}/t", "s", initial_position=EARLIEST) for name in names]
    found = [ask(hours, "GET", f"persistent/{name}/t/stats")["subscriptions"]["s"] for name in names]
    for each in found:
        (limit,) = each["limits"]
        assert (limit["scope"], limit["name"], limit["messagesLimit"]) == ("resource group", group, 5)
    ask(hours, "PUT", f"resourcegroups/{group}", json.dumps({"dispatchRateInMsgs": 0}))
    assert [len(take(each, 10)) for each in consumers] == [10, 10]
