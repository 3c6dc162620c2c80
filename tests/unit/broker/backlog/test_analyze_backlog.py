"""Backlog analysis: numbers and texts recorded from Pulsar 4.2.4."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.errors import EntryDamaged
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

T = "persistent://public/default/t"
PATH = "/persistent/public/default/t"
ANALYZE = f"{PATH}/subscription/s/analyzeBacklog"
NAMES = [
    "entries",
    "messages",
    "markerMessages",
    "filterRejectedEntries",
    "filterAcceptedEntries",
    "filterRescheduledEntries",
    "filterRejectedMessages",
    "filterAcceptedMessages",
    "filterRescheduledMessages",
    "aborted",
]


async def counted(box: HttpBox, body: Any = None) -> tuple[int, int, bool, str, str]:
    """Return the counts of entries and messages, whether the analysis was aborted, and the first and last entry IDs."""
    got = await box.post(ANALYZE, body)
    assert got.status == 200, got
    value = got.value
    assert (value["filterAcceptedEntries"], value["filterAcceptedMessages"]) == (value["entries"], value["messages"])
    ends = [value.get(name, ":-").split(":")[1] for name in ("firstMessageId", "lastMessageId")]
    return value["entries"], value["messages"], value["aborted"], ends[0], ends[1]


async def prepared(box: HttpBox) -> int:
    """Publish ten messages and a batch of five, and return their ledger.

    The first, fourth and fifth message are acknowledged.
    """
    await box.put(f"{PATH}/subscription/s")
    client = Client(box)
    ledger: int = client.publish(T, 10)[0][0]
    client.send(client.producer(T), 0, batch=5)
    cursor = subscription(box).cursor
    for entry in (0, 3, 4):
        cursor.acknowledge(ledger, entry, 1, 1, entry + 1, entry + 1)
    return ledger


def subscription(box: HttpBox) -> Any:
    topic: Any = next(iter(box.broker.topics))
    return topic.subscriptions["s"]


async def test_what_is_not_acknowledged_from_some_message_on(box: HttpBox) -> None:
    ledger = await prepared(box)
    assert await counted(box) == (8, 12, False, "1", "10")
    assert await counted(box, {"ledgerId": ledger, "entryId": 5}) == (6, 10, False, "5", "10")
    assert await counted(box, {"ledgerId": ledger, "entryId": 5, "excluded": True}) == (6, 10, False, "5", "10")
    assert await counted(box, {"ledgerId": ledger, "entryId": 10, "batchIndex": 2}) == (1, 5, False, "10", "10")
    for before in ("earliest", {"ledgerId": 0, "entryId": 0}, {"ledgerId": -5, "entryId": -7}, {}):
        assert await counted(box, before) == (9, 13, False, "0", "10")
    for behind in ("latest", {"ledgerId": ledger, "entryId": 100}, {"ledgerId": ledger + 1000, "entryId": 0}):
        assert await counted(box, behind) == (0, 0, False, "-", "-")
    got = await box.post(ANALYZE)
    assert list(got.value) == [*NAMES, "firstMessageId", "lastMessageId"]
    await box.post(f"{PATH}/subscription/s/skip_all")
    assert list((await box.post(ANALYZE)).value) == NAMES


@pytest.mark.parametrize(("most", "aborted"), [(3, True), (8, False), (9, False)])
async def test_it_looks_at_so_many_entries_and_says_so(most: int, aborted: bool) -> None:
    async with running_box(Settings(subscriptionBacklogScanMaxEntries=most)) as box:
        await prepared(box)
        entries, _, ended_early, _, _ = await counted(box)
        assert (entries, ended_early) == (min(most, 8), aborted)


@pytest.mark.settings(Settings(managedLedgerMaxEntriesPerLedger=5, dispatcherMaxReadBatchSize=2))
async def test_it_reads_piece_by_piece_over_ledgers_and_takes_time(box: HttpBox) -> None:
    await box.put(f"{PATH}/subscription/s")
    Client(box).publish(T, 25)
    before = box.broker.reads.entries
    assert await counted(box) == (25, 25, False, "0", "4")
    assert box.broker.reads.entries - before == 25


async def test_a_damaged_entry_is_passed(monkeypatch: pytest.MonkeyPatch, box: HttpBox) -> None:
    await box.put(f"{PATH}/subscription/s")
    ledger = Client(box).publish(T, 10)[0][0]
    read = box.shell.engine.read

    def damaged(request: Any) -> Any:
        if request.first <= 4 <= request.last:
            if request.first == 4:
                raise EntryDamaged(ledger, 4, 5, "a test says so")
            request = request._replace(last=3)
        return read(request)

    monkeypatch.setattr(box.shell.engine, "read", damaged)
    assert await counted(box) == (8, 8, False, "0", "9")


@pytest.mark.settings(Settings(managedLedgerMaxEntriesPerLedger=5))
async def test_a_ledger_that_is_trimmed_meanwhile(box: HttpBox) -> None:
    await box.put(f"{PATH}/subscription/s")
    Client(box).publish(T, 20)
    read = box.shell.engine.read

    def trimmed(request: Any) -> Any:
        box.shell.engine.read = read  # type: ignore[method-assign]
        each = subscription(box)
        each.clearing.clear(lambda _: None, box.shell.now())
        return read(request)

    box.shell.engine.read = trimmed  # type: ignore[method-assign]
    entries, *_ = await counted(box)
    assert entries == 0, "all of it was acknowledged meanwhile"


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (f"{PATH}/subscription/none/analyzeBacklog", None, 404, f"Subscription none not found for topic {T}"),
        ("/persistent/public/default/none/subscription/s/analyzeBacklog", None, 404, "Topic"),
        ("/persistent/nobody/default/none/subscription/s/analyzeBacklog", None, 404, "Namespace not found"),
        ("/persistent/public/default/p/subscription/s/analyzeBacklog", None, 405, "Analyze backlog on a partitioned t"),
        ("/non-persistent/public/default/n/subscription/s/analyzeBacklog", None, 404, "Subscription s not found for"),
        (ANALYZE, [1], 400, "A message id must be"),
        (ANALYZE, {"ledgerId": "x"}, 400, "ledgerId must be a whole number"),
        (ANALYZE, {"ledgerId": 2**64}, 400, "ledgerId must be a whole number"),
    ],
)
async def test_what_cannot_be_analyzed(box: HttpBox, path: str, body: Any, status: int, reason: str) -> None:
    await box.put(f"{PATH}/subscription/s")
    await box.put("/persistent/public/default/p/partitions", 1)
    await box.put("/non-persistent/public/default/n")
    got = await box.post(path, body)
    assert (got.status, got.reason[: len(reason)]) == (status, reason)
