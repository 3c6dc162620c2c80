"""Frames as reproducible text: ledgers are numbered, generated names and addresses are removed."""

import re
from collections.abc import Iterable
from typing import Any, Final

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.commands import COMMANDS
from pulsarbox.protocol.metadata import parse_entry

NOTHING: Final = (1 << 64) - 1
"""-1 as an unsigned number: no ledger, no entry, no request."""

_SCRUBBED: Final = (
    # Pulsar's text form of a connection.
    (re.compile(r"\[id: 0x[0-9a-f]+, L:\S+ - R:\S+\] \[SR:[^\]]*\]"), "<address>"),
    (re.compile(r"/?\b(127\.0\.0\.1|localhost):\d+"), "<address>"),
    (re.compile(r"\b[a-z]+-\d+-\d+\b(?=$|[\s'\",.;:)\]])"), "<generated>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.,]+(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"@[0-9a-f]{6,8}\b"), "@<object>"),
    (re.compile(r"\(\d+,\s?\d+\)"), "<transaction>"),
    (re.compile(r"\b0x[0-9a-f]{8}\b"), "<channel>"),
    # Java's exception class in front of the message: no client reads it.
    (re.compile(r"\b(?:org\.apache|java)\.[\w.$]+: "), ""),
)


class Ledgers:
    """Numbers of a scenario's ledgers, in order of first appearance."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def position(self, message_id: Any) -> str:
        """Return a message ID as ``ledger:entry``, with batch index, ack set and partition if set."""
        if message_id.ledgerId == NOTHING or message_id.entryId == NOTHING:
            place = f"{self._part(message_id.ledgerId)}:{self._part(message_id.entryId, ledger=False)}"
        else:
            place = f"{self._part(message_id.ledgerId)}:{message_id.entryId}"
        if message_id.HasField("batch_index") and message_id.batch_index != -1:
            place += f":{message_id.batch_index}"
        if message_id.partition != -1:
            place += f" of partition {message_id.partition}"
        if message_id.ack_set:
            place += f" ack_set {words(message_id.ack_set)}"
        return place

    def _part(self, number: int, ledger: bool = True) -> str:
        if number == NOTHING:
            return "-1"
        if not ledger:
            return str(number)
        return f"L{self._seen.setdefault(number, len(self._seen))}"


def words(ack_set: Iterable[int]) -> str:
    """Return the words of a bit set, each with its highest bit first."""
    return ",".join(f"{word & NOTHING:b}" for word in ack_set)


def scrub(text: str) -> str:
    """Return ``text`` without addresses, times and generated names."""
    for pattern, instead in _SCRUBBED:
        text = pattern.sub(instead, text)
    return text


def error_name(number: int) -> str:
    return api.ServerError.Name(number)


def payload_text(payload: bytes) -> str:
    """Return the payload of a message as text; the messages of a batch in brackets."""
    entry = parse_entry(payload)
    body = payload[entry.body_offset :]
    if not entry.metadata.HasField("num_messages_in_batch"):
        return body.decode(errors="replace")
    inside = iterate_batch(body, entry.metadata.num_messages_in_batch)
    return f"[{' '.join(each.decode(errors='replace') for _, each in inside)}]"


def tell(command: Any, payload: bytes, ledgers: Ledgers) -> str:
    """Return one frame as text, without its request ID."""
    spec = COMMANDS[command.type]
    part = getattr(command, spec.field)
    special = _SPECIAL.get(spec.name)
    if special is not None:
        return f"{spec.name} {special(part, payload, ledgers)}".rstrip()
    return spec.name


def _message(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    text = f"{part.consumer_id} {payload_text(payload)}@{ledgers.position(part.message_id)}"
    if part.HasField("redelivery_count"):
        text += f" redelivery_count={part.redelivery_count}"
    if part.ack_set:
        text += f" ack_set={words(part.ack_set)}"
    if part.HasField("consumer_epoch"):
        text += f" consumer_epoch={part.consumer_epoch}"
    return text


def _failure(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return f"{error_name(part.error)} {scrub(part.message)!r}"


def _producer_success(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    text = f"name={scrub(part.producer_name)} last_sequence_id={part.last_sequence_id}"
    if part.HasField("topic_epoch"):
        text += f" topic_epoch={part.topic_epoch}"
    if part.HasField("producer_ready"):
        text += f" ready={part.producer_ready}"
    return text


def _send_receipt(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return f"{part.producer_id} {part.sequence_id} at {ledgers.position(part.message_id)}"


def _send_error(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return f"{part.producer_id} {part.sequence_id} {_failure(part, payload, ledgers)}"


def _ack_response(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return _failure(part, payload, ledgers) if part.HasField("error") else "ok"


def _ended(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    """Return the response to a transaction command as text."""
    return _failure(part, payload, ledgers) if part.HasField("error") else "ok"


def _close_producer(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return str(part.producer_id)


def _close_consumer(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return str(part.consumer_id)


def _active(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    return f"{part.consumer_id} is_active={part.is_active}"


def _last_message_id(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    text = ledgers.position(part.last_message_id)
    if part.HasField("consumer_mark_delete_position"):
        text += f" mark_delete={ledgers.position(part.consumer_mark_delete_position)}"
    return text


def _partitions(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    failed = f" {error_name(part.error)} {scrub(part.message)!r}" if part.HasField("error") else ""
    return f"{part.partitions}{failed}"


def _lookup(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    if part.HasField("error"):
        return f"{error_name(part.error)} {scrub(part.message)!r}"
    return api.CommandLookupTopicResponse.LookupType.Name(part.response)


def _consumer_stats(part: Any, payload: bytes, ledgers: Ledgers) -> str:
    if part.HasField("error_code"):
        return f"{error_name(part.error_code)} {scrub(part.error_message)!r}"
    permits = part.availablePermits - (1 << 64) if part.availablePermits >> 63 else part.availablePermits
    return (
        f"name={part.consumerName} type={part.type} permits={permits} unacked={part.unackedMessages} "
        f"blocked={part.blockedConsumerOnUnackedMsgs} backlog={part.msgBacklog}"
    )


_SPECIAL: Final = {
    "MESSAGE": _message,
    "ERROR": _failure,
    "PRODUCER_SUCCESS": _producer_success,
    "SEND_RECEIPT": _send_receipt,
    "SEND_ERROR": _send_error,
    "ACK_RESPONSE": _ack_response,
    "CLOSE_PRODUCER": _close_producer,
    "CLOSE_CONSUMER": _close_consumer,
    "ACTIVE_CONSUMER_CHANGE": _active,
    "GET_LAST_MESSAGE_ID_RESPONSE": _last_message_id,
    "PARTITIONED_METADATA_RESPONSE": _partitions,
    "LOOKUP_RESPONSE": _lookup,
    "CONSUMER_STATS_RESPONSE": _consumer_stats,
    "TC_CLIENT_CONNECT_RESPONSE": _ended,
    "NEW_TXN_RESPONSE": _ended,
    "ADD_PARTITION_TO_TXN_RESPONSE": _ended,
    "ADD_SUBSCRIPTION_TO_TXN_RESPONSE": _ended,
    "END_TXN_RESPONSE": _ended,
    "END_TXN_ON_PARTITION_RESPONSE": _ended,
    "END_TXN_ON_SUBSCRIPTION_RESPONSE": _ended,
}
