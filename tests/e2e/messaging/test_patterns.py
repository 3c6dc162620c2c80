"""Pattern subscriptions with the official client, and topic list watchers as used by the Java client."""

import re
from typing import Any

import pulsar
import pytest

from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandWatchTopicList
from pulsarbox.protocol.topics_hash import topics_hash
from tests.e2e.clients import EARLIEST, read_to_end, take
from tests.e2e.conftest import Running
from tests.e2e.raw import Raw

REGEX = pulsar.RegexSubscriptionMode


def matching(client: Any, space: str, mode: Any = REGEX.PersistentOnly, pattern: str = "w-.*") -> Any:
    """Subscribe to all matching topics. The Python client discovers topics once a minute, whatever its settings."""
    return client.subscribe(
        re.compile(f"persistent://{space}/{pattern}"),
        "s",
        initial_position=EARLIEST,
        regex_subscription_mode=mode,
    )


def publish(client: Any, topic: str, body: bytes) -> None:
    producer = client.create_producer(topic)
    producer.send(body)
    producer.close()


def test_a_pattern_that_the_box_does_not_match_is_matched_by_the_client(client: Any, space: str) -> None:
    publish(client, f"{space}/w-1", b"1")
    publish(client, f"{space}/w-1-DLQ", b"dead")
    publish(client, f"{space}/w-2", b"2")
    consumer = matching(client, space, pattern="(?!.*-DLQ).*")
    assert sorted(take(consumer, 2)) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (REGEX.PersistentOnly, {b"stored"}),
        (REGEX.NonPersistentOnly, {b"fleeting"}),
        (REGEX.AllTopics, {b"stored", b"fleeting"}),
    ],
)
def test_of_either_domain_or_both(client: Any, space: str, mode: Any, expected: set[bytes]) -> None:
    stored = client.create_producer(f"persistent://{space}/w-1")
    fleeting = client.create_producer(f"non-persistent://{space}/w-2")
    consumer = matching(client, space, mode)
    fleeting.send(b"fleeting")
    stored.send(b"stored")
    assert set(take(consumer, len(expected))) == expected


def test_a_reader_of_all_partitions_and_a_table_view(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{topic.replace('://', '/')}/partitions", "3")
    producer = client.create_producer(topic)
    for number in range(12):
        producer.send(b"%d" % number, partition_key=f"key{number % 6}")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert sorted(read_to_end(reader), key=int) == [b"%d" % number for number in range(12)]
    view = client.create_table_view(topic)
    latest: dict[str, bytes] = {}
    view.for_each(lambda key, value: latest.update({key: value}))
    assert latest == {f"key{number}": b"%d" % (number + 6) for number in range(6)}
    view.close()


def test_a_watch_as_java_keeps_one(box: Running, client: Any, space: str) -> None:
    publish(client, f"{space}/w-1", b"x")
    names = {f"persistent://{space}/w-1"}
    with Raw(box.url) as raw:
        watch = CommandWatchTopicList(
            request_id=1, watcher_id=5, namespace=space, topics_pattern=f"persistent://{space}/w-.*"
        )
        raw.tell(encode_frame(BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST, watchTopicList=watch)))
        told = raw.take("watchTopicListSuccess")[0]
        assert (set(told.topic), told.topics_hash) == (names, topics_hash(names))
        box.admin("PUT", f"persistent/{space}/w-p/partitions", "2")
        while len(names) < 3:  # in one update or two
            told = raw.take("watchTopicUpdate")[0]
            names |= set(told.new_topics)
            assert told.topics_hash == topics_hash(names)
        assert names == {f"persistent://{space}/{name}" for name in ("w-1", "w-p-partition-0", "w-p-partition-1")}
        box.admin("DELETE", f"persistent/{space}/w-1?force=true")
        told = raw.take("watchTopicUpdate")[0]
        assert list(told.deleted_topics) == [f"persistent://{space}/w-1"]
        assert told.topics_hash == topics_hash(names - set(told.deleted_topics))
