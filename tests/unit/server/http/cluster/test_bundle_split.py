"""Splits of bundles, with the boundaries, statuses and texts of Pulsar 4.2.4."""

from typing import Any

import pytest

from pulsarbox.broker.cluster.resource_quotas import INITIAL
from pulsarbox.names import parse_topic
from pulsarbox.server.http.cluster import bundle_split
from tests.unit.server.http.harness import HttpBox

N = "/namespaces/public/default"
FIRST = "0x00000000_0x40000000"
TOPICS = {"t1": 1232666303, "t4": 957483568, "t5": 1310014118, "tp-partition-2": 842448593}
"""Hashes that Pulsar 4.2.4 answers for topics of ``clxt/n2``; those between 0 and 0x80000000."""


async def boundaries(box: HttpBox, namespace: str = N) -> list[str]:
    """Return the boundaries of a namespace, checking their number."""
    found = (await box.get(f"{namespace}/bundles")).value
    assert found["numBundles"] == len(found["boundaries"]) - 1
    edges: list[str] = found["boundaries"]
    return edges


HALVES = "/namespaces/clxt/n2"


async def create_halves(box: HttpBox) -> None:
    """Create a namespace with two bundles and some topics."""
    await box.put("/tenants/clxt", {"allowedClusters": ["standalone"]})
    await box.put("/namespaces/clxt/n2", {"bundles": {"numBundles": 2}})
    for number in range(1, 6):
        await box.put(f"/persistent/clxt/n2/t{number}")
    await box.put("/persistent/clxt/n2/tp/partitions", 3)


