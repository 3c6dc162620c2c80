"""Size of micro-batches: close to the limit, complete in the end, and fair to every topic."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.spark.source.admission_limits import Available, admitted
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition, TopicSegment


def available(topic: str, ledgers: list[tuple[int, int]], start: int = 0) -> Available:
    """Ledgers with the given numbers of entries, and of messages in each entry."""
    segments = [
        TopicSegment(
            topic, number, start if not number else 0, entries - 1, (entries - (0 if number else start)) * each, 100
        )
        for number, (entries, each) in enumerate(ledgers)
        if number or start < entries
    ]
    last = len(ledgers) - 1
    total = sum(entries * each for entries, each in ledgers)
    return Available(Mark(ReadPosition(0, start), 0), segments, Mark(ReadPosition(last, ledgers[last][0]), total))


LEDGERS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 5)), min_size=1, max_size=4)


def behind(found: Available, ledgers: list[tuple[int, int]], mark: Mark) -> int:
    """The number of messages from the start to a position."""
    count = 0
    for number, (entries, each) in enumerate(ledgers):
        first = found.start.place.entry if not number else 0
        upto = entries if mark.place.ledger > number else mark.place.entry if mark.place.ledger == number else 0
        count += max(0, upto - first) * each
    return count


@given(LEDGERS, st.integers(1, 200))
def test_a_topic_is_read_in_steps_of_about_the_limit_and_to_its_end(ledgers: list[tuple[int, int]], limit: int) -> None:
    start, steps = Mark(ReadPosition(0, 0), 0), 0
    everything = available("t", ledgers)
    largest = max(each for _, each in ledgers)
    while start != everything.end:
        found = _from(everything, ledgers, start)
        (mark,) = admitted({"t": found}, limit, None).values()
        read = behind(everything, ledgers, mark) - behind(everything, ledgers, start)
        assert 0 < read <= max(limit, largest)
        start, steps = mark, steps + 1
    assert steps <= everything.messages


def _from(everything: Available, ledgers: list[tuple[int, int]], start: Mark) -> Available:
    segments = []
    for segment in everything.segments:
        first = max(segment.first, start.place.entry) if segment.ledger == start.place.ledger else segment.first
        if segment.ledger >= start.place.ledger and first <= segment.last:
            each = ledgers[segment.ledger][1]
            segments.append(segment._replace(first=first, messages=(segment.last - first + 1) * each))
    return Available(start, segments, everything.end)


@given(st.lists(LEDGERS, min_size=1, max_size=5), st.integers(1, 50))
def test_several_topics_share_the_limit(all_ledgers: list[list[tuple[int, int]]], limit: int) -> None:
    found = {f"t-{number}": available(f"t-{number}", ledgers) for number, ledgers in enumerate(all_ledgers)}
    marks = admitted(found, limit, None)
    read = sum(
        behind(found[topic], ledgers, marks[topic]) for topic, ledgers in zip(sorted(found), all_ledgers, strict=True)
    )
    assert 0 < read <= max(limit, 5)


def test_without_a_limit_all_is_read() -> None:
    found = {"t": available("t", [(10, 2)])}
    assert admitted(found, None, None) == {"t": found["t"].end}
    assert admitted(found, 20, 100) == {"t": found["t"].end}


def test_bytes_limit_as_messages_do() -> None:
    found = {"t": available("t", [(10, 1)])}
    assert admitted(found, None, 50) == {"t": Mark(ReadPosition(0, 5), 0)}
    assert admitted(found, 2, 50) == {"t": Mark(ReadPosition(0, 2), 0)}


def test_topics_take_turns_where_the_limit_is_below_one_entry_of_each() -> None:
    found = {name: available(name, [(10, 1)]) for name in "abc"}
    moved = []
    for turn in range(3):
        marks = admitted(found, 1, None, turn)
        moved.append({name for name in "abc" if marks[name] != found[name].start})
    assert set.union(*moved) == {"a", "b", "c"}


def test_the_end_of_what_was_read_is_noted_with_its_total() -> None:
    """A position at the end of a trimmed ledger is not reported as data loss."""
    found = {"t": available("t", [(10, 1)])}
    assert admitted(found, 10, None)["t"].seen == 10
    assert admitted(found, 5, None)["t"].seen == 0


def test_nothing_new_is_nothing_to_admit() -> None:
    start = Mark(ReadPosition(3, 4), 9)
    assert admitted({"t": Available(start, [], start)}, 1, 1) == {"t": start}
