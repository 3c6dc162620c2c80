"""Copies in an ensemble of data directories: what batches ask for, and what waits for how many copies."""

from typing import Any

from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.storage.ensemble.member import MemberState
from tests.unit.broker.persistence.ensemble_box import EnsembleBox
from tests.unit.broker.playbook import Box, Client

ONE = "persistent://public/default/one"
TWO = "persistent://public/default/two"
THREE = "persistent://public/default/three"


def box_of(**settings: Any) -> tuple[EnsembleBox, Client]:
    """A box with three directories and a topic for each ack quorum; the test completes the commits."""
    box = EnsembleBox(3, **settings)
    for quorum, topic in enumerate((ONE, TWO, THREE), 1):
        box.persist(topic, 3, max(2, quorum), quorum)
    client = box.client()
    for producer_id, topic in enumerate((ONE, TWO, THREE), 1):
        client.producer(producer_id, topic, producer_name=f"p{producer_id}")
    box.pause()
    return box, client


def confirmed(box: Box, topic: str) -> int:
    found = box.broker.topics.persistent(topic, box.now)
    assert found is not None
    return found.ledger.confirmed_entries


def receipts(client: Client) -> list[tuple[int, int]]:
    """Consume all frames, which must be receipts, and return their producers and sequence IDs."""
    found = []
    while client.inbox:
        receipt = client.take("send_receipt")
        found.append((receipt.producer_id, receipt.sequence_id))
    return found


def kinds(box: Box) -> list[str]:
    return [event.kind for event in box.broker.events.after(0, 10_000)]


# Numbers of copies in a batch


def test_a_box_with_one_directory_asks_for_nothing() -> None:
    box = Box(auto=False)
    assert box.broker.commits.replication is None
    batch = box.broker.take_batch(box.now)
    assert batch is not None and (batch.ensemble, batch.write_quorum, batch.ack_quorum) == (1, 1, 1)
    assert batch.value()[1] == 0


def test_a_batch_asks_for_the_copies_of_its_topics() -> None:
    box, client = box_of()
    client.send(0, producer_id=2)
    batch = box.take()
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (3, 2, 2, 1)  # a new ledger
    box.landed(batch)
    client.send(1, producer_id=2)
    batch = box.take()
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (3, 2, 2, 2)
    box.landed(batch)
    client.send(2, producer_id=2)
    client.send(0, producer_id=3)
    batch = box.take()
    assert (batch.write_quorum, batch.ack_quorum) == (3, 3)


def test_metadata_asks_for_the_default_of_the_box() -> None:
    box = EnsembleBox(
        3,
        managedLedgerDefaultEnsembleSize=3,
        managedLedgerDefaultWriteQuorum=3,
        managedLedgerDefaultAckQuorum=2,
    )
    box.pause()
    box.broker.commits.put_row("x", {})
    batch = box.take()
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (3, 3, 2, 2)


def test_the_ensemble_is_cut_to_the_directories() -> None:
    box = EnsembleBox(2)
    box.persist(ONE, 5, 2, 2)
    client = box.client()
    client.producer(1, ONE)
    box.pause()
    client.send(0)
    assert box.take().ensemble == 2


def test_a_changed_policy_applies_to_the_next_batch() -> None:
    box, client = box_of()
    client.send(0, producer_id=1)
    box.landed(box.take())
    box.persist(ONE, 3, 3, 3)
    box.landed(box.take())
    client.send(1, producer_id=1)
    assert box.take().ack_quorum == 3


def test_a_topic_without_its_own_policy_has_the_default_of_the_box() -> None:
    box = EnsembleBox(
        2, managedLedgerDefaultEnsembleSize=2, managedLedgerDefaultWriteQuorum=2, managedLedgerDefaultAckQuorum=2
    )
    client = box.client()
    client.producer(1, ONE)
    box.pause()
    client.send(0)
    assert box.take().ack_quorum == 2


# Receipts and confirmed entries


def test_receipts_wait_for_the_ack_quorum_of_their_own_topic() -> None:
    box, client = box_of()
    for producer_id in (3, 1, 2, 1, 3):
        client.send(client.cnx.producers[producer_id].pending, producer_id=producer_id)
    batch = box.take()
    box.copied(batch, 1)
    assert receipts(client) == [(1, 0), (1, 1)]
    assert [confirmed(box, topic) for topic in (ONE, TWO, THREE)] == [2, 0, 0]
    box.copied(batch, 2)
    assert receipts(client) == [(2, 0)]
    assert [confirmed(box, topic) for topic in (ONE, TWO, THREE)] == [2, 1, 0]
    box.landed(batch)
    assert receipts(client) == [(3, 0), (3, 1)]
    assert [confirmed(box, topic) for topic in (ONE, TWO, THREE)] == [2, 1, 2]


