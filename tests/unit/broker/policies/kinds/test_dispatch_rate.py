"""Dispatch rates: the level that applies, and stored values without effect."""

from typing import Any

import pytest

from pulsarbox.broker.policies.kinds.dispatch_rate import DISPATCH_RATE, SUBSCRIPTION_DISPATCH_RATE, DispatchRate
from pulsarbox.broker.policies.kinds.publish_rate import PUBLISH_RATE, PublishRate
from pulsarbox.broker.policies.kinds.resource_group import group_rates
from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE, SubscribeRate
from pulsarbox.broker.policies.precedence import Level
from pulsarbox.config import Settings
from pulsarbox.config.setting import ConfigError
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import Box

TOPIC = parse_topic("public/default/a")
NAMESPACE = "public/default"


def rate(messages: int, size: int = -1, period: int = 1, *, relative: bool = False) -> dict[str, object]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "relativeToPublishRate": relative,
        "ratePeriodInSecond": period,
    }


@pytest.mark.parametrize(
    ("policy", "namespace_key", "topic_key", "prefix"),
    [
        (DISPATCH_RATE, "topicDispatchRate", "dispatchRate", "dispatchThrottlingRatePerTopicIn"),
        (
            SUBSCRIPTION_DISPATCH_RATE,
            "subscriptionDispatchRate",
            "subscriptionDispatchRate",
            "dispatchThrottlingRatePerSubscriptionIn",
        ),
    ],
)
def test_dispatch_rates_by_level(policy: object, namespace_key: str, topic_key: str, prefix: str) -> None:
    settings: dict[str, Any] = {
        f"{prefix}Msg": 5,
        f"{prefix}Byte": -1,
        "dispatchThrottlingRateRelativeToPublishRate": True,
    }
    box = Box(clusterName="here", **settings)
    policies = box.broker.policies

    def found() -> object:
        return policies.of(TOPIC).found(policy)  # type: ignore[arg-type]

    assert found() == (DispatchRate(5, 0, relative=True), Level.BROKER)
    box.broker.tenants.set_policy(NAMESPACE, namespace_key, {"elsewhere": rate(7)}, box.now)
    assert found() == (DispatchRate(5, 0, relative=True), Level.BROKER)
    box.broker.tenants.set_policy(NAMESPACE, namespace_key, {"here": rate(7, 70, 10)}, box.now)
    assert found() == (DispatchRate(7, 70, 10), Level.NAMESPACE)
    policies.set_topic(TOPIC, topic_key, rate(-1, 9, 0, relative=True), box.now)
    assert found() == (DispatchRate(0, 9, 1, relative=True), Level.TOPIC)
    policies.set_topic(TOPIC, topic_key, rate(-1, 0), box.now)
    assert found() == (DispatchRate(7, 70, 10), Level.NAMESPACE)


def test_rates_of_single_subscriptions() -> None:
    box = Box()
    policies = box.broker.policies
    found = policies.of(TOPIC).subscription_rate
    assert found("a") == (DispatchRate(0, 0), Level.BROKER)
    value = {"a": {"dispatchRate": rate(1)}, "b": {"dispatchRate": rate(-1)}, "c": {"dispatchRate": None}, "d": {}}
    policies.set_topic(TOPIC, "subscriptionPolicies", value, box.now)
    everywhere = {"a": {"dispatchRate": rate(2)}, "b": {"dispatchRate": rate(3)}}
    policies.set_topic(TOPIC, "subscriptionPolicies", everywhere, box.now, everywhere=True)
    cluster = box.broker.settings.clusterName
    box.broker.tenants.set_policy(NAMESPACE, "subscriptionDispatchRate", {cluster: rate(9)}, box.now)
    assert found("a") == (DispatchRate(1, 0), Level.TOPIC)
    assert found("b") == (DispatchRate(3, 0), Level.TOPIC), "set for all clusters, behind a rate that limits nothing"
    for name in ("c", "d", "e"):
        assert found(name) == (DispatchRate(9, 0), Level.NAMESPACE)


def test_publish_rates_by_level() -> None:
    box = Box(maxPublishRatePerTopicInMessages=5)
    policies = box.broker.policies
    assert policies.of(TOPIC).found(PUBLISH_RATE) == (PublishRate(5, 0), Level.BROKER)
    value = {"publishThrottlingRateInMsg": 3, "publishThrottlingRateInByte": -1}
    cluster = box.broker.settings.clusterName
    box.broker.tenants.set_policy(NAMESPACE, "publishMaxMessageRate", {cluster: value}, box.now)
    assert policies.of(TOPIC).found(PUBLISH_RATE) == (PublishRate(3, 0), Level.NAMESPACE)
    policies.set_topic(TOPIC, "publishRate", value | {"publishThrottlingRateInByte": 100}, box.now)
    assert policies.of(TOPIC).found(PUBLISH_RATE) == (PublishRate(3, 100), Level.TOPIC)
    policies.set_topic(TOPIC, "publishRate", dict.fromkeys(value, -1), box.now)
    assert policies.of(TOPIC).found(PUBLISH_RATE) == (PublishRate(3, 0), Level.NAMESPACE)


def test_subscribe_rates_by_level() -> None:
    box = Box(subscribeThrottlingRatePerConsumer=5)
    policies = box.broker.policies
    assert policies.of(TOPIC).found(SUBSCRIBE_RATE) == (SubscribeRate(5, 30), Level.BROKER)
    value = {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 10}
    policies.set_topic(TOPIC, "subscribeRate", value, box.now)
    assert policies.of(TOPIC).found(SUBSCRIBE_RATE) == (SubscribeRate(3, 10), Level.TOPIC)
    policies.set_topic(TOPIC, "subscribeRate", value | {"ratePeriodInSecond": 0}, box.now)
    assert policies.of(TOPIC).found(SUBSCRIBE_RATE) == (SubscribeRate(5, 30), Level.BROKER)


def test_rates_of_a_resource_group() -> None:
    assert group_rates({}) == (PublishRate(0, 0), DispatchRate(0, 0))
    row = {"publishRateInMsgs": 1, "publishRateInBytes": None, "dispatchRateInMsgs": -1, "dispatchRateInBytes": 4}
    assert group_rates(row) == (PublishRate(1, 0), DispatchRate(0, 4))


def test_batches_count_as_one_message_or_precisely_but_not_both() -> None:
    with pytest.raises(
        ConfigError, match="preciseDispatcherFlowControl: cannot be combined with dispatchThrottlingOnBatch"
    ):
        Settings(preciseDispatcherFlowControl=True, dispatchThrottlingOnBatchMessageEnabled=True)
