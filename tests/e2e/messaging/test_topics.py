"""Topics: partitioned, auto-created, in missing tenants, non-persistent; lookup over HTTP; schemas."""

import json
import time
import urllib.error
from typing import Any

import pulsar
import pytest
from pulsar.schema import JsonSchema, Record, String

from tests.e2e.clients import (
    EARLIEST,
    PATIENCE_SECONDS,
    admin_path,
    connect,
    is_quiet,
    numbered,
    read_to_end,
    receive,
    send_all,
    take,
)
from tests.e2e.conftest import Running


class Reading(Record):  # type: ignore[misc]  # the client has no types
    """Reading of a device."""

    device = String()
    value = String()


@pytest.fixture
def partitioned(box: Running, topic: str) -> str:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "3")
    return topic


def test_partitions_are_told(client: Any, partitioned: str) -> None:
    assert client.get_topic_partitions(partitioned) == [f"{partitioned}-partition-{number}" for number in range(3)]


def test_a_partitioned_topic_spreads_and_gathers(client: Any, partitioned: str) -> None:
    consumer = client.subscribe(partitioned, "s")
    ids = send_all(client.create_producer(partitioned), numbered(30))
    assert {each.partition() for each in ids} == {0, 1, 2}
    assert sorted(take(consumer, 30), key=int) == numbered(30)


def test_a_key_keeps_its_partition(client: Any, partitioned: str) -> None:
    producer = client.create_producer(partitioned)
    places = {producer.send(b"x", partition_key="k").partition() for _ in range(6)}
    assert len(places) == 1


def test_one_partition_is_read_by_its_name(client: Any, partitioned: str) -> None:
    client.create_producer(f"{partitioned}-partition-1").send(b"one")
    assert read_to_end(client.create_reader(f"{partitioned}-partition-1", pulsar.MessageId.earliest)) == [b"one"]


def test_partitions_are_made_once(box: Running, partitioned: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        box.admin("PUT", f"{admin_path(partitioned)}/partitions", "3")
    assert refused.value.code == 409
    refused.value.close()


def test_a_topic_is_made_when_it_is_used(box: Running, client: Any, topic: str) -> None:
    client.create_producer(topic)
    assert topic in json.loads(box.admin("GET", "persistent/public/default"))


@pytest.mark.parametrize("missing", ["persistent://nobody/default/t", "persistent://public/nowhere/t"])
def test_a_missing_tenant_or_namespace_is_said_at_once(client: Any, missing: str) -> None:
    begin = time.monotonic()
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(missing)
    with pytest.raises(pulsar.TopicNotFound):
        client.subscribe(missing, "s")
    assert time.monotonic() - begin < PATIENCE_SECONDS / 2  # not the client's timeout, which is that long


def test_a_topic_that_is_not_kept(client: Any, topic: str) -> None:
    fleeting = topic.replace("persistent", "non-persistent")
    producer = client.create_producer(fleeting)
    producer.send(b"nobody hears")
    consumer = client.subscribe(fleeting, "s")
    send_all(producer, numbered(10))
    assert take(consumer, 10) == numbered(10)
    assert is_quiet(consumer)


def test_lookup_over_http(box: Running, topic: str) -> None:
    client = connect(box.web_url)
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"x")
    assert take(consumer, 1) == [b"x"]
    client.close()


def test_records_with_a_schema(box: Running, client: Any, topic: str) -> None:
    producer = client.create_producer(topic, schema=JsonSchema(Reading))
    consumer = client.subscribe(topic, "s", schema=JsonSchema(Reading), initial_position=EARLIEST)
    producer.send(Reading(device="a", value="1"))
    message = receive(consumer)
    assert (message.value().device, message.value().value) == ("a", "1")
    told = json.loads(box.admin("GET", f"schemas/{topic.removeprefix('persistent://')}/schema"))
    assert (told["version"], told["type"]) == (0, "JSON")
    assert [field["name"] for field in json.loads(told["data"])["fields"]] == ["device", "value"]


def test_a_schema_that_does_not_fit_is_refused(client: Any, topic: str) -> None:
    client.create_producer(topic, schema=JsonSchema(Reading))
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer(topic, schema=pulsar.schema.StringSchema())


def test_keys_of_a_non_persistent_topic_keep_their_consumer(client: Any, topic: str) -> None:
    fleeting = topic.replace("persistent", "non-persistent")
    kind = pulsar.ConsumerType.KeyShared
    # With these names, the ring assigns key2, key5 and key7 to alpha, as in Pulsar 4.2.4.
    alpha, beta = (client.subscribe(fleeting, "s", kind, consumer_name=name) for name in ("alpha", "beta"))
    producer = client.create_producer(fleeting)
    for number in range(8):
        producer.send(b"%d" % number, partition_key=f"key{number}")
    assert take(alpha, 3) == [b"2", b"5", b"7"]
    assert take(beta, 5) == [b"0", b"1", b"3", b"4", b"6"]
