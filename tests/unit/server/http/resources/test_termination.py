"""Topic termination over HTTP: statuses and texts recorded from Pulsar 4.2.4."""

from typing import Any

import pytest

from pulsarbox.names import parse_topic
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

T = "persistent://public/default/t"
PATH = "/persistent/public/default/t"
PARTS = (
    "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use terminate commands"
)


async def test_the_answer_is_the_last_message(box: HttpBox) -> None:
    Client(box).publish(T, 3)
    last = (await box.get(f"{PATH}/lastMessageId")).value
    for _ in range(2):
        got = await box.post(f"{PATH}/terminate")
        assert (got.status, got.value) == (200, last)
    assert last["entryId"] == 2
    internal = (await box.get(f"{PATH}/internalStats")).value
    assert internal["state"] == "Terminated"
    info = (await box.get(f"{PATH}/internal-info")).value
    assert info["terminatedPosition"] == {"ledgerId": last["ledgerId"], "entryId": 2}


async def test_what_was_there_before_is_told_again_after_everything_is_gone(box: HttpBox) -> None:
    Client(box).publish(T, 3)
    end = (await box.post(f"{PATH}/terminate")).value
    assert (await box.delete(f"{PATH}/truncate")).status == 204
    assert (await box.post(f"{PATH}/terminate")).value == end
    assert (await box.put(f"{PATH}/subscription/s", "earliest")).status == 204
    assert (await box.put(f"{PATH}/properties", {"a": "b"})).status == 204
    assert (await box.put(f"{PATH}/unload")).status == 204
    assert (await box.post(f"{PATH}/terminate")).value == end
    assert (await box.get(f"{PATH}/internalStats")).value["state"] == "Terminated"
    assert (await box.delete(PATH)).status == 204
    Client(box).publish(T, 1)  # a new topic of the same name
    assert (await box.get(f"{PATH}/internalStats")).value["state"] == "LedgerOpened"


async def test_partitions(box: HttpBox) -> None:
    await box.put(f"{PATH}/partitions", 3)
    Client(box).publish(f"{T}-partition-1", 2)
    ends: dict[str, Any] = (await box.post(f"{PATH}/terminate/partitions")).value
    assert [(index, end["entryId"], end["partitionIndex"]) for index, end in ends.items()] == [
        ("0", -1, -1),
        ("1", 1, -1),
        ("2", -1, -1),
    ]
    assert (await box.post(f"{PATH}/terminate/partitions")).value == ends
    assert (await box.post(f"{PATH}-partition-1/terminate")).value == ends["1"]
    # Added partitions are not terminated, as in Pulsar.
    assert (await box.post(f"{PATH}/partitions", 4)).status == 204
    Client(box).publish(f"{T}-partition-3", 1)


async def test_a_partition_that_is_missing_ends_nothing(box: HttpBox) -> None:
    await box.put(f"{PATH}/partitions", 2)
    box.broker.topics.delete(parse_topic(f"{T}-partition-1"), box.shell.now(), force=True)
    got = await box.post(f"{PATH}/terminate/partitions")
    assert (got.status, "partition-1 not found" in got.reason) == (404, True)
    Client(box).publish(f"{T}-partition-0", 1)


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/persistent/public/default/none/terminate", 404, "Topic persistent://public/default/none not found"),
        ("/persistent/nobody/default/t/terminate", 404, "Namespace not found"),
        ("/persistent/public/default/p/terminate", 405, "Termination of a partitioned topic is not allowed"),
        ("/persistent/public/default/__change_events/terminate", 405, "Termination of a system topic is not allowed"),
        ("/non-persistent/public/default/n/terminate", 406, "Need to provide a persistent topic name"),
        ("/persistent/public/default/t/terminate/partitions", 405, PARTS),
        ("/persistent/public/default/p-partition-0/terminate/partitions", 405, PARTS),
        ("/persistent/public/default/none/terminate/partitions", 405, PARTS),
        ("/non-persistent/public/default/n/terminate/partitions", 405, PARTS),
        ("/persistent/nobody/default/t/terminate/partitions", 404, "Namespace not found"),
    ],
)
async def test_what_cannot_end(box: HttpBox, path: str, status: int, reason: str) -> None:
    await box.put(PATH)
    await box.put("/persistent/public/default/p/partitions", 1)
    got = await box.post(path)
    assert (got.status, got.reason) == (status, reason)
