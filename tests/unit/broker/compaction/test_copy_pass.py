"""Pure steps of compaction: which messages are retained, and how entries are rewritten."""

from random import Random

import pytest

from pulsarbox.broker.compaction.copy_pass import copy
from pulsarbox.broker.compaction.latest_by_key import LatestByKey
from pulsarbox.broker.compaction.scan_pass import DROPPED, WHOLE, EntryRules, examine, key_of
from pulsarbox.plugins.compression.wire import CODECS, CodecMissing
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.compacted_ledger import Original, pack_compacted, unpack_compacted
from pulsarbox.storage.record import Entry
from tests.unit.broker.compaction.entries import Pair, batch, encrypted, entry_of, metadata_of, opened, single

PLAIN = EntryRules()
Kept = list[tuple[int, list[tuple[str, bytes] | None]]]


def compacted(entries: list[Entry], rules: EntryRules = PLAIN, most_keys: int = 1000, step: int = 3) -> list[Original]:
    """Compact all entries, a few at a time."""
    winners = LatestByKey(most_keys)
    again = True
    while again:
        for first in range(0, len(entries), step):
            winners.process(examine(rules, entries[first : first + step], compacted=False).seen)
        again = winners.end_pass()
    kept: list[Original] = []
    at = 0
    for first in range(0, len(entries), step):
        copied = copy(rules, winners.bits, at, entries[first : first + step], compacted=False)
        at += copied.messages
        kept += copied.kept
    assert winners.kept == sum(len([m for m in opened_of(each) if m is not None]) for each in kept)
    return kept


def opened_of(each: Original) -> list[object]:
    metadata = parse_entry(each.entry.body).metadata
    if metadata.encryption_keys:
        return [b""] * each.entry.num_messages
    try:
        return list(opened(each.entry.body))
    except Exception:
        return [b""] * each.entry.num_messages


def shown(kept: list[Original]) -> Kept:
    return [(each.entry.entry_id, opened(each.entry.body)) for each in kept]


def test_the_latest_of_every_key_stays_in_order() -> None:
    entries = [single(0, "a", b"1"), single(1, "b", b"2"), single(2, "a", b"3"), single(3, "c", b"4")]
    assert shown(compacted(entries)) == [(1, [("b", b"2")]), (2, [("a", b"3")]), (3, [("c", b"4")])]


def test_a_message_without_a_value_takes_its_key_away() -> None:
    entries = [single(0, "a"), single(1, "b"), single(2, "a", None), single(3, "b", b""), single(4, "b", b"back")]
    assert shown(compacted(entries)) == [(4, [("b", b"back")])]


def test_messages_without_a_key_go_unless_they_are_wanted() -> None:
    entries = [
        single(0, None), single(1, "a"), batch(2, [(None, b"x"), ("b", b"y")]), single(3, None, ordering_key=b"o"),
    ]  # fmt: skip
    assert [entry for entry, _ in shown(compacted(entries))] == [1, 2]
    kept = shown(compacted(entries, EntryRules(retain_null_key=True)))
    assert [entry for entry, _ in kept] == [0, 1, 2, 3]
    assert kept[2] == (2, [("", b"x"), ("b", b"y")])


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_taken_apart_by_every_codec(codec: str) -> None:
    first = batch(0, [("a", b"1" * 200), ("b", b"2" * 200), ("c", b"3" * 200)], codec, event_time=77)
    second = batch(1, [("b", None), ("d", b"4"), ("d", b"5")], codec)
    kept = compacted([first, second])
    assert shown(kept) == [(0, [("a", b"1" * 200), None, ("c", b"3" * 200)]), (1, [None, None, ("d", b"5")])]
    metadata = parse_entry(kept[0].entry.body).metadata
    assert (metadata.compression, metadata.event_time) == (CODECS[codec], 77)
    assert list(metadata.compacted_batch_indexes) == [0, 2]
    assert kept[0].size == len(first.body) and kept[0].entry.num_messages == 3


def test_what_is_compacted_out_stays_so() -> None:
    kept = compacted([batch(0, [("a", b"1"), ("b", b"2"), ("c", b"3")]), single(1, "b", b"4")])
    again = compacted([each.entry for each in kept] + [single(2, "a", b"5")])
    assert shown(again) == [(0, [None, None, ("c", b"3")]), (1, [("b", b"4")]), (2, [("a", b"5")])]
    assert again[1].entry is kept[1].entry


def test_a_batch_of_which_all_stays_is_not_touched() -> None:
    whole = batch(0, [("a", b"1"), ("b", b"2")], "zstd")
    assert compacted([whole])[0].entry is whole


