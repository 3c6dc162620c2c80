"""Features disabled by settings are rejected with Pulsar's codes and texts."""

from typing import Any

import pytest

from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from tests.unit.broker.playbook import TOPIC, Box

OTHER = "non-persistent://public/default/t"
NO_KEYS = (22, "Key_Shared subscription is disabled by broker.")
UNABLE = (22, "Broker is unable to load persistent topic")


def answer(box: Box, kind: Any, topic: str = TOPIC) -> tuple[int, str] | None:
    reply = box.client().subscribe(topic=topic, subType=kind)
    return (reply.error, reply.message) if hasattr(reply, "error") else None


def test_types_that_are_turned_off() -> None:
    box = Box(subscriptionTypesEnabled="Failover, Exclusive")
    assert answer(box, CommandSubscribe.Shared) == (22, f"Topic[{{{TOPIC}}}] doesn't support Shared sub type!")
    assert answer(box, CommandSubscribe.Key_Shared) == NO_KEYS
    assert answer(box, CommandSubscribe.Failover) is None
    assert answer(box, CommandSubscribe.Shared, OTHER) is None, "non-persistent topics are not asked"


def test_key_shared_has_a_switch_of_its_own() -> None:
    box = Box(subscriptionKeySharedEnable=False)
    assert answer(box, CommandSubscribe.Key_Shared) == NO_KEYS
    assert answer(box, CommandSubscribe.Key_Shared, OTHER) is None
    assert answer(box, CommandSubscribe.Shared) is None


def test_who_is_refused_leaves_no_subscription() -> None:
    box = Box(subscriptionTypesEnabled="Exclusive")
    answer(box, CommandSubscribe.Shared)
    (topic,) = box.broker.topics
    assert list(topic.all_subscriptions()) == []


@pytest.mark.parametrize(("domain", "topic"), [("Persistent", TOPIC), ("NonPersistent", OTHER)])
def test_domains_that_are_turned_off(domain: str, topic: str) -> None:
    off: dict[str, Any] = {f"enable{domain}Topics": False}
    client = Box(**off).client()
    for reply in (client.subscribe(topic=topic), client.producer(1, topic)):
        assert (reply.error, reply.message) == UNABLE


def test_a_stored_topic_is_not_served_either() -> None:
    box = Box()
    box.client().publish(1)
    box.settings["enablePersistentTopics"] = False
    assert answer(box.restart(), CommandSubscribe.Exclusive) == UNABLE
