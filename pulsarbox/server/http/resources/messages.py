"""Single messages: peek, and lookup by id or time. An entry is returned as stored, so a batch is returned whole."""

import json
from base64 import b64encode
from types import MappingProxyType
from typing import Final

from pulsarbox.broker.subscription.position_search import find_first_since
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.broker.transactions.visibility import ALL, find_last_visible, visible_runs
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, NotSupported, PersistenceError, PreconditionFailed
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, decompress
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CompressionType, MessageMetadata
from pulsarbox.server.http.framework.message_id_json import EARLIEST, shown
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import stored_topic
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.statistics.topic_stats import timestamp
from pulsarbox.storage.catalog import Catalog
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.transactions import aborted_within

VisibleRun = tuple[int, int, int]
"""Ledger ID, first entry, and the entry behind the last one."""

PREFIX: Final = "X-Pulsar-"
EXPANDED_BYTES_MAX: Final = 64 << 20
"""Maximum bytes of a decompressed message."""

_PLAIN: Final = {
    "producer-name": "producer_name",
    "sequence-id": "sequence_id",
    "replicated-from": "replicated_from",
    "partition-key": "partition_key",
    "uncompressed-size": "uncompressed_size",
    "encryption-algo": "encryption_algo",
    "partition-key-b64-encoded": "partition_key_b64_encoded",
    "null-value": "null_value",
    "null-partition-key": "null_partition_key",
    "marker-type": "marker_type",
    "txnid-least-bits": "txnid_least_bits",
    "txnid-most-bits": "txnid_most_bits",
    "highest-sequence-id": "highest_sequence_id",
    "uuid": "uuid",
    "num-chunks-from-msg": "num_chunks_from_msg",
    "total-chunk-msg-size": "total_chunk_msg_size",
    "chunk-id": "chunk_id",
    "num-batch-message": "num_messages_in_batch",
}
"""Header names, and the metadata fields that they carry if set."""
_TIMES: Final = {"publish-time": "publish_time", "event-time": "event_time", "deliver-at-time": "deliver_at_time"}
_BYTES: Final = {
    "Base64-schema-version": "schema_version",
    "Base64-ordering-key": "ordering_key",
    "Base64-encryption-param": "encryption_param",
}


def peek(call: HttpRequest) -> DeferredAnswer:
    """Return the n-th unacknowledged entry of the subscription, without consuming it.

    A missing subscription shows the entries that it would have from the earliest one on, and is not created: a
    durable one, as Pulsar creates here, would keep all later messages.
    """
    number = call.number("number")
    topic = stored_topic(call, "Peek messages")
    if number < 1:
        raise PreconditionFailed("The number of the message must be at least 1")
    later = DeferredAnswer()

    def found(position: Position | None, now: Now) -> None:
        if position is None:
            later.failed(NotFound("Message not found"))
        else:
            _give(call, topic, position, later, now)

    subscription = topic.subscriptions.get(call.path["subscription"])
    if subscription is None:
        found(_nth_visible(_visible(topic, call.broker.catalog), number - 1), call.now)
    else:
        subscription.clearing.find(number, found, call.now)
    return later


def _visible(topic: PersistentTopic, catalog: Catalog) -> list[VisibleRun]:
    """Return the runs of visible entries of a topic, the earliest first."""
    return [(each, *run) for each in topic.ledger.ledgers for run in visible_runs(topic.stored, catalog, each, 0, ALL)]


def _nth_visible(runs: list[VisibleRun], index: int) -> Position | None:
    """Return the position of the entry at an index from 0; None if there are fewer."""
    for ledger_id, first, end in runs:
        if index < end - first:
            return Position(ledger_id, first + index)
        index -= end - first
    return None


def by_id(call: HttpRequest) -> DeferredAnswer:
    """Return the entry with an id."""
    position = Position(call.number("ledger"), call.number("entry"))
    topic = stored_topic(call, "Get message by id")
    info = topic.ledger.ledgers.get(position.ledger_id)
    if info is None or not 0 <= position.entry_id < info.confirmed:
        raise NotFound("Message id not found")
    later = DeferredAnswer()
    _give(call, topic, position, later, call.now)
    return later


def examine(call: HttpRequest) -> DeferredAnswer:
    """Return the n-th entry from the start or, by default, from the end; beyond that, the last in that direction."""
    topic = stored_topic(call, "Examine messages")
    try:
        number = max(int(call.query.get("messagePosition", "1")), 1)
    except ValueError:
        raise PreconditionFailed("messagePosition must be a whole number") from None
    runs = _visible(topic, call.broker.catalog)
    total = sum(end - first for _, first, end in runs)
    if not total:
        raise PreconditionFailed("Could not examine messages due to the total message is zero")
    index = min(number, total) - 1
    if call.query.get("initialPosition", "latest") != "earliest":
        index = total - 1 - index
    position = _nth_visible(runs, index)
    assert position is not None, "the index is below the total"
    later = DeferredAnswer()
    _give(call, topic, position, later, call.now)
    return later


def last(call: HttpRequest) -> DeferredAnswer:
    """Return the id of the last visible message."""
    topic = stored_topic(call, "GetLastMessageId")
    later = DeferredAnswer()

    def found(position: Position, batch: int, now: Now) -> None:
        later.complete(answer(shown(position, topic.name.partition_index, batch - 1 if batch > 0 else -1)))

    find_last_visible(topic.stored, call.broker.catalog, topic.reader, found, call.now)
    return later


