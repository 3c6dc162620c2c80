"""Message pages for data from the official client: schemas, batches, codecs, partitions; without side effects."""

import json
import urllib.parse
import urllib.request
from base64 import b64decode
from typing import Any

import pulsar
import pytest
from pulsar.schema import AvroSchema, Integer, Record, String

from tests.e2e.clients import EARLIEST, take
from tests.e2e.conftest import Running


class Order(Record):  # type: ignore[misc]
    """Schema of the messages."""

    number = Integer()
    place = String()


def page(box: Running, topic: str, **query: Any) -> Any:
    path = topic.partition("://")[2]
    with urllib.request.urlopen(
        f"{box.web_url}/pulsarbox/v1/browse/{path}?{urllib.parse.urlencode(query)}", timeout=60
    ) as answer:
        return json.load(answer)


@pytest.mark.usefixtures("ours")
def test_batches_of_avro_are_decoded_found_and_left_alone(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, AvroSchema(Order), initial_position=EARLIEST)
    producer = client.create_producer(
        topic, schema=AvroSchema(Order), compression_type=pulsar.CompressionType.ZSTD,
        batching_enabled=True, batching_max_publish_delay_ms=200,
    )  # fmt: skip
    for number in range(50):
        producer.send_async(Order(number=number, place="eu" if number % 5 else "us"), None, partition_key=f"k{number}")
    producer.flush()
    taken = [consumer.receive(60_000) for _ in range(50)]
    consumer.acknowledge(taken[0])
    found = page(box, topic, **{"from": "earliest"}, filter='json.place == "us" and json.number > 9', subscription="s")
    assert [each["decoded"]["number"] for each in found["messages"]] == list(range(10, 50, 5))
    assert found["ended"] is True
    assert {each["codec"] for each in found["messages"]} == {"ZSTD"}
    assert {each["state"] for each in found["messages"]} == {"inFlight"}
    assert [each["key"] for each in found["messages"]] == [f"k{number}" for number in range(10, 50, 5)]
    stats = json.loads(box.admin("GET", f"persistent/{topic.partition('://')[2]}/stats"))
    assert list(stats["subscriptions"]) == ["s"]
    consumer.close()


@pytest.mark.usefixtures("ours")
def test_partitions_in_one_page(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"persistent/{topic.partition('://')[2]}/partitions", "3")
    producer = client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    for number in range(9):
        producer.send(b"%d" % number)
    found = page(box, topic, limit=5)
    every = [b64decode(each["payload"]) for each in found["messages"]]
    earlier = page(box, topic, **{"from": found["previous"]}, direction="backward")
    every = [b64decode(each["payload"]) for each in earlier["messages"]] + every
    assert sorted(every) == [b"%d" % number for number in range(9)]
    assert {each["partition"] for each in found["messages"] + earlier["messages"]} == {0, 1, 2}
    assert len(take(client.subscribe(topic, "later", initial_position=EARLIEST), 9)) == 9
