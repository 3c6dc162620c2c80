"""Functions, sources, sinks and their workers: none exists, and reads say so as Pulsar 4.2.4 does."""

import pytest

from pulsarbox.server.http.admin_endpoints import endpoints
from pulsarbox.server.http.resources import functions
from tests.unit.server.http.harness import HttpBox

F = "/admin/v3/functions/public/default"
FUNCTION = "Function f doesn't exist"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/admin/v3/functions/public/default", []),
        ("/admin/v3/functions/no-tenant/no-namespace", []),
        ("/admin/v3/sources/public/default", []),
        ("/admin/v3/sinks/public/default", []),
        ("/admin/v3/source/public/default", []),
        ("/admin/v3/sink/public/default", []),
        ("/admin/v3/sink/builtinsinks", []),
        ("/admin/v2/functions/public/default", []),
        ("/admin/v3/functions/builtins", []),
        ("/admin/v3/functions/connectors", []),
        ("/admin/v2/functions/connectors", []),
        ("/admin/v2/worker/connectors", []),
        ("/admin/v3/sources/builtinsources", []),
        ("/admin/v3/sinks/builtinsinks", []),
        ("/admin/v2/worker-stats/functionsmetrics", []),
        ("/admin/v2/worker-stats/metrics", []),
        ("/admin/v2/worker/assignments", {}),
        ("/admin/v2/worker/cluster", []),
        ("/admin/v2/worker/cluster/leader", None),
        ("/admin/v2/worker/cluster/leader/ready", False),
        ("/admin/v2/worker/drain", {"status": "NOT_RUN", "lastError": ""}),
        ("/admin/v2/worker/leader/drain", {"status": "NOT_RUN", "lastError": ""}),
        (
            "/admin/v2/worker/leader/drain?workerId=w",
            {"status": "ERROR", "lastError": "Worker w not found in drain records"},
        ),
    ],
)
async def test_lists_are_empty(box: HttpBox, path: str, value: object) -> None:
    got = await box.ask("GET", path)
    assert (got.status, got.value) == (200, value)


@pytest.mark.parametrize(
    ("method", "path", "reason"),
    [
        ("GET", f"{F}/f", FUNCTION),
        ("GET", f"{F}/f/status", FUNCTION),
        ("GET", f"{F}/f/stats", FUNCTION),
        ("GET", f"{F}/f/0/status", FUNCTION),
        ("GET", f"{F}/f/0/stats", FUNCTION),
        ("GET", f"{F}/f/state/k", FUNCTION),
        ("GET", f"{F}/f/download", FUNCTION),
        ("DELETE", f"{F}/f", FUNCTION),
        ("GET", "/admin/v2/functions/public/default/f", FUNCTION),
        ("GET", "/admin/v2/functions/public/default/f/status", FUNCTION),
        ("DELETE", "/admin/v2/functions/public/default/f", FUNCTION),
        ("GET", "/admin/v3/sources/public/default/f", "Source f doesn't exist"),
        ("GET", "/admin/v3/sources/public/default/f/0/status", "Source f doesn't exist"),
        ("DELETE", "/admin/v3/sources/public/default/f", "Source f doesn't exist"),
        ("GET", "/admin/v3/sinks/public/default/f/status", "Sink f doesn't exist"),
        ("DELETE", "/admin/v3/sink/public/default/f", "Sink f doesn't exist"),
        ("DELETE", "/admin/v3/sinks/public/default/f", "Sink f doesn't exist"),
        ("GET", "/admin/v3/sinks/builtinsinks/x/configdefinition", "Built-in connector x doesn't exist"),
        ("GET", "/admin/v3/functions/download?path=a", "No code of a function is stored at a"),
    ],
)
async def test_a_named_one_is_unknown(box: HttpBox, method: str, path: str, reason: str) -> None:
    got = await box.ask(method, path)
    assert (got.status, got.reason) == (404, reason)


async def test_a_download_names_a_file(box: HttpBox) -> None:
    assert (await box.ask("GET", "/admin/v3/functions/download")).status == 412


@pytest.mark.parametrize(
    "path", ["functions/builtins/reload", "sources/reloadBuiltInSources", "sinks/reloadBuiltInSinks"]
)
async def test_a_reload_finds_nothing_new(box: HttpBox, path: str) -> None:
    assert (await box.ask("POST", f"/admin/v3/{path}")).status == 204


async def test_requests_that_run_code_are_refused_with_the_reason(box: HttpBox) -> None:
    refused = [each for each in endpoints() if each.standing == "never:functions"]
    assert {each.method for each in refused} == {"POST", "PUT"}
    for each in refused:
        got = await box.ask(each.method, each.path.replace("{", "").replace("}", ""))
        assert got.status == 501
        assert "pulsarbox runs no Pulsar Functions or connectors" in got.reason


def test_every_read_of_the_groups_has_a_route() -> None:
    groups = ("/functions/", "/sources/", "/sinks/", "/source/", "/sink/", "/worker/", "/worker-stats/")
    reads = {each.path for each in endpoints() if any(group in each.path for group in groups) and each.method == "GET"}
    assert {route.path for route in functions.ROUTES if route.method == "GET"} == reads
