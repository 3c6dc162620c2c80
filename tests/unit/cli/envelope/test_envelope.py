"""Envelopes are lossless in both directions, for any bytes."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.envelope.envelope import EnvelopeWriter, read
from pulsarbox.protocol.message_encoder import Outgoing
from tests.unit.cli.incoming import PUBLISHED, TOPIC, received

anything = st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | anything
times = st.integers(0, 2**63 - 1)
keys = (
    st.tuples(st.none() | texts, st.just(False))
    | st.tuples(st.binary(max_size=30).map(lambda data: base64.b64encode(data).decode()), st.just(True))
)  # fmt: skip
outgoing = st.builds(
    lambda key, **rest: Outgoing(key=key[0], key_is_base64=key[1], **rest),
    key=keys,
    payload=st.none()
    | st.binary(max_size=200)
    | st.text(max_size=50).map(lambda text: text.encode("utf-8", "replace")),
    ordering_key=st.none() | st.binary(max_size=30),
    properties=st.lists(st.tuples(texts, texts), max_size=4),
    event_time=times,
    publish_time=st.integers(1, 2**63 - 1),
    sequence_id=st.integers(0, 2**63 - 1),
    schema_version=st.none() | st.binary(min_size=1, max_size=8),
)


@given(outgoing, st.booleans())
def test_what_is_read_is_what_was_written(message: Outgoing, batched: bool) -> None:
    line = EnvelopeWriter().line(received(message, batched=batched))
    assert line.isascii() and line.endswith(b"\n") and line.count(b"\n") == 1
    anew = message._replace(publish_time=0, sequence_id=None, schema_version=None)
    assert read(line)._replace(deliver_at=0) == anew._replace(properties=list(message.properties) or ())


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_the_time_of_delivery_is_kept(when: int) -> None:
    assert read(EnvelopeWriter().line(received(Outgoing(b"x", deliver_at=when)))).deliver_at == when


def test_the_fields() -> None:
    message = Outgoing(b"\xff", "k", False, b"o", [("a", "1")], 5, 6, PUBLISHED, 9, b"\0\1")
    assert json.loads(EnvelopeWriter().line(received(message, partition=4))) == {
        "v": 1, "topic": TOPIC, "id": "12:7:4:-1", "key": "k", "ordering_key_b64": "bw==", "payload_b64": "/w==",
        "props": {"a": "1"}, "event_time": 5, "seq": 9, "publish_time": PUBLISHED, "deliver_at": 6,
        "producer": "sender", "redelivery": 3, "schema": "AAE=",
    }  # fmt: skip


def test_what_is_not_there_has_no_field() -> None:
    assert set(json.loads(EnvelopeWriter().line(received(Outgoing(b""))))) == {
        "v", "topic", "id", "payload", "seq", "publish_time", "producer", "redelivery",
    }  # fmt: skip


def test_a_tombstone_is_not_an_empty_payload() -> None:
    assert json.loads(EnvelopeWriter().line(received(Outgoing(None, "k"))))["payload"] is None
    assert read(b'{"payload": null}').payload is None
    assert read(b'{"payload": ""}').payload == b""


def test_a_property_that_comes_twice() -> None:
    pairs = [("a", "1"), ("a", "2")]
    line = EnvelopeWriter().line(received(Outgoing(b"", properties=pairs)))
    assert json.loads(line)["props"] == [["a", "1"], ["a", "2"]]
    assert read(line).properties == pairs


def test_a_null_key() -> None:
    assert read(EnvelopeWriter().line(received(Outgoing(b"", null_key=True)))).null_key


def test_a_writer_does_not_mix_up_entries() -> None:
    writer = EnvelopeWriter()
    one, two = received(Outgoing(b"1", publish_time=1)), received(Outgoing(b"2", publish_time=2), topic="other")
    assert [json.loads(writer.line(each))["publish_time"] for each in (one, two, one)] == [1, 2, 1]


def test_fields_that_are_not_known_are_left_out() -> None:
    assert read(b'{"payload": "x", "id": "1:2:-1:-1", "producer": "p", "new": {}}') == Outgoing(b"x")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ("[]", "expected a JSON object"),
        ('{"v": 2, "payload": ""}', "unsupported envelope version 2; expected 1"),
        ("{}", "no payload"),
        ('{"payload": 1}', "payload is not text"),
        ('{"payload": {}}', "payload is not text"),
        ('{"payload": "\\ud800"}', "unpaired surrogate"),
        ('{"payload_b64": "?"}', "payload_b64 is not base64"),
        ('{"payload_b64": 1}', "payload_b64 is not base64"),
        ('{"payload": "", "key": 1}', "key is not text"),
        ('{"payload": "", "key": "\\ud800"}', "key contains an unpaired surrogate"),
        ('{"payload": "", "key_b64": "a"}', "key_b64 is not base64"),
        ('{"payload": "", "props": 1}', "props: expected an object"),
        ('{"payload": "", "props": {"a": 1}}', "expected text names and values"),
        ('{"payload": "", "props": [["a"]]}', "expected text names and values"),
        ('{"payload": "", "event_time": -1}', "event_time: expected a number"),
        ('{"payload": "", "encrypted": true}', "use --preserve"),
        ('{"payload": "", "event_time": true}', "event_time: expected a number"),
        ('{"payload": "", "deliver_at": 1e99}', "deliver_at: expected a number"),
    ],
)
def test_what_is_no_envelope_is_refused_in_words(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read(line.encode())


@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda text: ('{"payload":"","key":' + text).encode()))
def test_any_line_is_read_or_refused(line: bytes) -> None:
    try:
        read(line)
    except ValueError:
        pass