def by_time(call: HttpRequest) -> DeferredAnswer:
    """Return the id of the first entry published at a time (ms since 1970) or later; the earliest id for 0.

    As in Pulsar, only the compacted view may still have that entry: readers with readCompacted find it.
    """
    timestamp = call.number("timestamp")
    at = call.now.of_client(timestamp)
    topic = stored_topic(call, "Get message ID by timestamp")
    later = DeferredAnswer()

    def found(position: Position, now: Now) -> None:
        view = topic.compaction.view
        earliest = timestamp <= 0 and (view is None or not view.entries)
        later.complete(answer(shown(EARLIEST if earliest else position, topic.name.partition_index)))

    find_first_since(topic.reader, at, found, later.failed, call.now, compaction=topic.compaction)
    return later


def _give(call: HttpRequest, topic: PersistentTopic, position: Position, later: DeferredAnswer, now: Now) -> None:
    def read(entry: Entry, when: Now) -> None:
        try:
            given = entry_answer(entry, _transaction_state(topic, call.broker.catalog, entry))
        except Exception as error:  # client data may be arbitrary, and the request needs an answer
            later.failed(error)
        else:
            later.complete(given)

    topic.reader.read_entry(position, read, lambda error, _: later.failed(error), now)


def _transaction_state(topic: PersistentTopic, catalog: Catalog, entry: Entry) -> dict[str, str]:
    """Return the transaction state of an entry as headers."""
    if not entry.flags & EntryFlag.TRANSACTION:
        return {"txn-uncommitted": "false"}
    ledger_id, entry_id, opened = entry.ledger_id, entry.entry_id, topic.stored.open
    uncommitted = any(
        run.ledger_id == ledger_id and run.first <= entry_id <= run.last for txn in opened for run in opened.runs(txn)
    )
    aborted = (
        not uncommitted
        and topic.stored.has_aborted
        and any(aborted_within(catalog, topic.stored.topic_id, ledger_id, entry_id, entry_id + 1))
    )
    return {"txn-uncommitted": _text(uncommitted), "txn-aborted": _text(aborted)}


def entry_answer(entry: Entry, standing: dict[str, str]) -> HttpResponse:
    """Return an entry as an answer: the metadata in headers, the decompressed payload as the body; batches stay whole.

    ``standing`` has the headers of its transaction. Raises NotSupported for an unknown compression codec,
    PersistenceError for a corrupt payload.
    """
    parsed = parse_entry(entry.body)
    metadata, payload = parsed.metadata, entry.body[parsed.body_offset :]
    encrypted = bool(metadata.encryption_keys)
    headers = {f"{PREFIX}{name}": value for name, value in (_headers(entry, metadata, len(payload)) | standing).items()}
    body = payload if encrypted else _expanded(payload, metadata)
    return HttpResponse(200, body, headers=MappingProxyType(headers))


def _headers(entry: Entry, metadata: MessageMetadata, size: int) -> dict[str, str]:
    has = metadata.HasField
    headers = {
        "Message-ID": f"{entry.ledger_id}:{entry.entry_id}",
        "PROPERTY": json.dumps(key_values(metadata.properties), separators=(",", ":")),
        "Is-Encrypted": _text(bool(metadata.encryption_keys)),
    }
    headers |= {name: timestamp(getattr(metadata, field)) for name, field in _TIMES.items() if has(field)}
    headers |= {name: _text(getattr(metadata, field)) for name, field in _PLAIN.items() if has(field)}
    headers |= {name: b64encode(getattr(metadata, field)).decode() for name, field in _BYTES.items() if has(field)}
    if has("num_messages_in_batch"):
        headers["batch-size"] = str(size)
    if has("compression"):
        headers["compression"] = CompressionType.Name(metadata.compression)
    if has("num_chunks_from_msg"):
        headers["PROPERTY-TOTAL-CHUNKS"] = str(metadata.num_chunks_from_msg)
        headers["PROPERTY-CHUNK-ID"] = str(metadata.chunk_id)
    if metadata.encryption_keys:
        headers["Base64-encryption-keys"] = b64encode(metadata.encryption_keys[0].SerializeToString()).decode()
    return headers


def _text(value: object) -> str:
    """Convert a value for a header: one line of Latin-1."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    text = "".join(one if one.isprintable() else " " for one in text)
    return text.encode("latin-1", "replace").decode("latin-1")


def _expanded(payload: bytes, metadata: MessageMetadata) -> bytes:
    number, size = metadata.compression, metadata.uncompressed_size
    if not number or not size:
        return payload if not number else b""
    if size > EXPANDED_BYTES_MAX:
        raise NotSupported(
            f"The message has {size} bytes, and at most {EXPANDED_BYTES_MAX} can be shown: consume it instead"
        )
    try:
        return decompress(number, payload, size, EXPANDED_BYTES_MAX)
    except CodecMissing as error:
        raise NotSupported(
            f"The message cannot be shown: the box cannot decompress it ({error}); consume it instead"
        ) from None
    except NotUnpacked as error:
        raise PersistenceError(f"The message cannot be decompressed: {error}") from None


_TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("GET", f"{_TOPIC}/subscription/{{subscription}}/position/{{number}}", Permission.TOPIC_CONSUMER, peek),
    HttpRoute("GET", f"{_TOPIC}/ledger/{{ledger}}/entry/{{entry}}", Permission.TOPIC_CONSUMER, by_id),
    HttpRoute("GET", f"{_TOPIC}/examinemessage", Permission.TOPIC_CONSUMER, examine),
    HttpRoute("GET", f"{_TOPIC}/lastMessageId", Permission.TOPIC_CONSUMER, last),
    HttpRoute("GET", f"{_TOPIC}/messageid/{{timestamp}}", Permission.TOPIC_CONSUMER, by_time),
)
