"""Consumers and readers over WebSockets."""

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from pulsarbox.server.websocket import broker_connection, consumer_session, text_socket
from pulsarbox.server.websocket.message_json import encode_id
from pulsarbox.server.websocket.redelivery_schedule import RedeliverySchedule
from tests.unit.server.http.harness import HttpBox, until
from tests.unit.server.websocket.sockets import TOPIC, opened, status_of

PRODUCER = f"v2/producer/{TOPIC}"
CONSUMER = f"v2/consumer/{TOPIC}/billing"
READER = f"v2/reader/{TOPIC}"
EARLIEST = "subscriptionInitialPosition=Earliest"


async def publish(box: HttpBox, *payloads: str, topic: str = TOPIC, query: str = "", **fields: Any) -> list[str]:
    """Publish messages; return their IDs."""
    async with opened(box, f"v2/producer/{topic}{query}") as producer:
        for each in payloads:
            await producer.send({"payload": b64encode(each.encode()).decode(), **fields})
        return [(await producer.received())["messageId"] for _ in payloads]


async def subscription(box: HttpBox, topic: str = TOPIC, name: str = "billing") -> dict[str, Any]:
    """Statistics of a subscription."""
    found: dict[str, Any] = (await box.get(f"/{topic}/stats")).value["subscriptions"][name]
    return found


