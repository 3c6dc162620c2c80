"""Replay of dead letters by a job: selection, target and content."""

from typing import Any

import pytest

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageIdData
from tests.unit.broker.dead_letters_playbook import letters
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.broker.replay.playbook import (
    DLQ,
    SUB,
    backlog,
    batch_of,
    bodies,
    counted,
    create,
    dead_letter_topic,
    left,
    pairs,
    properties,
    run,
    told,
    topic_of,
)

OTHER = "persistent://public/default/other"


def test_dead_letters_go_back_where_they_came_from() -> None:
    box = Box()
    dead_letter_topic(box, b"0", b"1", b"2")
    job = run(box)
    assert (job.state, job.error, counted(job), job.total) == ("done", "", (3, 3, 0, 0), 3)
    assert bodies(box) == [b"0", b"1", b"2"]
    assert left(box) == []
    assert job.as_json()["targets"] == {TOPIC: 3}


def test_they_are_what_they_were_with_a_mark_of_the_job() -> None:
    box = Box()
    client = dead_letter_topic(box)
    more = told(colour="red", REAL_SUBSCRIPTION="s", DEAD_LETTER_REASON="given back", ORIGIN_MESSAGE_IDY_TIME="1:2:-1")
    client.send(7, b"body", properties=pairs(more), partition_key="k", ordering_key=b"o", event_time=5)
    job = run(box)
    ((metadata, body),) = letters(box, TOPIC)
    assert body == b"body"
    assert properties(metadata) == {"colour": "red", "REPLAY_JOB": str(job.number), "REPLAY_COUNT": "1"}
    assert (metadata.partition_key, metadata.ordering_key, metadata.event_time) == ("k", b"o", 5)
    assert metadata.publish_time >= box.wall - 11_000


def test_elsewhere_they_keep_where_they_came_from() -> None:
    box = Box()
    dead_letter_topic(box, b"0").producer(5, OTHER)
    run(box, target=OTHER)
    ((metadata, _),) = letters(box, OTHER)
    assert properties(metadata)["REAL_TOPIC"] == TOPIC
    assert "RECONSUMETIMES" not in properties(metadata)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_partitioned_target_gets_each_key_in_one_partition(partitions: int) -> None:
    box = Box()
    name = parse_topic(OTHER)
    box.broker.topics.create_partitioned(name, partitions, box.now)
    client = dead_letter_topic(box)
    for number in range(12):
        client.send(number, b"%d" % number, properties=pairs(told()), partition_key=f"k{number % 6}")
    job = run(box, target=OTHER)
    assert (job.state, counted(job)) == ("done", (12, 12, 0, 0))
    parts = [letters(box, str(name.partition(at))) for at in range(partitions)]
    assert sorted(int(body) for part in parts for _, body in part) == list(range(12))
    keys = [{metadata.partition_key for metadata, _ in part} for part in parts]
    assert all(keys) and sum(len(each) for each in keys) == 6, "each partition has keys, and no key is in two"


def test_a_filter_says_which() -> None:
    box = Box()
    dead_letter_topic(box, b'{"n": 1}', b'{"n": 2}', b'{"n": 3}')
    job = run(box, filter="json.n >= 2")
    assert counted(job) == (3, 2, 1, 0)
    assert bodies(box) == [b'{"n": 2}', b'{"n": 3}']
    assert left(box) == [b'{"n": 1}']


def test_what_comes_after_the_start_is_not_meant() -> None:
    box = Box(auto=False)
    client = dead_letter_topic(box)
    box.auto = True
    box.turn()
    client.send(0, b"before", properties=pairs(told()))
    job = create(box, rate=1)
    client.send(1, b"after", properties=pairs(told()))
    box.advance(10)
    assert (job.state, counted(job)) == ("done", (1, 1, 0, 0))
    assert left(box) == [b"after"]


def test_messages_of_a_batch_one_by_one() -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=True)
    client = dead_letter_topic(box)
    body = batch_of((b"0", {}), (b"1", {"x": "y"}), (b"2", {}), (b"3", {"x": "y"}))
    client.send(0, body, batch=4, highest=3)
    job = run(box, filter='props.x == "y"')
    assert counted(job) == (4, 2, 2, 0)
    assert bodies(box) == [b"1", b"3"]
    assert backlog(box) == 2
    assert left(box.restart()) == [b"0", b"2"]


