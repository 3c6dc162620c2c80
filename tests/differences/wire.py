"""Raw connection that sends the commands of a scenario and records received frames as text, in order."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.commands import COMMANDS, encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder, max_frame_size
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, MessageIdData
from tests.differences.messages import Draft, send_frame
from tests.differences.telling import Ledgers, payload_text, tell

ANSWER_SECONDS: Final = 5.0
MESSAGES_SECONDS: Final = 5.0
CONNECT_SECONDS: Final = 60.0
CLIENT_VERSION: Final = "Pulsar-Java-v4.2.4"
_TYPES: Final = {spec.name: spec for spec in COMMANDS.values()}


class Ids(dict[str, MessageIdData]):
    """Message IDs by payload. An unknown payload has an ID without a ledger, so that a scenario continues."""

    def __missing__(self, payload: str) -> MessageIdData:
        return MessageIdData(ledgerId=1 << 50, entryId=0)


class Wire:
    """Named connection. Received frames are buffered until ``take``, or ``frames`` of the broker, collects them."""

    def __init__(self, label: str, address: tuple[str, int], ledgers: Ledgers, patience: float) -> None:
        self.label = label
        self.last_arrival = time.monotonic()
        self.ids = Ids()
        """Message ID of the last delivery or receipt of a payload."""
        self.held: dict[int, list[str]] = {}
        """Payloads received by a consumer, in order."""
        self.begun: list[tuple[int, int]] = []
        """Transaction IDs returned by NEW_TXN, the coordinator's half first."""
        self._ledgers = ledgers
        self._patience = patience
        self._requests = itertools.count(1)
        self._asked: dict[int, str] = {}
        self._answers: dict[int, int] = {}
        self._pending: list[str] = []
        self._sent: dict[tuple[int, int], str] = {}
        self._sequence: dict[int, int] = {}
        self._changed = threading.Condition()
        self.closed = False
        self._socket = socket.create_connection(address, timeout=CONNECT_SECONDS)
        self._socket.settimeout(None)
        self._thread = threading.Thread(target=self._read, name=f"wire {label}", daemon=True)
        self._thread.start()
        self._connect()

    # Receiving

    def _read(self) -> None:
        decoder = FrameDecoder(max_frame_size(5 * 1024 * 1024))
        while True:
            try:
                count = self._socket.recv_into(decoder.get_buffer())
            except OSError:
                count = 0
            with self._changed:
                if not count:
                    if not self.closed:
                        self._pending.append("connection closed")
                    self._changed.notify_all()
                    return
                for data, payload in decoder.buffer_updated(count):
                    self._take_in(parse_command(data), payload)
                self.last_arrival = time.monotonic()
                self._changed.notify_all()

    def _take_in(self, command: Any, payload: bytes) -> None:
        if command.type == BaseCommand.PING:
            self._write(encode_frame(BaseCommand(type=BaseCommand.PONG, pong=api.CommandPong())))
            return
        part = getattr(command, COMMANDS[command.type].field)
        text = tell(command, payload, self._ledgers)
        if command.type == BaseCommand.MESSAGE:
            said = payload_text(payload)
            self.ids[said] = part.message_id
            self.held.setdefault(part.consumer_id, []).append(said)
        elif command.type == BaseCommand.SEND_RECEIPT:
            self.ids[self._sent.get((part.producer_id, part.sequence_id), "")] = part.message_id
        elif command.type == BaseCommand.NEW_TXN_RESPONSE and not part.HasField("error"):
            self.begun.append((part.txnid_most_bits, part.txnid_least_bits))
        request = getattr(part, "request_id", None)
        if request in self._asked:
            again = " again" if request in self._answers else ""
            self._answers[request] = self._answers.get(request, 0) + 1
            text = f"{self._asked[request]}{again}: {text}"
        self._pending.append(text)

    def take(self) -> list[str]:
        """Return the frames received since the last call, without waiting."""
        with self._changed:
            taken, self._pending = self._pending, []
            self.held = {}
            return taken

    def took(self) -> dict[int, list[str]]:
        """Return the payloads of each consumer since the last call; receipts are dropped."""
        with self._changed:
            taken, self.held = self.held, {}
            self._pending = [text for text in self._pending if not text.startswith(("MESSAGE ", "SEND_RECEIPT "))]
            return taken

    def until_messages(self, count: int) -> None:
        """Wait until ``count`` uncollected messages have arrived, or until the wait times out."""
        self._until(lambda: sum(map(len, self.held.values())) >= count, MESSAGES_SECONDS)

    def _until(self, holds: Callable[[], bool], seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: holds() or not self._thread.is_alive(), seconds * self._patience)

    # Sending

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(data)

    def tell(self, name: str, part: Any) -> None:
        """Send a command without waiting for a response."""
        spec = _TYPES[name]
        command = BaseCommand(type=spec.number)  # type: ignore[arg-type]
        getattr(command, spec.field).CopyFrom(part)
        self._write(encode_frame(command))

    def ask(self, name: str, part: Any, label: str = "", wait: bool = True) -> None:
        """Send a command with its own request ID and wait for the response, which joins the received frames."""
        request = part.request_id = next(self._requests)
        with self._changed:
            self._asked[request] = f"{name} {label}".strip()
        self.tell(name, part)
        if wait and not self._until(lambda: request in self._answers, ANSWER_SECONDS):
            with self._changed:
                self._pending.append(f"{self._asked[request]}: no answer")

    def _connect(self) -> None:
        flags = api.FeatureFlags(supports_auth_refresh=True)
        part = api.CommandConnect(client_version=CLIENT_VERSION, protocol_version=21, feature_flags=flags)
        self.tell("CONNECT", part)
        self._until(lambda: bool(self._pending), ANSWER_SECONDS)
        with self._changed:
            self._pending.clear()

    def close(self) -> None:
        """Close the connection abruptly, without closing producers or consumers."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(ANSWER_SECONDS)
        self.take()

    # Producers

    def producer(self, topic: str, number: int = 1, mode: str = "Shared", wait: bool = True, **fields: Any) -> None:
        """Send PRODUCER. ``fields`` are further fields of the command."""
        name = fields.pop("name", None)
        access: Any = api.ProducerAccessMode.Value(mode)
        part = api.CommandProducer(
            topic=topic, producer_id=number, request_id=0, producer_name=name, producer_access_mode=access, **fields
        )
        part.user_provided_producer_name = name is not None
        self.ask("PRODUCER", part, str(number), wait)

    def close_producer(self, number: int = 1, wait: bool = True) -> None:
        self.ask("CLOSE_PRODUCER", api.CommandCloseProducer(producer_id=number, request_id=0), str(number), wait)

    def start_at(self, sequence: int, number: int = 1) -> None:
        """Set the sequence ID of a producer's next message."""
        self._sequence[number] = sequence

    def publish(self, drafts: Iterable[Draft | str], number: int = 1, wait: bool = True) -> None:
        """Publish messages one by one and wait for their receipts, or for as many errors."""
        first = self._sequence.get(number, 0)
        sequence = first
        with self._changed:
            before = sum(text.startswith("SEND_") for text in self._pending)
        for draft in drafts:
            made = Draft(draft) if isinstance(draft, str) else draft
            self._sent[number, sequence] = made.said
            self._write(send_frame(made, number, sequence))
            sequence += 1
        self._sequence[number] = sequence
        if wait:
            wanted = before + sequence - first
            self._until(lambda: sum(text.startswith("SEND_") for text in self._pending) >= wanted, MESSAGES_SECONDS)

    # Consumers

    def subscribe(
        self, topic: str, number: int = 1, kind: str = "Exclusive", sub: str = "s", wait: bool = True, **fields: Any
    ) -> None:
        """Send SUBSCRIBE, from the earliest message unless ``fields``, further fields of the command, override the
        position.
        """
        fields.setdefault("initialPosition", api.CommandSubscribe.Earliest)
        fields["consumer_name"] = fields.pop("name", f"c{number}")
        sub_type: Any = api.CommandSubscribe.SubType.Value(kind)
        part = api.CommandSubscribe(
            topic=topic, subscription=sub, subType=sub_type, consumer_id=number, request_id=0, **fields
        )
        self.ask("SUBSCRIBE", part, str(number), wait)

    def flow(self, permits: int, number: int = 1) -> None:
        self.tell("FLOW", api.CommandFlow(consumer_id=number, messagePermits=permits))

    def ack(
        self,
        ids: Sequence[MessageIdData],
        number: int = 1,
        cumulative: bool = False,
        receipt: bool = False,
        **fields: Any,
    ) -> None:
        """Send ACK; with ``receipt``, request a response. ``fields`` are further fields of the command."""
        kind = api.CommandAck.Cumulative if cumulative else api.CommandAck.Individual
        part = api.CommandAck(consumer_id=number, ack_type=kind, message_id=ids, **fields)
        if receipt:
            self.ask("ACK", part, str(number))
        else:
            self.tell("ACK", part)

    def redeliver(self, ids: Sequence[MessageIdData] = (), number: int = 1, epoch: int | None = None) -> None:
        part = api.CommandRedeliverUnacknowledgedMessages(consumer_id=number, message_ids=ids, consumer_epoch=epoch)
        self.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", part)

    def unsubscribe(self, number: int = 1, force: bool | None = None) -> None:
        self.ask("UNSUBSCRIBE", api.CommandUnsubscribe(consumer_id=number, request_id=0, force=force), str(number))

    def close_consumer(self, number: int = 1, wait: bool = True) -> None:
        self.ask("CLOSE_CONSUMER", api.CommandCloseConsumer(consumer_id=number, request_id=0), str(number), wait)

    def seek(
        self, number: int = 1, to: MessageIdData | None = None, time_ms: int | None = None, wait: bool = True
    ) -> None:
        part = api.CommandSeek(consumer_id=number, request_id=0, message_id=to, message_publish_time=time_ms)
        self.ask("SEEK", part, str(number), wait)

    def last_message_id(self, number: int = 1) -> None:
        self.ask("GET_LAST_MESSAGE_ID", api.CommandGetLastMessageId(consumer_id=number, request_id=0), str(number))

    def consumer_stats(self, number: int = 1) -> None:
        self.ask("CONSUMER_STATS", api.CommandConsumerStats(request_id=0, consumer_id=number), str(number))

    def partitions(self, topic: str) -> None:
        self.ask("PARTITIONED_METADATA", api.CommandPartitionedTopicMetadata(topic=topic, request_id=0))

    def look_up(self, topic: str) -> None:
        self.ask("LOOKUP", api.CommandLookupTopic(topic=topic, request_id=0))
