"""Compaction over HTTP."""

import asyncio
from typing import Any

import pytest

from pulsarbox.config.settings import Settings
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

T = "persistent://public/default/t"
PATH = "/persistent/public/default/t"


async def ended(box: HttpBox, path: str) -> dict[str, Any]:
    """Return the status after it is no longer RUNNING."""
    found: dict[str, Any] = {"status": "RUNNING"}
    while found["status"] == "RUNNING":
        await asyncio.sleep(0.005)
        found = (await box.get(f"{path}/compaction")).value
    return found


async def test_it_is_started_and_tells_how_it_went(box: HttpBox) -> None:
    Client(box).publish(T, 3)
    assert (await box.get(f"{PATH}/compaction")).value == {"status": "NOT_RUN", "lastError": ""}
    assert (await box.put(f"{PATH}/compaction")).status == 204
    assert await ended(box, PATH) == {"status": "SUCCESS", "lastError": ""}
    stats = (await box.get(f"{PATH}/stats")).value
    assert stats["compaction"]["lastCompactionRemovedEventCount"] == 3, "none of them has a key"
    assert (await box.get(f"{PATH}/internalStats")).value["compactedLedger"]["entries"] == 0


@pytest.mark.settings(
    Settings(
        managedLedgerMaxEntriesPerLedger=3,
        managedLedgerMinLedgerRolloverTimeMinutes=0,
        defaultRetentionTimeInMinutes=0,
        defaultRetentionSizeInMB=0,
        unsubscribedRetentionTimeInMinutes=0,
    )
)
async def test_an_id_is_found_by_time_that_the_log_has_no_more(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    assert (await box.put(f"{PATH}/compaction")).status == 204, "what is not compacted is held from here on"
    for number in range(9):
        client.send(producer, number, b"x", publish_time=1000 + number, partition_key=f"k{number % 2}")
    await box.put(f"{PATH}/compaction")
    await ended(box, PATH)
    ledgers = (await box.get(f"{PATH}/internalStats")).value["ledgers"]
    found = [(await box.get(f"{PATH}/messageid/{at}")).value for at in (0, 1007, 1008, 1009)]
    assert ledgers[0]["ledgerId"] > found[0]["ledgerId"] >= 0, "the log has it: nothing was looked for in the view"
    assert found[0] == found[1] and found[0]["entryId"] == 1
    assert found[2]["ledgerId"] >= found[0]["ledgerId"] and found[2] != found[0]
    assert found[3]["ledgerId"] == ledgers[-1]["ledgerId"]


async def test_partitions_are_compacted_together(box: HttpBox) -> None:
    await box.put(f"{PATH}/partitions", 2)
    for number in range(2):
        Client(box).publish(f"{T}-partition-{number}", 2)
    assert (await box.put(f"{PATH}/compaction")).status == 204
    for number in range(2):
        assert (await ended(box, f"{PATH}-partition-{number}"))["status"] == "SUCCESS"
    assert (await box.get(f"{PATH}/compaction")).status == 405


async def test_refusals(box: HttpBox) -> None:
    assert (await box.put(f"{PATH}/compaction")).status == 404
    assert (await box.get(f"{PATH}/compaction")).status == 404
    other = "/non-persistent/public/default/n"
    await box.put(other)
    assert (await box.put(f"{other}/compaction")).status == 405
