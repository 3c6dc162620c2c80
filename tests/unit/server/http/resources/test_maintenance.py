"""Truncation, trimming and size of topics: statuses and texts recorded from Pulsar 4.2.4."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Got, HttpBox, running_box

T = "persistent://public/default/t"
PATH = "/persistent/public/default/t"


def done(got: Got) -> bool:
    return (got.status, got.text) == (204, "")


async def stats(box: HttpBox, path: str = PATH) -> Any:
    return (await box.get(f"{path}/stats")).value


@pytest.mark.settings(Settings(defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1))
async def test_truncating_acknowledges_and_drops_everything(box: HttpBox) -> None:
    # Retention would otherwise retain the message indefinitely.
    client = Client(box)
    await box.put(f"{PATH}/subscription/s")
    client.publish(T, 10)
    assert (await stats(box))["subscriptions"]["s"]["msgBacklog"] == 10
    assert done(await box.delete(f"{PATH}/truncate"))
    told = await stats(box)
    assert (told["storageSize"], told["subscriptions"]["s"]["msgBacklog"]) == (0, 0)
    internal = (await box.get(f"{PATH}/internalStats")).value
    assert internal["numberOfEntries"] == 0
    assert len(internal["ledgers"]) == 1
    client.publish(T, 3)
    assert (await stats(box))["subscriptions"]["s"]["msgBacklog"] == 3
    assert done(await box.delete(f"{PATH}/truncate"))
    assert done(await box.delete(f"{PATH}/truncate"))


async def test_a_ledger_that_grows_is_closed_when_it_is_asked_for() -> None:
    async def closed(box: HttpBox, body: Any = None) -> Any:
        got = await box.ask("POST", "/pulsarbox/v1/ledgers/public/default/t/close", body)
        return got.value["closed"] if got.status == 200 else got.status

    async with running_box() as box:
        client = Client(box)
        await box.put(f"{PATH}/subscription/s")
        assert await closed(box) is None, "it has no entries"
        (*_, last) = client.publish(T, 3)
        assert await closed(box, {"olderThanMs": 60_000}) is None
        assert await closed(box, {"olderThanMs": 0}) == last[0]
        assert await closed(box) is None
        after = client.publish(T, 2)
        assert [entry for _, entry in after] == [0, 1] and after[0][0] > last[0]
        told = (await box.ask("GET", "/pulsarbox/v1/segments/public/default/t")).value["segments"]
        assert [(each["entries"], each["closed"] > 0) for each in told] == [(3, True), (2, False)]
        for wrong in (-1, "1m", True, 1.5):
            assert await closed(box, {"olderThanMs": wrong}) == 400
        await box.post(f"{PATH}/terminate")
        assert await closed(box) is None
        assert await box.ask("POST", "/pulsarbox/v1/ledgers/public/default/nowhere/close") is not None


@pytest.mark.settings(Settings(unsubscribedRetentionTimeInMinutes=0))
async def test_a_ledger_that_was_closed_goes_when_nobody_needs_it(box: HttpBox) -> None:
    Client(box).publish(T, 3)
    assert (await box.ask("POST", "/pulsarbox/v1/ledgers/public/default/t/close")).value["closed"] is not None
    assert (await stats(box))["storageSize"] == 0


async def test_partitions_are_truncated_and_trimmed_together(box: HttpBox) -> None:
    await box.put(f"{PATH}/partitions", 2)
    for i in range(2):
        await box.put(f"{PATH}-partition-{i}/subscription/s")
        Client(box).publish(f"{T}-partition-{i}", 4)
    trimmed = await box.post(f"{PATH}/trim")
    assert (trimmed.status, trimmed.text) == (200, "")
    assert done(await box.delete(f"{PATH}-partition-0/truncate"))
    left = [(await stats(box, f"{PATH}-partition-{i}"))["subscriptions"]["s"]["msgBacklog"] for i in range(2)]
    assert left == [0, 4]
    assert done(await box.delete(f"{PATH}/truncate"))
    assert (await stats(box, f"{PATH}-partition-1"))["storageSize"] == 0


async def test_partitions_that_a_topic_lacks_are_made(box: HttpBox) -> None:
    await box.put(f"{PATH}/partitions", 3)
    await box.delete(f"{PATH}-partition-1")
    names = [f"{T}-partition-{i}" for i in range(3)]
    assert (await box.get("/persistent/public/default")).value == [names[0], names[2]]
    assert done(await box.post(f"{PATH}/createMissedPartitions"))
    assert (await box.get("/persistent/public/default")).value == names
    assert done(await box.post(f"{PATH}/createMissedPartitions"))
    plain = await box.post("/persistent/public/default/none/createMissedPartitions")
    assert (plain.status, plain.reason) == (404, "Topic persistent://public/default/none does not exist")


async def test_bytes_behind_a_message(box: HttpBox) -> None:
    ids = Client(box).publish(T, 4)
    size = (await stats(box))["storageSize"]
    behind = []
    for ledger, entry in [(-1, -1), (ids[0][0], -1), *ids, (ids[0][0] + 1000, 0)]:
        got = await box.put(f"{PATH}/backlogSize", {"ledgerId": ledger, "entryId": entry, "partitionIndex": -1})
        behind.append(got.value)
    assert behind == [size, size, size * 3 // 4, size // 2, size // 4, 0, 0]
    assert (await box.put(f"{PATH}/backlogSize")).status == 400


async def test_what_the_metadata_has(box: HttpBox) -> None:
    await box.put(f"{PATH}/partitions", 2)
    part = f"{PATH}-partition-0"
    await box.put(f"{part}/subscription/s")
    Client(box).publish(f"{T}-partition-0", 4)
    info = (await box.get(f"{part}/internal-info")).value
    assert sorted(info) == ["creationDate", "cursors", "ledgers", "modificationDate", "version"]
    (ledger,) = info["ledgers"]
    assert sorted(ledger) == ["isOffloaded", "ledgerId", "timestamp"]
    assert info["cursors"]["s"]["markDelete"] == {"ledgerId": ledger["ledgerId"], "entryId": -1}
    whole = (await box.get(f"{PATH}/internal-info")).value
    assert sorted(whole) == ["partitions", "version"]
    assert whole["partitions"][f"{T}-partition-0"] == info
    assert (await box.put("/persistent/public/default/owned", {"owner": "me"})).status == 204
    assert (await box.get("/persistent/public/default/owned/internal-info")).value["properties"] == {"owner": "me"}

    offline = (await box.get(f"{part}/backlog")).value
    assert offline["topicName"] == "public/default/persistent/t-partition-0"
    assert (offline["totalMessages"], offline["messageBacklog"]) == (4, 4)
    assert offline["dataLedgerDetails"][0]["entries"] == 4
    assert offline["cursorDetails"] == {"s": {"cursorBacklog": 4, "cursorLedgerId": -1}}
    missing = (await box.get("/persistent/public/default/none/backlog")).value
    assert sorted(missing) == sorted(offline)
    assert (missing["storageSize"], missing["cursorDetails"]) == (0, {})


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("DELETE", f"{PATH}/truncate", 404, f"Topic {T} not found"),
        ("DELETE", "/non-persistent/public/default/t/truncate", 412, "unsupport truncate"),
        ("POST", f"{PATH}/trim", 404, f"Topic {T} not found"),
        ("GET", f"{PATH}/internal-info", 404, f"Topic {T} not found"),
        ("GET", f"{PATH}/getMessageIdByIndex?index=0", 412, "GetMessageIDByIndex is not allowed"),
        ("GET", "/persistent/public/none/t/backlog", 404, "Namespace not found"),
        ("POST", "/persistent/public/none/t/createMissedPartitions", 404, "Namespace not found"),
    ],
)
async def test_a_topic_that_is_missing(box: HttpBox, method: str, path: str, status: int, reason: str) -> None:
    got = await box.ask(method, f"/admin/v2{path}")
    assert got.status == status
    assert got.reason.startswith(reason)


async def test_messages_have_no_index(box: HttpBox) -> None:
    Client(box).publish(T, 1)
    got = await box.get(f"{PATH}/getMessageIdByIndex?index=0")
    assert (got.status, got.reason[:49]) == (412, "GetMessageIDByIndex is not allowed when broker en")
