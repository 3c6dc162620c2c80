"""Entries decoded into columns: content of each column, and selection of messages within an entry."""

from base64 import b64encode
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.client.credentials import Credentials
from pulsarbox.plugins.compression.wire import CODECS, compress
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import CompressionType, MessageIdData, MessageMetadata, SingleMessageMetadata
from pulsarbox.spark import access
from pulsarbox.spark.access import Entry
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.decode import entry_decoder as opened
from pulsarbox.spark.decode.entry_decoder import _Opening, messages
from pulsarbox.spark.decode.message_columns import COLUMNS, Messages
from pulsarbox.spark.topic_segments import DataLost, Lost, Reach, ReadPosition, TopicSegment, hosts_of, part_of

T = "persistent://public/default/t-partition-3"
SEGMENT = TopicSegment(T, 7, 0, 99, 100, 1000)


class Told:
    """Service that records losses."""

    def __init__(self) -> None:
        self.told: list[Lost] = []

    def lost(self, lost: Lost) -> None:
        self.told.append(lost)


def metadata(**fields: Any) -> MessageMetadata:
    return MessageMetadata(**{"producer_name": "p", "sequence_id": 40, "publish_time": 1234, **fields})


def entry(body: bytes = b"x", at: int = 0, **fields: Any) -> Entry:
    return 7, at, encode_entry(metadata(**fields), body)


def batch(*singles: SingleMessageMetadata, at: int = 0, codec: str = "none", **fields: Any) -> Entry:
    body = encode_batch([(each, b"" if each.null_value else b"m%d" % index) for index, each in enumerate(singles)])
    fields |= {"num_messages_in_batch": len(singles)}
    if codec != "none":
        fields |= {"compression": CompressionType.Name(CODECS[codec]), "uncompressed_size": len(body)}
    return entry(compress(CODECS[codec], body), at, **fields)


def single(**fields: Any) -> SingleMessageMetadata:
    return SingleMessageMetadata(payload_size=0, **fields)


def columns(*entries: Entry, segment: TopicSegment = SEGMENT, told: Told | None = None) -> Messages:
    opening = _Opening(segment, COLUMNS, cast(Service, told or Told()))
    left = list(entries)
    while left:
        left = left[opening.add(left) :]
    return opening.take()


def test_a_message_says_what_its_metadata_does() -> None:
    some = columns(
        entry(b"body", partition_key="k", ordering_key=b"o", event_time=5, schema_version=b"\0" * 8,
              properties=[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}, {"key": "a", "value": "3"}]),
        entry(b"ignored", 1, null_value=True, partition_key=b64encode(b"\xff\0").decode(),
              partition_key_b64_encoded=True),
        entry(b"", 2, partition_key="", partition_key_b64_encoded=False),
        entry(b"x", 3, partition_key="no base64", partition_key_b64_encoded=True),
    )  # fmt: skip
    assert (some.topic, some.partition, some.rows) == (T, 3, 4)
    assert some.payload == [b"body", None, b"", b"x"]
    assert some.key == [b"k", b"\xff\0", b"", b"no base64"]
    assert some.ordering_key == [b"o", None, None, None]
    assert some.properties.pairs() == [[("a", "3"), ("b", "2")], [], [], []]
    assert (some.event_time, some.publish_time) == ([5, None, None, None], [1234] * 4)
    assert (some.schema_version, some.producer_name) == ([b"\0" * 8, None, None, None], ["p"] * 4)
    assert (some.sequence_id, some.batch) == ([40] * 4, [None] * 4)
    assert (some.ledger, some.entry) == ([7] * 4, [0, 1, 2, 3])
    assert MessageIdData.FromString(some.message_id[2]) == MessageIdData(ledgerId=7, entryId=2, partition=3)


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_a_batch_is_taken_apart(codec: str) -> None:
    some = columns(
        batch(single(partition_key="a", event_time=9), single(null_value=True), single(sequence_id=77), codec=codec)
    )
    assert some.payload == [b"m0", None, b"m2"]
    assert (some.key, some.event_time) == ([b"a", None, None], [9, None, None])
    assert (some.sequence_id, some.batch, some.entry) == ([40, 41, 77], [0, 1, 2], [0, 0, 0])
    expected = MessageIdData(ledgerId=7, entryId=0, partition=3, batch_index=1, batch_size=3)
    assert MessageIdData.FromString(some.message_id[1]) == expected


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_one_that_is_compressed_alone_is_unpacked(codec: str) -> None:
    body = b"tea and salt " * 9
    fields: dict[str, Any] = {"compression": CompressionType.Name(CODECS[codec]), "uncompressed_size": len(body)}
    assert columns(entry(compress(CODECS[codec], body), **fields)).payload == [body]


