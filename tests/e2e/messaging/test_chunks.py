"""Chunked messages: interleaved, interrupted, resent; read by both clients and the commands."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from pulsarbox import PulsarBox
from pulsarbox.client.client import Client
from pulsarbox.client.multi_topic_consumer import TYPES, MultiTopicConsumer, Subscribing
from pulsarbox.client.places import EARLIEST, Start
from pulsarbox.protocol.chunks import Chunking
from tests.e2e.clients import admin_path, connect, read_to_end, receive, take, until
from tests.e2e.commands import run
from tests.e2e.conftest import Running
from tests.e2e.raw import RawProducer

SECONDS = 20.0


@pytest.fixture
def ours(box: Running) -> Iterator[Client]:
    """Return our own client."""
    host, _, port = box.url.removeprefix("pulsar://").partition(":")
    client = Client([(host, int(port))])
    yield client
    client.close()


def consuming(client: Client, topic: str, kind: str = "exclusive", **options: Any) -> MultiTopicConsumer:
    consumer = MultiTopicConsumer(client, Subscribing("s", TYPES[kind], **options))
    consumer.add(topic)
    return consumer


def reading(client: Client, topic: str) -> MultiTopicConsumer:
    consumer = MultiTopicConsumer(client, Subscribing("r", durable=False, start=Start(EARLIEST)))
    consumer.add(topic)
    return consumer


def got(consumer: MultiTopicConsumer, count: int) -> list[Any]:
    """Return the next messages; fail on timeout."""
    found: list[Any] = []
    while len(found) < count:
        messages = consumer.take(100, SECONDS)
        assert messages, f"{len(found)} of {count} came"
        found += messages
    return found


def payloads(messages: list[Any]) -> list[bytes]:
    return [each.payload for each in messages]


def backlog(box: Running, topic: str) -> int:
    stats = json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))
    return int(stats["subscriptions"]["s"]["msgBacklog"])


def mix(box: Running, topic: str) -> None:
    """Publish interleaved chunks of two producers' messages, and a third, incomplete message."""
    with RawProducer(box.url, topic, "a") as a, RawProducer(box.url, topic, "b") as b:
        a.chunk(0, 0, 3, b"a0")
        b.chunk(0, 0, 2, b"b0")
        a.chunk(0, 1, 3, b"a1")
        b.chunk(1, 0, 2, b"c0")
        b.chunk(0, 1, 2, b"b1")
        a.chunk(0, 2, 3, b"a2")


def test_mixed_chunks_are_put_together(box: Running, client: Any, ours: Client, topic: str) -> None:
    official = client.subscribe(topic, "official")
    mix(box, topic)
    whole = [b"b0b1", b"a0a1a2"]
    assert take(official, 2) == whole
    assert payloads(got(reading(ours, topic), 2)) == whole
    for words in (
        ("peek", topic, "-o", "lines"),
        ("consume", topic, "--until", "end"),
        ("consume", topic, "-s", "s", "-n", "2"),
    ):
        assert run(*words, "--url", box.url).stdout == b"b0b1\na0a1a2\n"


def test_a_chunk_that_is_shown_by_itself_says_that_it_is_one(box: Running, client: Any, topic: str) -> None:
    client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest).close()
    mix(box, topic)
    shown = run("admin", "topics", "peek-messages", topic, "-s", "s", "-n", "3", "--admin-url", box.web_url).stdout
    chunks = [line.partition(" of message ")[0] for line in shown.decode().splitlines() if line.startswith("Chunk")]
    assert chunks == ["Chunk: 1 of 3", "Chunk: 1 of 2", "Chunk: 2 of 3"]


def test_chunks_that_are_left_out_are_named(box: Running, topic: str) -> None:
    mix(box, topic)
    ledger = json.loads(run("peek", topic, "-o", "ndjson", "-n", "1", "--url", box.url).stdout)["id"].partition(":")[0]
    last = run("peek", topic, "-o", "lines", "--from", f"{ledger}:4", "--url", box.url)
    assert last.stdout == b""
    assert named(last.stderr) == [
        "chunk 2 of 2 of a message: its first chunk is before the start",
        "chunk 3 of 3 of a message: its first chunk is before the start",
    ]
    whole = run("peek", topic, "-o", "lines", "--url", box.url)
    assert whole.stdout == b"b0b1\na0a1a2\n"
    assert named(whole.stderr) == ["chunk 1 of 2 of a message: its next chunk is after the end"]


def named(stderr: bytes) -> list[str]:
    return [line.partition(", ")[2] for line in stderr.decode().splitlines()]


def test_over_http_each_chunk_is_shown_by_itself(box: Running, topic: str) -> None:
    """Chunks are separate messages, as in Pulsar; headers contain the index and the number of chunks."""
    mix(box, topic)
    shown = []
    for number in range(1, 4):
        query = f"examinemessage?initialPosition=earliest&messagePosition={number}"
        with urllib.request.urlopen(f"{box.web_url}/admin/v2/{admin_path(topic)}/{query}", timeout=SECONDS) as answer:
            headers = [answer.headers[f"X-Pulsar-PROPERTY-{name}"] for name in ("CHUNK-ID", "TOTAL-CHUNKS")]
            shown.append((answer.read(), *headers))
    assert shown == [(b"a0", "0", "3"), (b"b0", "0", "2"), (b"a1", "1", "3")]


