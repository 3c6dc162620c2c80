"""Offloaded ledgers in statistics, as an offload reports them to its subscription."""

from typing import Any

from pulsarbox.names import OFFLOADED_PROPERTY
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

T = "/persistent/public/default/t"
NAME = "pulsarbox-offload-12ab34cd"


async def ledgers(box: HttpBox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await box.get(f"{T}/internalStats")).value["ledgers"]
    return found


async def test_reported_ledgers_are_offloaded_until_the_subscription_is_deleted(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer("persistent://public/default/t")
    await box.put(f"{T}/subscription/{NAME}", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1})
    for number in range(3):
        client.send(producer, number)
    assert (await box.ask("POST", "/pulsarbox/v1/ledgers/public/default/t/close", {})).value["closed"] is not None
    client.send(producer, 3)
    first, last = [each["ledgerId"] for each in await ledgers(box)]
    assert (await box.put(f"{T}/subscription/{NAME}/properties", {OFFLOADED_PROPERTY: f"{first}-{last}"})).status == 204
    closed, current = await ledgers(box)
    assert (closed["offloaded"], current["offloaded"]) == (True, False), "the open ledger cannot be"
    stats = (await box.get(f"{T}/stats")).value
    assert stats["offloadedStorageSize"] == closed["size"] > 0
    overview = (await box.ask("GET", "/pulsarbox/v1/top/overview?limit=1&columns=size,offloadedSize")).value
    assert overview["totals"] == {"size": stats["storageSize"], "offloadedSize": closed["size"]}
    await box.delete(f"{T}/subscription/{NAME}?force=true")
    assert [each["offloaded"] for each in await ledgers(box)] == [False] * len(await ledgers(box))
    assert (await box.get(f"{T}/stats")).value["offloadedStorageSize"] == 0
