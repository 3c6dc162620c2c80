"""Examination of stored messages: fingerprints, filters and payload validation, for any content."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.broker.replay.entry_messages import InspectedMessage, open_entry
from pulsarbox.broker.replay.grouping import GROUPS_MAX, FailureGroup, Groups, merge
from pulsarbox.broker.replay.message_filter import parse_filter
from pulsarbox.broker.replay.schema_check import misfit
from pulsarbox.broker.replay.transform import Task, work_on
from pulsarbox.errors import Unprocessable
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.dead_letters.fingerprint import fingerprint, reason_of, shape_of
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema, SingleMessageMetadata
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position
from tests.tools.campaigns import examples
from tests.unit.broker.replay.playbook import DLQ, pairs
from tests.unit.protocol.schema.schemas import avro, field, of_type, pair, record

NOW = 1_700_000_000_000
TASK = Task(7, DLQ, drops=False, target="persistent://public/default/x", wanted=None, edit=None, most=1 << 20)


def entry_of(body: bytes, flags: int = 0, messages: int = 1, **fields: Any) -> Entry:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=NOW, **fields)
    return Entry(3, 4, flags, messages, 1, 1, 0, NOW, NOW, 0, 0, encode_entry(metadata, body))


def looked(body: bytes, **fields: Any) -> InspectedMessage:
    (message,) = open_entry(entry_of(body, **fields), DLQ, {}, 1 << 20).messages
    return message


# Fingerprints


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Timeout after 30 ms", "Timeout after 4711 ms"),
        ("order 12-34 of 'bob' failed", "order 9-1 of 'alice' failed"),
        ("no 5b2c7a1e-2f6a-4d52-9f38-11aa22bb33cc", "no 00000000-2f6a-4d52-9f38-11aa22bb33cc"),
        ("at 0xdeadbeef", "at 0x12"),
        ("Foo@1a2b3c4d went", "Foo@99ffaa00 went"),
        ('bad value "x y" in 3.5', 'bad value "z" in 17.25'),
        ("one line\nstack of 1", "one line\nanother stack"),
    ],
)
def test_what_differs_from_time_to_time_does_not_count(one: str, other: str) -> None:
    assert reason_of({"exception": one}) == reason_of({"exception": other}) != ""


def test_of_several_reasons_the_box_tells_least() -> None:
    told = {"DEAD_LETTER_REASON": "redelivered 4 times without being acknowledged, 3 allowed"}
    assert reason_of(told) == "redelivered # times without being acknowledged, # allowed"
    assert reason_of(told | {"x-exception-message": "boom"}) == "boom"
    assert reason_of({"colour": "red", "exception.stacktrace": "at x"}) == ""


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (b'{"b": 1, "a": ["x"], "c": {"d": null, "e": true}}', "{a: [text], b: number, c: {d: null, e: boolean}}"),
        (b"17", "number"),
        (b"hello", "text"),
        (b"\xff\xfe\x00", "binary"),
        (b"", "empty"),
        ("é".encode() * 600, "text"),
    ],
)
def test_shapes(body: bytes, shape: str) -> None:
    assert shape_of(looked(body)) == shape


def test_the_number_in_a_message_is_not_its_kind() -> None:
    one, other = (looked(b'{"n": %d}' % n, properties=pairs({"error": f"no {n}"})) for n in (1, 22))
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one).digest != fingerprint(looked(b'{"m": 1}', properties=pairs({"error": "no 1"}))).digest


@settings(max_examples=examples(40), deadline=None)
@given(st.binary(max_size=200), st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=6))
def test_whatever_is_in_a_message_it_has_one(body: bytes, properties: dict[str, str]) -> None:
    message = looked(body, properties=pairs(properties))
    found = fingerprint(message)
    assert len(found.digest) == 12
    assert len(found.reason) <= 4 * 202
    assert message.decoded is None or body
    assert isinstance(message.replays, int)


def test_of_too_many_groups_the_rest_is_one() -> None:
    into: Groups = {}
    for i in range(GROUPS_MAX + 5):
        mark = fingerprint(looked(b"x", properties=pairs({"error": "e" * (i % 190) + "x" * (i // 190)})))
        merge(into, {mark.digest: FailureGroup(mark, 2, i, i, str(i), DLQ)})
    assert len(into) == GROUPS_MAX + 1
    assert (into[""].count, into[""].first, into[""].last) == (10, GROUPS_MAX, GROUPS_MAX + 4)


# Filters


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('origin == "t" and replays == 2', True),
        ('reason == "no #"', True),
        ("json.n == 5 and size == 8", True),
        ('id == "3:4:-1:-1" and partition == -1', True),
        ('publish_time < time("-1h")', False),
        ('props["error"] is not None', True),
        ("/no 5", True),
        ("!/no 5", False),
        ("encrypted or tombstone", False),
        ('origin_id == "1:2:-1"', True),
    ],
)
def test_filters(text: str, holds: bool) -> None:
    told = {"REAL_TOPIC": "t", "REPLAY_COUNT": "2", "error": "no 5", "ORIGIN_MESSAGE_IDY_TIME": "1:2:-1"}
    wanted = parse_filter(text, NOW)
    assert wanted is not None
    assert wanted(looked(b'{"n": 5}', properties=pairs(told))) is holds


@pytest.mark.parametrize("text", ["nobody == 1", "key ==", 'matches(key, "(a")', "import os", "().__class__"])
def test_what_is_no_filter_is_refused_in_words(text: str) -> None:
    with pytest.raises(Unprocessable, match="filter: "):
        parse_filter(text, NOW)


def test_a_pattern_takes_no_longer_than_the_text_is_long() -> None:
    wanted = parse_filter('matches(payload, "^(a+)+$")', NOW)
    assert wanted is not None
    assert not wanted(looked(b"a" * 50_000 + b"b"))


# Replayed messages


@settings(max_examples=examples(40), deadline=None)
@given(st.binary(max_size=300), st.integers(1, 5), st.integers(0, 31))
def test_whatever_stands_in_an_entry_all_of_it_is_accounted_for(body: bytes, messages: int, unacked: int) -> None:
    """Invalid batches and codecs: done, skipped and rejected messages add up to the total, and nothing is raised."""
    bits = unacked & (1 << messages) - 1
    whole = encode_batch((SingleMessageMetadata(), b"%d" % i) for i in range(messages))
    for entry in (
        entry_of(body, EntryFlag.BATCH, messages, num_messages_in_batch=messages),
        entry_of(whole, EntryFlag.BATCH, messages, num_messages_in_batch=messages),
        entry_of(body, compression=2, uncompressed_size=10),
        entry_of(body, EntryFlag.CHUNK, uuid="u", chunk_id=1, num_chunks_from_msg=3),
    ):
        known = {(3, 4): bits} if entry.num_messages > 1 and bits else {}
        (outcome,) = work_on(TASK, {}, known, frozenset(), Position(9, 9), [entry]).outcomes
        there = (bits if known else (1 << entry.num_messages) - 1).bit_count()
        assert outcome.done + outcome.skipped + sum(outcome.refused.values()) == there
        assert sum(back.messages for back in outcome.back) == outcome.done
        assert outcome.left.bit_count() == there - outcome.done


# New payloads

RECORD = b'{"type": "record", "name": "O", "fields": [{"name": "n", "type": "int"}]}'


@pytest.mark.parametrize(
    ("kind", "definition", "payload", "fits"),
    [
        (Schema.Json, RECORD, b'{"n": 5}', True),
        (Schema.Json, RECORD, b'{"n": "five"}', False),
        (Schema.Json, RECORD, b"five", False),
        (Schema.Avro, RECORD, b"\x0a", True),
        (Schema.Avro, RECORD, b"", False),
        (Schema.Int32, b"", b"\0\0\0\5", True),
        (Schema.Int32, b"", b"\5", False),
        (Schema.String, b"", "é".encode(), True),
        (Schema.String, b"", b"\xff", False),
        (Schema.Json, RECORD.replace(b'"int"', b'"bytes"'), b'{"n": "YQ=="}', True),
        (Schema.Protobuf, b"", b"\xff", True),
    ],
)
def test_whether_a_payload_is_what_a_schema_says(kind: Any, definition: bytes, payload: bytes, fits: bool) -> None:
    schema = Schema(name="s", type=kind, schema_data=definition)
    assert (misfit(schema.SerializeToString(), payload) == "") is fits


def test_with_a_separate_key_the_payload_is_the_value() -> None:
    schema = pair(of_type("STRING"), avro(record("O", field("n"))))
    schema.properties.add(key="kv.encoding.type", value="SEPARATED")
    assert misfit(schema.SerializeToString(), b"\x0a") == ""
    assert misfit(schema.SerializeToString(), b"") != ""
