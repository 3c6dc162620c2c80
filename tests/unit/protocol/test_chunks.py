"""Chunks received interleaved, repeated, duplicated, or incomplete."""

import time
from typing import Any

from pulsarbox.protocol.chunks import Chunking, Chunks
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata


class Reception:
    """Chunks received by a consumer at entries 0, 1, 2, ... of ledger 1, with a stopped clock."""

    def __init__(self, **options: Any) -> None:
        self.chunks = Chunks(Chunking(**options))
        self.now = 1000.0
        self._entry = 0

    def comes(self, uuid: str, index: int, count: int = 2, *, at: int | None = None, age: float = 0.0) -> Any:
        """Receive a chunk at the next entry or at an earlier one; its message was published ``age`` s ago."""
        if at is None:
            at, self._entry = self._entry, self._entry + 1
        metadata = MessageMetadata(
            uuid=uuid, chunk_id=index, num_chunks_from_msg=count, publish_time=int((time.time() - age) * 1000)
        )
        return self.chunks.add(1, at, metadata, f"{uuid}{index}".encode(), self.now, time.time())

    def useless(self) -> list[int]:
        """The entries to acknowledge."""
        return [entry for _, entry in self.chunks.take_useless()]


def test_chunks_of_several_messages_are_mixed() -> None:
    reception = Reception()
    assert reception.comes("a", 0) is None
    assert reception.comes("b", 0, 3) is None
    assert reception.chunks.first == (1, 0)
    assert reception.comes("b", 1, 3) is None
    assert reception.comes("a", 1) == (b"a0a1", [(1, 0), (1, 3)])
    assert reception.chunks.first == (1, 1)
    assert reception.comes("b", 2, 3) == (b"b0b1b2", [(1, 1), (1, 2), (1, 4)])
    assert reception.useless() == []
    assert reception.chunks.first is None


def test_what_is_delivered_again_from_the_first_chunk_is_put_together() -> None:
    reception = Reception()
    reception.comes("a", 0, 3)
    reception.comes("a", 1, 3)
    for index in (0, 1):
        assert reception.comes("a", index, 3, at=index) is None
    assert reception.comes("a", 1, 3, at=1) is None
    assert reception.comes("a", 2, 3) == (b"a0a1a2", [(1, 0), (1, 1), (1, 2)])
    assert reception.useless() == []


def test_an_attempt_that_was_given_up_is_acknowledged() -> None:
    reception = Reception()
    for index in (0, 1, 0, 1):
        reception.comes("a", index, 3)
    assert reception.comes("a", 2, 3) == (b"a0a1a2", [(1, 2), (1, 3), (1, 4)])
    assert reception.useless() == [0, 1]


def test_a_chunk_that_is_stored_twice_is_acknowledged_and_the_message_is_whole() -> None:
    reception = Reception()
    for index in (0, 1, 1):
        reception.comes("a", index, 3)
    assert reception.comes("a", 2, 3) == (b"a0a1a2", [(1, 0), (1, 1), (1, 3)])
    assert reception.useless() == [2]


def test_chunks_without_a_beginning_wait_for_it_a_minute() -> None:
    reception = Reception()
    assert reception.comes("a", 1) is None
    assert reception.useless() == []
    assert reception.comes("a", 1, age=70) is None
    assert reception.useless() == [1]


def test_one_that_is_missing_makes_no_message() -> None:
    reception = Reception()
    reception.comes("a", 0, 3)
    assert reception.comes("a", 2, 3) is None
    assert reception.useless() == []


def test_beyond_the_limit_the_oldest_is_given_up() -> None:
    reception = Reception(most=2)
    for uuid in ("a", "b", "c"):
        reception.comes(uuid, 0)
    assert reception.comes("a", 1) is None
    assert reception.useless() == []
    assert reception.comes("b", 1) is not None
    assert reception.comes("c", 1) is not None


def test_the_oldest_can_be_acknowledged_with_it() -> None:
    reception = Reception(most=1, acknowledge_oldest=True)
    reception.comes("a", 0, 3)
    reception.comes("a", 1, 3)
    reception.comes("b", 0)
    assert reception.useless() == [0, 1]


def test_what_stays_incomplete_for_too_long_is_given_up() -> None:
    reception = Reception(seconds=10.0)
    reception.comes("a", 0)
    reception.now += 5
    reception.comes("b", 0)
    reception.chunks.expire(1009.9)
    assert reception.useless() == []
    reception.chunks.expire(1010.0)
    assert reception.useless() == [0]
    reception.now = 1012.0
    assert reception.comes("b", 1) is not None


def test_an_endless_message_is_given_up() -> None:
    reception = Reception(size=3)
    reception.comes("a", 0)
    assert reception.comes("a", 1) is None
    assert reception.chunks.first is None
