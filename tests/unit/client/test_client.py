"""Broker lookup and connection lifecycle, against a scripted peer."""

import time

import pytest

from pulsarbox.client import producer as module
from pulsarbox.client.client import Client
from pulsarbox.client.errors import NoAnswer, NotConnected, error_for, passes
from pulsarbox.client.producer import Options, Producer
from pulsarbox.client.transport import connection as connections
from pulsarbox.errors import (
    AuthenticationError,
    ConsumerBusy,
    PulsarBoxError,
    ServiceNotReady,
    TopicNotFound,
    TopicTerminated,
)
from pulsarbox.protocol import replies
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandGetSchemaResponse,
    CommandLookupTopicResponse,
    CommandPing,
    CommandSendError,
    MessageIdData,
    MetadataError,
    Schema,
)
from pulsarbox.protocol.PulsarApi_pb2 import TopicNotFound as TopicNotFoundCode
from pulsarbox.protocol.send_receipt import ReceiptEncoder
from tests.unit.client.scripted import Answer, connected, peer

TOPIC = "persistent://public/default/t"


def lookup(request_id: int, url: str, *, redirect: bool = False, proxy: bool = False) -> bytes:
    kind = CommandLookupTopicResponse.Redirect if redirect else CommandLookupTopicResponse.Connect
    answer = CommandLookupTopicResponse(
        request_id=request_id, brokerServiceUrl=url, response=kind, authoritative=True, proxy_through_service_url=proxy
    )
    return encode_frame(BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=answer))


def plain(command: BaseCommand, rest: bytes) -> list[bytes] | None:
    """A peer that completes the handshake and ignores everything else."""
    return [connected()] if command.type == BaseCommand.CONNECT else []


def serving(url: list[str], **how: bool) -> Answer:
    """A peer that answers a lookup with the first item of ``url``, which the test fills in later."""

    def answer(command: BaseCommand, rest: bytes) -> list[bytes] | None:
        if command.type == BaseCommand.LOOKUP:
            return [lookup(command.lookupTopic.request_id, url[0], **how)]
        return plain(command, rest)

    return answer


def test_a_lookup_is_followed_to_the_broker() -> None:
    urls: list[str] = [""]
    with peer(serving(urls)) as owner, peer(serving(urls, redirect=True)) as first:
        urls[0] = owner.url
        client = Client([first.address])
        assert client.broker_of(TOPIC).address == owner.address
        asked = [each.lookupTopic.authoritative for each in owner.seen if each.type == BaseCommand.LOOKUP]
        assert asked == [True]
        client.close()


def test_brokers_that_point_to_each_other() -> None:
    urls: list[str] = [""]
    with peer(serving(urls, redirect=True)) as one:
        urls[0] = one.url
        client = Client([one.address])
        with pytest.raises(NotConnected, match="redirect to each other"):
            client.broker_of(TOPIC)
        client.close()


def test_a_broker_behind_a_proxy_is_reached_through_it() -> None:
    with peer(serving(["pulsar://inside:6650"], proxy=True)) as proxy:
        client = Client([proxy.address])
        assert client.broker_of(TOPIC).address == proxy.address
        connects = [each.connect.proxy_to_broker_url for each in proxy.seen if each.type == BaseCommand.CONNECT]
        assert connects == ["", "inside:6650"]
        client.close()


def test_schemas_of_many_topics_each_of_who_serves_it() -> None:
    """Some topics are served by the queried broker, some by another. One has no schema, and one lookup fails."""
    urls: list[str] = [""]

    def schemas(found: Answer) -> Answer:
        def answer(command: BaseCommand, rest: bytes) -> list[bytes] | None:
            if command.type != BaseCommand.GET_SCHEMA:
                return found(command, rest)
            asked = command.getSchema
            made = CommandGetSchemaResponse(request_id=asked.request_id)
            if "none" in asked.topic or "bad" in asked.topic:
                made.error_code = TopicNotFoundCode if "none" in asked.topic else MetadataError
                made.error_message = "so it is"
            else:
                made.schema.name, made.schema.schema_data = asked.topic, b""
                made.schema.type = Schema.String
            return [encode_frame(BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, getSchemaResponse=made))]

        return answer

    def first(command: BaseCommand, rest: bytes) -> list[bytes] | None:
        if command.type != BaseCommand.LOOKUP:
            return plain(command, rest)
        is_here = "here" in command.lookupTopic.topic
        return [lookup(command.lookupTopic.request_id, urls[is_here], redirect=not is_here)]

    with peer(schemas(serving(urls))) as owner, peer(schemas(first)) as asked:
        urls[:] = [owner.url, asked.url]
        client = Client([asked.address])
        topics = [f"{TOPIC}-{'here' if at % 2 else 'away'}-{at}" for at in range(205)]
        topics[7] = f"{TOPIC}-none"
        found = client.latest_schemas(topics)
        assert [None if each is None else each[0].name for each in found] == [
            None if topic.endswith("none") else topic for topic in topics
        ]
        served = [each.getSchema.topic for each in owner.seen if each.type == BaseCommand.GET_SCHEMA]
        assert all("here" not in topic for topic in served) and len(served) == 104
        with pytest.raises(PulsarBoxError, match="so it is"):
            client.latest_schemas([topics[0], f"{TOPIC}-bad"])
        assert client.latest_schemas([]) == []
        client.close()


