"""Query parameters of producers, consumers and readers."""

import json
from base64 import b64encode
from typing import Any

import pytest

from pulsarbox.errors import BadRequest
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, EncryptionKeys, MessageIdData
from pulsarbox.server.websocket.parameters import (
    EARLIEST,
    LATEST,
    Batching,
    ConsumerParameters,
    ProducerParameters,
    consumer_parameters,
    message_id,
    producer_parameters,
    reader_parameters,
)

TOPIC = parse_topic("orders")


def consumer(**query: str) -> ConsumerParameters:
    return consumer_parameters(query, TOPIC, "billing")


def test_the_defaults_of_a_producer() -> None:
    assert producer_parameters({"unknown": "x"}) == ProducerParameters()


def test_all_parameters_of_a_producer() -> None:
    found = producer_parameters(
        {
            "producerName": "p",
            "initialSequenceId": "-5",
            "hashingScheme": "Murmur3_32Hash",
            "sendTimeoutMillis": "1500",
            "messageRoutingMode": "RoundRobinPartition",
            "batchingEnabled": "TRUE",
            "batchingMaxMessages": "10",
            "batchingMaxPublishDelay": "20",
            "maxPendingMessages": "7",
            "compressionType": "ZSTD",
        }
    )
    assert found == ProducerParameters("p", -5, "murmur3", 1.5, True, Batching(10, 0.02), 7, 3)


def test_parameters_of_batches_are_ignored_without_batches() -> None:
    assert producer_parameters({"batchingMaxMessages": "x", "maxPendingMessages": "x"}) == ProducerParameters()


def test_keys_of_a_client_that_encrypts() -> None:
    keys = {"k": {"keyValue": b64encode(b"secret").decode(), "metadata": {"a": "b"}}}
    text = b64encode(json.dumps(keys).encode()).decode()
    found = producer_parameters({"encryptionKeys": text, "batchingEnabled": "true", "compressionType": "LZ4"})
    expected = EncryptionKeys(key="k", value=b"secret")
    expected.metadata.add(key="a", value="b")
    assert found.encryption == (expected,)
    assert found.batching is None
    assert found.compression == 0


def test_the_defaults_of_a_consumer() -> None:
    found = consumer()
    assert len(found.name) == 5
    assert found._replace(name="") == ConsumerParameters()


def test_all_parameters_of_a_consumer() -> None:
    found = consumer(
        consumerName="c",
        subscriptionType="Key_Shared",
        subscriptionMode="NonDurable",
        subscriptionInitialPosition="Earliest",
        receiverQueueSize="5000",
        pullMode="true",
        priorityLevel="3",
        ackTimeoutMillis="1000",
        negativeAckRedeliveryDelay="100",
        maxRedeliverCount="4",
        cryptoFailureAction="CONSUME",
    )
    assert found == ConsumerParameters(
        name="c",
        type=CommandSubscribe.Key_Shared,
        durable=False,
        start=EARLIEST,
        queue=1000,
        pull=True,
        priority=3,
        ack_seconds=1.0,
        nack_seconds=0.1,
        max_redeliveries=4,
        dead_letter_topic="persistent://public/default/orders-billing-DLQ",
        crypto="CONSUME",
    )


def test_a_dead_letter_topic() -> None:
    assert consumer(maxRedeliverCount="1", deadLetterTopic="letters").dead_letter_topic == "letters"
    with pytest.raises(BadRequest, match="maxRedeliverCount must be at least 1"):
        consumer(deadLetterTopic="letters")
    with pytest.raises(BadRequest, match="requires deadLetterTopic"):
        consumer_parameters({"maxRedeliverCount": "1"}, None, "billing")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", LATEST),
        ("latest", LATEST),
        ("earliest", EARLIEST),
        ("CBUQADAA", MessageIdData(ledgerId=21, entryId=0, batch_size=0)),
        ("CBoQACABMAM=", MessageIdData(ledgerId=26, entryId=0, batch_index=1, batch_size=3)),
    ],
)
def test_the_start_of_a_reader(text: str, expected: MessageIdData) -> None:
    assert reader_parameters({"messageId": text}).start == expected


def test_readers_are_not_durable() -> None:
    assert not reader_parameters({}).durable
    assert reader_parameters({"readerName": "r"}).name == "r"


@pytest.mark.parametrize("text", ["***", "AAAA", "CBU=", "CBUQ", "A" * 1001])
def test_invalid_message_ids(text: str) -> None:
    with pytest.raises(ValueError, match=r"ledger ID|base64|too long"):
        message_id(text)


INVALID: list[tuple[Any, dict[str, str]]] = [
    (producer_parameters, {"producerName": " "}),
    (producer_parameters, {"sendTimeoutMillis": "-1"}),
    (producer_parameters, {"sendTimeoutMillis": "abc"}),
    (producer_parameters, {"sendTimeoutMillis": "9" * 30}),
    (producer_parameters, {"initialSequenceId": "x"}),
    (producer_parameters, {"hashingScheme": "foo"}),
    (producer_parameters, {"messageRoutingMode": "foo"}),
    (producer_parameters, {"compressionType": "zstd"}),
    (producer_parameters, {"batchingEnabled": "true", "batchingMaxPublishDelay": "0"}),
    (producer_parameters, {"encryptionKeys": "abc"}),
    (producer_parameters, {"encryptionKeys": b64encode(b"{}").decode()}),
    (producer_parameters, {"encryptionKeys": b64encode(b"[" * 100_000).decode()}),
    (lambda query: consumer(**query), {"subscriptionType": "foo"}),
    (lambda query: consumer(**query), {"subscriptionMode": "foo"}),
    (lambda query: consumer(**query), {"subscriptionInitialPosition": "foo"}),
    (lambda query: consumer(**query), {"receiverQueueSize": "-1"}),
    (lambda query: consumer(**query), {"ackTimeoutMillis": "10"}),
    (lambda query: consumer(**query), {"priorityLevel": "-1"}),
    (lambda query: consumer(**query), {"negativeAckRedeliveryDelay": "-1"}),
    (lambda query: consumer(**query), {"maxRedeliverCount": "0"}),
    (lambda query: consumer(**query), {"consumerName": ""}),
    (reader_parameters, {"messageId": "xyz"}),
    (reader_parameters, {"receiverQueueSize": "x"}),
]


@pytest.mark.parametrize(("parse", "query"), INVALID)
def test_invalid_parameters_are_refused(parse: Any, query: dict[str, str]) -> None:
    with pytest.raises(BadRequest, match="Invalid query params"):
        parse(query)
