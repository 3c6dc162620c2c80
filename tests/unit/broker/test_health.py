"""The health check publishes and reads (``broker.health``), and topics that are internal."""

from typing import Any

import pytest

from pulsarbox.broker.health import HEALTH_SECONDS
from pulsarbox.broker.topic.system_topics import HEALTH_TOPIC, is_system
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from tests.unit.broker.playbook import Box

Told = list[Exception | None]


def ask(box: Box) -> Told:
    """Start a check; its result is appended to the list on completion."""
    told: Told = []
    box.broker.health.run(lambda error, now: told.append(error), box.now)
    box.turn()
    return told


def stored(box: Box) -> int:
    """Return the health check messages in the log."""
    topic = box.broker.topics.find(parse_topic(HEALTH_TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    return topic.ledger.confirmed_entries


def test_a_message_is_stored_and_read() -> None:
    box = Box()
    assert ask(box) == [None] and stored(box) == 1
    assert ask(box) == [None] and stored(box) == 2
    restarted = box.restart()
    assert ask(restarted) == [None] and stored(restarted) == 3


def test_it_is_answered_neither_before_the_commit_nor_before_the_read() -> None:
    box = Box(auto=False)
    while box.commit():
        pass
    told = ask(box)
    assert told == []
    assert box.commit() and told == []
    assert box.read() and told == [None]


def test_those_who_ask_meanwhile_share_the_next_check() -> None:
    box = Box(auto=False)
    while box.commit():
        pass
    asked = [ask(box) for _ in range(100)]
    box.auto = True
    box.turn()
    assert asked == [[None]] * 100
    assert stored(box) == 2


def test_a_message_that_is_not_stored_is_a_failure() -> None:
    box = Box(auto=False)
    while box.commit():
        pass
    told = ask(box)
    assert box.commit(PersistenceError("the disk is gone"))
    box.advance(5)
    box.auto = True
    box.turn()
    box.advance(1)
    assert len(told) == 1 and isinstance(told[0], Exception)
    assert ask(box) == [None], "and when the disk is back, all is well"


def test_a_read_that_fails_is_a_failure() -> None:
    box = Box(auto=False)
    while box.commit():
        pass
    told = ask(box)
    box.commit()
    box.read(PersistenceError("it cannot be read"))
    assert [str(error) for error in told] == ["it cannot be read"]


def test_a_check_has_an_end() -> None:
    box = Box(auto=False)
    while box.commit():
        pass
    first, second = ask(box), ask(box)
    box.advance(HEALTH_SECONDS + 0.1)
    assert [str(error) for error in first] == [
        f"The health check message was not stored and read back within {HEALTH_SECONDS:g} s"
    ]
    assert second == []
    box.auto = True
    box.turn()
    assert second == [None], "what comes of the first does not count for the second"


def test_a_full_disk_is_said() -> None:
    box = Box()
    ask(box)
    box.broker.commits.housekeeping.store_is_full("no room on the disk", box.now)
    (error,) = ask(box)
    assert "Messages cannot be published: " in str(error)


def test_its_topic_is_listed_apart() -> None:
    box = Box()
    ask(box)
    topics = box.broker.topics
    assert topics.names("pulsar/system") == []
    assert topics.names("pulsar/system", system=True) == [HEALTH_TOPIC]
    assert is_system(HEALTH_TOPIC) and not is_system("persistent://public/default/healthcheck")


@pytest.mark.parametrize(
    "name",
    [
        HEALTH_TOPIC,
        "persistent://public/default/__change_events",
        "persistent://public/default/__transaction_buffer_snapshot",
        "persistent://public/default/x__transaction_pending_ack",
        "persistent://public/default/__change_events-partition-0",
    ],
)
def test_clients_do_not_make_system_topics(name: str) -> None:
    box = Box()
    client = box.client()
    for refused in (client.producer(topic=name), client.subscribe(topic=name)):
        assert refused.error == ServerError.NotAllowedError
        assert refused.message == f"Can not create system topic {name}: the broker creates its own"
    asked: Any = client.request("partitionMetadata", topic=name)
    assert asked.error == ServerError.TopicNotFound
    assert not box.broker.topics.exists(parse_topic(name))


def test_a_system_topic_that_is_there_can_be_read() -> None:
    box = Box()
    ask(box)
    client = box.client()
    client.subscribe(topic=HEALTH_TOPIC)
    client.flow(10)
    assert len(client.received()) == 1