def test_messages_of_a_batch_that_come_from_different_topics() -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=True)
    client = dead_letter_topic(box)
    client.producer(5, OTHER)
    client.send(0, batch_of((b"0", {}), (b"1", {"REAL_TOPIC": OTHER}), (b"2", {})), batch=3, highest=2)
    job = run(box)
    assert (bodies(box), bodies(box, OTHER), left(box)) == ([b"0", b"2"], [b"1"], [])
    assert job.progress.counts.targets == {TOPIC: 2, OTHER: 1}


def test_what_of_a_batch_is_acknowledged_stays_so() -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=True)
    client = dead_letter_topic(box)
    client.send(0, batch_of((b"0", {}), (b"1", {}), (b"2", {})), batch=3, highest=2)
    reader = box.client()
    reader.subscribe(SUB, topic=DLQ, subType=CommandSubscribe.Shared)
    reader.flow(10)
    (at,) = reader.received()
    reader.ack(MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[0b101], batch_size=3))
    reader.cnx.closed(box.now)
    box.turn()
    job = run(box)
    assert (counted(job), job.total) == ((2, 2, 0, 0), 2)
    assert bodies(box) == [b"0", b"2"]


def test_a_dry_run_changes_nothing_and_says_what_would_be() -> None:
    box = Box()
    client = dead_letter_topic(box, b"0", b"1")
    client.send(5, b"stray")
    client.send(6, b"lost", properties=pairs(told("persistent://public/default/gone")))
    before = topic_of(box, TOPIC).ledger.total_messages
    job = run(box, dryRun=True, filter='payload != "1"')
    assert (job.state, counted(job)) == ("done", (4, 1, 1, 2))
    reasons = job.as_json()["reasons"]
    assert sum("REAL_TOPIC" in each for each in reasons) == 1
    assert sum("gone does not exist" in each for each in reasons) == 1
    assert topic_of(box, TOPIC).ledger.total_messages == before
    assert backlog(box) == 4


def test_a_dry_run_of_a_topic_without_a_subscription_makes_none() -> None:
    box = Box(defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1)
    dead_letter_topic(box, b"0", b"1", subscription="")
    job = run(box, dryRun=True)
    assert (job.state, counted(job), job.total) == ("done", (2, 2, 0, 0), 2)
    assert not topic_of(box).subscriptions


def test_a_topic_without_a_subscription_gets_one() -> None:
    box = Box(defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1)
    dead_letter_topic(box, b"0", b"1", subscription="")
    job = run(box, filter='payload == "0"')
    assert (job.state, job.spec.subscription) == ("done", SUB)
    assert left(box) == [b"1"]


def test_the_rate_is_kept() -> None:
    box = Box()
    dead_letter_topic(box, *[b"%d" % i for i in range(30)])
    job = create(box, rate=2)
    box.turn()
    box.advance(5.2)
    assert 10 <= job.progress.counts.done <= 12
    assert job.state == "running"
    box.advance(15)
    assert job.state == "done"


def test_all_parts_of_a_partitioned_topic() -> None:
    box = Box()
    name = parse_topic("persistent://public/default/p-s-DLQ")
    box.broker.topics.create_partitioned(name, 3, box.now)
    for i in range(3):
        client = dead_letter_topic(box, b"%d" % i, topic=str(name.partition(i)))
        client.cnx.closed(box.now)
    job = run(box, topic=str(name))
    assert (job.state, counted(job), job.total) == ("done", (3, 3, 0, 0), 3)
    assert sorted(bodies(box)) == [b"0", b"1", b"2"]


def test_dropped_messages_are_acknowledged_and_go_nowhere() -> None:
    box = Box()
    dead_letter_topic(box, b"0", b"1", b"2")
    job = run(box, kind="dlq-drop", filter='payload != "1"')
    assert (job.state, counted(job)) == ("done", (3, 2, 1, 0))
    assert (bodies(box), left(box)) == ([], [b"1"])


