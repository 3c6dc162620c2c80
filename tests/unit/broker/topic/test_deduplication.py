"""Deduplication: ``broker.topic.deduplication``, group commit and ``broker.handlers.produce``."""

from typing import Any

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.wire import codec as codec_of
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.PulsarApi_pb2 import EncryptionKeys, SingleMessageMetadata
from pulsarbox.storage.record import SequenceId
from tests.unit.broker.deduplicating import dedup_box, opened, outcomes, said, sequences_in, stored, switch, take
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.broker.policies.kept import set_topic_policy, topic_of

NOWHERE = (2**64 - 1, 2**64 - 1)
MINUTE = 60


# Duplicates


def test_without_deduplication_nothing_is_recognised_and_nothing_written() -> None:
    box = Box()
    client, last = opened(box)
    assert last == -1
    client.send(5, b"a")
    client.send(5, b"b")
    assert outcomes(client) == [(5, "stored"), (5, "stored")]
    box.auto = False
    client.send(6, b"c")
    assert sequences_in(take(box)) == []


def test_a_duplicate_is_answered_at_once_and_not_stored() -> None:
    box = dedup_box()
    client, last = opened(box)
    assert last == -1
    for sequence_id in (3, 4, 7):
        client.send(sequence_id, b"a")
    assert outcomes(client) == [(3, "stored"), (4, "stored"), (7, "stored")]
    box.auto = False
    for sequence_id in (4, 5, 7):
        client.send(sequence_id, b"b")
    box.flush()
    assert outcomes(client) == [(4, "duplicate"), (5, "duplicate"), (7, "duplicate")]
    assert box.broker.take_batch(box.now) is None
    client.send(8, b"c")
    box.commit()
    assert outcomes(client) == [(8, "stored")]
    box.auto = True
    assert stored(box) == [b"a", b"a", b"a", b"c"]


def test_one_record_a_producer_and_batch() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.producer(2, producer_name="q")
    box.auto = False
    for sequence_id in range(3):
        client.send(sequence_id)
        client.send(10 + sequence_id, producer_id=2)
    found = sequences_in(take(box))
    topic_id = topic_of(box).stored.topic_id
    assert found == [SequenceId(topic_id, "p", 2, box.wall), SequenceId(topic_id, "q", 12, box.wall)]


def test_what_is_on_its_way_may_be_a_duplicate_or_not() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(0)
    client.take("send_receipt")
    box.auto = False
    client.send(1)
    client.send(1)
    error = client.take("send_error")
    assert (error.sequence_id, error.error) == (1, 2)
    assert error.message == "Cannot determine whether the message is a duplicate at this time"
    box.commit()
    assert outcomes(client) == [(1, "stored")]


def test_the_receipt_of_a_duplicate_does_not_overtake() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(5)
    client.take("send_receipt")
    box.auto = False
    client.send(6)
    client.send(4)
    client.send(7)
    box.flush()
    assert client.inbox == []
    box.commit()
    assert outcomes(client) == [(6, "stored"), (4, "duplicate"), (7, "stored")]


def test_a_duplicate_that_waits_for_the_batch_before_it_needs_no_batch_of_its_own() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(5)
    client.take("send_receipt")
    box.auto = False
    client.send(6)
    batch = take(box)
    client.send(4)
    assert client.inbox == []
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    box.flush()
    assert outcomes(client) == [(6, "stored")]
    assert box.broker.take_batch(box.now) is None
    box.flush()
    assert outcomes(client) == [(4, "duplicate")]
    assert box.broker.commits.idle


def test_of_a_batch_the_first_is_compared_and_the_highest_kept() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(0, batch=5, highest=4)
    assert outcomes(client) == [(0, "stored")]
    client.send(4, batch=3, highest=6)
    assert outcomes(client) == [(4, "duplicate")]
    client.send(5, batch=3, highest=7)
    assert outcomes(client) == [(5, "stored")]
    assert opened(box, "other")[1] == -1
    client.cnx.closed(box.now)
    assert opened(box)[1] == 7