def test_copies_of_a_completed_commit_are_ignored() -> None:
    box, client = box_of()
    client.send(0, producer_id=2)
    batch = box.take()
    box.landed(batch)
    assert receipts(client) == [(2, 0)]
    client.send(1, producer_id=2)
    box.copied(batch, 2)
    following = box.take()
    box.copied(batch, 2)
    assert receipts(client) == []
    box.landed(following)
    assert receipts(client) == [(2, 1)]


def test_a_message_is_dispatched_once_its_own_quorum_is_reached() -> None:
    box, client = box_of()
    box.auto = True
    reader = box.client()
    reader.subscribe(topic=TWO)
    reader.flow(10)
    box.pause()
    client.send(0, producer_id=2)
    client.send(0, producer_id=3)
    batch = box.take()
    box.copied(batch, 1)
    assert reader.received() == []
    box.copied(batch, 2)
    assert len(reader.received()) == 1


def test_an_ack_receipt_waits_for_the_default_of_the_box_only() -> None:
    box, client = box_of()
    box.auto = True
    reader = box.client()
    reader.subscribe(topic=ONE)
    reader.flow(10)
    client.send(0, producer_id=1)
    position = reader.received()[0]
    box.pause()
    client.inbox.clear()
    client.send(0, producer_id=3)
    reader.ack(position)
    box.time += 1
    batch = box.take()
    assert not reader.inbox
    box.copied(batch, 1)
    assert reader.names() == ["ackResponse"]
    assert receipts(client) == []


def test_a_duplicate_waits_for_its_turn() -> None:
    box, client = box_of(brokerDeduplicationEnabled=True)
    client.send(0, producer_id=2, producer_name="p2")
    box.landed(box.take())
    client.send(1, producer_id=2, producer_name="p2")
    client.send(0, producer_id=2, producer_name="p2")  # a duplicate
    client.inbox.clear()
    batch = box.take()
    box.copied(batch, 1)
    assert receipts(client) == []
    box.copied(batch, 2)
    assert receipts(client) == [(2, 1), (2, 0)]


def test_a_message_is_no_duplicate_before_its_own_quorum_is_reached() -> None:
    box, client = box_of(brokerDeduplicationEnabled=True)
    client.send(7, producer_id=2, producer_name="p2")
    batch = box.take()
    box.copied(batch, 1)
    topic = box.broker.topics.persistent(TWO, box.now)
    assert topic is not None and topic.last_sequence_id("p2") == -1
    box.copied(batch, 2)
    assert topic.last_sequence_id("p2") == 7


# Too few copies


def test_too_few_copies_release_what_needs_no_more_and_refuse_the_rest() -> None:
    box, client = box_of()
    for producer_id in (1, 2, 3):
        client.send(0, producer_id=producer_id)
    batch = box.take()
    box.fell_short(batch, 1)
    assert [client.take("send_receipt").producer_id] == [1]
    errors = [client.take("send_error") for _ in range(2)]
    assert [each.producer_id for each in errors] == [2, 3]
    assert {each.error for each in errors} == {ServerError.PersistenceError}
    assert "/d1 is lost" in errors[0].message
    assert client.names() == ["close_producer", "close_producer"]
    assert "too-few-copies" in kinds(box)


def test_entries_with_too_few_copies_stay_and_are_as_after_a_restart() -> None:
    box, client = box_of(brokerDeduplicationEnabled=True)
    client.send(5, producer_id=3, producer_name="p3")
    box.fell_short(box.take(), 1)
    topic = box.broker.topics.persistent(THREE, box.now)
    assert topic is not None
    assert (topic.ledger.confirmed_entries, topic.last_sequence_id("p3")) == (1, 5)
    again = box.restart()
    assert confirmed(again, THREE) == 1


def test_a_duplicate_gets_no_receipt_before_the_first_attempt_has_its_copies() -> None:
    box, client = box_of(brokerDeduplicationEnabled=True)
    client.send(5, producer_id=3, producer_name="p3")
    box.fell_short(box.take(), 1)
    box.auto = True
    ledger = topic_ledger(box, THREE)
    box.bookies.held = {"/d0": {ledger: [(0, 1)]}}
    client.inbox.clear()
    for attempt in range(2):
        client.producer(20 + attempt, THREE, producer_name="p3")
        client.send(5, producer_id=20 + attempt, producer_name="p3")
        error = client.take("send_error")
        assert "too few copies are still being copied" in error.message
        client.request("close_producer", producer_id=20 + attempt)
        client.inbox.clear()
    box.bookies.held = {name: {ledger: [(0, 1), (1, 2)]} for name in ("/d0", "/d1", "/d2")}
    client.producer(22, THREE, producer_name="p3")
    client.send(5, producer_id=22, producer_name="p3")
    client.request("close_producer", producer_id=22)
    client.inbox.clear()
    client.producer(23, THREE, producer_name="p3")
    client.send(5, producer_id=23, producer_name="p3")
    assert receipts(client) == [(23, 5)]
    assert confirmed(box, THREE) == 1