@pytest.mark.parametrize("url", ["", "pulsar://", "pulsar://a", "x"])
def test_a_broker_that_names_no_address(url: str) -> None:
    with peer(serving([url])) as one:
        client = Client([one.address])
        with pytest.raises(NotConnected, match="invalid service URL"):
            client.broker_of(TOPIC)
        client.close()


def test_the_next_host_is_tried() -> None:
    with peer(plain) as one:
        client = Client([("127.0.0.1", 1), one.address])
        assert client.service().address == one.address
        client.close()


def test_an_answer_that_does_not_come() -> None:
    with peer(plain) as one:
        client = Client([one.address])
        client.service()
        client.timeout = 0.2
        with pytest.raises(NoAnswer, match=r"no answer to LOOKUP within 0.2 s"):
            client.broker_of(TOPIC)
        client.close()


def test_a_refusal_before_connected_is_told_as_what_it_is() -> None:
    with peer(lambda command, rest: [replies.error(2**64 - 1, 3, "who are you")]) as one:
        client = Client([one.address])
        with pytest.raises(AuthenticationError, match="who are you"):
            client.service()
        client.close()


def test_a_connection_that_ends_while_it_is_asked() -> None:
    with peer(lambda command, rest: plain(command, rest) if command.type == BaseCommand.CONNECT else None) as one:
        client = Client([one.address])
        with pytest.raises(NotConnected, match="closed the connection"):
            client.broker_of(TOPIC)
        client.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP: it may be the port of the Admin API"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS: use pulsar.ssl://"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "violated the protocol"),
    ],
)
def test_what_is_no_pulsar_protocol(answer: bytes, words: str) -> None:
    with peer(lambda command, rest: [answer]) as one:
        client = Client([one.address])
        with pytest.raises(NotConnected, match=words):
            client.service()
        client.close()


