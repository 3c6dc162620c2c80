"""The WebSocket API, with a WebSocket client: results, messages, commands, and refused handshakes."""

import contextlib
import json
from base64 import b64decode, b64encode
from typing import Any, Final
from urllib.parse import quote, urlsplit

import websocket

from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from tests.differences.broker import Broker, path_of
from tests.differences.scenario import Steps, scenario

SECONDS: Final = 10.0
QUIET_SECONDS: Final = 1.0
PAYLOAD: Final = b64encode(b"hello").decode()


class Socket:
    """One WebSocket of a scenario."""

    def __init__(self, broker: Broker, path: str) -> None:
        self._patience = broker.patience
        host = urlsplit(broker.web_url).netloc
        self._socket: Any = websocket.create_connection(f"ws://{host}/ws/{path}", SECONDS, suppress_origin=True)

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, websocket.WebSocketException):
            self._socket.close(timeout=1)
        if self._socket.sock is not None:
            self._socket.sock.close()

    def send(self, value: Any) -> None:
        self._socket.send(value if isinstance(value, str) else json.dumps(value))

    def seen(self, seconds: float = SECONDS) -> Any:
        """Return the next message without what differs from run to run; "nothing", or how the socket is closed."""
        return _shown(self.received(seconds))

    def received(self, seconds: float = SECONDS) -> Any:
        self._socket.settimeout(max(0.5, seconds * self._patience))
        try:
            opcode, data = self._socket.recv_data(control_frame=False)
        except websocket.WebSocketTimeoutException:
            return "nothing"
        except (websocket.WebSocketException, OSError):
            return "closed"
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return f"closed with {int.from_bytes(data[:2], 'big')}"
        return json.loads(data)

    def asked(self, value: Any, seconds: float = SECONDS) -> Any:
        """Send a value; return what is seen next."""
        try:
            self.send(value)
        except (websocket.WebSocketException, OSError):
            return "closed"
        return self.seen(seconds)