async def test_a_range_is_split_in_the_middle(box: HttpBox) -> None:
    done = await box.put(f"{N}/{FIRST}/split")
    assert (done.status, done.text) == (204, "")
    assert await boundaries(box) == ["0x00000000", "0x20000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    gone = await box.put(f"{N}/{FIRST}/split")
    assert (gone.status, gone.reason.startswith("Invalid upper boundary for bundle public/default/")) == (412, True)
    assert (await box.put(f"{N}/0x00000000_0x20000000/split?splitAlgorithmName=range_equally_divide")).status == 204
    assert (await boundaries(box))[:3] == ["0x00000000", "0x10000000", "0x20000000"]


async def test_topics_stay_and_change_their_bundle(box: HttpBox) -> None:
    await create_halves(box)
    before = await box.get("/persistent/clxt/n2")
    await box.put(f"{HALVES}/0x80000000_0xffffffff/split?unload=true")
    assert await boundaries(box, HALVES) == ["0x00000000", "0x80000000", "0xbfffffff", "0xffffffff"]
    assert (await box.get("/persistent/clxt/n2")).value == before.value
    listed = await box.get("/persistent/clxt/n2?bundle=0xbfffffff_0xffffffff")
    assert listed.value == ["persistent://clxt/n2/t2", "persistent://clxt/n2/tp-partition-0"]


async def test_unload_closes_the_topics_of_the_new_bundles(box: HttpBox) -> None:
    await create_halves(box)
    names = [parse_topic(f"persistent://clxt/n2/t{number}") for number in (1, 2)]
    for name in names:
        assert box.broker.topics.find(name, box.shell.now()) is not None
    await box.put(f"{HALVES}/0x00000000_0x80000000/split")
    assert all(box.broker.topics.loaded(name) for name in names)
    await box.put(f"{HALVES}/0x00000000_0x40000000/split?unload=true")
    assert all(box.broker.topics.loaded(name) for name in names)
    await box.put(f"{HALVES}/0x40000000_0x80000000/split?unload=true")
    assert [box.broker.topics.loaded(name) is not None for name in names] == [False, True]


async def test_hash_positions(box: HttpBox) -> None:
    await create_halves(box)
    path = f"{HALVES}/0x00000000_0x80000000/topicHashPositions"
    expected = {f"persistent://clxt/n2/{name}": number for name, number in TOPICS.items()}
    found = (await box.get(path)).value
    assert found == {"namespace": "clxt/n2", "bundle": "0x00000000_0x80000000", "topicHashPositions": expected}
    some = (await box.get(f"{path}?topics=persistent://clxt/n2/tp&topics=clxt/n2/t4&topics=t1")).value
    wanted = {name: number for name, number in expected.items() if name.endswith(("t4", "tp-partition-2"))}
    assert some["topicHashPositions"] == wanted
    assert (await box.get(f"{HALVES}/none/topicHashPositions")).status == 412
    assert (await box.get(f"{path}?topics=")).status == 412
    missing = await box.get("/namespaces/clxt/none/0x00000000_0x80000000/topicHashPositions")
    assert missing.status == 404


async def test_topics_are_divided_equally(box: HttpBox) -> None:
    await create_halves(box)
    assert (await box.put(f"{N}/{FIRST}/split?splitAlgorithmName=topic_count_equally_divide")).status == 204
    assert len(await boundaries(box)) == 5  # without topics nothing changes
    await box.put(f"{HALVES}/0x00000000_0x80000000/split?splitAlgorithmName=topic_count_equally_divide")
    middle = (TOPICS["t4"] + TOPICS["t1"]) // 2
    assert await boundaries(box, HALVES) == ["0x00000000", f"0x{middle:08x}", "0x80000000", "0xffffffff"]


async def test_positions(box: HttpBox) -> None:
    await create_halves(box)
    asked = "split?splitAlgorithmName=specified_positions_divide"
    refused = await box.put(f"{N}/{FIRST}/{asked}")
    reason = "With specified_positions_divide split algorithm, splitBoundaries must not be empty"
    assert (refused.status, refused.reason) == (412, reason)
    assert (await box.put(f"{N}/{FIRST}/{asked}", [1000])).status == 204
    assert len(await boundaries(box)) == 5  # without topics nothing changes
    points = [3100000000, 3, 3000000000, 2147483648, 3000000000, 4294967295, 99999999999]
    assert (await box.put(f"{HALVES}/0x80000000_0xffffffff/{asked}", points)).status == 204
    expected = ["0x00000000", "0x80000000", "0xb2d05e00", "0xb8c63f00", "0xffffffff"]
    assert await boundaries(box, HALVES) == expected


async def test_the_largest_and_the_hot_bundle(box: HttpBox) -> None:
    await create_halves(box)
    for name in ("LARGEST", "HOT"):
        missing = await box.put(f"{N}/{name}/split")
        assert (missing.status, missing.reason) == (404, f"Bundle range {name} not found")
    await box.put("/persistent/clxt/n2/t6")
    await box.put(f"{HALVES}/0x80000000_0xffffffff/split")
    await box.put(f"{HALVES}/LARGEST/split")
    assert (await boundaries(box, HALVES))[:3] == ["0x00000000", "0x40000000", "0x80000000"]
    box.broker.topics.find(parse_topic("persistent://clxt/n2/t1"), box.shell.now())
    await box.put(f"{HALVES}/0x80000000_0xbfffffff/unload")
    await box.put(f"{HALVES}/HOT/split")
    assert len(await boundaries(box, HALVES)) == 6


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (f"{FIRST}/split?splitAlgorithmName=x", None, 412, "Unsupported namespace bundle split algorithm, supported"),
        (f"{FIRST}/split", {}, 400, "Split boundaries must be a list of whole numbers, not an object"),
        (f"{FIRST}/split", ["a"], 400, "Split boundaries must be a list of whole numbers"),
        (f"{FIRST}/split", [1.5], 400, "Split boundaries must be a list of whole numbers"),
        ("none/split", None, 412, "Invalid bundle range: none"),
        ("0x00000001_0x40000000/split", None, 412, "Cannot find bundle"),
    ],
)
async def test_invalid_splits(box: HttpBox, path: str, body: Any, status: int, reason: str) -> None:
    refused = await box.put(f"{N}/{path}", body)
    assert (refused.status, refused.reason[: len(reason)]) == (status, reason)
    assert len(await boundaries(box)) == 5


async def test_bundles_are_limited(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = await box.put(f"/namespaces/public/none/{FIRST}/split")
    assert (missing.status, missing.reason) == (404, "Namespace not found")
    monkeypatch.setattr(bundle_split, "BUNDLES_MAX", 4)
    refused = await box.put(f"{N}/{FIRST}/split")
    assert (refused.status, refused.reason) == (412, "Invalid number of bundles: 5; at most 4 are possible")


async def test_the_quota_of_a_split_bundle_is_deleted(box: HttpBox) -> None:
    await box.post(f"/resource-quotas/public/default/{FIRST}", {"msgRateIn": 5})
    await box.put(f"{N}/{FIRST}/split")
    assert box.broker.clusters.quotas.get("public/default", FIRST) == INITIAL
