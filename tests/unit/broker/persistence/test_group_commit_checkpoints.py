"""A checkpoint of many topics is recorded over several batches, and contains all committed data."""

from collections import Counter
from typing import Any

import pytest

from pulsarbox.broker.persistence import group_commit
from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import Box, Client

AT_ONCE = 10
COUNT = 45


def name(number: int) -> str:
    return f"persistent://public/default/t-{number:02}"


def noted(box: Box, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the rows noted from now on, by kind."""
    found: Counter[str] = Counter()
    store: Any = box.broker.store

    def counted(kind: str) -> Any:
        note = getattr(store, kind)

        def told(what: object) -> None:
            found[kind] += 1
            note(what)

        return told

    for kind in ("note_ledger", "note_cursor", "note_sequences"):
        monkeypatch.setattr(store, kind, counted(kind))
    return found


def busy(monkeypatch: pytest.MonkeyPatch, count: int = COUNT) -> tuple[Box, Client]:
    """Build a box with ``count`` topics, each with a message and a subscription that has acknowledged it."""
    monkeypatch.setattr(group_commit, "NOTED_AT_ONCE", AT_ONCE)
    box = Box(brokerDeduplicationEnabled=True)
    client = box.client()
    for number in range(count):
        client.producer(number, name(number), producer_name=f"p-{number}")
        client.subscribe("s", number, name(number))
    checkpoint(box)
    for number in range(count):
        client.send(0, b"x", number, producer_name=f"p-{number}")
        topic = box.broker.topics.persistent(name(number), box.now)
        assert topic is not None
        last = topic.ledger.last_confirmed
        client.ack((last.ledger_id, last.entry_id), consumer_id=number)
    return box, client


def checkpoint(box: Box) -> None:
    """Run a checkpoint to its end."""
    box.broker.commits.ask_checkpoint()
    box.turn()
    assert box.broker.commits.housekeeping.idle


def state(box: Box, count: int = COUNT) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for number in range(count):
        topic = box.broker.topics.persistent(name(number), box.now)
        assert topic is not None
        cursors = [(cursor.mark_delete, cursor.mark_messages) for cursor in topic.stored.cursors.values()]
        ledger = topic.ledger
        sequence = topic.stored.sequences.last_persisted(f"p-{number}")
        found.append((ledger.last_confirmed, ledger.confirmed_messages, ledger.confirmed_bytes, sequence, *cursors))
    return found


def test_a_turn_notes_so_many_and_all_are_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    box, _ = busy(monkeypatch)
    box.auto = False
    found, before = noted(box, monkeypatch), 0
    box.broker.commits.ask_checkpoint()
    batches = 0
    while not box.broker.commits.housekeeping.idle:
        batches += box.commit()
        assert found.total() - before <= AT_ONCE
        before = found.total()
        box.chore()
    assert found == {"note_ledger": COUNT, "note_cursor": COUNT, "note_sequences": COUNT}
    assert batches == 3 * COUNT // AT_ONCE + 1
    assert state(box.restart()) == state(box)


def test_few_are_noted_with_the_checkpoint_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    box, _ = busy(monkeypatch, 3)
    box.auto = False
    box.broker.commits.ask_checkpoint()
    assert box.commit()
    assert box.chore()
    assert box.broker.commits.housekeeping.idle


def test_what_changes_on_the_way_is_noted_again_and_the_checkpoint_comes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box, client = busy(monkeypatch)
    box.auto = False
    found = noted(box, monkeypatch)
    box.broker.commits.ask_checkpoint()
    batches = 0
    while not box.broker.commits.housekeeping.idle:
        batches += 1
        for number in range(COUNT):  # more changes than a batch notes
            client.send(batches, b"y", number, producer_name=f"p-{number}")
        assert box.commit()
        box.chore()
    assert batches == 3 * COUNT // AT_ONCE + 1, "as many as it takes without"
    assert found["note_ledger"] > COUNT
    again = box.restart()
    assert state(again) == state(box)
    checkpoint(again)
    assert state(again.restart()) == state(box)


@pytest.mark.parametrize("failing", [1, 2, 7, 14])
def test_what_a_failed_commit_gives_up_is_in_no_checkpoint(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    box, client = busy(monkeypatch)
    box.auto = False
    before = state(box)
    box.broker.commits.ask_checkpoint()
    batches = 0
    while not box.broker.commits.housekeeping.idle:
        batches += 1
        if batches == failing:
            for number in range(COUNT):
                client.send(1, b"never", number, producer_name=f"p-{number}")
            assert box.commit(PersistenceError("no"))
            box._set_time(box.time + 1)
            continue
        box.commit()
        box.chore()
    assert state(box) == before
    assert state(box.restart()) == before
    topic = box.restart().broker.topics.open(parse_topic(name(0)), box.now)
    assert topic.last_sequence_id("p-0") == 0