def test_what_is_not_complete_is_not_acknowledged_with_what_comes_after_it(
    box: Running, ours: Client, topic: str
) -> None:
    mix(box, topic)
    assert run("consume", topic, "-s", "s", "-n", "2", "--url", box.url).stdout == b"b0b1\na0a1a2\n"
    assert backlog(box, topic) == 1
    with RawProducer(box.url, topic, "b") as b:
        b.chunk(1, 1, 2, b"c1")
    assert run("consume", topic, "-s", "s", "-n", "1", "--url", box.url).stdout == b"c0c1\n"
    assert backlog(box, topic) == 0


@pytest.mark.parametrize("kind", ["exclusive", "shared", "failover", "key_shared"])
def test_a_message_that_is_given_back_comes_again_as_a_whole(box: Running, ours: Client, topic: str, kind: str) -> None:
    consumer = consuming(ours, topic, kind)
    mix(box, topic)
    assert payloads(got(consumer, 2)) == [b"b0b1", b"a0a1a2"]
    with RawProducer(box.url, topic, "c") as c:
        c.chunk(0, 0, 2, b"d0")
        c.chunk(0, 1, 2, b"d1")
    messages = got(consumer, 1)
    consumer.give_back(messages)
    again = got(consumer, 1 if "shared" in kind else 3)
    assert (again[-1].payload, again[-1].entry.redelivery) == (b"d0d1", 1 if "shared" in kind else 0)
    consumer.acknowledge(again)
    consumer.settle()
    assert backlog(box, topic) == (5 + 1 if "shared" in kind else 1)


def test_a_reader_that_comes_back_in_the_middle_misses_nothing(box: Running, ours: Client, topic: str) -> None:
    mix(box, topic)
    consumer = reading(ours, topic)
    assert payloads(got(consumer, 2)) == [b"b0b1", b"a0a1a2"]
    box.admin("PUT", f"{admin_path(topic)}/unload")
    with RawProducer(box.url, topic, "b") as b:
        b.chunk(1, 1, 2, b"c1")
    assert payloads(got(consumer, 1)) == [b"c0c1"]


def test_what_was_begun_anew_and_what_never_ends_leaves_the_backlog(box: Running, ours: Client, topic: str) -> None:
    consumer = consuming(ours, topic, chunking=Chunking(seconds=0.05))
    with RawProducer(box.url, topic, "a") as a:
        for index in (0, 1, 0, 1):
            a.chunk(0, index, 3, b"x")
    assert consumer.take(10, 1.0) == []
    until(lambda: consumer.take(10, 0.1) == [] and backlog(box, topic) == 0)


def test_beyond_the_limit_the_oldest_is_given_up(box: Running, topic: str) -> None:
    """The consumer acknowledges the discarded message only if configured to."""
    mix(box, topic)
    words = ("consume", topic, "-s", "s", "--pending-chunks", "1", "-n", "1", "--url", box.url)
    with RawProducer(box.url, topic, "e") as e:
        e.send(0, b"end")
        assert run(*words).stdout == b"end\n"
        assert backlog(box, topic) == 6
        e.send(1, b"another end")
    assert run(*words, "--ack-oldest-chunks").stdout == b"another end\n"
    assert backlog(box, topic) == 4


def test_with_deduplication_a_message_that_was_cut_off_is_stored_once() -> None:
    """With duplicate chunks in the log, the official client would lose the message."""
    topic = "persistent://public/default/cut-off"
    with PulsarBox(brokerDeduplicationEnabled=True) as box:
        client = connect(box.service_url)
        consumer = client.subscribe(topic, "s")
        with RawProducer(box.service_url, topic, "a") as a:
            for index in (0, 1):
                assert a.chunk(5, index, 3, b"x%d" % index).entryId == index
        until(lambda: not box.admin("GET", f"/admin/v2/{admin_path(topic)}/stats")["publishers"])
        with RawProducer(box.service_url, topic, "a") as again:
            assert again.last_sequence_id == -1
            entries = [again.chunk(5, index, 3, b"x%d" % index).entryId for index in range(3)]
            assert entries == [2**64 - 1, 2**64 - 1, 2]
        assert receive(consumer).data() == b"x0x1x2"
        assert read_to_end(client.create_reader(topic, pulsar.MessageId.earliest)) == [b"x0x1x2"]
        client.close()


def test_messages_of_an_embedded_box_end_before_what_is_not_complete() -> None:
    topic = "persistent://public/default/incomplete"
    with PulsarBox() as box:
        with RawProducer(box.service_url, topic, "a") as a:
            a.send(0, b"whole")
            a.chunk(1, 0, 2, b"half")
        assert [each.payload for each in box.messages(topic)] == [b"whole"]


@pytest.mark.parametrize("form", ["raw", "lines"])
def test_to_a_topic_that_is_not_persistent_nothing_goes_in_chunks(box: Running, topic: str, form: str) -> None:
    topic = topic.replace("persistent", "non-persistent", 1)
    done = run("produce", topic, "-i", form, "--url", box.url, stdin=b"x" * (6 << 20), code=1)
    assert b"only persistent topics support chunks" in done.stderr
