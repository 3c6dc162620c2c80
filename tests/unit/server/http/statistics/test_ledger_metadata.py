"""Metadata of ledgers in internal statistics: the numbers of copies and the data directories."""

from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.server.http.statistics.ledger_metadata import Runs, ensembles_of
from pulsarbox.storage.ensemble.status import Fragment
from tests.unit.broker.persistence.ensemble_box import FakeBookies
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

PATH = "/persistent/public/default/t"
T = "persistent://public/default/t"
CUSTOM = (
    "customMetadata={component=base64:bWFuYWdlZC1sZWRnZXI=, "
    "pulsar/managed-ledger=base64:cHVibGljL2RlZmF1bHQvcGVyc2lzdGVudC90, application=base64:cHVsc2Fy}}"
)


@pytest.mark.parametrize(
    ("held", "ensembles"),
    [
        ({}, {}),
        ({"a": [(0, 5)]}, {0: ("a",)}),
        ({"a": [(0, 5)], "b": [(0, 5)]}, {0: ("a", "b")}),
        ({"a": [(0, 9)], "b": [(0, 5)], "c": [(5, 9)]}, {0: ("a", "b"), 5: ("a", "c")}),
        ({"a": [(0, 3), (3, 9)], "b": []}, {0: ("a",)}),
        ({"a": [(0, 3)], "b": [(6, 9)]}, {0: ("a",), 3: (), 6: ("b",)}),
    ],
)
def test_an_ensemble_begins_where_the_directories_change(
    held: dict[str, Runs], ensembles: dict[int, tuple[str, ...]]
) -> None:
    assert ensembles_of(held) == ensembles


async def ledgers(box: HttpBox, more: str = "?metadata=true") -> list[dict[str, Any]]:
    got = (await box.get(f"{PATH}/internalStats{more}")).value["ledgers"]
    assert isinstance(got, list)
    return got


async def test_metadata_is_that_of_pulsar_with_the_data_directories() -> None:
    bookies = FakeBookies(3)
    async with running_box(host=Host(bookies=bookies)) as box:
        numbers = {"bookkeeperEnsemble": 3, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 2}
        await box.put(PATH)
        await box.post(f"{PATH}/persistence", numbers | {"managedLedgerMaxMarkDeleteRate": 0})
        client = Client(box)
        client.producer(T, producer_name="p")
        client.publish(T, 3)
        ledger = (await ledgers(box))[0]["ledgerId"]
        bookies.held = {"/d0": {ledger: [(0, 3)]}, "/d1": {ledger: [(0, 2)]}, "/d2": {ledger: [(2, 3)]}}
        [row] = await ledgers(box)
        assert row["metadata"] == (
            "LedgerMetadata{formatVersion=3, ensembleSize=3, writeQuorumSize=2, ackQuorumSize=2, state=OPEN, "
            f"digestType=CRC32C, password=OMITTED, ensembles={{0=[/d0, /d1], 2=[/d0, /d2]}}, {CUSTOM}"
        )
        assert "metadata" not in (await ledgers(box, ""))[0]


async def test_a_ledger_that_lacks_copies_is_under_replicated() -> None:
    bookies = FakeBookies(2)
    async with running_box(host=Host(bookies=bookies)) as box:
        await box.put(PATH)
        [row] = await ledgers(box, "")
        assert row["underReplicated"] is False
        bookies.lacking = (Fragment(row["ledgerId"], 0, 1, ("/d0",), 2),)
        assert [each["underReplicated"] for each in await ledgers(box, "")] == [True]


async def test_a_box_with_one_directory_has_one_copy_there() -> None:
    async with running_box(host=Host(folder="/data")) as box:
        client = Client(box)
        client.producer(T, producer_name="p")
        client.publish(T, 2)
        await box.put(f"{PATH}/unload")
        client.producer(T, producer_name="p")
        client.publish(T, 1)
        row = (await ledgers(box))[0]
        assert "ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1" in row["metadata"]
        assert f"ensembles={{0=[/data]}}, {CUSTOM}" in row["metadata"]
