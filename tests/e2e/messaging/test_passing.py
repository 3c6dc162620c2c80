"""Messages pass through the box unchanged: all metadata, unknown fields, and encrypted messages."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import EncryptionKeys, KeyValue, MessageMetadata, ServerError
from tests.e2e.clients import EARLIEST, admin_path, numbered, read_to_end, send_all, take, until
from tests.e2e.commands import envelopes, run
from tests.e2e.conftest import Running
from tests.e2e.raw import RawConsumer, RawProducer, Refused

FIELDS: dict[str, dict[str, Any]] = {
    "keys": {"partition_key": "a2V5", "partition_key_b64_encoded": True, "ordering_key": b"\x00\xff"},
    "null-value": {"null_value": True, "partition_key": "k", "event_time": 2**60},
    "null-key": {"null_partition_key": True, "schema_version": b"\x00\x07"},
    "properties": {
        "properties": [KeyValue(key="a", value="1"), KeyValue(key="a", value="2"), KeyValue(key="", value="")]
    },
    "encrypted": {
        "encryption_keys": [EncryptionKeys(key="k", value=b"\x00secret", metadata=[KeyValue(key="v", value="2")])],
        "encryption_algo": "RSA",
        "encryption_param": b"\x00" * 12,
        "num_messages_in_batch": 7,
        "compression": 3,
        "uncompressed_size": 5_000_000,
    },
    "chunk": {"uuid": "u", "chunk_id": 1, "num_chunks_from_msg": 3, "total_chunk_msg_size": 30},
    "replication": {"replicated_from": "elsewhere", "replicate_to": ["a", "b"]},
}
UNKNOWN = b"\xfa\x7f\x03new"
"""Field of a later protocol version."""


@pytest.mark.parametrize("name", FIELDS)
def test_an_entry_comes_as_it_was_sent(box: Running, topic: str, name: str) -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=3, publish_time=1, **FIELDS[name])
    metadata.MergeFromString(UNKNOWN)
    sent = encode_entry(metadata, b"body \x00\xff")
    assert UNKNOWN in sent
    with RawProducer(box.url, topic, "p") as producer, RawConsumer(box.url, topic) as consumer:
        producer.send_entry(3, sent)
        producer.take("send_receipt")
        assert consumer.entry() == sent


def test_a_null_value_is_told_apart_from_an_empty_one(box: Running, topic: str) -> None:
    with RawProducer(box.url, topic, "p") as producer:
        producer.send(0, b"", null_value=True, partition_key="gone")
        producer.send(1, b"", partition_key="empty")
    found = envelopes(run("peek", topic, "-o", "ndjson", "--url", box.url).stdout)
    assert [(each["key"], each.get("payload")) for each in found] == [("gone", None), ("empty", "")]


# Encryption -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a reader of a pair of RSA keys, generated for this module."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, which makes the keys")
    folder = tmp_path_factory.mktemp("keys")
    private, public = folder / "private.pem", folder / "public.pem"
    _openssl("genrsa", "-out", private, "2048")
    _openssl("rsa", "-in", private, "-pubout", "-out", public)
    return pulsar.CryptoKeyReader(str(public), str(private))


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


WAYS: dict[str, dict[str, Any]] = {
    "single": {"batching_enabled": False},
    "batched": {"batching_enabled": True, "batching_max_publish_delay_ms": 50},
    "compressed": {"batching_enabled": True, "compression_type": pulsar.CompressionType.ZSTD},
    "chunked": {"batching_enabled": False, "chunking_enabled": True},
}


@pytest.mark.parametrize("way", WAYS)
def test_encrypted_messages_are_read_with_the_key_alone(
    box: Running, client: Any, topic: str, keys: Any, way: str
) -> None:
    secrets = [b"secret " * 900_000, b"the end"] if way == "chunked" else [b"secret %d" % n for n in range(20)]
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, crypto_key_reader=keys)
    producer = client.create_producer(topic, encryption_key="client-key", crypto_key_reader=keys, **WAYS[way])
    send_all(producer, secrets)
    assert take(consumer, len(secrets)) == secrets
    with RawConsumer(box.url, topic) as raw:
        entry = raw.entry()
    assert [each.key for each in parse_entry(entry).metadata.encryption_keys] == ["client-key"]
    assert b"secret" not in entry


@pytest.fixture
def namespace(box: Running, topic: str) -> str:
    """Return a separate namespace for a test."""
    name = f"public/{topic.rpartition('/')[2]}"
    box.admin("PUT", f"namespaces/{name}")
    return name


def require(box: Running, namespace: str, required: str) -> None:
    box.admin("POST", f"namespaces/{namespace}/encryptionRequired", required)


def test_a_namespace_that_requires_encryption_takes_nothing_else(
    box: Running, client: Any, keys: Any, namespace: str
) -> None:
    require(box, namespace, "true")
    topic = f"persistent://{namespace}/t"
    with pytest.raises(Refused, match=f"Encryption is required in {topic}") as refused:
        RawProducer(box.url, topic, "clear")
    assert refused.value.args[0] == ServerError.NotAllowedError
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, crypto_key_reader=keys)
    producer = client.create_producer(topic, encryption_key="k", crypto_key_reader=keys)
    send_all(producer, numbered(10))
    assert take(consumer, 10) == numbered(10)
    with RawProducer(box.url, topic, "liar", encrypted=True) as liar:
        liar.send_entry(5, encode_entry(MessageMetadata(producer_name="liar", sequence_id=5, publish_time=1), b"clear"))
        error, _ = liar.take("send_error")
        assert (error.sequence_id, error.error) == (5, ServerError.NotAllowedError)
        assert error.message == "Messages must be encrypted"
    reader = client.create_reader(topic, pulsar.MessageId.earliest, crypto_key_reader=keys)
    assert read_to_end(reader) == numbered(10)


def test_a_producer_in_the_clear_is_sent_away_when_encryption_becomes_required(
    box: Running, client: Any, namespace: str
) -> None:
    topic = f"persistent://{namespace}/t"
    stats = f"{admin_path(topic)}/stats"
    producer = client.create_producer(topic, batching_enabled=False)
    producer.send(b"clear")
    assert len(json.loads(box.admin("GET", stats))["publishers"]) == 1
    require(box, namespace, "true")
    until(lambda: json.loads(box.admin("GET", stats))["publishers"] == [])
    require(box, namespace, "false")
    producer.close()
    client.create_producer(topic).send(b"clear again")
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert take(consumer, 2) == [b"clear", b"clear again"]