async def until_backlog(box: HttpBox, count: int, topic: str = TOPIC) -> None:
    """Wait for the subscription's backlog."""
    async with asyncio.timeout(60):
        while (await subscription(box, topic))["msgBacklog"] != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_messages_are_delivered_and_acknowledged(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        ids = await publish(box, "a", "b")
        for where in ids:
            message = await consumer.received()
            assert message["messageId"] == where
            await consumer.acknowledge(message)
        await until_backlog(box, 0)
    async with opened(box, CONSUMER) as consumer:
        assert await consumer.is_quiet()


async def test_unacknowledged_messages_come_again(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        await publish(box, "a")
        await consumer.received()
    await until(lambda: not box.broker.cnxs)
    async with opened(box, CONSUMER) as consumer:
        assert await consumer.payloads(1) == ["a"]


async def test_a_client_acknowledges_to_receive_more(box: HttpBox) -> None:
    async with opened(box, f"{CONSUMER}?receiverQueueSize=2") as consumer:
        await publish(box, "a", "b", "c", "d")
        first = await consumer.received()
        assert await consumer.payloads(1) == ["b"]
        assert await consumer.is_quiet()
        await consumer.acknowledge(first)
        assert await consumer.payloads(1) == ["c"]
        assert await consumer.is_quiet()


async def test_without_a_queue_one_at_a_time(box: HttpBox) -> None:
    async with opened(box, f"{CONSUMER}?receiverQueueSize=0") as consumer:
        await publish(box, "a", "b")
        message = await consumer.received()
        assert await consumer.is_quiet()
        await consumer.acknowledge(message)
        assert await consumer.payloads(1) == ["b"]


async def test_pull_mode(box: HttpBox) -> None:
    async with opened(box, f"{CONSUMER}?pullMode=true") as consumer:
        await publish(box, "a", "b", "c", "d")
        assert await consumer.is_quiet()
        await consumer.send({"type": "permit", "permitMessages": 2})
        assert await consumer.payloads(2) == ["a", "b"]
        assert await consumer.is_quiet()
        await consumer.send({"type": "permit", "permitMessages": "1"})
        assert await consumer.payloads(1) == ["c"]
        assert await consumer.is_quiet()


@pytest.mark.parametrize("kind", ["Shared", "Key_Shared", "Exclusive"])
async def test_negative_acknowledgements(box: HttpBox, kind: str) -> None:
    async with opened(box, f"{CONSUMER}?subscriptionType={kind}&negativeAckRedeliveryDelay=1") as consumer:
        await publish(box, "a", "b")
        first, second = await consumer.received(), await consumer.received()
        await consumer.acknowledge(first)
        await consumer.acknowledge(second, type="negativeAcknowledge")
        again = await consumer.received()
        assert again["messageId"] == second["messageId"]
        assert again["redeliveryCount"] == (1 if "Shared" in kind else 0)


async def test_an_ack_timeout(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedeliverySchedule, "__init__", _soon)
    async with opened(box, f"{CONSUMER}?subscriptionType=Shared&ackTimeoutMillis=1000") as consumer:
        await publish(box, "a", "b")
        first, second = await consumer.received(), await consumer.received()
        await consumer.acknowledge(first)
        again = await consumer.received()
        assert (again["messageId"], again["redeliveryCount"]) == (second["messageId"], 1)


def _soon(schedule: Any, seconds: float, most: int = 100) -> None:
    schedule._seconds, schedule._most, schedule._at = 0.2, most, {}


async def test_dead_letters(box: HttpBox) -> None:
    query = "subscriptionType=Shared&maxRedeliverCount=1&negativeAckRedeliveryDelay=1"
    letters = f"{TOPIC}-billing-DLQ"
    async with opened(box, f"{CONSUMER}?{query}") as consumer, opened(box, f"v2/consumer/{letters}/x") as late:
        [where] = await publish(box, "a", properties={"p": "q"}, key="k", eventTime="2020-01-02T03:04:05Z")
        for count in range(2):
            message = await consumer.received()
            assert message["redeliveryCount"] == count
            await consumer.acknowledge(message, type="negativeAcknowledge")
        letter = await late.received()
        await until_backlog(box, 0)
    origin = letter["properties"].pop("ORIGIN_MESSAGE_ID")
    assert origin.endswith(":0:-1")
    assert letter["properties"] == {
        "p": "q",
        "REAL_TOPIC": f"persistent://public/default/{TOPIC.rpartition('/')[2]}",
        "REAL_SUBSCRIPTION": "billing",
        "ORIGIN_MESSAGE_IDY_TIME": origin,
    }
    assert (letter["key"], letter["eventTime"]) == ("k", "2020-01-02T03:04:05Z")
    assert where


async def test_a_dead_letter_that_cannot_be_stored_stays(box: HttpBox) -> None:
    query = "subscriptionType=Shared&maxRedeliverCount=1&negativeAckRedeliveryDelay=1&deadLetterTopic=letters"
    await box.put("/persistent/public/default/letters", None)
    await box.post("/persistent/public/default/letters/terminate")
    async with opened(box, f"{CONSUMER}?{query}") as consumer:
        await publish(box, "a")
        for _ in range(2):
            await consumer.acknowledge(await consumer.received(), type="negativeAcknowledge")
        await until(lambda: True)
        assert (await subscription(box))["msgBacklog"] == 1


async def test_messages_of_a_batch(box: HttpBox) -> None:
    batching = "?batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"
    async with opened(box, f"{CONSUMER}?subscriptionType=Shared&negativeAckRedeliveryDelay=1") as consumer:
        await publish(box, "a", "b", "c", query=batching)
        first, second, third = [await consumer.received() for _ in range(3)]
        await consumer.acknowledge(first)
        await consumer.acknowledge(third)
        await until_backlog(box, 1)
        await consumer.acknowledge(second, type="negativeAcknowledge")
        again = await consumer.received()
        assert again["messageId"] == second["messageId"]
        await consumer.acknowledge(again)
        await until_backlog(box, 0)


async def test_a_consumer_survives_unloading(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        await publish(box, "a", "b")
        await consumer.acknowledge(await consumer.received())
        await consumer.received()
        await until_backlog(box, 1)
        await box.put(f"/{TOPIC}/unload")
        message = await consumer.received()
        await consumer.acknowledge(message)
        await until_backlog(box, 0)
        await publish(box, "c")
        assert await consumer.payloads(1) == ["c"]


async def test_a_reader_survives_unloading(box: HttpBox) -> None:
    async with opened(box, f"{READER}?messageId=earliest") as reader:
        await publish(box, "a", "b")
        assert await reader.payloads(2) == ["a", "b"]
        await box.put(f"/{TOPIC}/unload")
        await publish(box, "c")
        assert await reader.payloads(1) == ["c"]


async def test_a_reader_that_cannot_come_back_is_closed(box: HttpBox) -> None:
    async with opened(box, READER) as reader:
        await box.post("/namespaces/public/default/autoTopicCreation", {"allowAutoTopicCreation": False})
        await box.delete(f"/{TOPIC}?force=true")
        code, reason = await reader.closed()
        assert code == 1011
        assert "cannot be reopened" in reason


@pytest.mark.parametrize(("start", "expected"), [("earliest", ["a", "b", "c"]), ("latest", []), ("", [])])
async def test_where_a_reader_starts(box: HttpBox, start: str, expected: list[str]) -> None:
    await publish(box, "a", "b", "c")
    async with opened(box, f"{READER}?messageId={start}") as reader:
        assert await reader.payloads(len(expected)) == expected
        await publish(box, "d")
        assert await reader.payloads(1) == ["d"]


async def test_a_reader_starts_behind_a_message(box: HttpBox) -> None:
    ids = await publish(box, "a", "b", "c")
    async with opened(box, f"{READER}?messageId={ids[0].replace('=', '%3D')}") as reader:
        assert await reader.payloads(2) == ["b", "c"]


async def test_a_reader_starts_within_a_batch(box: HttpBox) -> None:
    batching = "?batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"
    ids = await publish(box, "a", "b", "c", query=batching)
    async with opened(box, f"{READER}?messageId={ids[1].replace('=', '%3D')}") as reader:
        assert await reader.payloads(1) == ["c"]


async def test_a_reader_acknowledges_to_receive_more(box: HttpBox) -> None:
    await publish(box, "a", "b")
    async with opened(box, f"{READER}?messageId=earliest&receiverQueueSize=1") as reader:
        message = await reader.received()
        assert await reader.is_quiet()
        await reader.acknowledge(message)
        assert await reader.payloads(1) == ["b"]


async def test_the_end_of_a_topic(box: HttpBox) -> None:
    await publish(box, "a")
    async with opened(box, f"{CONSUMER}?{EARLIEST}") as consumer:
        message = await consumer.received()
        await consumer.send({"type": "isEndOfTopic"})
        assert await consumer.received() == {"endOfTopic": False}
        await consumer.acknowledge(message)
        await box.post(f"/{TOPIC}/terminate")
        while True:
            await consumer.send({"type": "isEndOfTopic"})
            if await consumer.received() == {"endOfTopic": True}:
                break


async def test_unsubscribe(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        await consumer.send({"type": "unsubscribe"})
        assert await consumer.is_quiet()
        assert (await box.get(f"/{TOPIC}/stats")).value["subscriptions"] == {}


@pytest.mark.parametrize(
    "command",
    [
        "nojson",
        "{}",
        "[]",
        '{"messageId":"***"}',
        '{"messageId":5}',
        '{"type":"permit"}',
        '{"type":"permit","permitMessages":true}',
        '{"type":"negativeAcknowledge"}',
    ],
)
async def test_invalid_commands_close_the_socket(box: HttpBox, command: str) -> None:
    async with opened(box, CONSUMER) as consumer:
        await consumer.send(command)
        code, reason = await consumer.closed()
        assert code == 1011
        assert reason


@pytest.mark.parametrize("command", ['{"messageId":"CAAQAw=="}', '{"type":"huh","messageId":"CAAQAw=="}'])
async def test_unknown_messages_are_ignored(box: HttpBox, command: str) -> None:
    async with opened(box, CONSUMER) as consumer:
        await consumer.send(command)
        await publish(box, "a")
        assert await consumer.payloads(1) == ["a"]


async def test_partitions(box: HttpBox) -> None:
    await box.put(f"/{TOPIC}/partitions", 3)
    async with opened(box, CONSUMER) as consumer:
        payloads = [str(number) for number in range(9)]
        await publish(box, *payloads, query="?messageRoutingMode=RoundRobinPartition")
        messages = [await consumer.received() for _ in payloads]
        for each in messages:
            await consumer.acknowledge(each)
        async with asyncio.timeout(60):
            while True:
                stats = (await box.get(f"/{TOPIC}/partitioned-stats")).value
                if stats["subscriptions"]["billing"]["msgBacklog"] == 0:
                    break


async def test_new_partitions(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_session, "REFRESH_SECONDS", 0.01)
    await box.put(f"/{TOPIC}/partitions", 1)
    async with opened(box, CONSUMER) as consumer:
        await box.post(f"/{TOPIC}/partitions", 2)
        await until(lambda: sum(len(each.consumers) for each in box.broker.cnxs) == 2)
        await publish(box, "a", topic=f"{TOPIC}-partition-1")
        assert await consumer.payloads(1) == ["a"]


async def test_several_topics(box: HttpBox) -> None:
    async with opened(box, f"v3/consumer/billing?topics=orders,refunds&{EARLIEST}") as consumer:
        for name in ("orders", "refunds"):
            await publish(box, name, topic=f"persistent/public/default/{name}")
        messages = [await consumer.received() for _ in range(2)]
        for each in messages:
            await consumer.acknowledge(each)
        await until_backlog(box, 0)
        await until_backlog(box, 0, "persistent/public/default/refunds")


@pytest.mark.parametrize("pattern", ["persistent://public/default/or.*", "or.*"])
async def test_topics_of_a_pattern(box: HttpBox, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr(consumer_session, "REFRESH_SECONDS", 0.01)
    await publish(box, "a")
    await publish(box, "x", topic="persistent/public/default/other")
    async with opened(box, f"v3/consumer/billing?topicsPattern={pattern}&{EARLIEST}") as consumer:
        await consumer.acknowledge(await consumer.received())
        await until_backlog(box, 0)
        await publish(box, "b", topic="persistent/public/default/organs")
        assert await consumer.payloads(1) == ["b"]
        assert await consumer.is_quiet()


async def test_non_persistent_topics(box: HttpBox) -> None:
    topic = "non-persistent/public/default/now"
    async with opened(box, f"v2/consumer/{topic}/s") as consumer, opened(box, f"v2/reader/{topic}") as reader:
        await publish(box, "a", topic=topic)
        assert await consumer.payloads(1) == await reader.payloads(1) == ["a"]


async def test_an_exclusive_subscription_has_one_consumer(box: HttpBox) -> None:
    async with opened(box, CONSUMER):
        assert (await status_of(box, CONSUMER))[0] == 409


async def test_statistics_name_the_client(box: HttpBox) -> None:
    async with opened(box, f"{CONSUMER}?consumerName=c&priorityLevel=1&subscriptionType=Shared"):
        [found] = (await subscription(box))["consumers"]
        assert found["consumerName"] == "c"
        assert found["clientVersion"].startswith("pulsarbox-websocket")
        assert found["address"].startswith("/127.0.0.1:")


async def test_large_payloads(box: HttpBox) -> None:
    payload = "x" * 700_000
    async with opened(box, CONSUMER) as consumer:
        await publish(box, payload)
        assert await consumer.payloads(1) == [payload]


async def test_a_slow_client_stops_the_dispatcher(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_connection, "HELD_HIGH", 5000)
    monkeypatch.setattr(broker_connection, "HELD_LOW", 1000)
    async with opened(box, f"{CONSUMER}?pullMode=true") as consumer:
        await publish(box, *["x" * 1000] * 50)
        [cnx] = [each for each in box.broker.cnxs if each.consumers]
        assert cnx.outbox.full
        assert (await subscription(box))["msgOutCounter"] < 50
        await consumer.send({"type": "permit", "permitMessages": 50})
        assert len(await consumer.payloads(50)) == 50
        assert not cnx.outbox.full


async def test_sources_of_several_topics_are_bounded(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_session, "SOURCES_MAX", 2)
    async with opened(box, f"v3/consumer/billing?topics=orders,refunds&{EARLIEST}") as consumer:
        await publish(box, "a", "b", "c")
        messages = [await consumer.received() for _ in range(3)]
        for each in messages:
            await consumer.acknowledge(each)
        await until_backlog(box, 1)


async def test_the_box_says_goodbye(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        for each in list(box.shell.connections.values()):
            each.close()
        assert await consumer.closed() == (1001, "The box is stopping")


async def publish_encrypted(box: HttpBox) -> None:
    keys = b64encode(json.dumps({"k": {"keyValue": "dg=="}}).encode()).decode()
    await publish(box, "secret", query=f"?encryptionKeys={keys}")


async def test_encrypted_messages_are_skipped(box: HttpBox) -> None:
    async with opened(box, f"{CONSUMER}?receiverQueueSize=1") as consumer:
        await publish_encrypted(box)
        await publish(box, "plain")
        assert await consumer.payloads(1) == ["plain"]
    assert (await subscription(box))["msgBacklog"] == 2


async def test_encrypted_messages_are_discarded(box: HttpBox) -> None:
    async with opened(box, f"{CONSUMER}?cryptoFailureAction=DISCARD"):
        await publish_encrypted(box)
        await until_backlog(box, 0)


async def test_an_internal_error_closes_the_socket(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(consumer_session, "parse_entry", fail)
    async with opened(box, CONSUMER) as consumer:
        await publish(box, "a")
        assert await consumer.closed() == (1011, "Internal error")
    await until(lambda: not box.broker.cnxs)


@pytest.mark.settings(Settings(webSocketSessionIdleTimeoutMillis=300))
async def test_a_client_that_reads_nothing_is_disconnected(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_socket, "CLOSE_SECONDS", 0.05)
    async with opened(box, CONSUMER) as consumer:
        assert consumer.socket._response.connection is not None
        transport: Any = consumer.socket._response.connection.transport
        transport.pause_reading()
        for _ in range(20):
            await publish(box, "x" * 700_000)
        await until(lambda: not box.broker.cnxs)
        transport.abort()


async def test_a_message_id_that_claims_a_huge_batch(box: HttpBox) -> None:
    where = MessageIdData(ledgerId=1, entryId=1, batch_index=0, batch_size=2**31 - 1)
    async with opened(box, CONSUMER) as consumer:
        await consumer.send({"messageId": encode_id(where)})
        code, reason = await consumer.closed()
        assert (code, "at most" in reason) == (1011, True)
