"""Selection of ledgers to offload, detection of lost ledgers, and required retention in the box."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.spark.decode.entry_decoder import BACK_ENTRIES
from pulsarbox.spark.offload.ledgers import ReadableLedger, due, held_from, stretches
from pulsarbox.spark.offload.manifest import Gap, OffloadedLedger, OffloadedTopic
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition, TopicSegment

TOPIC = "persistent://public/default/t"


def stretch(ledger: int, entries: int, before: int, *, seen: int | None = None, closed: int = 1) -> ReadableLedger:
    last = (entries if seen is None else seen) - 1
    return ReadableLedger(TopicSegment(TOPIC, ledger, 0, last, last + 1, 10), entries, before, before + entries, closed)


def log(*sizes: int) -> list[ReadableLedger]:
    found, before = [], 0
    for ledger, entries in enumerate(sizes, 1):
        found.append(stretch(ledger, entries, before))
        before += entries
    return found


def ledger(number: int, entries: int, at: int = 0, unfinished: tuple[str, ...] = ()) -> OffloadedLedger:
    empty = dict.fromkeys(OffloadedLedger._fields, 0)
    known = {"topic": TOPIC, "ledger": number, "entries": entries, "at": at, "unfinished": unfinished, "after": 0}
    return OffloadedLedger(**(empty | known))  # type: ignore[arg-type]


BEGIN = Mark(ReadPosition(1, 0), 0)


def ids(found: tuple[ReadableLedger, ...]) -> list[int]:
    return [each.segment.ledger for each in found]


def test_ledgers_go_in_order_up_to_the_first_that_may_still_change() -> None:
    whole = log(5, 5, 5, 5)
    assert ids(due(BEGIN, BEGIN, whole).stretches) == [1, 2, 3, 4]
    grows = [*whole[:2], whole[2]._replace(closed=0), whole[3]]
    assert ids(due(BEGIN, BEGIN, grows).stretches) == [1, 2]
    open_transaction = [whole[0], stretch(2, 5, 5, seen=3)]
    assert ids(due(BEGIN, BEGIN, open_transaction).stretches) == [1]
    assert ids(due(Mark(ReadPosition(2, 5), 10), BEGIN, whole[2:]).stretches) == [3, 4]
    timed = [each._replace(closed=100 * each.segment.ledger) for each in whole]
    assert ids(due(BEGIN, BEGIN, timed, closed_before=300).stretches) == [1, 2]


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8), data=st.data())
def test_whatever_is_gone_is_told_once_and_all_else_is_offloaded(sizes: list[int], data: st.DataObject) -> None:
    whole = log(*sizes)
    there = [each for each in whole if data.draw(st.booleans())]
    total = sum(sizes)
    first = there[0] if there else None
    earliest = (
        Mark(ReadPosition(first.segment.ledger, 0), first.before)
        if first
        else Mark(ReadPosition(len(sizes) + 1, 0), total)
    )
    mark, offloaded, gone = BEGIN, 0, 0
    for _ in range(2 * len(sizes) + 2):
        found = due(mark, earliest, [each for each in there if each.segment.ledger >= mark.place.ledger])
        for each in found.stretches:
            assert each.before == mark.seen
            offloaded += each.entries
            mark = Mark(ReadPosition(each.segment.ledger, each.entries), each.after)
        if found.gap is None:
            break
        assert found.gap.start == mark.place and found.gap.end.seen > mark.seen
        gone += found.gap.end.seen - mark.seen
        mark = found.gap.end
    assert offloaded == sum(each.entries for each in there)
    behind = total - (there[-1].after if there else 0)
    assert gone + offloaded == total - (behind if there else 0), "what went behind the last is not known yet"


def test_a_topic_that_was_made_anew_is_no_continuation() -> None:
    found = due(Mark(ReadPosition(4, 5), 20), Mark(ReadPosition(9, 0), 0), [stretch(9, 5, 0)])
    assert found.stretches == () and found.gap is not None and "recreated" in found.gap.reason
    empty = due(Mark(ReadPosition(4, 5), 20), Mark(ReadPosition(9, 0), 0), [])
    assert empty.gap is not None and "recreated" in empty.gap.reason


def test_an_empty_ledger_that_went_is_no_loss() -> None:
    assert due(Mark(ReadPosition(4, 5), 20), Mark(ReadPosition(9, 0), 20), []).gap is None


def test_a_ledger_that_was_told_in_pieces_is_one() -> None:
    row = {"messages": 2, "bytes": 20, "entries": 4, "before": 0, "after": 4, "closed": 1, "ledger": 3}
    pieces = [
        {**row, "first": 0, "last": 1, "hidden": [[0, 0]], "volumes": ["volumes/1"]},
        {**row, "first": 2, "last": 3, "hidden": [[3, 3]], "volumes": ["volumes/1", "volumes/2"]},
    ]
    (found,) = stretches(TOPIC, "box", pieces)
    assert found.is_whole and found.segment.visible == [(1, 2)]
    assert found.segment.volumes == ("volumes/1", "volumes/2") and found.segment.bytes == 40


def test_what_is_released_waits_for_its_time_and_for_chunks() -> None:
    history = OffloadedTopic(TOPIC, BEGIN, "")
    assert held_from(history, 100) == BEGIN.place
    history.ledgers += [ledger(1, 10, at=50), ledger(2, 10, at=90), ledger(3, 10, at=150)]
    assert held_from(history, 100) == ReadPosition(2, 10), "the third was offloaded only just"
    history.ledgers[1] = ledger(2, 10, at=90, unfinished=("2:7",))
    assert held_from(history, 200) == ReadPosition(2, 7), "a message that begins there has not ended"
    history.ledgers.append(ledger(4, BACK_ENTRIES, at=160))
    assert held_from(history, 200) == ReadPosition(4, BACK_ENTRIES), "nobody looks for its chunks so far back"
    history.gaps.append(Gap(ReadPosition(4, 5), Mark(ReadPosition(7, 0), 99), "gone"))
    assert held_from(history, 200) == ReadPosition(7, 0)
