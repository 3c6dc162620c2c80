"""Messages without a covering subscription in the Admin API: statistics, retention, events, and warnings."""

from typing import Any

import pytest

from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

PATH = "/persistent/public/default"
TOPIC = "persistent://public/default/t"
EARLIEST = {"ledgerId": -1, "entryId": -1}
DAY_MS = 86_400_000
RETENTION = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}


def publish(box: HttpBox, count: int, topic: str = TOPIC) -> None:
    client = Client(box)
    client.publish(topic, count)
    client.cnx.closed(box.shell.now())
    box.shell.kick()


async def kept(box: HttpBox, topic: str = "persistent/public/default/t") -> Any:
    got = await box.ask("GET", f"/pulsarbox/v1/kept/{topic}")
    assert got.status == 200, got.text
    return got.value


async def test_statistics_say_how_much_and_until_when(box: HttpBox) -> None:
    at = box.shell.now().wall
    publish(box, 3)
    stats = (await box.get(f"{PATH}/t/stats")).value
    found = stats["unsubscribed"]
    assert found["messages"] == 3
    assert found["bytes"] == stats["storageSize"]
    assert 0 <= found["until"] - (at + 7 * DAY_MS) < 60_000
    await box.put(f"{PATH}/t/subscription/s", EARLIEST)
    assert "unsubscribed" not in (await box.get(f"{PATH}/t/stats")).value


async def test_partitions_are_added_up(box: HttpBox) -> None:
    await box.put(f"{PATH}/p/partitions", 3)
    publish(box, 2, "persistent://public/default/p-partition-0")
    publish(box, 3, "persistent://public/default/p-partition-2")
    found = (await box.get(f"{PATH}/p/partitioned-stats")).value
    assert found["unsubscribed"]["messages"] == 5
    one = (await box.get(f"{PATH}/p-partition-0/stats")).value["unsubscribed"]
    assert found["unsubscribed"]["until"] == one["until"]


@pytest.mark.parametrize("topic", ["t", "t-that-is-not-there"])
async def test_it_is_known_beforehand_what_keeps_a_message(box: HttpBox, topic: str) -> None:
    name = f"persistent/public/default/{topic}"
    if topic == "t":
        await box.put(f"{PATH}/t")
    found = await kept(box, name)
    assert found["keptBy"] == "unsubscribed-retention"
    rule = found["unsubscribed"]
    assert (rule["timeInMinutes"], rule["size"], rule["used"]) == (10_080, "10%", 0)
    await box.post("/namespaces/public/default/retention", RETENTION)
    assert await kept(box, name) == {"keptBy": "retention", "unsubscribed": None}
    await box.post("/namespaces/public/default/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
    assert (await kept(box, name))["keptBy"] == "nothing"
    await box.put(f"{PATH}/{topic}/subscription/s", EARLIEST)
    assert (await kept(box, name))["keptBy"] == "subscription"


async def test_of_a_partitioned_topic_each_partition_needs_a_subscription(box: HttpBox) -> None:
    await box.put(f"{PATH}/p/partitions", 2)
    await box.put(f"{PATH}/p-partition-1/subscription/s", EARLIEST)
    assert (await kept(box, "persistent/public/default/p"))["keptBy"] == "unsubscribed-retention"
    assert (await kept(box, "persistent/public/default/p-partition-1"))["keptBy"] == "subscription"
    await box.put(f"{PATH}/p-partition-0/subscription/s", EARLIEST)
    assert (await kept(box, "persistent/public/default/p"))["keptBy"] == "subscription"


async def test_the_rest(box: HttpBox) -> None:
    assert (await kept(box, "non-persistent/public/default/t"))["keptBy"] == "nothing"
    assert (await box.ask("GET", "/pulsarbox/v1/kept/persistent/public/missing/t")).status == 404
    shown = (await box.ask("GET", "/pulsarbox/v1/policies/public/default")).value["retention"]
    assert shown["unsubscribed"]["timeInMinutes"] == 10_080
    text = (await box.ask("GET", "/metrics/")).text
    assert 'pulsarbox_unsubscribed_bytes{cluster="standalone"} 0' in text


async def test_the_event_of_a_deletion_has_what_went_with_it(box: HttpBox) -> None:
    publish(box, 3)
    await box.delete(f"{PATH}/t")
    events = (await box.ask("GET", "/pulsarbox/v1/events")).value["events"]
    (found,) = [each for each in events if each["kind"] == "topic-deleted"]
    assert found["fields"]["reason"] == "request"
    assert found["fields"]["messages"] == 3
    assert found["text"].startswith("deleted on request; it held 3 messages (")
