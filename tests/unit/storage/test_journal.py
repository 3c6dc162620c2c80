"""The open batch: the copies that its parts ask for."""

from pulsarbox.storage.format import BATCH_HEADER
from pulsarbox.storage.journal import Batch


def test_batch_asks_for_one_copy_by_default() -> None:
    batch = Batch(1)
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (1, 1, 1, 1)
    assert BATCH_HEADER.unpack_from(batch.value())[1] == 0  # as in directories from before


def test_batch_has_the_highest_numbers_of_its_parts_and_the_lowest_ack_quorum() -> None:
    batch = Batch(1)
    batch.ask(3, 2, 2)
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (3, 2, 2, 2)
    batch.ask(4, 3, 3)
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (4, 3, 3, 2)
    batch.ask(1, 1, 1)
    assert (batch.ensemble, batch.write_quorum, batch.ack_quorum, batch.ack_quorum_min) == (4, 3, 3, 1)


def test_batch_stores_its_lowest_ack_quorum() -> None:
    batch = Batch(1)
    batch.ask(3, 3, 3)
    batch.ask(3, 3, 2)
    assert BATCH_HEADER.unpack_from(batch.value())[1] == 2
