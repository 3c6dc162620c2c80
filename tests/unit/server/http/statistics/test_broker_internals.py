"""Statistics of parts that a box lacks or combines, with the format of Pulsar 4.2.4."""

from pulsarbox.names import parse_topic
from tests.unit.server.http.harness import HttpBox


async def test_allocators(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.ask("POST", "/topics/persistent/public/default/t", {"messages": [{"payload": "x"}]})
    for name in ("default", "ml-cache"):
        shown = (await box.get(f"/broker-stats/allocator-stats/{name}")).value
        assert (shown["numDirectArenas"], shown["directArenas"]) == (0, [])
        assert shown["usedDirectMemory"] == (box.broker.commits.tail_cache.size if name == "ml-cache" else 0)
    refused = await box.get("/broker-stats/allocator-stats/other")
    assert (refused.status, refused.reason) == (406, "Invalid allocator name : other")


async def test_bookie_operations(box: HttpBox) -> None:
    assert (await box.get("/broker-stats/bookieops")).value == {}
    for domain in ("persistent", "non-persistent"):
        await box.put(f"/{domain}/public/default/t-{domain}")
        box.broker.topics.find(parse_topic(f"{domain}://public/default/t-{domain}"), box.shell.now())
    found = (await box.get("/broker-stats/bookieops")).value
    (pending,) = found["public/default"].values()
    assert list(found["public/default"]) == ["persistent://public/default/t-persistent"]
    assert set(pending.values()) == {0} and len(pending) == 8 and "cursorLedgerDeleteOp" in pending


async def test_parts_that_a_box_lacks(box: HttpBox) -> None:
    assert (await box.get("/broker-stats/mbeans")).value == []
    refused = await box.get("/broker-stats/broker-resource-availability/public/default")
    assert (refused.status, refused.reason.endswith("does not support this operation")) == (409, True)
    assert (await box.get("/broker-stats/broker-resource-availability/public/a%20b")).status == 412