# Edits


def test_properties_key_and_payload_are_changed() -> None:
    box = Box()
    client = dead_letter_topic(box)
    client.send(0, b"old", properties=pairs(told(a="1", b="2")), partition_key="k", ordering_key=b"o", null_value=True)
    edit = {"setProperties": {"a": "9", "c": "3"}, "removeProperties": ["b"], "key": "new", "payload": "fixed"}
    run(box, edit=edit)
    ((metadata, body),) = letters(box, TOPIC)
    found = properties(metadata)
    assert body == b"fixed"
    assert (found["a"], found["c"], "b" in found) == ("9", "3", False)
    assert (metadata.partition_key, metadata.HasField("ordering_key"), metadata.null_value) == ("new", False, False)
    assert metadata.uncompressed_size == 5


def test_a_compressed_payload_is_changed_in_its_codec() -> None:
    from pulsarbox.plugins.compression.wire import compress, decompress

    box = Box()
    client = dead_letter_topic(box)
    plain = batch_of((b"0", {}), (b"1", {}))
    client.send(0, compress(2, plain), batch=2, highest=1, compression=2, uncompressed_size=len(plain))
    client.send(2, compress(2, b"one"), compression=2, uncompressed_size=3, properties=pairs(told()))
    run(box, edit={"payload": "fixed!"})
    found = []
    for metadata, body in letters(box, TOPIC):
        assert metadata.compression == 2
        opened = decompress(2, body, metadata.uncompressed_size)
        count = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 0
        found += [each for _, each in iterate_batch(opened, count)] if count else [opened]
    assert found == [b"fixed!"] * 3


def test_what_is_encrypted_goes_as_it_is_or_not_at_all() -> None:
    box = Box()
    client = dead_letter_topic(box)
    keys = [{"key": "k", "value": b"v"}]
    client.send(0, b"secret", properties=pairs(told()), encryption_keys=keys, encryption_param=b"p")
    job = run(box, edit={"payload": "plain"})
    assert counted(job) == (1, 0, 0, 1)
    assert list(job.progress.counts.reasons) == ["its payload cannot be changed: it is encrypted"]
    assert backlog(box) == 1
    run(box, edit={"setProperties": {"seen": "yes"}})
    ((metadata, body),) = letters(box, TOPIC)
    assert (body, metadata.encryption_keys[0].key, properties(metadata)["seen"]) == (b"secret", "k", "yes")
    assert backlog(box) == 0


def test_chunks_go_together() -> None:
    box = Box()
    client = dead_letter_topic(box)
    more: dict[str, Any] = {
        "uuid": "u",
        "num_chunks_from_msg": 3,
        "total_chunk_msg_size": 6,
        "properties": pairs(told()),
    }
    for chunk in range(3):
        client.send(0, b"%d" % chunk, chunk_id=chunk, **more)
        client.send(1 + chunk, b"other", properties=pairs(told()))
    job = run(box, filter='not (payload == "other")', rate=1)
    assert (job.state, counted(job)) == ("done", (6, 3, 3, 0))
    found = [(metadata.chunk_id, metadata.uuid) for metadata, _ in letters(box, TOPIC)]
    assert found == [(0, "u"), (1, "u"), (2, "u")]


def test_the_last_chunks_follow_though_they_came_after_the_start() -> None:
    box = Box()
    client = dead_letter_topic(box)
    more: dict[str, Any] = {
        "uuid": "u",
        "num_chunks_from_msg": 2,
        "total_chunk_msg_size": 4,
        "properties": pairs(told()),
    }
    client.send(0, b"a", chunk_id=0, **more)
    job = create(box, rate=1)
    client.send(9, b"new", properties=pairs(told()))
    client.send(0, b"b", chunk_id=1, **more)
    box.advance(10)
    assert (job.state, bodies(box), left(box)) == ("done", [b"a", b"b"], [b"new"])


