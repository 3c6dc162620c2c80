"""Authentication of HTTP requests."""

import base64
from typing import Any

import pytest

from pulsarbox.broker.security.principal import Principal
from pulsarbox.config import Settings
from tests.unit.broker.security.signing import GUARDED, NOW, token
from tests.unit.server.http.harness import ADMIN, HttpBox, running_box

METHOD = "X-Pulsar-Auth-Method-Name"
BASIC = "Basic " + base64.b64encode(b"admin:123456").decode()


def guarded(**settings: Any) -> Settings:
    return Settings(**(GUARDED | settings))


def bearer(**claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(**claims).decode()}"}


@pytest.mark.parametrize(
    "headers",
    [
        bearer(),
        bearer(exp=NOW + 5),
        bearer() | {METHOD: "token"},
        {"Authorization": BASIC},
        {"Authorization": BASIC, METHOD: "basic"},
    ],
)
@pytest.mark.settings(guarded())
async def test_who_proves_a_name_is_let_in(box: HttpBox, headers: dict[str, str]) -> None:
    assert (await box.ask("GET", ADMIN + "/tenants", headers=headers)).status == 200


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "Authentication required"),
        ({"Authorization": "Bearer x"}, "Authentication required"),
        (bearer(exp=NOW), "Authentication required"),
        (bearer(key=b"x" * 32), "Authentication required"),
        ({"Authorization": "Digest x"}, "Authentication required"),
        (bearer(exp=NOW) | {METHOD: "token"}, "it has expired"),
        (bearer() | {METHOD: "basic"}, 'has to be started with "Basic "'),
        (bearer() | {METHOD: "kerberos"}, "Unsupported authentication method: [kerberos]."),
        ({METHOD: "token"}, "Invalid HTTP Authorization header"),
        ({METHOD: ""}, "Unsupported authentication method: []."),
    ],
)
@pytest.mark.settings(guarded())
async def test_who_proves_nothing_is_sent_away_and_told_how_to_prove_it(
    box: HttpBox, headers: dict[str, str], reason: str
) -> None:
    for method, path in (("GET", "/tenants"), ("PUT", "/tenants/t"), ("GET", "/nothing"), ("DELETE", "/tenants")):
        got = await box.ask(method, ADMIN + path, headers=headers)
        assert got.status == 401 and reason in got.reason
        assert got.headers["WWW-Authenticate"].startswith('Bearer realm="pulsarbox", Basic realm')
    assert "t" not in box.broker.tenants.all()


@pytest.mark.settings(guarded(anonymousUserRole="nobody"))
async def test_the_anonymous_role(box: HttpBox) -> None:
    assert (await box.get("/tenants")).status == 200
    wrong = {"Authorization": "Bearer x"}
    assert (await box.ask("GET", ADMIN + "/tenants", headers=wrong)).status == 200
    assert (await box.ask("GET", ADMIN + "/tenants", headers=wrong | {METHOD: "token"})).status == 401


@pytest.mark.parametrize("path", ["/admin/v2/brokers/health", "/admin/v2/brokers/ready", "/metrics"])
@pytest.mark.settings(guarded())
async def test_what_is_for_anyone_asks_nobody(box: HttpBox, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, bearer()):
        assert (await box.ask("GET", path, headers=headers)).status == 200


@pytest.mark.settings(guarded(authenticateMetricsEndpoint=True))
async def test_metrics_may_ask(box: HttpBox) -> None:
    got = await box.ask("GET", "/metrics")
    assert (got.status, got.reason) == (401, "Authentication required")
    assert (await box.ask("GET", "/metrics", headers=bearer())).status == 200


@pytest.mark.settings(guarded())
async def test_no_body_is_read_of_who_may_ask_nothing(box: HttpBox) -> None:
    got = await box.ask("PUT", ADMIN + "/tenants/t", b"x" * 500_000)
    assert got.status == 401
    assert got.headers["Connection"] == "close"


async def test_an_action_is_told_with_the_role(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running_box(guarded()) as box:
        got = await box.ask(
            "PUT", ADMIN + "/tenants/t?token=secret", {"allowedClusters": ["standalone"]}, headers=bearer()
        )
        assert got.status == 204
    (line,) = [each for each in caplog.records if "PUT" in each.getMessage()]
    assert line.getMessage() == "'ann' at 127.0.0.1: PUT /admin/v2/tenants/t?token=...: done (204)"
    assert line.__dict__["fields"]["role"] == "ann"


async def test_without_authentication_nobody_is_anybody(box: HttpBox) -> None:
    assert (await box.ask("GET", ADMIN + "/tenants", headers={METHOD: "kerberos"})).status == 200


async def test_a_principal_is_what_handlers_are_given() -> None:
    from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse
    from pulsarbox.server.http.framework.routes import Match

    given: list[Principal | None] = []

    def handler(call: HttpRequest) -> HttpResponse:
        given.append(call.principal)
        return HttpResponse(204)

    async with running_box(guarded()) as box:
        from pulsarbox.server.http.framework import server as http_server

        found = http_server.HttpServer._match

        def replaced(self: Any, request: Any) -> Any:
            match = found(self, request)
            assert isinstance(match, Match)
            return match._replace(route=match.route._replace(handler=handler))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(http_server.HttpServer, "_match", replaced)
            await box.ask("GET", ADMIN + "/tenants", headers=bearer(exp=NOW + 5))
            await box.ask("GET", ADMIN + "/tenants", headers={"Authorization": BASIC, "X-Original-Principal": "bob"})
    assert given == [Principal("ann", "token", (NOW + 5) * 1000), Principal("admin", "basic", original="bob")]