def test_what_is_encrypted_comes_as_it_is() -> None:
    keys = [{"key": "k", "value": b"v"}]
    some = columns(entry(b"secret", encryption_keys=keys, num_messages_in_batch=3, compression="ZLIB"))
    assert (some.payload, some.batch) == ([b"secret"], [None])


def test_ranges_within_batches_and_what_is_compacted_out() -> None:
    five = [single(compacted_out=index == 3) for index in range(5)]
    ends = SEGMENT._replace(first=4, last=5, from_batch=2, to_batch=3)
    assert columns(batch(*five, at=4), batch(*five, at=5), segment=ends).batch == [2, 3, 4, 0, 1, 2]
    view = SEGMENT._replace(compacted=8, start=ReadPosition(7, 4, 1), end=ReadPosition(7, 6))
    some = columns(*(batch(*five, at=at) for at in range(3, 8)), segment=view)
    assert list(zip(some.entry, some.batch, strict=True)) == [(4, 1), (4, 2), (4, 4), (5, 0), (5, 1), (5, 2), (5, 4)]
    one = view._replace(start=ReadPosition(7, 4), end=ReadPosition(7, 5))
    assert columns(*(entry(at=at) for at in range(3, 8)), segment=one).entry == [4]


def test_what_cannot_be_opened_is_told_and_left_out() -> None:
    told = Told()
    _, _, whole = batch(single(), single(), single())
    some = columns(
        entry(b"1", 0),
        entry(b"no batch", 1, num_messages_in_batch=3),
        entry(b"no zlib", 2, compression="ZLIB", uncompressed_size=9),
        (7, 3, whole[:-1]),
        (7, 4, b"\x0e\x01nothing of that kind"),
        (7, 5, b""),
        entry(b"6", 6),
        told=told,
    )
    assert some.entry == [0, 6]
    assert [each.start for each in told.told] == [ReadPosition(7, at) for at in range(1, 6)]


def chunks(uuid: str, count: int, at: int) -> list[Entry]:
    fields: dict[str, Any] = {"uuid": uuid, "num_chunks_from_msg": count, "total_chunk_msg_size": 2 * count}
    return [entry(b"%s%d" % (uuid.encode(), index), at + index, chunk_id=index, **fields) for index in range(count)]


def test_chunks_are_joined_where_the_last_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = chunks("a", 3, 10), chunks("b", 2, 13)
    log = [entry(b"0", 9), *a[:2], entry(b"between", 12), a[2], *b]
    log = [(7, 20 + number, body) for number, (_, _, body) in enumerate(log)]
    asked = []

    def before(segment: TopicSegment, service: Service) -> Any:
        asked.append(segment.first)
        front = [each for each in log if each[1] < segment.first]
        for at in range(len(front), 0, -2):
            yield front[max(0, at - 2) : at]

    monkeypatch.setattr(opened, "_before", before)
    whole = columns(*log)
    assert whole.payload == [b"0", b"between", b"a0a1a2", b"b0b1"]
    assert asked == []
    first = MessageIdData.FromString(whole.message_id[2]).first_chunk_message_id
    assert (first.ledgerId, first.entryId, first.partition) == (7, 21, 3)
    for cut in range(len(log) + 1):
        at = 20 + cut
        left = columns(*log[:cut], segment=SEGMENT._replace(first=20, last=at - 1))
        right = columns(*log[cut:], segment=SEGMENT._replace(first=at, last=40))
        assert left.payload + right.payload == whole.payload
        assert left.message_id + right.message_id == whole.message_id


def test_chunks_whose_beginning_is_gone_make_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "_before", lambda segment, service: iter(()))
    a = chunks("a", 3, 10)
    assert columns(*a[1:], entry(b"x", 30)).payload == [b"x"]
    assert columns(a[0], a[1], a[1], a[0], a[1], a[2]).payload == [b"a0a1a2"]


