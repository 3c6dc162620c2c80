"""Transformation of stored dead letters by a job: each is replayed, dropped, skipped, or rejected and kept.

The inverse of ``dead_letter``: a replayed message loses the properties it got as a dead letter, and gets those of the
job, by which it is recognized if it returns. Everything else is unchanged: key, event time, schema, compression,
encryption, chunks and delivery time. Pure; runs in the reader threads.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from pulsarbox.broker.dead_letter.message import Letter
from pulsarbox.broker.replay.entry_messages import InspectedMessage, Opened, Schemas, open_entry
from pulsarbox.broker.replay.message_edit import Edit
from pulsarbox.broker.replay.message_filter import Wanted
from pulsarbox.errors import InvalidTopicName
from pulsarbox.names import PERSISTENT, TOPIC_NAME_MAX, parse_topic
from pulsarbox.plugins.compression.entry_body import pack_batch
from pulsarbox.plugins.compression.wire import compress
from pulsarbox.protocol.dead_letters.properties import ATTEMPTS, ORIGIN, REPLAY_JOB, replay_marks
from pulsarbox.protocol.metadata import field_text
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position

CHUNKED_MAX: Final = 1000
"""Maximum number of chunked messages that are partly replayed at a time."""

NOT_BEGUN: Final = "it is chunked, and the job has not processed its first chunk"
NO_ORIGIN: Final = "it has no original topic (property REAL_TOPIC): choose a target"


class Task(NamedTuple):
    """The treatment of each message by a job; immutable while the job runs."""

    job: int
    source: str
    """The topic whose entries are read."""
    drops: bool
    """Whether messages are only acknowledged."""
    target: str | None
    """Target topic; None: each message's origin."""
    wanted: Wanted | None
    edit: Edit | None
    most: int
    """Maximum decompressed size in bytes; larger bodies are not opened."""


class Back(NamedTuple):
    """One entry to be published."""

    target: str
    letter: Letter
    messages: int


class ChunkPart(NamedTuple):
    """Identity of a chunk."""

    uuid: str
    first: bool
    last: bool


class Outcome(NamedTuple):
    """The treatment of one stored entry."""

    entry: Entry
    unacked: int | None
    """Bits of the unacknowledged messages when it was read; None for all."""
    back: tuple[Back, ...]
    left: int
    """Bits of the messages that stay unacknowledged."""
    done: int
    """Messages replayed or dropped."""
    skipped: int
    refused: Mapping[str, int]
    """Messages that cannot be replayed, by reason."""
    chunk: ChunkPart | None = None


class Worked(NamedTuple):
    """Outcomes of the entries of one read."""

    outcomes: list[Outcome]
    size: int
    """Bytes of the entries."""


def work_on(
    task: Task,
    schemas: Schemas,
    unacked: Mapping[tuple[int, int], int],
    begun: frozenset[str],
    end: Position,
    entries: list[Entry],
) -> Worked:
    """Return the outcomes of entries.

    ``begun``: UUIDs of chunked messages that are partly done; after ``end`` only their chunks are processed.
    """
    started = set(begun)
    outcomes = []
    for entry in entries:
        bits = unacked.get((entry.ledger_id, entry.entry_id))
        outcome = _outcome(task, schemas, entry, bits, started, behind=entry.position > end)
        if outcome.chunk is not None and outcome.done:
            (started.discard if outcome.chunk.last else started.add)(outcome.chunk.uuid)
        outcomes.append(outcome)
    return Worked(outcomes, sum([len(entry.body) for entry in entries]))


def _outcome(
    task: Task, schemas: Schemas, entry: Entry, unacked: int | None, begun: set[str], *, behind: bool
) -> Outcome:
    if entry.flags & EntryFlag.MARKER or (behind and not entry.flags & EntryFlag.CHUNK):
        return Outcome(entry, unacked, (), 1, 0, 0, {})
    opened = open_entry(entry, task.source, schemas, task.most)
    if behind and _chunk_of(opened.messages[0].metadata).uuid not in begun:
        return Outcome(entry, unacked, (), 1, 0, 0, {})
    if opened.whole or not entry.flags & EntryFlag.BATCH:
        return _of_whole(task, entry, unacked, opened, begun)
    return _of_batch(task, entry, unacked, opened)


# Entries processed as a whole


def _of_whole(task: Task, entry: Entry, unacked: int | None, opened: Opened, begun: set[str]) -> Outcome:
    (message,) = opened.messages
    everything = (1 << entry.num_messages) - 1
    bits = everything if unacked is None else unacked
    count = bits.bit_count()
    chunk = _chunk_of(message.metadata) if entry.flags & EntryFlag.CHUNK else None

    def stays(skipped: int, refused: Mapping[str, int]) -> Outcome:
        return Outcome(entry, unacked, (), bits, 0, skipped, refused, chunk)

    goes_on = chunk is not None and chunk.uuid in begun
    if task.wanted is not None and not goes_on and not task.wanted(message):
        return stays(count, {})
    if chunk is not None and not chunk.first and not goes_on:
        return stays(0, {NOT_BEGUN: count})
    if chunk is not None and chunk.first and not chunk.last and len(begun) >= CHUNKED_MAX:
        return stays(0, {f"more than {CHUNKED_MAX} chunked messages are incomplete at a time": count})
    if task.drops:
        return Outcome(entry, unacked, (), 0, count, 0, {}, chunk)
    target, why = _target_of(task, message)
    if not why and bits != everything:
        why = f"its batch is partly acknowledged, and {opened.whole}"
    if not why and task.edit is not None and opened.whole:
        why = _uneditable(task.edit, entry, opened.whole)
    if why:
        return stays(0, {why: count})
    metadata = MessageMetadata()
    metadata.CopyFrom(message.metadata)
    metadata.ClearField("txnid_least_bits")
    metadata.ClearField("txnid_most_bits")
    body = opened.body
    _unmark(metadata, message, task, target)
    if task.edit is not None:
        task.edit.apply(metadata)
        if task.edit.payload is not None:
            body = compress(metadata.compression, task.edit.payload)
            metadata.uncompressed_size = len(task.edit.payload)
    return Outcome(entry, unacked, (Back(target, Letter(metadata, body), count),), 0, count, 0, {}, chunk)


