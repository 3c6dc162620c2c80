"""Live views over HTTP: selection and order of rows, and invalid requests."""

import json
from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.broker.security.principal import Principal
from pulsarbox.server.http.box.live_views import top as handler
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse
from pulsarbox.server.live import overview
from pulsarbox.server.live.table import VIEWS
from pulsarbox.storage.ensemble.watch import WatchedEnsemble
from tests.unit.broker.core_driver import START
from tests.unit.broker.roles import guarded_box
from tests.unit.server.http.harness import ADMIN, HttpBox
from tests.unit.storage.ensemble.fake import LOST, FakeEnsemble

TOP = "/pulsarbox/v1/top"


async def subscriptions(box: HttpBox, **counts: int) -> None:
    """Create topics in namespace public/default by name, each with a number of subscriptions."""
    for topic, count in counts.items():
        assert (await box.put(f"/persistent/public/default/{topic}")).status == 204
        for number in range(count):
            path = f"{ADMIN}/persistent/public/default/{topic}/subscription/s{number}"
            assert (await box.ask("PUT", path)).status == 204


async def top(box: HttpBox, view: str, query: str = "") -> dict[str, Any]:
    """Return the response of a view."""
    got = await box.ask("GET", f"{TOP}/{view}?{query}")
    assert got.status == 200, got.text
    found: dict[str, Any] = got.value
    return found


async def test_the_subscriptions_of_a_box_in_the_order_and_the_columns_that_were_asked_for(box: HttpBox) -> None:
    await subscriptions(box, a=2, b=1)
    found = await top(box, "subscriptions", "sort=topic&order=asc&columns=topic,subscription")
    name = "persistent://public/default/"
    assert found["rows"] == [
        {"topic": f"{name}a", "subscription": "s0"},
        {"topic": f"{name}a", "subscription": "s1"},
        {"topic": f"{name}b", "subscription": "s0"},
    ]
    assert (found["total"], found["matching"], found["offset"]) == (3, 3, 0)
    assert (found["view"], found["now"], found["sampled"]) == ("subscriptions", START, START)
    assert (found["readOnly"], found["virtualClock"]) == (False, None)


async def test_only_the_window_and_what_passes_the_filter_travels(box: HttpBox) -> None:
    await subscriptions(box, a=5, b=5)
    query = "sort=subscription&order=asc&columns=subscription&filter=endswith(topic,%22/a%22)&offset=1&limit=2"
    found = await top(box, "subscriptions", query)
    assert found["rows"] == [{"subscription": "s1"}, {"subscription": "s2"}]
    assert (found["total"], found["matching"], found["offset"]) == (10, 5, 1)
    assert (await top(box, "subscriptions", "filter=!/a$&limit=0"))["matching"] == 5


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("nothing", 404, "Unknown view 'nothing'; available:"),
        ("subscriptions?at=1", 404, "No history is recorded"),
        ("subscriptions?sort=backlogs", 400, "sort: subscriptions has no column 'backlogs'; did you mean backlog?"),
        ("subscriptions?columns=topic,x", 400, "columns: subscriptions has no column 'x'; available: topic,"),
        ("subscriptions?order=up", 400, "order must be asc or desc"),
        ("subscriptions?limit=5000", 400, "limit must be a whole number up to 1000"),
        ("subscriptions?offset=-1", 400, "offset must be a whole number"),
        ("subscriptions?filter=size%3E1", 400, "filter: unknown name 'size'"),
        ("subscriptions?filter=/(", 400, "not a valid RE2 regular expression"),
        ("subscriptions?filter=" + "a" * 2001, 400, "more than 2000 characters"),
        ("subscriptions?namespace=public", 400, "namespace must be tenant/namespace"),
        ("subscriptions?namespace=a/b&tenant=c", 400, "namespace must be tenant/namespace"),
        ("subscriptions?tenant=a/b", 400, "tenant must be the name of one tenant"),
    ],
)
async def test_what_is_refused_says_why(box: HttpBox, path: str, status: int, words: str) -> None:
    got = await box.ask("GET", f"{TOP}/{path}")
    assert got.status == status
    assert words in got.reason


async def test_a_tenant_or_a_namespace_alone(box: HttpBox) -> None:
    await box.put("/tenants/shop", {"adminRoles": [], "allowedClusters": ["standalone"]})
    await box.put("/namespaces/shop/eu")
    await box.put("/persistent/shop/eu/t")
    await box.ask("PUT", f"{ADMIN}/persistent/shop/eu/t/subscription/s")
    await subscriptions(box, a=1)
    for query, count in (("", 2), ("tenant=shop", 1), ("namespace=shop/eu", 1), ("tenant=sho", 0)):
        assert (await top(box, "subscriptions", query))["total"] == count


async def test_the_overview_of_a_box(box: HttpBox) -> None:
    await subscriptions(box, a=2, b=1)
    box.broker.samples.tick(box.shell.now())
    found = await top(box, "overview")
    assert (found["view"], found["rows"], found["seriesStep"]) == ("overview", [], 1.0)
    totals = found["totals"]
    assert (totals["topics"], totals["subscriptions"], totals["backlog"], totals["deadLetters"]) == (2, 3, 0, 0)
    assert (totals["connections"], totals["throttled"], totals["started"], totals["uptime"]) == (0, 0, START, 0)
    assert (totals["diskFree"], totals["p99"]) == (None, None), "in memory, and nothing was published"
    assert totals["memory"] > 0
    series = found["series"]
    assert {name: values[-1] for name, values in series.items()} == {
        "publishRate": 0.0, "deliverRate": 0.0, "backlog": 0.0, "p99": None,
    }  # fmt: skip