def _shown(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    shown = dict(message)
    if "messageId" in shown:
        where = MessageIdData.FromString(b64decode(shown["messageId"]))
        shown["messageId"] = {field.name: value for field, value in where.ListFields() if field.name != "ledgerId"}
    if "errorMsg" in shown:
        shown["errorMsg"] = "a text"
    if "publishTime" in shown:
        shown["publishTime"] = "a time"
    return shown


def status_of(broker: Broker, path: str) -> int:
    """Return the status of a handshake."""
    try:
        with Socket(broker, path):
            return 101
    except websocket.WebSocketBadStatusException as error:
        return int(error.status_code)


def acknowledged(socket: Socket, message: Any, **more: Any) -> None:
    socket.send({"messageId": message["messageId"], **more})


@scenario
def results(broker: Broker) -> Steps:
    with Socket(broker, f"v2/producer/{path_of(broker.topic())}") as producer:
        for message in (
            {"payload": PAYLOAD, "context": "1", "properties": {"a": "b"}, "key": "k"},
            {"payload": ""},
            {"payload": PAYLOAD.rstrip("=")},
            {"payload": PAYLOAD, "unknown": 1, "sequenceId": 77},
            {"payload": PAYLOAD, "key": 5, "context": 7, "properties": {"n": 3}},
            {"payload": PAYLOAD, "eventTime": "2020-01-02T03:04:05.678+01:00"},
            {"payload": PAYLOAD, "deliverAt": "123", "deliverAfterMs": 1.5},
            {"payload": PAYLOAD, "replicationClusters": ["standalone"]},
            "nojson",
            "",
            "[]",
            "5",
            {},
            {"payload": None},
            {"payload": 5},
            {"payload": "***", "context": "c"},
            {"payload": "aGVs\nbG8="},
            {"payload": "aGVsbG8-"},
            {"payload": PAYLOAD, "eventTime": "yesterday", "context": "c"},
            {"payload": PAYLOAD, "properties": []},
            {"payload": PAYLOAD, "deliverAfterMs": "x"},
            {"payload": PAYLOAD, "replicationClusters": "standalone"},
        ):
            yield json.dumps(message), producer.asked(message)


@scenario
def messages(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    with Socket(broker, f"v2/consumer/{path}/s") as consumer, Socket(broker, f"v2/reader/{path}") as reader:
        with Socket(broker, f"v2/producer/{path}") as producer:
            message = {
                "payload": PAYLOAD,
                "properties": {"a": "b"},
                "key": "k",
                "eventTime": "2020-01-02T03:04:05.670Z",
            }
            producer.asked(message)
            producer.asked({"payload": PAYLOAD})
        for word, socket in (("consumer", consumer), ("reader", reader)):
            yield word, [socket.seen(), socket.seen()]
            yield f"{word}: end of topic", socket.asked({"type": "isEndOfTopic"})


@scenario
def batches(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    query = "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=200"
    with Socket(broker, f"v2/consumer/{path}/s") as consumer, Socket(broker, f"v2/producer/{path}?{query}") as producer:
        for number in range(5):
            producer.send({"payload": PAYLOAD, "context": str(number)})
        yield "results", [producer.seen() for _ in range(5)]
        yield "messages", [consumer.seen() for _ in range(5)]


@scenario
def partitions(broker: Broker) -> Steps:
    path = path_of(broker.topic(partitions=2))
    query = "messageRoutingMode=RoundRobinPartition"
    with Socket(broker, f"v2/consumer/{path}/s") as consumer, Socket(broker, f"v2/producer/{path}?{query}") as producer:
        yield "keys", [producer.asked({"payload": PAYLOAD, "key": key}) for key in "abcdef"]
        yield "messages", sorted(json.dumps(consumer.seen(), sort_keys=True) for _ in range(6))


@scenario
def receiver_queue(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    with Socket(broker, f"v2/consumer/{path}/s?receiverQueueSize=2") as consumer:
        with Socket(broker, f"v2/producer/{path}") as producer:
            for _ in range(4):
                producer.asked({"payload": PAYLOAD})
        first = consumer.received()
        yield "the second", consumer.seen()
        yield "without an acknowledgement", consumer.seen(QUIET_SECONDS)
        acknowledged(consumer, first)
        yield "after one", consumer.seen()
        yield "and no more", consumer.seen(QUIET_SECONDS)


@scenario
def permits(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    with Socket(broker, f"v2/consumer/{path}/s?pullMode=true") as consumer:
        with Socket(broker, f"v2/producer/{path}") as producer:
            for _ in range(4):
                producer.asked({"payload": PAYLOAD})
        yield "without permits", consumer.seen(QUIET_SECONDS)
        for count in (2, 1):
            consumer.send({"type": "permit", "permitMessages": count})
            yield f"{count} permits", [consumer.seen(SECONDS if n < count else QUIET_SECONDS) for n in range(count + 1)]


@scenario
def redelivery(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    letters = path_of(broker.topic("letters"))
    query = f"negativeAckRedeliveryDelay=100&maxRedeliverCount=1&deadLetterTopic={quote(_full(letters))}"
    with (
        Socket(broker, f"v2/consumer/{letters}/s") as late,
        Socket(broker, f"v2/consumer/{path}/s?subscriptionType=Shared&{query}") as consumer,
        Socket(broker, f"v2/producer/{path}") as producer,
    ):
        producer.asked({"payload": PAYLOAD, "properties": {"a": "b"}, "key": "k"})
        for count in range(2):
            message = consumer.received()
            yield f"delivery {count}", _shown(message)
            acknowledged(consumer, message, type="negativeAcknowledge")
        letter = late.received()
        for name in ("ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME"):
            letter["properties"][name] = letter["properties"].get(name, "").split(":")[1:]
        yield "dead letter", _shown(letter)


def _full(path: str) -> str:
    return path.replace("/", "://", 1)


@scenario
def unloaded(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    with Socket(broker, f"v2/consumer/{path}/s") as consumer, Socket(broker, f"v2/producer/{path}") as producer:
        producer.asked({"payload": PAYLOAD})
        acknowledged(consumer, consumer.received())
        broker.admin("PUT", f"{path}/unload")
        yield "published", producer.asked({"payload": PAYLOAD, "context": "after"})["result"]
        yield "received", consumer.seen()["payload"]


@scenario
def terminated(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    with Socket(broker, f"v2/producer/{path}") as producer:
        producer.asked({"payload": PAYLOAD})
        broker.admin("POST", f"{path}/terminate")
        yield "published", producer.asked({"payload": PAYLOAD, "context": "after"})
    yield "a new producer", status_of(broker, f"v2/producer/{path}")


@scenario
def commands(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    for number, command in enumerate(
        (
            "{}",
            '{"messageId":"***"}',
            '{"messageId":5}',
            '{"type":"huh","messageId":"CAAQAw=="}',
            '{"type":"negativeAcknowledge"}',
            '{"type":"negativeAcknowledge","messageId":"CAAQAw=="}',
            '{"type":"unsubscribe"}',
            "null",
            "nojson",
            "[]",
            '{"type":"permit"}',
        )
    ):
        with Socket(broker, f"v2/consumer/{path}/s{number}") as consumer:
            yield command, consumer.asked(command, QUIET_SECONDS)


@scenario
def several_topics(broker: Broker) -> Steps:
    topics = [broker.topic("a"), broker.topic("b")]
    names = quote(",".join(topics))
    with Socket(broker, f"v3/consumer/s?topics={names}") as consumer:
        for each in topics:
            with Socket(broker, f"v2/producer/{path_of(each)}") as producer:
                producer.asked({"payload": PAYLOAD, "key": each[-1]})
        yield "messages", sorted(json.dumps(consumer.seen(), sort_keys=True) for _ in topics)
    yield "pattern", status_of(broker, f"v3/consumer/s2?topicsPattern={quote(topics[0][:-1])}.*")


@scenario
def names_in_use(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    with Socket(broker, f"v2/producer/{path}?producerName=p"), Socket(broker, f"v2/consumer/{path}/s"):
        yield "producer", status_of(broker, f"v2/producer/{path}?producerName=p")
        yield "consumer", status_of(broker, f"v2/consumer/{path}/s")


@scenario
def large_messages(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    for size in (1024 * 1024, 1024 * 1024 + 1):
        with Socket(broker, f"v2/producer/{path}") as producer:
            text = json.dumps({"payload": PAYLOAD})
            yield f"{size} bytes", producer.asked(text[:-1] + " " * (size - len(text)) + "}")


@scenario
def handshakes(broker: Broker) -> Steps:
    path = path_of(broker.topic())
    for query in (
        "",
        "?sendTimeoutMillis=abc",
        "?sendTimeoutMillis=-1",
        "?compressionType=FOO",
        "?hashingScheme=foo",
        "?messageRoutingMode=foo",
        "?messageRoutingMode=CustomPartition",
        "?initialSequenceId=-5",
        "?initialSequenceId=x",
        "?producerName=",
        "?batchingEnabled=maybe",
        "?batchingEnabled=true&batchingMaxMessages=0",
        "?batchingEnabled=true&batchingMaxPublishDelay=-1",
        "?batchingEnabled=true&maxPendingMessages=-1",
        "/more",
        "?encryptionKeys=abc",
    ):
        yield f"producer{query}", status_of(broker, f"v2/producer/{path}{query}")
    for query in (
        "subscriptionType=foo",
        "subscriptionMode=foo",
        "subscriptionMode=NonDurable",
        "subscriptionInitialPosition=foo",
        "receiverQueueSize=-1",
        "receiverQueueSize=0",
        "ackTimeoutMillis=10",
        "priorityLevel=-1",
        "maxRedeliverCount=0",
        "deadLetterTopic=x",
        "negativeAckRedeliveryDelay=-1",
        "consumerName=",
        "cryptoFailureAction=x",
        "pullMode=maybe",
    ):
        yield f"consumer?{query}", status_of(broker, f"v2/consumer/{path}/{quote(query)}?{query}")
    for query in (
        "messageId=xyz",
        "messageId=AAAA",
        "messageId=earliest",
        "receiverQueueSize=-1",
        "receiverQueueSize=x",
    ):
        yield f"reader?{query}", status_of(broker, f"v2/reader/{path}?{query}")
    for each in (
        "v2/producer/persistent/public/default",
        "v2/producer/foo/public/default/a",
        "v2/producer/persistent/nope/default/a",
        "v2/producer/persistent/public/nope/a",
        "v2/consumer/persistent/public/default/a",
        f"v2/consumer/{path}/s/more",
        "v3/consumer/s",
        "v3/consumer/s?topicsPattern=((",
        "v2/pingpong",
        "producer/persistent/public/standalone/default/a",
    ):
        yield each.replace(path, "TOPIC"), status_of(broker, each)
