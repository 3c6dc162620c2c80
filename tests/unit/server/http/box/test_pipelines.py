"""Pipelines over HTTP: reporting, visibility, and the live view."""

import json
from typing import Any

import pytest

from pulsarbox.broker.security.principal import Principal
from pulsarbox.server.http.box.pipelines import forget, listing, tell
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse
from tests.unit.broker.playbook import Box
from tests.unit.broker.roles import guarded_box
from tests.unit.server.http.harness import HttpBox
from tests.unit.server.live.views import rows

PIPELINES = "/pulsarbox/v1/pipelines"


def query(name: str, inputs: str, output: str, **more: Any) -> dict[str, Any]:
    return {"query": name, "state": "running", "inputs": [inputs], "output": output, **more}


TOTALS = query("totals", "persistent://shop/eu/orders", "persistent://shop/eu/totals", lag=3)
CLEAN = query("clean", "regex:shop/eu/raw-.*", "persistent://acme/prod/clean", lag=9)


async def test_what_was_told_is_listed_and_in_the_view(box: HttpBox) -> None:
    assert (await box.ask("PUT", f"{PIPELINES}/p", {"queries": [TOTALS, CLEAN], "pid": 7})).status == 204
    listed = (await box.ask("GET", PIPELINES)).value
    assert [(row["query"], row["pid"], row["lag"]) for row in listed] == [("totals", 7, 3), ("clean", 7, 9)]
    shown = (await box.ask("GET", "/pulsarbox/v1/top/pipelines")).value["rows"]
    assert [row["query"] for row in shown] == ["clean", "totals"]  # sorted by lag
    assert shown[1] == listed[0]
    assert (await box.ask("PUT", f"{PIPELINES}/p", {"queries": [{}]})).status == 400
    assert (await box.ask("DELETE", f"{PIPELINES}/p")).status == 204
    assert (await box.ask("GET", PIPELINES)).value == []


def call_of(box: Box, role: str | None, body: Any = None, name: str = "p") -> HttpRequest:
    principal = None if role is None else Principal(role, "token")
    return HttpRequest(box.broker, box.now, {"name": name}, {}, json.dumps(body).encode(), "", principal=principal)


def seen(box: Box, role: str) -> list[str]:
    found = listing(call_of(box, role))
    assert isinstance(found, HttpResponse)
    return [row["query"] for row in json.loads(found.body)]


@pytest.mark.parametrize(
    ("role", "sees"),
    [("root", ["totals", "clean"]), ("viewer", ["totals", "clean"]), ("producer", ["totals"]), ("consumer", ["clean"])],
)
def test_a_role_sees_its_own_unless_it_watches_the_box(role: str, sees: list[str]) -> None:
    box = guarded_box()
    tell(call_of(box, "producer", {"queries": [TOTALS]}))
    tell(call_of(box, "consumer", {"queries": [CLEAN]}))
    forget(call_of(box, "stranger"))
    assert seen(box, role) == sees


def test_a_tenant_has_those_that_read_and_write_within_it() -> None:
    box = Box()
    tell(call_of(box, None, {"queries": [TOTALS, CLEAN, query("files", "persistent://shop/us/a", "parquet:/x")]}))
    assert {row["query"] for row in rows(box, "pipelines")} == {"totals", "clean", "files"}
    assert {row["query"] for row in rows(box, "pipelines", tenant="shop")} == {"totals", "files"}
    assert {row["query"] for row in rows(box, "pipelines", namespace="shop/eu")} == {"totals"}
    assert rows(box, "pipelines", tenant="acme") == []
    assert [row["query"] for row in rows(box, "pipelines", filter="/raw-")] == ["clean"]
    box.advance(11)
    assert {row["state"] for row in rows(box, "pipelines")} == {"gone"}
