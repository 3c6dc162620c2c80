"""Deduplication of chunked messages, complete and interrupted."""

import pytest

from pulsarbox.broker.topic import deduplication
from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from tests.unit.broker.deduplicating import dedup_box, opened, said, stored, switch, take
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.policies.kept import topic_of

NOWHERE = (2**64 - 1, 2**64 - 1)
MINUTE = 60


def send_chunks(client: Client, sequence_id: int, *numbers: int, of: int = 3, text: bytes = b"chunk") -> None:
    """Publish several chunks of a message, each with its own body."""
    for number in numbers:
        client.send(
            sequence_id, text + b"%d" % number, chunk_id=number, num_chunks_from_msg=of, uuid=f"p-{sequence_id}",
            total_chunk_msg_size=len(text) + of,
        )  # fmt: skip


def test_of_a_chunked_message_that_was_stored_each_chunk_is_a_duplicate() -> None:
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 9, 0, 1, 2)
    send_chunks(client, 9, 0, 1, 2)
    assert said(client) == ["stored"] * 3 + ["duplicate"] * 3
    assert stored(box) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("way", ["connection", "crash", "checkpoint", "unload"])
def test_a_chunked_message_that_was_cut_off_goes_on_where_it_was(way: str) -> None:
    box = dedup_box(brokerUnloadIdleTopicsAfterSeconds=10)
    client, _ = opened(box)
    client.send(8, b"a")
    send_chunks(client, 9, 0, 1)
    if way == "checkpoint":
        box.broker.commits.ask_checkpoint()
        box.turn()
    client.cnx.closed(box.now)
    if way == "unload":
        box.advance(15)
        assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    elif way != "connection":
        box = box.restart()
    client, last = opened(box)
    assert last == 8
    send_chunks(client, 9, 0, 1, 2)
    client.send(10, b"b")
    assert said(client) == ["duplicate", "duplicate", "stored", "stored"]
    assert stored(box) == [b"a", b"0", b"1", b"2", b"b"]
    assert opened(box.restart())[1] == 10


def test_the_first_message_of_a_producer_may_be_cut_off_too() -> None:
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 0, 0)
    box = box.restart()
    client, last = opened(box)
    assert last == -1
    send_chunks(client, 0, 0, 1, 2)
    assert said(client) == ["duplicate", "stored", "stored"]
    assert opened(box.restart())[1] == 0


def test_a_client_that_has_receipts_for_some_chunks_sends_the_others() -> None:
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 9, 0, 1, 1, 2)
    assert said(client) == ["stored", "stored", "duplicate", "stored"]


def test_another_attempt_is_stored_from_its_beginning() -> None:
    """A second attempt has other bytes, or starts after consumers have discarded the first one."""
    box = dedup_box(keepAliveIntervalSeconds=10_000)
    client, _ = opened(box)
    send_chunks(client, 9, 0, 1, text=b"first")
    send_chunks(client, 9, 0, 0, 1, text=b"second")
    box.advance(31)
    send_chunks(client, 9, 0, 0, 1, 2, text=b"second")
    assert said(client) == [
        "stored",
        "stored",
        "stored",
        "duplicate",
        "stored",
        "stored",
        "duplicate",
        "stored",
        "stored",
    ]


def test_a_message_in_between_does_not_make_chunks_new() -> None:
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 9, 0, 1)
    client.send(8, b"a")
    send_chunks(client, 9, 1, 2)
    assert said(client) == ["stored", "stored", "stored", "duplicate", "stored"]


def test_a_message_beyond_gives_up_the_one_that_was_begun() -> None:
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 9, 0, 1)
    client.send(10, b"a")
    send_chunks(client, 9, 2)
    assert said(client) == ["stored"] * 3 + ["duplicate"]
    assert topic_of(box).stored.sequences.begun_persisted("p") is None


def test_chunks_without_a_beginning_are_stored_and_not_known() -> None:
    box = Box()
    client, _ = opened(box)
    send_chunks(client, 9, 0)
    switch(box, on=True)
    send_chunks(client, 9, 1, 1, 2, 2)
    assert said(client) == ["stored"] * 4 + ["duplicate"]


def test_of_a_message_with_too_many_chunks_they_are_not_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deduplication, "MAX_CHUNKS", 3)
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 9, 0, 1, 2, 2, 3, 3, 4, 4, of=5)
    assert said(client) == ["stored", "stored", "stored", "duplicate", "stored", "stored", "stored", "duplicate"]


def test_a_chunk_that_is_on_its_way_may_be_a_duplicate_or_not() -> None:
    box = dedup_box()
    client, _ = opened(box)
    box.auto = False
    send_chunks(client, 9, 0, 0)
    assert client.take("send_error").sequence_id == 9
    send_chunks(client, 9, 1, of=2)
    send_chunks(client, 9, 0, of=2)
    assert client.take("send_error").sequence_id == 9
    box.commit()
    assert said(client) == ["stored", "stored"]


def test_a_failed_commit_takes_its_chunks_back() -> None:
    box = dedup_box()
    client, _ = opened(box)
    send_chunks(client, 9, 0)
    client.take("send_receipt")
    box.auto = False
    send_chunks(client, 9, 1)
    batch = take(box)
    send_chunks(client, 9, 2)
    box.broker.committed(batch, box.now, PersistenceError("no space left"))
    box.flush()
    assert client.names() == ["send_error", "send_error", "close_producer"]
    box.auto = True
    box.advance(1)
    assert client.producer(1, producer_name="p").last_sequence_id == -1
    send_chunks(client, 9, 0, 1, 2)
    assert said(client) == ["duplicate", "stored", "stored"]
    assert stored(box) == [b"0", b"1", b"2"]
