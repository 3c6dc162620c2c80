"""States of transactions in files without a running box, or read by another process.

Open and aborted transactions keep their state wherever packing moves their entries.
"""

from pathlib import Path
from typing import Any

import pytest

from pulsarbox.storage.engine import Engine
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.inspection.dead_box import dead_box
from pulsarbox.storage.inspection.dump import records_of
from pulsarbox.storage.inspection.statistics import statistics
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.transactions import aborted_of, visible_runs
from tests import forks
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.transactions_playbook import MINUTE, OTHER, At, Txn, backlog, reader, topic_of

LETTERS = "persistent://public/default/t-s-DLQ"
SETTINGS: dict[str, Any] = {"managedLedgerMaxEntriesPerLedger": 20, "managedLedgerMinLedgerRolloverTimeMinutes": 0}


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


class DirectoryBox(Box):
    """A box on files, with small volumes."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        super().__init__(**SETTINGS | settings)
        self.broker.commits.housekeeping.checkpoint_every = 20_000

    def open_engine(self) -> Engine:
        return LmdbEngine(self.path, volume_size=1 << 16, index_flush_entries=20, learn_from_bytes=1 << 12)

    def checkpoint(self) -> None:
        self.broker.commits.ask_checkpoint()
        self.turn()

    def close(self) -> None:
        self.engine.close()


class Story:
    """Transactions on two topics with known outcomes."""

    def __init__(self, box: DirectoryBox) -> None:
        self.box = box
        self.client = box.client()
        for number, topic in enumerate((TOPIC, OTHER, LETTERS), 1):
            self.client.producer(number, topic)
        self.keeper = reader(box, "keeper", topic=OTHER, permits=0)
        self.sequence_id = 0
        self.states: dict[At, str | None] = {}
        """State of the entries of OTHER; None for an entry without a transaction."""

    def plain(self, producer_id: int = 2) -> At:
        self.sequence_id += 1
        self.client.send(self.sequence_id, b"some words of which there are many, some words " * 8, producer_id)
        at = self.client.take("send_receipt").message_id
        place = at.ledgerId, at.entryId
        if producer_id == 2:
            self.states[place] = None
        return place

    def post(self, txn: Txn, count: int, state: str) -> None:
        for _ in range(count):
            self.sequence_id += 1
            self.states[txn.send(self.sequence_id, 2)] = state

    def committed_and_aborted(self) -> None:
        first, second = Txn(self.client), Txn(self.client)
        for _ in range(2):
            self.post(first, 2, "committed")
            self.post(second, 2, "aborted")
        first.commit()
        second.abort()
        self.plain()

    def open(self) -> Txn:
        txn = Txn(self.client, 60 * MINUTE)
        self.post(txn, 3, "open")
        self.plain()
        return txn

    def churn(self, consumer: Client, count: int) -> None:
        """Publish messages and acknowledge them at once, so that volumes with little live data are packed."""
        for _ in range(count):
            at = self.plain(1)
            consumer.inbox.clear()
            consumer.ack(at)
            consumer.flow(1)

    @property
    def seen(self) -> list[At]:
        """The entries visible to a reader of OTHER."""
        found = []
        for at, state in self.states.items():
            if state == "open":
                break
            if state != "aborted":
                found.append(at)
        return found


def told(path: Path, topic: str = OTHER) -> dict[At, str | None]:
    """The transaction states of a topic's entries in a dump."""
    complaints: list[str] = []
    records = records_of(path, {"kind": "entry", "topic": topic}, complaints.append)
    found = {(each["ledger"], each["entry"]): each.get("state") for each in records}
    assert not complaints
    return found


def of_files(path: Path) -> list[At]:
    """The visible entries of OTHER according to the function for file readers."""
    box = DirectoryBox(path)
    topic = topic_of(box, OTHER)
    catalog, stored = box.broker.catalog, topic.stored
    found = [
        (ledger_id, entry_id)
        for ledger_id, info in stored.ledger.ledgers.items()
        for first, end in visible_runs(
            ledger_id,
            0,
            info.confirmed,
            stored.ledger.read_limit,
            aborted_of(catalog, stored.topic_id, ledger_id),
        )
        for entry_id in range(first, end)
    ]
    box.close()
    return found


def test_what_tools_say_of_a_box_that_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / "data"
    box = DirectoryBox(path)
    story = Story(box)
    consumer = reader(box, "s")
    (first, _), letter = (story.plain(1), story.plain(1)), Txn(story.client)
    letter.send(900, 3)
    letter.abort()
    story.plain(3)
    story.committed_and_aborted()
    box.checkpoint()
    story.committed_and_aborted()
    txn = story.open()
    assert not txn.of(consumer).ack(first).HasField("error")
    live = {(name, each): backlog(box, name, each)[0] for name, each in ((TOPIC, "s"), (OTHER, "keeper"))}
    box.close()

    report = check(path)
    assert not report.findings, report.findings
    assert told(path) == story.states
    totals = statistics(path, 5)["totals"]
    assert (totals["open_transactions"], totals["aborted_entries"], totals["sinks"]) == (1, 9, 0)
    dead = dead_box(path)
    found = {(row["topic"], row["subscription"]): row["backlog"] for row in dead.views["subscriptions"]}
    assert found == live
    assert [row["messages"] for row in dead.views["deadletters"]] == [1]
    assert of_files(path) == story.seen


def test_what_was_aborted_stays_so_when_it_is_packed_and_compressed(tmp_path: Path) -> None:
    path, compressing = tmp_path / "data", {"compressionAtRest": "zstd"}
    box = DirectoryBox(path)
    story = Story(box)
    story.committed_and_aborted()
    box.close()
    box = DirectoryBox(path, **compressing)
    story, before = Story(box), story
    story.states, story.sequence_id = before.states, before.sequence_id
    consumer = reader(box, "s")
    story.churn(consumer, 150)
    story.committed_and_aborted()
    story.churn(consumer, 150)
    txn = story.open()
    box.checkpoint()
    box.advance(20)
    live = backlog(box, OTHER, "keeper")[0]
    box.close()

    document = statistics(path, 5)
    assert "packed" in {each["state"] for each in document["volumes"]}
    records = list(records_of(path, {"kind": "entry", "topic": OTHER}, pytest.fail))
    moved = [each for each in records if each["volume"].startswith("packed")]
    assert any("compressed" in each for each in moved) and any(each.get("state") == "aborted" for each in moved)
    assert {(each["ledger"], each["entry"]): each.get("state") for each in records} == story.states
    assert not check(path).findings
    assert of_files(path) == story.seen
    (row,) = [each for each in dead_box(path).views["subscriptions"] if each["subscription"] == "keeper"]
    assert row["backlog"] == live
    again = DirectoryBox(path, **compressing)
    assert reader(again, "r", topic=OTHER, durable=False).received() == story.seen
    assert not txn.of(again.client()).end(1).HasField("error")
    again.close()