def batch_of(*sequence_ids: int | None) -> bytes:
    """Encode a batch with sequence IDs per message, as C++ clients do. None omits the ID, as in Rust clients."""
    singles = [SingleMessageMetadata(payload_size=0) for _ in sequence_ids]
    for single, sequence_id in zip(singles, sequence_ids, strict=True):
        if sequence_id is not None:
            single.sequence_id = sequence_id
    return encode_batch((single, b"x") for single in singles)


@pytest.mark.parametrize("codec", [0, 2, 4])
@pytest.mark.parametrize(
    ("sequence_ids", "highest"), [((4, 5, 6), 6), ((4, 10, 20), 20), ((None, None), 4), ((4, 3, 1), 4)]
)
def test_of_a_batch_whose_client_does_not_tell_it_the_last_one_is_looked_up(
    codec: int, sequence_ids: tuple[int | None, ...], highest: int
) -> None:
    box = dedup_box()
    client, _ = opened(box)
    body = batch_of(*sequence_ids)
    packed = codec_of(codec).compress(body) if codec else body
    client.send(4, packed, batch=len(sequence_ids), compression=codec, uncompressed_size=len(body))
    assert said(client) == ["stored"]
    assert topic_of(box).last_sequence_id("p") == highest


def test_a_batch_that_was_refused_tells_nothing_of_what_comes_instead() -> None:
    box = dedup_box()
    client, _ = opened(box)
    box.auto = False
    client.send(3)
    batch = take(box)
    client.send(4, batch_of(4, 5, 6), batch=3)
    box.broker.committed(batch, box.now, PersistenceError("no space left"))
    box.auto = True
    box.advance(1)
    client.inbox.clear()
    client.producer(1, producer_name="p")
    for sequence_id in (3, 4, 5):
        client.send(sequence_id)
    assert said(client) == ["stored"] * 3
    assert opened(box.restart())[1] == 5


@pytest.mark.parametrize(
    "metadata",
    [{"compression": 1, "uncompressed_size": 9}, {"encryption_keys": [EncryptionKeys(key="k", value=b"v")]}, {}],
)
def test_of_a_batch_that_cannot_be_looked_into_the_first_counts(metadata: dict[str, Any]) -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(4, b"no batch", batch=3, **metadata)
    assert said(client) == ["stored"]
    assert topic_of(box).last_sequence_id("p") == 4


def test_sequence_ids_may_have_gaps() -> None:
    box = dedup_box()
    client, _ = opened(box)
    for sequence_id in (0, 10, 5, 11, 10**15, 12):
        client.send(sequence_id)
    assert said(client) == ["stored", "stored", "duplicate", "stored", "stored", "duplicate"]


def test_each_partition_counts_for_itself() -> None:
    box = dedup_box()
    box.broker.topics.create_partitioned(parse_topic(TOPIC), 2, box.now)
    client = box.client()
    for number in range(2):
        client.producer(number, f"{TOPIC}-partition-{number}", producer_name="p")
    client.send(5, producer_id=0)
    client.send(3, producer_id=1)
    client.send(3, producer_id=0)
    assert said(client) == ["stored", "stored", "duplicate"]
    box = box.restart()
    again = box.client()
    last = [again.producer(number, f"{TOPIC}-partition-{number}", producer_name="p") for number in range(2)]
    assert [reply.last_sequence_id for reply in last] == [5, 3]


def test_sequence_ids_are_signed() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(2**64 - 1)
    client.send(2**63 - 1)
    client.send(2**63 - 2)
    assert said(client) == ["stored", "stored", "duplicate"]


def test_a_message_that_is_refused_was_not_pushed() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(0, num_messages_in_batch=-1)
    assert client.names() == ["send_error"]
    client.send(0)
    assert outcomes(client) == [(0, "stored")]


# Failed commits


