"""Authorization before every handler: requests with a token, and their audit lines."""

import logging
from typing import Any

import pytest

from pulsarbox.broker.security.refusals import LINES
from pulsarbox.config import Settings
from pulsarbox.server.http.framework import audit
from tests.unit.broker.security.signing import GUARDED, token
from tests.unit.server.http.harness import ADMIN, Got, HttpBox, running_box

TENANT = {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}
NS = "/namespaces/shop/eu"
TOPIC = "/persistent/shop/eu/orders"


def guarded(**settings: Any) -> Settings:
    return Settings(**GUARDED | {"authorizationEnabled": True, "superUserRoles": "root"} | settings)


async def ask(box: HttpBox, role: str, method: str, path: str, body: Any = None, **headers: str) -> Got:
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    if role:
        headers["Authorization"] = f"Bearer {token(sub=role).decode()}"
    return await box.ask(method, ADMIN + path, body, headers=headers)


async def prepare(box: HttpBox) -> None:
    for method, path, body in (
        ("PUT", "/tenants/shop", TENANT),
        ("PUT", NS, {}),
        ("PUT", TOPIC, None),
        ("PUT", f"{TOPIC}/subscription/s", None),
    ):
        assert (await ask(box, "root", method, path, body)).status == 204


@pytest.mark.settings(guarded())
async def test_what_a_role_may_is_what_it_was_granted_and_without_a_restart(box: HttpBox) -> None:
    await prepare(box)
    skip = f"{TOPIC}/subscription/s/skip_all"
    got = await ask(box, "ann", "POST", skip)
    assert got.status == 403
    assert got.reason.startswith("'ann' has no permission to consume on persistent://shop/eu/orders: ")
    assert (await ask(box, "", "POST", skip)).status == 401
    assert (await ask(box, "ann", "POST", f"{NS}/permissions/ann", ["consume"])).status == 403
    assert (await ask(box, "admin", "POST", f"{NS}/permissions/ann", ["consume"])).status == 204
    assert (await ask(box, "ann", "POST", skip)).status == 204
    assert (await ask(box, "ann", "GET", f"{NS}/topics")).value == ["persistent://shop/eu/orders"]
    assert (await ask(box, "admin", "DELETE", f"{NS}/permissions/ann")).status == 204
    assert (await ask(box, "ann", "POST", skip)).status == 403


@pytest.mark.settings(guarded())
async def test_who_is_refused_is_not_told_what_is_there(box: HttpBox) -> None:
    await prepare(box)
    answers = [
        await ask(box, "ann", "GET", f"/persistent/shop/{namespace}/{topic}/stats")
        for namespace, topic in (("eu", "orders"), ("eu", "none"), ("none", "orders"))
    ]
    assert [got.status for got in answers] == [403, 403, 403]
    assert len({got.reason.split(":")[0] for got in answers}) == 1
    got = await ask(box, "ann", "PUT", TOPIC, b"{" * 1000)
    assert got.status == 403


@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE"])
@pytest.mark.settings(guarded())
async def test_tenants_of_others_and_missing_ones_are_refused_alike(box: HttpBox, method: str) -> None:
    """Regardless of the body, a rejection must not reveal which tenants exist."""
    await prepare(box)
    for role in ("ann", "admin-of-nothing", ""):
        refusals = set()
        for tenant in ("shop", "missing", "not a name", "x" * 300):
            for body in (None, TENANT, {}, b"{" * 1000, [1], {"allowedClusters": ["elsewhere"]}):
                got = await ask(box, role, method, f"/tenants/{tenant.replace(' ', '%20')}", body)
                refusals.add((got.status, got.reason.replace(tenant, "...")))
        assert len(refusals) == 1, refusals
        assert {status for status, _ in refusals} == {403 if role else 401}
    assert (await ask(box, "root", "GET", "/tenants")).value == ["public", "pulsar", "shop"]
    assert (await ask(box, "root", "PUT", "/tenants/shop", TENANT)).status == 409
    assert (await ask(box, "root", "GET", "/tenants/none")).status == 404
    assert (await ask(box, "admin", "GET", "/tenants/shop")).value["adminRoles"] == ["admin"]


@pytest.mark.settings(guarded())
async def test_a_missing_tenant_is_not_found(box: HttpBox) -> None:
    got = await ask(box, "ann", "GET", "/namespaces/none")
    assert (got.status, got.reason) == (404, "Tenant does not exist")


