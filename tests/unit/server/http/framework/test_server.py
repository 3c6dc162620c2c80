"""The HTTP server: errors, limits, the log, and responses that wait for the disk."""

import asyncio
import logging

import pytest

from pulsarbox.config import Settings
from pulsarbox.server.http import HttpServer
from pulsarbox.server.http.framework import audit
from pulsarbox.server.http.framework import server as http_server
from pulsarbox.server.network.listeners import listen
from tests.unit.server.http.harness import ADMIN, HttpBox, InstantShell, running_box, until


async def test_no_answer_before_the_change_is_durable(box: HttpBox) -> None:
    box.shell.held = True
    asked = [
        asyncio.ensure_future(request)  # noqa: TID251 - a task of the test itself
        for request in (
            box.put("/persistent/public/default/t"),
            box.get("/persistent/public/default"),
            box.get("/brokers/health"),
        )
    ]
    done, _ = await asyncio.wait(asked, timeout=0.2)
    assert not done
    box.shell.held = False
    box.shell.kick()
    assert [got.status for got in await asyncio.gather(*asked)] == [204, 200, 200]
    assert box.shell.engine.disk.log


async def test_a_refusal_that_tells_of_a_change_waits_for_it_too(box: HttpBox) -> None:
    box.shell.held = True
    first = asyncio.ensure_future(box.put("/persistent/public/default/t"))  # noqa: TID251 - a task of the test itself
    await until(lambda: list(box.broker.topics))  # otherwise the second request may arrive first
    second = asyncio.ensure_future(box.put("/persistent/public/default/t"))  # noqa: TID251 - a task of the test itself
    done, _ = await asyncio.wait([second], timeout=0.2)
    assert not done
    box.shell.held = False
    box.shell.kick()
    assert [(await first).status, (await second).status] == [204, 409]


async def test_a_disk_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "DURABLE_SECONDS_MAX", 0.05)
    async with running_box() as box:
        box.shell.held = True
        got = await box.put("/persistent/public/default/t")
        assert (got.status, got.reason) == (503, "The change was not stored in time; it may still take effect")
        box.shell.held = False
        box.shell.kick()
        assert (await box.get("/persistent/public/default")).value == ["persistent://public/default/t"]


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        (
            "POST",
            "/admin/v3/functions/public/default/f",
            501,
            "registerFunction is not supported: pulsarbox runs no Pulsar Func",
        ),
        ("POST", "/admin/v2/tenants", 405, "/admin/v2/tenants supports GET, not POST"),
        ("POST", "/admin/v2/brokers/health", 405, "/admin/v2/brokers/health supports GET, not POST"),
        ("GET", "/admin/v2/other", 404, "There is nothing at /admin/v2/other"),
        ("GET", "/admin/v2", 404, "There is nothing at /admin/v2"),
        ("GET", "/", 404, "There is nothing at /"),
        ("GET", "//admin/v2/tenants", 404, "There is nothing at //admin/v2/tenants"),
        ("PATCH", "/admin/v2/tenants/public", 405, "PATCH is not a method of this API"),
    ],
)
async def test_what_is_not_there(box: HttpBox, method: str, path: str, status: int, reason: str) -> None:
    got = await box.ask(method, path)
    assert got.status == status
    assert got.reason.startswith(reason)
    assert got.headers["Content-Type"] == "application/json"


async def test_an_answer_without_a_body_has_no_content_type(box: HttpBox) -> None:
    got = await box.get("/namespaces/public/default/retention")
    assert (got.status, got.text, got.headers.get("Content-Type")) == (200, "", None)


async def test_head_is_get_without_the_body(box: HttpBox) -> None:
    got = await box.ask("HEAD", "/admin/v2/tenants")
    assert (got.status, got.text, got.headers["Content-Length"]) == (200, "", "19")


async def test_a_body_has_a_limit(box: HttpBox) -> None:
    fits, exceeds = b" " * 1048576, b" " * 1048577
    assert (await box.put("/persistent/public/default/t", fits)).status == 204
    got = await box.put("/persistent/public/default/u", exceeds)
    assert (got.status, got.reason) == (413, "The body is larger than 1048576 bytes (httpMaxRequestSize)")
    assert len(list(box.broker.topics)) == 1


async def test_a_deep_body(box: HttpBox) -> None:
    got = await box.put("/persistent/public/default/t", b"[" * 500_000)
    assert (got.status, got.reason) == (400, "The body is nested too deep")


async def test_a_failure_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_box() as box:
        monkeypatch.setattr(box.broker, "tenants", None)
        got = await box.get("/tenants")
        assert (got.status, got.reason) == (500, "The broker failed to process the request; its log has the reason")
    assert "AttributeError" in caplog.text


async def test_changes_are_logged_and_questions_are_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with running_box() as box:
        await box.get("/tenants")
        await box.put("/persistent/public/default/a%0Ab")
        await box.delete("/tenants/x")
    assert [each.getMessage() for each in caplog.records if each.name == audit.__name__] == [
        f"127.0.0.1: PUT {ADMIN}/persistent/public/default/a%0Ab: done (204)",
        f"127.0.0.1: DELETE {ADMIN}/tenants/x: refused with 404: Tenant doesn't exist",
    ]


async def test_stopping_is_always_allowed() -> None:
    server = HttpServer(InstantShell(Settings()))
    await server.stop()
    await server.start(await listen("127.0.0.1", 0, "--web-port"))
    await server.stop()
    await server.stop()