def test_a_failed_commit_takes_pushed_back_to_persisted() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(0, b"a")
    client.take("send_receipt")
    box.auto = False
    client.send(1, b"b")
    batch = take(box)
    client.send(2, b"c")
    box.broker.committed(batch, box.now, PersistenceError("no space left"))
    box.flush()
    assert client.names() == ["send_error", "send_error", "close_producer"]
    box.auto = True
    box.advance(1)
    reply = client.producer(1, producer_name="p")
    assert reply.last_sequence_id == 0
    client.send(1, b"d")
    assert outcomes(client) == [(1, "stored")]
    again = box.restart()
    assert opened(again)[1] == 1
    assert stored(again) == [b"a", b"d"]


def test_a_checkpoint_with_a_failed_batch_leaves_no_sequence_id_behind() -> None:
    box = dedup_box()
    client, _ = opened(box)
    box.auto = False
    client.send(1)
    box.broker.commits.ask_checkpoint()
    box.broker.committed(take(box), box.now, PersistenceError("no space left"))
    box.auto = True
    box.advance(1)
    assert box.disk.mark > 0
    assert not [key for key in box.disk.rows if key.startswith(b"sequence/")]
    assert opened(box.restart())[1] == -1


# PRODUCER_SUCCESS


def test_a_reconnecting_producer_is_answered_when_its_messages_have_settled() -> None:
    box = dedup_box()
    client, _ = opened(box)
    box.auto = False
    client.send(0)
    batch = take(box)
    client.send(1)
    client.cnx.closed(box.now)
    again = box.client()
    assert again.producer(1, producer_name="p") is None
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    box.flush()
    assert again.inbox == []
    box.commit()
    assert again.take("producer_success").last_sequence_id == 1
    again.send(1)
    assert outcomes(again) == [(1, "duplicate")]


def test_the_answer_to_a_producer_that_is_there_already_says_the_same() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(6)
    client.take("send_receipt")
    assert client.producer(1, producer_name="p").last_sequence_id == 6


# Retained state


@pytest.mark.parametrize("checkpoint", [False, True])
def test_sequence_ids_survive_a_restart(checkpoint: bool) -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(5)
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
        assert [key for key in box.disk.rows if key.startswith(b"sequence/")]
        client.send(8)
    box = box.restart()
    client, last = opened(box)
    assert last == (8 if checkpoint else 5)
    client.send(last)
    assert outcomes(client) == [(last, "duplicate")]


@pytest.mark.parametrize("restart", [False, True])
def test_sequence_ids_survive_an_unload(restart: bool) -> None:
    box = dedup_box(brokerUnloadIdleTopicsAfterSeconds=10)
    client, _ = opened(box)
    client.send(5)
    client.cnx.closed(box.now)
    box.advance(30)
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    if restart:
        box = box.restart()
    assert opened(box)[1] == 5


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_deleted_topic_takes_its_sequence_ids_along(checkpoint: bool) -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(5)
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    box.auto = False
    client.send(6)
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    box.auto = True
    box.turn()
    assert opened(box)[1] == -1
    for _ in range(2):
        box = box.restart()
        box.broker.commits.ask_checkpoint()
        box.turn()
        assert not [key for key in box.disk.rows if key.startswith(b"sequence/")]


def test_turning_deduplication_off_forgets() -> None:
    box = dedup_box()
    client, _ = opened(box)
    client.send(5)
    off = Box(box.disk)
    assert opened(off)[1] == -1
    assert opened(dedup_box(off.disk))[1] == -1


def test_turning_deduplication_off_forgets_what_is_on_its_way_too() -> None:
    box = dedup_box()
    client, _ = opened(box)
    box.auto = False
    client.send(0)
    batch = take(box)
    client.send(1)
    topic = topic_of(box)
    switch(box, on=False)
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    box.auto = True
    box.turn()
    assert topic.last_sequence_id("p") == -1
    assert opened(dedup_box(box.disk))[1] == -1


