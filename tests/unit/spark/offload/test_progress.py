"""The progress of a ledger: bytes in proportion to its messages, and all of them at its end."""

from pulsarbox.spark.offload.progress import LedgerProgress, Unreported
from pulsarbox.spark.topic_segments import TopicSegment


class Counted(Unreported):
    def __init__(self) -> None:
        self.size = 0.0
        self.messages = 0

    def add(self, size: float, messages: int = 0) -> None:
        self.size += size
        self.messages += messages


def test_rows_count_as_their_share_of_the_bytes() -> None:
    counted = Counted()
    ledger = LedgerProgress(counted, TopicSegment("t", 1, 0, 9, messages=100, bytes=1000))
    ledger.add(30)
    assert (counted.size, counted.messages) == (300, 30)
    ledger.add(90)  # more than the box counted
    assert counted.size == 1000
    ledger.end()
    assert (counted.size, counted.messages) == (1000, 120)


def test_a_ledger_without_messages_counts_at_its_end() -> None:
    counted = Counted()
    ledger = LedgerProgress(counted, TopicSegment("t", 1, 0, 9, messages=0, bytes=50))
    ledger.end()
    assert (counted.size, counted.messages) == (50, 0)
