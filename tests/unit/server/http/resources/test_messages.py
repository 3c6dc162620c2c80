"""Single messages in the Admin API, and topic requests beyond creation and deletion."""

import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from pulsarbox.plugins.compression.wire import _of_thread, compress
from pulsarbox.server.http.resources import messages
from pulsarbox.server.http.statistics.topic_stats import timestamp
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

T = "persistent://public/default/t"
PATH = "/persistent/public/default"
EARLIEST = {"ledgerId": -1, "entryId": -1}


async def test_peeking_tells_the_message_and_consumes_nothing(box: HttpBox) -> None:
    client = Client(box)
    more: dict[str, Any] = {"partition_key": "key", "properties": [{"key": "n", "value": "ü"}], "event_time": 5}
    (ledger, _), *rest = client.publish(T, 5, **more)
    client.ack(client.subscribe(T, permits=10), rest[0])
    for number, entry in ((1, 0), (2, 2)):
        got = await box.get(f"{PATH}/t/subscription/s/position/{number}")
        assert (got.status, got.text) == (200, f"m{entry}")
        assert got.headers["X-Pulsar-Message-ID"] == f"{ledger}:{entry}"
    got = await box.get(f"{PATH}/t/subscription/s/position/4")
    told = {name: value for name, value in got.headers.items() if name.startswith("X-Pulsar-")}
    assert told == {
        "X-Pulsar-Message-ID": f"{ledger}:4",
        "X-Pulsar-PROPERTY": '{"n":"\\u00fc"}',
        "X-Pulsar-Is-Encrypted": "false",
        "X-Pulsar-txn-uncommitted": "false",
        "X-Pulsar-publish-time": "2023-11-14T22:13:20Z",
        "X-Pulsar-event-time": "1970-01-01T00:00:00.005Z",
        "X-Pulsar-producer-name": "p",
        "X-Pulsar-sequence-id": "4",
        "X-Pulsar-partition-key": "key",
    }
    assert (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]["msgBacklog"] == 4
    for beyond in (5, 1000):
        got = await box.get(f"{PATH}/t/subscription/s/position/{beyond}")
        assert (got.status, got.reason) == (404, "Message not found")
    assert (await box.get(f"{PATH}/t/subscription/s/position/0")).status == 412
    assert (await box.get(f"{PATH}/t/subscription/s/position/x")).status == 404


async def test_a_missing_subscription_shows_all_messages_and_is_not_created(box: HttpBox) -> None:
    client = Client(box)
    (ledger, _), *rest = client.publish(T, 3)
    client.ack(client.subscribe(T, permits=10), rest[0])
    for entry in range(3):
        got = await box.get(f"{PATH}/t/subscription/nope/position/{entry + 1}")
        assert (got.status, got.text, got.headers["X-Pulsar-Message-ID"]) == (200, f"m{entry}", f"{ledger}:{entry}")
    for number, status, reason in ((4, 404, "Message not found"), (0, 412, None)):
        got = await box.get(f"{PATH}/t/subscription/nope/position/{number}")
        assert (got.status, reason or got.reason) == (status, got.reason)
    await box.put(f"{PATH}/empty")
    assert (await box.get(f"{PATH}/empty/subscription/nope/position/1")).reason == "Message not found"
    assert (await box.get(f"{PATH}/empty/subscriptions")).value == []
    assert (await box.get(f"{PATH}/t/subscriptions")).value == ["s"], "looking makes no subscription"


async def test_the_last_message_of_a_topic_without_storage(box: HttpBox) -> None:
    await box.put("/non-persistent/public/default/np")
    got = await box.get("/non-persistent/public/default/np/lastMessageId")
    assert (got.status, got.reason) == (405, "GetLastMessageId on a non-persistent topic is not allowed")


async def test_a_batch_comes_as_one(box: HttpBox) -> None:
    client = Client(box)
    client.send(client.producer(T), 0, b"payload", batch=3)
    await box.put(f"{PATH}/t/subscription/s", EARLIEST)
    got = await box.get(f"{PATH}/t/subscription/s/position/1")
    assert (got.text, got.headers["X-Pulsar-num-batch-message"], got.headers["X-Pulsar-batch-size"]) == (
        "payload",
        "3",
        "7",
    )