def test_a_first_chunk_that_is_too_far_back_to_be_looked_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported once, by the reader of the last chunk, because the message belongs to that position."""
    a = chunks("a", 3, 0)
    log = [a[0], *(entry(at=at) for at in range(1, 200)), (7, 200, a[1][2]), entry(at=201), (7, 202, a[2][2])]

    class Box(Told):
        reach = Reach("pulsar://h:1")

        def segments(self, topic: str, start: ReadPosition, end: ReadPosition) -> list[TopicSegment]:
            return [SEGMENT._replace(first=0, last=end.entry - 1)]

    def entries(segment: TopicSegment, *_: Any) -> Any:
        yield log[segment.first : segment.last + 1]

    monkeypatch.setattr(access, "entries", entries)
    monkeypatch.setattr(opened, "BACK_ENTRIES", 60)
    told = Box()
    assert columns(*log[160:202], segment=SEGMENT._replace(first=160, last=201), told=told).rows == 41
    assert told.told == []
    assert columns(*log[201:], segment=SEGMENT._replace(first=201, last=202), told=told).rows == 1
    (lost,) = told.told
    assert (lost.start, lost.end) == (ReadPosition(7, 202), ReadPosition(7, 203))
    assert "the first chunk of the message is more than 60 entries back" in str(lost)
    monkeypatch.setattr(opened, "BACK_ENTRIES", 300)
    told.told.clear()
    found = columns(*log[201:], segment=SEGMENT._replace(first=201, last=202), told=told)
    assert (found.payload, told.told) == ([b"x", b"a0a1a2"], [])


def test_it_is_full_by_rows_and_by_bytes() -> None:
    opening = _Opening(SEGMENT, frozenset({"payload"}), cast(Service, Told()))
    assert opening.add([entry(at=at) for at in range(1000)]) == opened.ROWS_MAX
    assert opening.is_full
    assert opening.take().rows == opened.ROWS_MAX
    assert opening.add([entry(bytes(300_000), at) for at in range(9)]) == 4


def test_blocks_are_parted_in_order_and_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "PARTED_BYTES", 300)
    stored = encode_entry(metadata(), b"x")
    body = len(stored) - 1

    def block(at: int) -> Block:
        places = [body, len(stored), len(stored) + body, 2 * len(stored)]
        return Block(2 * stored, [0, 1], [at, at], [stored[10:body]] * 2, places, {0: 7, 1: 8})

    pieces: list[access.Piece] = [block(at) for at in range(20)]
    pieces[15] = (1, [(8, 15, stored)])
    found: dict[int, list[int]] = {0: [], 1: []}
    most = 0
    for number, some in opened._parted(iter(pieces)):
        assert all(each[2] == stored for each in some)
        found[number] += [each[1] for each in some]
        most = max(most, len(some))
    assert found == {0: [at for at in range(20) if at != 15], 1: list(range(20))}
    assert 1 < most <= 1 + 300 // len(2 * stored)


def test_what_is_no_column_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown message column 'paylod'"):
        next(messages(SEGMENT, frozenset({"paylod"}), Reach("pulsar://h:1")))


@given(st.integers(0, 50), st.integers(0, 60), st.integers(1, 3000), st.sets(st.integers(0, 110)), st.booleans())
def test_pieces_of_a_segment_are_the_segment(first: int, more: int, size: int, hidden: set[int], cut: bool) -> None:
    runs = tuple((at, at) for at in sorted(hidden) if first <= at <= first + more)
    ends = (2, 3) if cut else (0, 0)
    segment = TopicSegment(T, 7, first, first + more, more + 1, 40 * (more + 1), runs, *ends)
    pieces = list(segment.parts(size))
    assert [at for each in pieces for low, high in each.visible for at in range(low, high + 1)] == [
        at for at in range(first, first + more + 1) if at not in hidden
    ]
    assert (pieces[0].from_batch, pieces[-1].to_batch) == ends
    assert not any(each.from_batch for each in pieces[1:]) and not any(each.to_batch for each in pieces[:-1])
    assert sum(each.messages for each in pieces) == pytest.approx(segment.messages, abs=len(pieces))


def test_urls_and_places() -> None:
    assert hosts_of("pulsar://a:1,b,[::1]:2", 6650) == ((("a", 1), ("b", 6650), ("::1", 2)), False)
    assert hosts_of("https://h/", 8443) == ((("h", 8443),), True)
    for wrong in ("localhost:6650", "kafka://h:1", "pulsar://", "pulsar://h:x", "pulsar://h:0"):
        with pytest.raises(ValueError, match=r"not a valid broker URL|not a valid host and port"):
            hosts_of(wrong, 6650)
    assert (part_of("3:4"), part_of("3:4:5")) == (ReadPosition(3, 4), ReadPosition(3, 4, 5))


def test_what_is_lost_can_be_pickled() -> None:
    import pickle

    error = DataLost(Lost(T, ReadPosition(1, 2), ReadPosition(3, 4), "is gone"))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 # our own
    assert (again.lost, str(again)) == (error.lost, str(error))
    assert "entries from 1:2 up to 3:4" in str(error)
    assert pickle.loads(pickle.dumps(SEGMENT)) == SEGMENT  # noqa: S301 # our own
    reach = Reach("pulsar://h:1", "http://h:2", credentials=Credentials(token="secret"))
    assert "secret" not in repr(reach)
    assert pickle.loads(pickle.dumps(reach)) == reach  # noqa: S301 # our own