async def test_the_overview_of_a_box_with_a_lost_directory(box: HttpBox) -> None:
    box.broker.host = Host(ensemble=WatchedEnsemble(FakeEnsemble(LOST)), folder="/nonexistent/disk1")
    totals = (await top(box, "overview"))["totals"]
    assert (totals["lostDirectories"], totals["lackingCopies"], totals["diskUsed"]) == (1, 1204, None)
    box.broker.host = Host()
    assert (await top(box, "overview", "columns=lostDirectories"))["totals"] == {"lostDirectories": None}


async def test_of_the_overview_what_is_named(box: HttpBox) -> None:
    await subscriptions(box, a=2, b=1)
    every = await top(box, "overview")
    assert set(overview.COLUMNS) == {*every["totals"], "series"}
    found = await top(box, "overview", "columns=topics,uptime,p99")
    assert found["totals"] == {"topics": 2, "uptime": 0, "p99": None}
    assert "series" not in found
    assert list((await top(box, "overview", "columns=series"))["series"]) == list(every["series"])
    refused = await box.ask("GET", f"{TOP}/overview?columns=topic")
    assert (refused.status, "did you mean topics?" in refused.text) == (400, True), refused.text


async def test_the_overview_of_a_tenant_tells_nothing_of_others(box: HttpBox) -> None:
    await subscriptions(box, a=2)
    found = await top(box, "overview", "tenant=shop")
    assert found["series"] == {"publishRate": [], "deliverRate": [], "backlog": []}
    assert {name: value for name, value in found["totals"].items() if value} == {}
    assert (await top(box, "overview", "tenant=public"))["totals"]["subscriptions"] == 2


async def test_the_graphs_of_a_tenant_begin_when_somebody_looks_and_are_of_nobody_else(box: HttpBox) -> None:
    await subscriptions(box, a=2)
    name = "/persistent/public/default/a"
    for _ in range(3):
        sent = await box.ask("POST", f"/topics{name}", {"producerName": "p", "messages": [{"payload": "x"}]})
        assert sent.status == 200, sent.text
    for query, backlog in (("tenant=public", 6), ("namespace=public/default", 6), ("tenant=shop", 0)):
        await top(box, "overview", query)
        box.broker.samples.tick(box.shell.now())
        found = await top(box, "overview", f"{query}&columns=backlog,series")
        assert found["totals"] == {"backlog": backlog}
        assert found["series"]["backlog"] == [float(backlog)]


async def test_the_topics_of_a_box_those_that_nobody_uses_too(box: HttpBox) -> None:
    await subscriptions(box, a=2)
    assert (await box.put("/persistent/public/default/p/partitions", 3)).status == 204
    found = await top(box, "topics", "sort=topic&order=asc&columns=topic,subscriptions,loaded,oldest,quota")
    name = "persistent://public/default"
    nothing = {"oldest": None, "quota": None}
    assert found["rows"] == [
        {"topic": f"{name}/a", "subscriptions": 2, "loaded": True} | nothing,
        *({"topic": f"{name}/p-partition-{i}", "subscriptions": 0, "loaded": False} | nothing for i in range(3)),
    ]
    assert found["complete"]


@pytest.mark.parametrize("view", ["overview", *VIEWS])
async def test_a_mistake_of_ours_is_an_answer(view: str, monkeypatch: pytest.MonkeyPatch, box: HttpBox) -> None:
    monkeypatch.setattr(box.broker.samples, "step", lambda now, at_once: 1 / 0)
    assert (await box.ask("GET", f"{TOP}/{view}")).status == 500


async def test_who_is_let_go_has_to_be_there(box: HttpBox) -> None:
    for client, status in (("7", 404), ("x", 400)):
        assert (await box.ask("POST", f"/pulsarbox/v1/clients/{client}/kick")).status == status


@pytest.mark.parametrize(
    ("role", "view", "query", "read_only"),
    [
        ("root", "subscriptions", {}, False),
        ("root", "clients", {"tenant": "shop"}, False),
        ("viewer", "subscriptions", {}, True),
        ("viewer", "overview", {"tenant": "shop"}, True),
        ("admin", "subscriptions", {"tenant": "shop"}, False),
        ("admin", "overview", {"namespace": "shop/eu"}, False),
        ("admin", "clients", {"tenant": "shop"}, True),
    ],
)
def test_it_says_who_may_change_what_is_shown(role: str, view: str, query: dict[str, str], read_only: bool) -> None:
    box = guarded_box()
    call = HttpRequest(box.broker, box.now, {"view": view}, query, b"", "", principal=Principal(role, "token"))
    given: list[HttpResponse] = []
    handler(call).on_complete(given.append)
    while not given:
        box.broker.on_timer(box.now)
    assert json.loads(given[0].body)["readOnly"] is read_only