def test_it_can_be_turned_on_and_off_while_producers_are_connected() -> None:
    box = Box()
    client, _ = opened(box)
    client.send(5)
    switch(box, on=True)
    client.send(5)  # the previous sequence ID was not recorded
    client.send(5)
    switch(box, on=False)
    client.send(5)
    switch(box, on=True)
    client.send(4)
    client.send(4)
    assert said(client) == ["stored", "stored", "duplicate", "stored", "stored", "duplicate"]
    assert opened(box.restart(), "p")[1] == 4


def test_off_and_on_again_between_two_commits_is_written_once() -> None:
    box = dedup_box()
    client, _ = opened(box)
    box.auto = False
    client.send(5)
    switch(box, on=False)
    switch(box, on=True)
    client.send(3)
    box.commit()
    assert outcomes(client) == [(5, "stored"), (3, "stored")]
    box.auto = True
    client.send(3)
    assert outcomes(client) == [(3, "duplicate")]
    assert opened(box.restart())[1] == 3


def test_the_topic_wins_over_the_namespace_and_that_over_the_broker() -> None:
    box = dedup_box()
    opened(box)
    topic = topic_of(box)
    for namespace, own, wanted in (
        (None, None, True), (False, None, False), (False, True, True), (None, False, False), (True, False, False),
    ):  # fmt: skip
        switch(box, namespace)
        set_topic_policy(box, "deduplicationEnabled", own)
        assert (topic.deduplication is not None) is wanted, (namespace, own)


# Inactive producers


def test_an_inactive_producer_is_forgotten() -> None:
    box = dedup_box(brokerDeduplicationProducerInactivityTimeoutMinutes=5)
    client, _ = opened(box)
    client.send(5)
    client.cnx.closed(box.now)
    box.advance(4 * MINUTE)
    client, last = opened(box)
    assert last == 5
    client.cnx.closed(box.now)
    box.advance(6 * MINUTE)
    client, last = opened(box)
    assert last == -1
    assert opened(box.restart())[1] == -1


def test_a_producer_is_not_inactive_while_it_is_connected() -> None:
    box = dedup_box(brokerDeduplicationProducerInactivityTimeoutMinutes=5, keepAliveIntervalSeconds=10_000)
    client, _ = opened(box)
    client.send(5)
    box.advance(6 * MINUTE)
    opened(box, "other")
    box.advance(6 * MINUTE)
    client.cnx.closed(box.now)
    box.advance(4 * MINUTE)
    assert opened(box)[1] == 5


def test_a_box_that_was_down_forgets_nobody_for_it() -> None:
    box = dedup_box(brokerDeduplicationProducerInactivityTimeoutMinutes=5)
    client, _ = opened(box)
    client.send(5)
    late = dedup_box(box.disk, wall=box.wall + 600_000, brokerDeduplicationProducerInactivityTimeoutMinutes=5)
    assert opened(late)[1] == 5


def test_more_producers_than_may_be_the_longest_inactive_go() -> None:
    box = dedup_box(brokerDeduplicationMaxNumberOfProducers=3)
    stays, _ = opened(box, "stays")
    stays.send(1)
    for name in ("a", "b", "c", "d"):
        client, _ = opened(box, name)
        client.send(2)
        client.cnx.closed(box.now)
        box.advance(1)
    assert list(topic_of(box).stored.sequences.persisted) == ["stays", "c", "d"]
    assert opened(box, "a")[1] == -1
    assert opened(box.restart(), "c")[1] == 2


def test_what_a_client_is_told_of_a_forgotten_producer_is_durable() -> None:
    box = dedup_box(brokerDeduplicationProducerInactivityTimeoutMinutes=5)
    client, _ = opened(box)
    client.send(5)
    client.cnx.closed(box.now)
    box.advance(6 * MINUTE)
    box.auto = False
    again = box.client()
    assert again.producer(1, producer_name="p") is None
    box.broker.committed(take(box), box.now, PersistenceError("no space left"))
    box.flush()
    assert again.inbox == []
    box.auto = True
    box.advance(1)
    assert again.take("producer_success").last_sequence_id == -1
    assert opened(box.restart())[1] == -1