def test_chunks_without_their_beginning_are_refused_by_name() -> None:
    box = Box()
    client = dead_letter_topic(box)
    more: dict[str, Any] = {
        "uuid": "u",
        "num_chunks_from_msg": 2,
        "total_chunk_msg_size": 4,
        "properties": pairs(told()),
    }
    client.send(0, b"b", chunk_id=1, **more)
    job = run(box)
    assert counted(job) == (1, 0, 0, 1)
    assert "chunked" in next(iter(job.progress.counts.reasons))
    assert backlog(box) == 1


# Targets


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"topic": "nowhere"}, "not found"),
        ({"target": "nowhere"}, "not found"),
        ({"target": DLQ}, "the source topic"),
        ({"subscription": "nobody"}, "nobody not found"),
        ({"kind": "dlq-eat"}, "kind must be one of"),
        ({"filter": "1 +"}, "invalid expression"),
        ({"filter": 'matches(key, "(?=a)")'}, "filter"),
        ({"rate": -1}, "rate must be a number"),
        ({"nonsense": 1}, "Unknown field 'nonsense'"),
        ({"kind": "dlq-drop", "target": "t"}, "drops messages"),
        ({"edit": {"payload": "a", "payloadBase64": "YQ=="}}, "not both"),
        ({"edit": {"payloadBase64": "?"}}, "not valid Base64"),
        ({"edit": {"size": 3}}, "of edit; fields"),
        ({"target": "non-persistent://public/default/x"}, "stores no messages"),
    ],
)
def test_what_cannot_be_asked_for(asked: dict[str, Any], says: str) -> None:
    box = Box()
    dead_letter_topic(box, b"0")
    with pytest.raises(PulsarBoxError, match=says.replace("(", r"\(")):
        create(box, **asked)


def test_of_several_subscriptions_one_is_to_be_named() -> None:
    box = Box()
    dead_letter_topic(box, b"0").subscribe("two", consumer_id=4, topic=DLQ)
    with pytest.raises(PulsarBoxError, match="choose one"):
        create(box)
    job = run(box, subscription=SUB)
    assert job.state == "done"
    assert backlog(box, "two") == 1


def test_a_missing_topic_pauses_the_job_and_loses_nothing() -> None:
    box = Box()
    client = dead_letter_topic(box, b"0")
    client.send(5, b"lost", properties=pairs(told(OTHER)))
    client.send(6, b"2", properties=pairs(told()))
    job = run(box)
    assert (job.state, counted(job)) == ("paused", (1, 1, 0, 0))
    assert "other does not exist" in job.error
    assert backlog(box) == 2
    client.producer(7, OTHER)
    box.broker.jobs.resume(job, box.now)
    box.advance(5)
    assert (job.state, bodies(box, OTHER), bodies(box), backlog(box)) == ("done", [b"lost"], [b"0", b"2"], 0)


def test_what_a_topic_refuses_may_be_passed_by() -> None:
    box = Box()
    client = dead_letter_topic(box, b"0")
    client.send(5, b"lost", properties=pairs(told(OTHER)))
    client.send(6, b"2", properties=pairs(told()))
    job = run(box, skipRefused=True)
    assert (job.state, counted(job)) == ("done", (3, 2, 0, 1))
    assert left(box) == [b"lost"]


def test_a_terminated_topic_pauses_the_job() -> None:
    box = Box()
    dead_letter_topic(box, b"0")
    topic_of(box, TOPIC).termination.begin(lambda *_: None, lambda *_: None, box.now)
    box.turn()
    job = run(box)
    assert (job.state, backlog(box)) == ("paused", 1)
    assert "terminated" in job.error


def test_a_full_backlog_pauses_the_job() -> None:
    box = Box(backlogQuotaDefaultLimitBytes=50, backlogQuotaDefaultRetentionPolicy="producer_exception")
    dead_letter_topic(box, b"0")
    client = box.client()
    client.subscribe("slow", topic=TOPIC)
    client.producer(3, TOPIC)
    client.send(0, b"x" * 100, 3)
    box.advance(1)
    job = run(box)
    assert (job.state, "quota" in job.error) == ("paused", True)
    assert topic_of(box).subscriptions[SUB].cursor.backlog_messages == 1
