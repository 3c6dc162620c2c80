"""Subscribe rates limit how often one consumer may subscribe in a period."""

from typing import Any

from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from tests.unit.broker.limits.rates import change, set_topic
from tests.unit.broker.playbook import Box, Client


def subscribes(client: Client, **fields: Any) -> bool:
    """Return whether a consumer is admitted, and close it again."""
    reply = client.subscribe(**fields)
    if hasattr(reply, "error"):
        assert reply.error == ServerError.NotAllowedError
        assert reply.message == "Subscribe limited by subscribe rate limit per consumer."
        return False
    client.request("close_consumer", consumer_id=fields.get("consumer_id", 1))
    return True


def test_a_consumer_subscribes_so_often_in_a_period() -> None:
    box = Box(subscribeThrottlingRatePerConsumer=2, subscribeRatePeriodPerConsumerInSecond=10)
    client = box.client()
    assert [subscribes(client) for _ in range(4)] == [True, True, False, False]
    assert subscribes(client, consumer_id=2), "another consumer"
    assert subscribes(client, consumer_name="other"), "and another"
    box.advance(9.5)
    assert not subscribes(client)
    box.advance(0.5)
    assert [subscribes(client) for _ in range(3)] == [True, True, False]


def test_of_a_topic_and_changed_while_it_is_used() -> None:
    box = Box()
    client = box.client()
    assert all(subscribes(client) for _ in range(5))
    set_topic(box, "subscribeRate", {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 60})
    assert [subscribes(client) for _ in range(2)] == [True, False]
    set_topic(box, "subscribeRate", {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 60})
    assert not subscribes(client)
    set_topic(box, "subscribeRate", {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": 60})
    assert [subscribes(client) for _ in range(2)] == [True, False]
    change(box, "subscribeThrottlingRatePerConsumer", "1")
    assert not subscribes(client)
    set_topic(box, "subscribeRate", None)
    change(box, "subscribeThrottlingRatePerConsumer", "0")
    assert all(subscribes(client) for _ in range(5))


def test_what_nobody_uses_is_forgotten() -> None:
    box = Box(subscribeThrottlingRatePerConsumer=1, subscribeRatePeriodPerConsumerInSecond=10)
    client = box.client()
    for i in range(50):
        assert subscribes(client, consumer_id=i)
    box.advance(10)
    assert subscribes(client, consumer_id=99)
    topic = next(iter(box.broker.topics))
    assert topic.limits.subscribe is not None
    assert len(topic.limits.subscribe) == 1


def test_topics_that_store_nothing_are_not_limited() -> None:
    box = Box(subscribeThrottlingRatePerConsumer=1)
    client = box.client()
    assert all(subscribes(client, topic="non-persistent://public/default/n") for _ in range(5))