@pytest.mark.parametrize(
    ("compression", "data", "status", "text"),
    [
        (2, zlib.compress(b"text" * 9), 200, "text" * 9),
        (3, zstandard.compress(b"text" * 9), 200, "text" * 9),
        (1, compress(1, b"text" * 9), 200, "text" * 9),
        (4, compress(4, b"text" * 9), 200, "text" * 9),
        (1, b"no lz4", 500, "cannot be decompressed"),
        (4, b"no snappy", 500, "cannot be decompressed"),
        (1, compress(1, b"text" * 8), 500, "decompresses to 32 bytes, not 36"),
        (4, compress(4, b"text" * 1000), 500, "the block has 4000"),
        (2, zlib.compress(b"text" * 1000), 500, "expected 36 decompressed bytes"),
        (2, lambda: zlib.compress(bytes(1 << 26)), 500, "expected 36 decompressed bytes"),
        (2, zlib.compress(b"text" * 9)[:-3], 500, "the compressed data is truncated"),
        (3, zstandard.compress(b"text" * 1000), 500, "the frame has 4000"),
        (2, b"no zlib", 500, "cannot be decompressed"),
        (3, b"no zstd", 500, "cannot be decompressed"),
    ],
)
async def test_what_is_compressed(
    box: HttpBox, compression: int, data: bytes | Callable[[], bytes], status: int, text: str
) -> None:
    """Data that is slow to build is created in its only test, because every process collects the tests."""
    client = Client(box)
    body = data if isinstance(data, bytes) else data()
    client.send(client.producer(T), 0, body, compression=compression, uncompressed_size=36)
    got = await box.get(f"{PATH}/t/examinemessage")
    assert got.status == status
    assert text in got.text


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
@pytest.mark.parametrize(("size", "status"), [(40 << 20, 500), (64 << 20, 500), ((64 << 20) + 1, 501)])
async def test_what_claims_to_be_large_takes_no_more_than_it_is(
    box: HttpBox, compression: int, size: int, status: int
) -> None:
    client = Client(box)
    data = compress(compression, b"text" * 9)
    client.send(client.producer(T), 0, data, compression=compression, uncompressed_size=size)
    tracemalloc.start()
    try:
        got = await box.get(f"{PATH}/t/examinemessage")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got.status == status, got
    assert peak < 4 << 20


@pytest.mark.parametrize(("compression", "name"), [(1, "LZ4"), (4, "SNAPPY")])
async def test_a_codec_that_is_not_installed(compression: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    _of_thread.codecs.clear()
    try:
        async with running_box() as box:
            client = Client(box)
            client.send(client.producer(T), 0, b"x", compression=compression, uncompressed_size=36)
            got = await box.get(f"{PATH}/t/examinemessage")
            assert got.status == 501
            assert f"{name} requires the package cramjam: pip install 'pulsarbox[codecs]'" in got.reason
    finally:
        _of_thread.codecs.clear()


async def test_headers_cannot_be_broken_by_what_a_message_says(box: HttpBox) -> None:
    client = Client(box)
    client.send(client.producer(T), 0, partition_key="a\r\nX-Evil: b\u2028")
    got = await box.get(f"{PATH}/t/examinemessage")
    assert got.headers["X-Pulsar-partition-key"] == "a  X-Evil: b"
    assert "X-Evil" not in got.headers


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "m9"),
        ("?initialPosition=latest&messagePosition=1", "m9"),
        ("?initialPosition=latest&messagePosition=10", "m0"),
        ("?initialPosition=earliest&messagePosition=3", "m2"),
        ("?initialPosition=foo&messagePosition=1", "m9"),
        ("?initialPosition=earliest&messagePosition=300", "m9"),
        ("?initialPosition=earliest&messagePosition=-1", "m0"),
    ],
)
async def test_examining(box: HttpBox, query: str, text: str) -> None:
    Client(box).publish(T, 10)
    assert (await box.get(f"{PATH}/t/examinemessage{query}")).text == text


