"""Inactive topics, and the conditions for their deletion."""

from typing import Any, Final

import pulsar

from tests.differences.broker import Broker, path_of
from tests.differences.clients import made_with, publish
from tests.differences.scenario import Steps, long, slow_scenario, timed_scenario
from tests.differences.themes.management.policies import namespace
from tests.differences.themes.retention import consumed

LOOKED_SECONDS: Final = 6.0
BY_DEFAULT_SECONDS: Final = 70.0
"""By default, Pulsar checks for inactive topics once a minute."""
UNSUBSCRIBED: Final = "delete_when_no_subscriptions"
CAUGHT_UP: Final = "delete_when_subscriptions_caught_up"


def after_a_second(mode: str, deleted: bool = True) -> dict[str, Any]:
    return {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": 1, "deleteWhileInactive": deleted}


def left(broker: Broker, name: str) -> list[str]:
    """Return the topics of a namespace by the last word of their names."""
    broker.settle(LOOKED_SECONDS)
    found = broker.admin("GET", f"persistent/{name}")[1]
    return sorted(topic.rpartition("/")[2] for topic in found)


def some(broker: Broker, name: str) -> Any:
    """Create topics in each relevant state; return the objects that must stay open."""
    plain, reader, sub, behind = (
        made_with(broker, f"persistent://{name}/{word}") for word in ("plain", "reader", "caught-up", "behind")
    )
    publish(broker, plain, 1)
    for topic in (sub, behind):
        broker.admin("PUT", f"{path_of(topic)}/subscription/s")
        publish(broker, topic, 3)
    consumed(broker, sub, 3)
    busy = [broker.client().create_producer(f"persistent://{name}/producer")]
    busy.append(broker.client().subscribe(f"persistent://{name}/consumer", "s"))
    busy.append(broker.client().create_reader(reader, pulsar.MessageId.earliest))
    return busy


def set_up(broker: Broker, name: str, policy: dict[str, Any]) -> None:
    broker.admin("POST", f"namespaces/{name}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
    broker.admin("POST", f"namespaces/{name}/inactiveTopicPolicies", policy)


@long
@timed_scenario
def without_subscriptions(broker: Broker) -> Steps:
    yield from _used_and_not(broker, UNSUBSCRIBED)


@long
@timed_scenario
def caught_up(broker: Broker) -> Steps:
    yield from _used_and_not(broker, CAUGHT_UP)


def _used_and_not(broker: Broker, mode: str) -> Steps:
    with namespace(broker) as name:
        busy = some(broker, name)
        set_up(broker, name, after_a_second(mode))
        yield "left", left(broker, name)
        for each in busy:
            each.close()
        yield "when clients have gone", left(broker, name)


@timed_scenario
def turned_off(broker: Broker) -> Steps:
    with namespace(broker) as name:
        for each in some(broker, name):
            each.close()
        set_up(broker, name, after_a_second(CAUGHT_UP, deleted=False))
        yield "left", left(broker, name)


@timed_scenario
def a_topic_of_its_own(broker: Broker) -> Steps:
    with namespace(broker) as name:
        one, _two = (made_with(broker, f"persistent://{name}/{word}") for word in ("one", "two"))
        set_up(broker, name, after_a_second(UNSUBSCRIBED, deleted=False))
        broker.admin("POST", f"{path_of(one)}/inactiveTopicPolicies", after_a_second(UNSUBSCRIBED))
        yield "left", left(broker, name)


@timed_scenario
def partitions(broker: Broker) -> Steps:
    with namespace(broker) as name:
        broker.admin("PUT", f"persistent/{name}/p/partitions", 2)
        set_up(broker, name, after_a_second(UNSUBSCRIBED))
        yield "left", left(broker, name)
        yield "the partitioned topic", broker.admin("GET", f"persistent/{name}/partitioned")[1]
        publish(broker, f"persistent://{name}/p", 2)
        yield "used again", broker.admin("GET", f"persistent/{name}/p/partitions")[1]["partitions"]


@timed_scenario
def what_is_kept_keeps_its_topic(broker: Broker) -> Steps:
    with namespace(broker) as name:
        set_up(broker, name, after_a_second(UNSUBSCRIBED))
        broker.admin("POST", f"namespaces/{name}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
        publish(broker, made_with(broker, f"persistent://{name}/full"), 3)
        yield "for ever", left(broker, name)
        broker.admin("POST", f"namespaces/{name}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
        yield "not at all", left(broker, name)


@long
@slow_scenario
def messages_that_no_subscription_has_covered(broker: Broker) -> Steps:
    with namespace(broker) as name:
        broker.admin("POST", f"namespaces/{name}/inactiveTopicPolicies", after_a_second(UNSUBSCRIBED))
        publish(broker, f"persistent://{name}/first", 1)
        broker.settle(BY_DEFAULT_SECONDS)
        yield "left", left(broker, name)
