"""Partially acknowledged batches."""

import pytest

from pulsarbox.server.websocket import partial_batches
from pulsarbox.server.websocket.partial_batches import BATCH_MAX, PartialBatches


def test_messages_are_acknowledged_one_by_one() -> None:
    batches = PartialBatches()
    assert batches.acknowledge((1, 0), 1, 3) == 0b101
    assert batches.acknowledge((1, 1), 0, 2) == 0b10
    assert batches.acknowledge((1, 0), 0, 3) == 0b100
    assert batches.acknowledge((1, 0), 2, 3) == 0
    assert len(batches) == 1
    batches.clear()
    assert batches.acknowledge((1, 1), 1, 2) == 0b01


def test_a_batch_keeps_the_size_that_was_claimed_first() -> None:
    batches = PartialBatches()
    batches.acknowledge((1, 0), 0, 2)
    assert batches.acknowledge((1, 0), 500, 1000) == 0b10


def test_a_large_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1,000,000 messages"):
        PartialBatches().acknowledge((1, 0), 0, BATCH_MAX + 1)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_batches, "BITS_MAX", 100)
    batches = PartialBatches()
    for entry in range(50):
        batches.acknowledge((1, entry), 0, 10)
    assert len(batches) == 10
    assert batches.acknowledge((1, 0), 1, 10) == 0b1111111101
    assert len(batches) == 10