def test_what_cannot_be_opened_stays_whole() -> None:
    broken = entry_of(1, metadata_of(num_messages_in_batch=3), b"\0\0")
    bomb = batch(2, [("a", b"0" * 100_000)], "zlib")
    entries = [encrypted(0, 2), broken, bomb, single(3, "a")]
    assert [each.entry.entry_id for each in compacted(entries, EntryRules(most_unpacked=50_000))] == [0, 1, 2, 3]


def test_a_codec_that_is_not_there_is_no_reason_to_lose_anything() -> None:
    unknown = entry_of(0, metadata_of(num_messages_in_batch=2, compression=4, uncompressed_size=9), b"x")
    unknown.body  # noqa: B018
    entry = unknown._replace(body=unknown.body)
    metadata = parse_entry(entry.body).metadata
    assert metadata.compression == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulsarbox.plugins.compression.wire.codec", _missing)
        with pytest.raises(CodecMissing):
            examine(EntryRules(), [entry], compacted=False)


def _missing(number: int) -> None:
    raise CodecMissing(f"compression {number}")


def test_markers_go() -> None:
    assert not compacted([entry_of(0, metadata_of(marker_type=1, partition_key="a"), b"x")])


def chunk(number: int, uuid: str, part: int, of: int, key: str) -> Entry:
    return single(number, key, b"x", uuid=uuid, chunk_id=part, num_chunks_from_msg=of)


def test_the_chunks_of_a_message_stay_or_go_together() -> None:
    entries = [
        chunk(0, "u", 0, 2, "a"), chunk(1, "v", 0, 2, "a"), chunk(2, "u", 1, 2, "a"), chunk(3, "v", 1, 2, "a"),
        single(4, "b"), chunk(5, "w", 0, 3, "b"), chunk(6, "w", 1, 3, "b"),
    ]  # fmt: skip
    # The last message is incomplete: entries behind the horizon may contain its remaining chunks.
    assert [each.entry.entry_id for each in compacted(entries)] == [1, 3, 4, 5, 6]


def test_long_keys_are_told_apart() -> None:
    keys = ["k" * length for length in range(1, 40)] + [f"{'k' * 20}{i}" for i in range(50)]
    entries = [single(i, key, b"%d" % i) for i, key in enumerate(keys + keys)]
    assert [each.entry.entry_id for each in compacted(entries)] == list(range(len(keys), 2 * len(keys)))
    assert len({key_of(metadata_of(partition_key=key)) for key in keys}) == len(keys)


def history(random: Random) -> list[Entry]:
    """Generate several hundred messages of a few keys, single and in batches."""

    def pair() -> Pair:
        key = random.choice([None, *(f"key-{i}" for i in range(30))])
        return key, None if random.random() < 0.2 else b"%d" % random.randrange(1 << 30)

    entries = []
    for number in range(120):
        if random.random() < 0.5:
            entries.append(single(number, *pair()))
        else:
            entries.append(batch(number, [pair() for _ in range(random.randrange(1, 6))], random.choice(list(CODECS))))
    return entries


def told(entries: list[Entry]) -> dict[str, bytes]:
    """Return the value of each key after reading all entries."""
    known: dict[str, bytes] = {}
    for entry in entries:
        for message in opened(entry.body):
            if message is not None and message[0]:
                known.pop(message[0], None)
                if message[1]:
                    known[message[0]] = message[1]
    return known


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most_keys", [1, 7, 1000])
def test_a_reader_learns_the_same_however_many_keys_fit_in_memory(seed: int, most_keys: int) -> None:
    entries = history(Random(seed))
    kept = [each.entry for each in compacted(entries, most_keys=most_keys, step=5)]
    assert list(told(kept).items()) == list(told(entries).items())
    assert sum(message is not None for entry in kept for message in opened(entry.body)) == len(told(entries))
    half = len(entries) // 2
    first = [each.entry for each in compacted(entries[:half], most_keys=most_keys)]
    second = [each.entry for each in compacted(first + entries[half:], most_keys=most_keys)]
    assert [opened(entry.body) for entry in second] == [opened(entry.body) for entry in kept]


def test_an_entry_stands_in_a_compacted_ledger_and_comes_out_as_it_was() -> None:
    entry = single(5, "a")._replace(total_messages=40, total_bytes=4000)
    stored = pack_compacted(Original(entry, 99), 12, 3)
    assert (stored.ledger_id, stored.entry_id, stored.total_messages) == (12, 3, 40)
    found = unpack_compacted(stored)
    assert found.size == 99
    assert found.entry._replace(flags=entry.flags, checksum=entry.checksum) == entry


def test_bits_are_set_from_anywhere_to_anywhere() -> None:
    for first in range(20):
        for count in range(40):
            winners = LatestByKey(10)
            winners.process([(DROPPED, first), (WHOLE, count), (DROPPED, 9)])
            assert int.from_bytes(winners.bits, "little") == (1 << count) - 1 << first
