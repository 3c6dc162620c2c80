"""The asyncio interface of the client."""

import asyncio
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from pulsar import asyncio as pulsar_asyncio

from tests.e2e.clients import EARLIEST, PATIENCE_SECONDS, numbered
from tests.e2e.conftest import Running


async def receive(consumer: Any) -> Any:
    return await asyncio.wait_for(consumer.receive(), PATIENCE_SECONDS)


async def test_produce_consume_acknowledge_close(box: Running, topic: str) -> None:
    client = pulsar_asyncio.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = await client.create_producer(topic, batching_enabled=False)
    consumer = await client.subscribe(topic, "s", initial_position=EARLIEST)
    sent = await asyncio.gather(*(producer.send(payload) for payload in numbered(50)))
    assert len(set(map(str, sent))) == 50
    messages = [await receive(consumer) for _ in range(50)]
    assert sorted(int(message.data()) for message in messages) == list(range(50))
    await consumer.acknowledge_cumulative(messages[-2])
    await consumer.close()
    again = await client.subscribe(topic, "s")
    last = await receive(again)
    assert last.data() == messages[-1].data()
    await again.acknowledge(last)
    await again.unsubscribe()
    await producer.close()
    await client.close()


async def test_errors_are_raised_where_they_are_awaited(box: Running, fresh: Callable[[str], str]) -> None:
    client = pulsar_asyncio.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    name = fresh("busy")
    _first = await client.subscribe(name, "s")
    with pytest.raises(pulsar_asyncio.PulsarException) as refused:
        await client.subscribe(name, "s")
    assert refused.value.error() == pulsar.Result.ConsumerBusy
    with pytest.raises(pulsar_asyncio.PulsarException) as missing:
        await client.create_producer("persistent://nobody/default/t")
    assert missing.value.error() == pulsar.Result.TopicNotFound
    await client.close()
