"""Producers over WebSockets."""

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.server.websocket.parameters import message_id
from tests.unit.server.http.harness import HttpBox, until
from tests.unit.server.websocket.sockets import TOPIC, opened, status_of

PRODUCER = f"v2/producer/{TOPIC}"


async def read_all(box: HttpBox, count: int) -> list[Any]:
    """The first messages of the topic."""
    async with opened(box, f"v2/reader/{TOPIC}?messageId=earliest") as reader:
        return [await reader.received() for _ in range(count)]


async def test_a_message_is_stored(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        found = await producer.publish("hello", context="c", key="k", properties={"a": "b"})
    where = found.pop("messageId")
    assert found == {"result": "ok", "context": "c", "errorCode": 0, "schemaVersion": 0}
    [message] = await read_all(box, 1)
    assert message["messageId"] == where
    assert (message["payload"], message["key"], message["properties"]) == ("aGVsbG8=", "k", {"a": "b"})
    assert message["redeliveryCount"] == 0


async def test_invalid_messages_are_answered(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        for text, code in (("nojson", 3), ("{}", 7), ('{"payload":"*"}', 7)):
            await producer.send(text)
            assert (await producer.received())["result"] == f"send-error:{code}"
        assert (await producer.publish())["result"] == "ok"


async def test_results_are_in_order(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        for number in range(50):
            await producer.send({"payload": "", "context": str(number)})
        assert [(await producer.received())["context"] for _ in range(50)] == [str(number) for number in range(50)]


async def test_binary_messages_are_ignored(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        await producer.socket.send_bytes(b'{"payload":""}')
        assert (await producer.publish(context="text"))["context"] == "text"


async def test_batches(box: HttpBox) -> None:
    path = f"{PRODUCER}?batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"
    async with opened(box, path) as producer:
        for number in range(3):
            await producer.send({"payload": "", "key": str(number), "properties": {"n": str(number)}})
        ids = [(await producer.received())["messageId"] for _ in range(3)]
    messages = await read_all(box, 3)
    assert [each["key"] for each in messages] == ["0", "1", "2"]
    found = [message_id(each) for each in ids]
    assert {(each.ledgerId, each.entryId) for each in found} == {(found[0].ledgerId, found[0].entryId)}
    assert [each.batch_index for each in found] == [0, 1, 2]


async def test_an_incomplete_batch_is_sent_after_its_delay(box: HttpBox) -> None:
    async with opened(box, f"{PRODUCER}?batchingEnabled=true&batchingMaxPublishDelay=5") as producer:
        assert (await producer.publish())["result"] == "ok"


async def test_delayed_messages_are_not_batched(box: HttpBox) -> None:
    path = f"{PRODUCER}?batchingEnabled=true&batchingMaxPublishDelay=60000"
    async with opened(box, path) as producer:
        assert (await producer.publish(deliverAfterMs=1))["result"] == "ok"


@pytest.mark.parametrize("codec", ["LZ4", "ZLIB", "ZSTD", "SNAPPY"])
@pytest.mark.parametrize("size", [10, 200_000])
async def test_compression(box: HttpBox, codec: str, size: int) -> None:
    payload = b"ab" * (size // 2)
    async with opened(box, f"{PRODUCER}?compressionType={codec}") as producer:
        assert (await producer.publish(payload))["result"] == "ok"
    [message] = await read_all(box, 1)
    assert message["payload"] == b64encode(payload).decode()


async def test_pending_messages_are_bounded(box: HttpBox) -> None:
    path = f"{PRODUCER}?batchingEnabled=true&batchingMaxPublishDelay=60000&maxPendingMessages=2"
    async with opened(box, path) as producer:
        for number in range(3):
            await producer.send({"payload": "", "context": str(number)})
        found = await producer.received()
        assert (found["result"], found["context"]) == ("send-error:8", "2")
        assert "queue is full" in found["errorMsg"]


async def test_a_message_times_out(box: HttpBox) -> None:
    async with opened(box, f"{PRODUCER}?sendTimeoutMillis=20") as producer:
        box.shell.held = True
        await producer.send({"payload": "", "context": "late"})
        found = await producer.received()
        assert (found["result"], found["context"]) == ("send-error:8", "late")
        box.shell.held = False
        box.shell.kick()
        assert (await producer.publish(context="next"))["context"] == "next"


async def test_deduplication_goes_on_with_the_name(box: HttpBox) -> None:
    await box.post("/namespaces/public/default/deduplication", True)
    path = f"{PRODUCER}?producerName=p&initialSequenceId=4"
    async with opened(box, path) as producer:
        first = await producer.publish()
    async with opened(box, path) as producer:
        again = await producer.publish()
    assert first["messageId"] != again["messageId"]
    assert len(await read_all(box, 1)) == 1
    assert (await box.get(f"/{TOPIC}/stats")).value["msgInCounter"] == 1


async def test_a_name_has_one_producer(box: HttpBox) -> None:
    async with opened(box, f"{PRODUCER}?producerName=p"):
        status, _ = await status_of(box, f"{PRODUCER}?producerName=p")
        assert status == 409
    await until(lambda: not box.shell.connections)
    async with opened(box, f"{PRODUCER}?producerName=p") as producer:
        assert (await producer.publish())["result"] == "ok"


async def test_partitions(box: HttpBox) -> None:
    await box.put(f"/{TOPIC}/partitions", 3)
    async with opened(box, f"{PRODUCER}?messageRoutingMode=RoundRobinPartition") as producer:
        for number in range(6):
            await producer.publish(str(number))
        for _ in range(3):
            await producer.publish(key="same")
    stats = (await box.get(f"/{TOPIC}/partitioned-stats?perPartition=true")).value
    counts = sorted(each["msgInCounter"] for each in stats["partitions"].values())
    assert counts == [2, 2, 5]


async def test_a_single_partition_is_the_default(box: HttpBox) -> None:
    await box.put(f"/{TOPIC}/partitions", 3)
    async with opened(box, PRODUCER) as producer:
        assert len({message_id((await producer.publish())["messageId"]).partition for _ in range(6)}) == 1


async def test_a_producer_survives_unloading(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        await producer.publish("before")
        await box.put(f"/{TOPIC}/unload")
        assert (await producer.publish("after"))["result"] == "ok"


async def test_a_terminated_topic_takes_no_more_messages(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        await producer.publish()
        await box.post(f"/{TOPIC}/terminate")
        found = await producer.publish(context="c")
        assert (found["result"], found["context"]) == ("send-error:8", "c")
        assert "terminated" in found["errorMsg"]
    assert (await status_of(box, PRODUCER))[0] == 503


async def test_a_deleted_topic_is_created_again(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        await producer.publish()
        await box.delete(f"/{TOPIC}?force=true")
        assert (await producer.publish())["result"] == "ok"


async def test_encrypted_messages(box: HttpBox) -> None:
    keys = {"k": {"keyValue": "dg==", "metadata": {"m": "n"}}}
    text = b64encode(json.dumps(keys).encode()).decode()
    async with (
        opened(box, f"v2/consumer/{TOPIC}/s?cryptoFailureAction=CONSUME") as consumer,
        opened(box, f"{PRODUCER}?encryptionKeys={text}") as producer,
    ):
        await producer.publish("secret", encryptionParam="cA==", compressionType="ZSTD", uncompressedMessageSize=9)
        found = await consumer.received()
        assert found["payload"] == b64encode(b"secret").decode()
        context = found["encryptionContext"]
        assert (context["keys"], context["param"]) == (keys, "cA==")
        assert (context["compressionType"], context["uncompressedMessageSize"]) == ("ZSTD", 9)
        refused = await producer.publish("secret", compressionType="ZSTD")
        assert refused["result"] == "send-error:7"


async def test_messages_wait_while_results_are_unread(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    from pulsarbox.server.websocket import producer_session

    monkeypatch.setattr(producer_session, "RESULTS_MAX", 3)
    async with opened(box, PRODUCER) as producer:
        for _ in range(20):
            await producer.send({"payload": ""})
        assert [(await producer.received())["result"] for _ in range(20)] == ["ok"] * 20


@pytest.mark.settings(Settings(webSocketMaxTextFrameSize=2048))
async def test_large_messages_are_refused(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        text = json.dumps({"payload": ""})
        await producer.send(text + " " * (2048 - len(text)))
        assert (await producer.received())["result"] == "ok"
        await producer.send(text + " " * (2049 - len(text)))
        assert (await producer.closed())[0] == 1009


async def test_a_lost_client_leaves_nothing_behind(box: HttpBox) -> None:
    async with opened(box, PRODUCER) as producer:
        await producer.publish()
        assert len(box.broker.cnxs) == 1
        assert producer.socket._response.connection is not None
        transport = producer.socket._response.connection.transport
        assert transport is not None
        transport.abort()
        await until(lambda: not box.broker.cnxs)
    assert not box.shell.connections


async def test_clients_are_served_side_by_side(box: HttpBox) -> None:
    async def publish(number: int) -> None:
        async with opened(box, PRODUCER) as producer:
            for _ in range(5):
                assert (await producer.publish(context=str(number)))["context"] == str(number)

    await asyncio.gather(*(publish(number) for number in range(10)))
    assert len(await read_all(box, 50)) == 50