def test_keep_alive_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PING is answered with a PONG. A silent peer is sent a PING, and is disconnected if it does not answer."""
    ping = encode_frame(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))
    with peer(lambda command, rest: [connected(), ping] if command.type == BaseCommand.CONNECT else []) as one:
        client = Client([one.address])
        connection = client.service()
        while not any(each.type == BaseCommand.PONG for each in one.seen):
            client.turn(0.05)
        monkeypatch.setattr(connections, "KEEP_ALIVE_SECONDS", 0.3)
        while not connection.closed:
            client.turn(0.1)
        assert "nothing received" in connection.closed
        assert any(each.type == BaseCommand.PING for each in one.seen)
        client.close()


# Producers and receipts -----------------------------------------------------------------------------------------------


class Broker:
    """Broker that answers each SEND as scripted."""

    def __init__(self, on_send: list[str]) -> None:
        self.on_send = on_send
        self.url = ""
        self.sent: list[int] = []

    def answer(self, command: BaseCommand, rest: bytes) -> list[bytes] | None:
        if command.type == BaseCommand.LOOKUP:
            return [lookup(command.lookupTopic.request_id, self.url)]
        if command.type == BaseCommand.PARTITIONED_METADATA:
            return [replies.partition_metadata(command.partitionMetadata.request_id, 0)]
        if command.type == BaseCommand.PRODUCER:
            return [replies.producer_success(command.producer.request_id, "name", -1, b"")]
        if command.type == BaseCommand.SEND:
            return self.sends(command)
        return plain(command, rest)

    def sends(self, command: BaseCommand) -> list[bytes] | None:
        send = command.send
        self.sent.append(send.sequence_id)
        what = self.on_send.pop(0) if self.on_send else "ok"
        if what == "end":
            return None
        if what in ("later", "never"):
            error = CommandSendError(
                producer_id=send.producer_id,
                sequence_id=send.sequence_id,
                error="PersistenceError" if what == "later" else "TopicTerminatedError",
                message=what,
            )
            return [encode_frame(BaseCommand(type=BaseCommand.SEND_ERROR, send_error=error))]
        if what == "silence":
            return []
        return [ReceiptEncoder(send.producer_id).encode(send.sequence_id, 0, 7, send.sequence_id)]


def produced(on_send: list[str], timeout: float = 60.0) -> tuple[list[int], list[tuple[int, ...]]]:
    """The sequence IDs received by the broker and the receipts reported for three single messages."""
    stored: list[tuple[int, ...]] = []
    broker = Broker(on_send)
    with peer(broker.answer) as one:
        broker.url = one.url
        client = Client([one.address], timeout=60.0)
        try:
            producer = Producer(client, "t", Options(batching=False), lambda *told: stored.append(told[:4]))
            client.timeout = timeout
            producer.send_plain([b"a", b"b", b"c"])
            producer.flush()
            producer.close()
        finally:
            client.close()
    return broker.sent, stored


STORED = [(-1, 7, 0, 1), (-1, 7, 1, 1), (-1, 7, 2, 1)]


def test_receipts_are_told() -> None:
    assert produced([]) == ([0, 1, 2], STORED)


def test_what_had_no_receipt_is_sent_again_in_order() -> None:
    sent, stored = produced(["ok", "end"])
    assert stored == STORED
    assert sent[:2] == [0, 1] and sent[-2:] == [1, 2] and sent.count(0) == 1


def test_receipts_are_read_while_there_is_always_more_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    stored: list[int] = []
    broker = Broker([])
    with peer(broker.answer) as one:
        broker.url = one.url
        client = Client([one.address], timeout=60.0)
        producer = Producer(client, "t", Options(batching=False), lambda *told: stored.append(told[2]))
        deadline = time.monotonic() + 60
        for number in range(20):
            producer.send_plain([b"x"])
            while len(broker.sent) <= number:  # until the previous message is answered
                assert time.monotonic() < deadline
                time.sleep(0.001)
        assert stored[:10] == list(range(10))
        client.close()


def test_an_error_that_may_pass() -> None:
    sent, stored = produced(["ok", "later"])
    assert stored == STORED
    assert sent[-2:] == [1, 2]


def test_an_error_that_does_not_pass() -> None:
    with pytest.raises(TopicTerminated, match="never"):
        produced(["ok", "never"])


def test_receipts_that_do_not_come() -> None:
    with pytest.raises(NoAnswer, match="no receipts for"):
        produced(["silence"] * 10, timeout=0.3)


def test_a_receipt_that_is_left_out_ends_the_connection_and_nothing_is_lost() -> None:
    sent, stored = produced(["silence", "ok", "ok"])
    assert stored == STORED
    assert sent.count(0) == 2


def test_errors_by_their_codes() -> None:
    assert type(error_for(5, "x")) is ConsumerBusy
    assert type(error_for(11, "x")) is TopicNotFound
    assert type(error_for(999, "x")) is PulsarBoxError
    assert passes(ServiceNotReady("x")) and passes(NotConnected("x")) and not passes(TopicNotFound("x"))


def test_ids_that_are_no_position() -> None:
    """A duplicate has the position -1."""
    assert MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1).ledgerId == 2**64 - 1


def test_a_schema_is_asked_for_without_a_version_where_the_latest_is_meant() -> None:
    """Apache Pulsar rejects an empty version with IncompatibleSchema, "Empty schema version"."""
    urls, asked = [""], []

    def answer(command: BaseCommand, rest: bytes) -> list[bytes] | None:
        if command.type != BaseCommand.GET_SCHEMA:
            return serving(urls)(command, rest)
        asked.append((command.getSchema.HasField("schema_version"), command.getSchema.schema_version))
        found = CommandGetSchemaResponse(request_id=command.getSchema.request_id, schema_version=b"\x01")
        found.schema.CopyFrom(Schema(name="s", type=Schema.String, schema_data=b""))
        return [encode_frame(BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE, getSchemaResponse=found))]

    with peer(answer) as broker:
        urls[0] = broker.url
        client = Client([broker.address])
        assert [client.schema(TOPIC, version).type for version in (b"", b"\x01")] == [Schema.String] * 2
        client.close()
    assert asked == [(False, b""), (True, b"\x01")]
