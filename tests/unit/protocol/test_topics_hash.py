"""``pulsarbox.protocol.topics_hash``."""

from __future__ import annotations

from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from pulsarbox.protocol.topics_hash import topics_hash
from tests.unit.protocol.strategies import captured


def test_the_hash_the_real_broker_sent() -> None:
    replies = [
        BaseCommand.FromString(FrameDecoder(100_000).feed(row.frame)[0][0]).getTopicsOfNamespaceResponse
        for row in captured()
        if row.type == "GET_TOPICS_OF_NAMESPACE_RESPONSE"
    ]
    assert replies
    for reply in replies:
        assert topics_hash(reply.topics) == reply.topics_hash


def test_no_topics() -> None:
    assert topics_hash([]) == "00000000"


def test_order_does_not_matter_and_is_javas() -> None:
    assert topics_hash(["b", "a"]) == topics_hash(iter(["a", "b"]))
    # U+1F600 is the surrogate pair D83D DE00 in Java, which sorts before U+FF61.
    assert topics_hash(["｡", "\U0001f600"]) == topics_hash(["\U0001f600", "｡"])