def topic_ledger(box: Box, name: str) -> int:
    found = box.broker.topics.persistent(name, box.now)
    assert found is not None
    return found.ledger.current.ledger_id


def test_later_messages_of_a_refused_producer_are_refused_too() -> None:
    box, client = box_of()
    client.send(0, producer_id=3)
    batch = box.take()
    client.send(1, producer_id=3)
    client.send(0, producer_id=1)
    box.fell_short(batch, 1)
    assert [client.take("send_error").sequence_id for _ in range(2)] == [0, 1]
    assert client.names() == ["close_producer"]
    box.landed(box.take())
    assert receipts(client) == [(1, 0)]


def test_a_checkpoint_of_a_batch_with_too_few_copies_is_complete() -> None:
    box, client = box_of()
    box.broker.commits.ask_checkpoint()
    client.send(0, producer_id=3)
    client.send(0, producer_id=1)
    box.fell_short(box.take(), 1)
    assert box.chore()
    again = box.restart()
    assert [confirmed(again, topic) for topic in (ONE, THREE)] == [1, 1]


def test_a_failure_after_an_early_release_loses_no_released_message() -> None:
    box, client = box_of()
    client.send(0, producer_id=1)
    client.send(0, producer_id=3)
    batch = box.take()
    box.copied(batch, 1)
    assert receipts(client) == [(1, 0)]
    box.failed(batch)
    assert client.take("send_error").producer_id == 3
    assert confirmed(box, ONE) == 1


def test_a_failed_batch_stores_nothing_and_metadata_asks_again_for_what_is_writable() -> None:
    box = EnsembleBox(
        2, managedLedgerDefaultEnsembleSize=2, managedLedgerDefaultWriteQuorum=2, managedLedgerDefaultAckQuorum=2
    )
    client = box.client()
    client.producer(1, ONE)
    box.pause()
    client.send(0)
    batch = box.take()
    assert batch.ack_quorum_min == 2
    box.bookies.writable = 1
    box.failed(batch)
    assert client.names() == ["send_error", "close_producer"]
    box.time += 1
    again = box.take()
    assert (again.position, again.ack_quorum) == (batch.position, 1)
    box.landed(again)
    assert confirmed(box, ONE) == 0
    assert kinds(box).count("too-few-copies") == 1


# Refusals


def test_publishing_is_refused_while_too_few_directories_can_be_written() -> None:
    box, client = box_of()
    box.auto = True
    box.bookies.writable = 1
    client.send(0, producer_id=2)
    error = client.take("send_error")
    assert error.error == ServerError.PersistenceError
    assert "NotEnoughBookies" in error.message
    assert "waits for 2 copies (bookkeeperAckQuorum), 1 of 3 data directories can be written" in error.message
    assert client.names() == ["close_producer"]
    client.send(0, producer_id=1)
    assert receipts(client) == [(1, 0)]
    box.bookies.writable = 2
    client.producer(12, TWO, producer_name="again")
    client.send(0, producer_id=12)
    assert receipts(client) == [(12, 0)]


def test_a_producer_is_refused_as_in_pulsar_if_there_are_too_few_directories() -> None:
    box = EnsembleBox(2)
    box.persist(ONE, 3, 3, 1)
    error = box.client().producer(1, ONE)
    assert error.error == ServerError.UnknownError
    assert "asks for 3 copies (bookkeeperWriteQuorum), the box has 2 data directories" in error.message


def test_a_lost_directory_refuses_no_topic_that_has_enough_acknowledged_copies() -> None:
    box = EnsembleBox(2)
    box.persist(ONE, 2, 2, 1)
    box.bookies.writable, box.bookies.states[1] = 1, MemberState.LOST
    client = box.client()
    assert client.producer(1, ONE).producer_name
    client.send(0)
    assert receipts(client) == [(1, 0)]


def test_a_removed_directory_counts_no_longer() -> None:
    box = EnsembleBox(2)
    box.persist(ONE, 2, 2, 2)
    client = box.client()
    client.producer(1, ONE)
    box.bookies.writable, box.bookies.states[1] = 1, MemberState.LEAVING
    client.send(0)
    assert "the box has 1 data directory" in client.take("send_error").message


def test_an_added_directory_counts_at_once() -> None:
    box = EnsembleBox(2)
    box.persist(ONE, 3, 3, 2)
    assert box.client().producer(1, ONE).error == ServerError.UnknownError
    box.bookies.states.append(MemberState.JOINING)
    assert box.client().producer(1, ONE).producer_name


def test_internal_publishers_are_refused_too() -> None:
    box, _ = box_of()
    box.bookies.writable = 1
    topic = box.broker.topics.persistent(str(parse_topic(TWO)), box.now)
    assert topic is not None and "NotEnoughBookies" in (topic.room.refusal or "")