def _chunk_of(metadata: MessageMetadata) -> ChunkPart:
    return ChunkPart(
        field_text(metadata.uuid), metadata.chunk_id == 0, metadata.chunk_id >= metadata.num_chunks_from_msg - 1
    )


def _uneditable(edit: Edit, entry: Entry, why: str) -> str:
    if edit.payload is not None:
        return f"its payload cannot be changed: {why}"
    if entry.flags & EntryFlag.BATCH:
        return f"the messages of its batch cannot be changed: {why}"
    return ""


# Opened batches


def _of_batch(task: Task, entry: Entry, unacked: int | None, opened: Opened) -> Outcome:
    bits = (1 << entry.num_messages) - 1 if unacked is None else unacked
    left, skipped = bits, 0
    refused: dict[str, int] = {}
    chosen: dict[str, list[InspectedMessage]] = {}
    for message in opened.messages:
        if not bits >> message.index & 1 or (task.wanted is not None and not task.wanted(message)):
            skipped += bits >> message.index & 1
            continue
        target, why = ("", "") if task.drops else _target_of(task, message)
        if why:
            refused[why] = refused.get(why, 0) + 1
            continue
        left &= ~(1 << message.index)
        chosen.setdefault(target, []).append(message)
    back = [] if task.drops else [_batch_of(task, target, messages) for target, messages in chosen.items()]
    done = bits.bit_count() - left.bit_count()
    return Outcome(entry, unacked, tuple(back), left, done, skipped, refused)


def _batch_of(task: Task, target: str, messages: list[InspectedMessage]) -> Back:
    metadata = MessageMetadata()
    metadata.CopyFrom(messages[0].metadata)
    metadata.ClearField("txnid_least_bits")
    metadata.ClearField("txnid_most_bits")
    if task.edit is not None and task.edit.key is not None:
        task.edit.apply_key(metadata)
    parts = []
    for message in messages:
        own = SingleMessageMetadata()
        own.CopyFrom(message.own)  # type: ignore[arg-type]  # SingleMessageMetadata in a batch
        _unmark(own, message, task, target)
        payload = message.payload or b""
        if task.edit is not None:
            task.edit.apply(own)
            payload = payload if task.edit.payload is None else task.edit.payload
        parts.append((own, payload))
    return Back(target, Letter(metadata, pack_batch(metadata, parts)), len(parts))


# Common functions


def _target_of(task: Task, message: InspectedMessage) -> tuple[str, str]:
    """Return the target of a message, and why it has none, if so."""
    return target_of(message, task.source, task.target)


def target_of(message: InspectedMessage, source: str, wanted: str | None) -> tuple[str, str]:
    """Return the target of a message of ``source``, and why it has none, if so. ``wanted`` overrides its origin."""
    return _way(source, (wanted or message.origin or "")[: TOPIC_NAME_MAX + 1])  # longer names are invalid anyway


@lru_cache(maxsize=1024)
def _way(source: str, target: str) -> tuple[str, str]:
    if not target:
        return "", NO_ORIGIN
    try:
        name = parse_topic(target)
    except InvalidTopicName:
        return "", f"its original topic {target[:80]!r} is not a valid name"
    if name.domain != PERSISTENT:
        return "", f"{name} stores no messages: choose another target"
    if name.base == parse_topic(source).base:
        return "", f"{name} is its current topic: choose another target"
    return str(name), ""


def _unmark(own: MessageMetadata | SingleMessageMetadata, message: InspectedMessage, task: Task, target: str) -> None:
    """Remove the properties of a dead letter, and add those of the job."""
    gone = gone_at(message.origin, target)
    kept = [each for each in own.properties if each.key not in gone]
    del own.properties[:]
    own.properties.extend(kept)
    for name, text in replay_marks(str(task.job), message.replays).items():
        own.properties.add(key=name, value=text)


def gone_at(origin: str | None, target: str) -> frozenset[str]:
    """Return the properties to remove from a message for ``target``; it keeps its origin unless sent back there."""
    return _gone_at(None if origin is None else origin[: TOPIC_NAME_MAX + 1], target)


@lru_cache(maxsize=1024)
def _gone_at(origin: str | None, target: str) -> frozenset[str]:
    at_home = origin is None or _same_topic(origin, target)
    return ATTEMPTS | ORIGIN if at_home else ATTEMPTS


def _same_topic(origin: str, target: str) -> bool:
    try:
        return parse_topic(origin).base == parse_topic(target).base
    except InvalidTopicName:
        return False


# Returned messages


class Returned(NamedTuple):
    """Returned messages in one read."""

    next_entry: int
    messages: int
    """Messages that the job had replayed."""


def count_returned(job: int, source: str, most: int, entries: list[Entry]) -> Returned:
    """Count the messages in these entries that a job had replayed."""
    mark, found = str(job), 0
    for entry in entries:
        if entry.flags & EntryFlag.MARKER:
            continue
        opened = open_entry(entry, source, {}, most)
        weight = entry.num_messages if opened.whole and entry.flags & EntryFlag.BATCH else 1
        found += sum(weight for each in opened.messages if each.properties.get(REPLAY_JOB) == mark)
    return Returned(entries[-1].entry_id + 1, found)