@pytest.mark.settings(guarded())
async def test_a_subscription_that_is_kept_for_others(box: HttpBox) -> None:
    await prepare(box)
    for role in ("ann", "bob"):
        await ask(box, "root", "POST", f"{NS}/permissions/{role}", ["consume"])
    await ask(box, "root", "POST", f"{NS}/permissions/subscription/s", ["bob"])
    for path in (f"{TOPIC}/subscription/s/skip_all", f"{NS}/clearBacklog/s", f"{NS}/unsubscribe/s"):
        got = await ask(box, "ann", "POST", path)
        assert (got.status, "kept for other roles" in got.reason) == (403, True)
        assert (await ask(box, "bob", "POST", path)).status == 204


@pytest.mark.settings(guarded(proxyRoles="proxy", superUserRoles="root,proxy"))
async def test_a_proxy_and_the_one_for_whom_it_asks(box: HttpBox) -> None:
    for role, original, status in (
        ("proxy", "root", 200),
        ("proxy", "ann", 403),
        ("proxy", "", 403),
        ("ann", "root", 403),
        ("root", "root", 200),
    ):
        got = await ask(box, role, "GET", "/tenants", X_Original_Principal=original)
        assert (role, original, got.status) == (role, original, status)


@pytest.mark.settings(guarded())
async def test_permissions_on_topics_are_of_the_tenants_that_the_body_names(box: HttpBox) -> None:
    await prepare(box)
    mine = {"topic": "persistent://shop/eu/orders", "role": "ann", "actions": ["produce"]}
    path = "/namespaces/grantPermissionsOnTopics"
    assert (await ask(box, "admin", "POST", path, [mine])).status == 204
    other = mine | {"topic": "persistent://public/default/t"}
    assert (await ask(box, "admin", "POST", path, [mine, other])).status == 403
    nothing: tuple[Any, ...] = (None, [], {}, "x")
    for body in nothing:
        assert (await ask(box, "admin", "POST", path, body)).status == 403
    unclear: tuple[Any, ...] = ([1], [{}], [{"topic": 5}], [{"topic": "a/b"}])
    for body in unclear:
        assert (await ask(box, "admin", "POST", path, body)).status == 400


@pytest.mark.settings(guarded())
async def test_a_dead_letter_topic_of_another_tenant_is_asked_for(box: HttpBox) -> None:
    await prepare(box)
    target = "persistent://public/default/dead"
    path = "/pulsarbox/v1/dead-letter-policy/persistent/shop/eu/orders/s"
    body = {"maxRedeliverCount": 1, "deadLetterTopic": target, "initialSubscriptionName": ""}
    headers = {"Authorization": f"Bearer {token(sub='admin').decode()}"}
    got = await box.ask("POST", path, body, headers=headers)
    assert (got.status, f"produce on {target}" in got.reason) == (403, True)
    await ask(box, "root", "POST", "/namespaces/public/default/permissions/admin", ["produce"])
    assert (await box.ask("POST", path, body, headers=headers)).status == 204
    got = await box.ask("POST", path, body | {"initialSubscriptionName": "x"}, headers=headers)
    assert (got.status, f"consume on {target}" in got.reason) == (403, True)


async def test_each_change_and_each_refusal_is_one_line_and_of_a_flood_some(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, audit.__name__)
    async with running_box(guarded()) as box:
        await prepare(box)
        caplog.clear()
        await ask(box, "ann", "GET", f"{TOPIC}/stats")
        await ask(box, "ann", "DELETE", TOPIC)
        await ask(box, "root", "GET", f"{TOPIC}/stats")
        await ask(box, "root", "DELETE", TOPIC)
        for _ in range(LINES):
            await ask(box, "ann", "GET", f"{TOPIC}/stats")
    lines = [each.getMessage() for each in caplog.records if each.name == audit.__name__]
    assert lines[0].startswith(f"'ann' at 127.0.0.1: GET {ADMIN}{TOPIC}/stats: refused with 403: 'ann' has no perm")
    assert lines[1].startswith(f"'ann' at 127.0.0.1: DELETE {ADMIN}{TOPIC}: refused with 403: ")
    assert lines[2] == f"'root' at 127.0.0.1: DELETE {ADMIN}{TOPIC}: done (204)"
    assert len(lines) == LINES + 1