async def test_messages_by_id_and_by_time(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    got = (await box.get(f"{PATH}/t/lastMessageId")).value
    ledger = got["ledgerId"]
    empty = {"ledgerId": ledger, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}
    assert got == empty
    assert (await box.get(f"{PATH}/t/messageid/0")).value == empty | {"ledgerId": -1}
    assert (await box.get(f"{PATH}/t/examinemessage")).status == 412
    for i in range(5):
        client.send(producer, i, b"m%d" % i, publish_time=1000 + i)
    client.send(producer, 9, b"", publish_time=1005, batch=4)
    assert (await box.get(f"{PATH}/t/lastMessageId")).value == empty | {"entryId": 5, "batchIndex": 3}
    assert (await box.get(f"{PATH}/t/ledger/{ledger}/entry/2")).text == "m2"
    for place in (f"{ledger}/entry/200", f"{ledger + 1000}/entry/0", f"{ledger}/entry/-1"):
        got = await box.get(f"{PATH}/t/ledger/{place}")
        assert (got.status, got.reason) == (404, "Message id not found")
    for at, entry in ((0, -1), (1, 0), (1000, 0), (1003, 3), (9999, 6)):
        found = (await box.get(f"{PATH}/t/messageid/{at}")).value
        assert found == empty | {"ledgerId": -1 if entry < 0 else ledger, "entryId": entry}


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("p/subscription/s/position/1", 405, "Peek messages on a partitioned topic is not allowed"),
        ("p/messageid/0", 405, "Get message ID by timestamp on a partitioned topic is not allowed"),
        ("nope/lastMessageId", 404, "Topic persistent://public/default/nope not found"),
        ("nope/subscription/s/position/1", 404, "Topic persistent://public/default/nope not found"),
    ],
)
async def test_where_there_are_no_messages(box: HttpBox, path: str, status: int, reason: str) -> None:
    await box.put(f"{PATH}/p/partitions", 2)
    got = await box.get(f"{PATH}/{path}")
    assert (got.status, got.reason) == (status, reason)


async def test_properties_of_a_topic(box: HttpBox) -> None:
    for topic in ("t", "p"):
        path = f"{PATH}/{topic}/properties"
        await (box.put(f"{PATH}/t") if topic == "t" else box.put(f"{PATH}/p/partitions", 2))
        assert (await box.get(path)).value == {}
        assert (await box.put(path, {"a": "b", "c": "d"})).status == 204
        assert (await box.put(path, {"e": "f"})).status == 204
        assert (await box.get(path)).value == {"a": "b", "c": "d", "e": "f"}
        assert (await box.delete(f"{path}?key=a")).status == 204
        assert (await box.delete(f"{path}?key=nope")).status == 204
        assert (await box.get(path)).value == {"c": "d", "e": "f"}
        assert (await box.delete(path)).status == 412
        assert (await box.put(path, None)).status == 204
    assert (await box.get(f"{PATH}/nope/properties")).status == 404
    got = await box.get("/non-persistent/public/default/n/properties")
    assert (got.status, got.reason) == (406, "Need to provide a persistent topic name")


async def test_unloading_sends_the_clients_away_and_they_find_everything_again(box: HttpBox) -> None:
    client = Client(box)
    client.publish(T, 3)
    client.subscribe(T, permits=1)
    client.names()
    assert (await box.ask("PUT", f"/admin/v2{PATH}/t/unload")).status == 204
    client.settle()
    assert client.names() == ["close_consumer"]
    assert [str(topic.name) for topic in box.broker.topics] == []
    assert (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]["msgBacklog"] == 3
    got = await box.ask("PUT", f"/admin/v2{PATH}/nope/unload")
    assert (got.status, got.reason) == (404, "Topic persistent://public/default/nope not found")
    await box.put(f"{PATH}/p/partitions", 2)
    client.subscribe("persistent://public/default/p-partition-1")
    client.names()
    assert (await box.ask("PUT", f"/admin/v2{PATH}/p/unload")).status == 204
    client.settle()
    assert client.names() == ["close_consumer"]


async def test_a_time_that_no_calendar_has_is_shown_as_in_java() -> None:
    async with running_box() as box:
        client = Client(box)
        client.publish(T, 1, event_time=2**63 - 1, deliver_at_time=253_402_300_800_000)
        got = await box.get(f"{PATH}/t/examinemessage?initialPosition=earliest")
        assert got.headers["X-Pulsar-event-time"] == "+292278994-08-17T07:12:55.807Z"
        assert got.headers["X-Pulsar-deliver-at-time"] == "+10000-01-01T00:00:00Z"
    assert timestamp(253_402_300_799_999) == "9999-12-31T23:59:59.999Z"
    assert timestamp(-1) == "1969-12-31T23:59:59.999Z"
    assert timestamp(-62_198_755_200_000) == "-0001-01-01T00:00:00Z"


async def test_whatever_fails_while_a_message_is_shown_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(entry: object) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(messages, "entry_answer", fails)
    async with running_box() as box:
        Client(box).publish(T, 1)
        got = await box.get(f"{PATH}/t/examinemessage")
        assert got.status == 500
