"""Cross-site requests by browsers: the headers that cause rejection, and the settings that allow them."""

import asyncio
from typing import Any

import pytest
from multidict import CIMultiDict

from pulsarbox.broker.endpoints import Ports, endpoints_of
from pulsarbox.broker.host import Host
from pulsarbox.config import ConfigError, Settings
from pulsarbox.server.http.framework.cross_site import AllowedSources, refusal_of
from tests.unit.broker.security.signing import GUARDED, token
from tests.unit.server.http.harness import ADMIN, HttpBox

EVIL = "http://evil.example"
CLUSTERS = f"{ADMIN}/clusters"
EVERYWHERE = "0.0.0.0"


def refused(headers: list[tuple[str, str]], machine: str = "laptop", **settings: Any) -> str:
    """Return one word for the rule that rejects the request, or an empty string."""
    given = Settings(**settings)
    rules = AllowedSources.of(given, endpoints_of(given, "localhost", Ports(6650, 8080)), machine)
    reason = refusal_of(CIMultiDict(headers), rules, host=True, origin=True)
    return next((word for word in ("Host", "cross-site", "origin") if word in reason), reason)


HOSTS = {
    "localhost": True,
    "localhost:8080": True,
    "LOCALHOST:1": True,
    "localhost.": True,
    "app.localhost:8080": True,
    "127.0.0.1:8080": True,
    "127.9.9.9": True,
    "192.168.1.7:8080": True,
    "203.0.113.9": True,
    "[::1]:8080": True,
    "[2001:db8::7]": True,
    "laptop:8080": True,
    "": True,
    "evil.example": False,
    "evil.example:8080": False,
    "localhost.evil.example": False,
    "127.0.0.1.evil.example": False,
    "laptop.evil.example": False,
    "localhostx": False,
    "evil": False,
    "pulsar:8080": False,
    "host.docker.internal": False,
    "user@localhost": False,
    "localhost:8080:1": False,
    "localhost/x": False,
    "localhost, evil.example": False,
    "[evil.example]": False,
    "[::1": False,
    "::1": False,
    ":8080": False,
    "*": False,
    "\u00e9vil.example": False,
    "localhost:999999": False,
}
"""Host headers and their acceptance by a box on loopback."""


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_public_dns_may_name_is_refused(host: str) -> None:
    assert refused([("Host", host)]) == ("" if HOSTS[host] else "Host")


def test_a_client_without_a_host_is_no_browser() -> None:
    assert refused([]) == ""


def test_of_several_hosts_each_is_checked() -> None:
    for hosts in (("localhost", "evil.example"), ("evil.example", "localhost")):
        assert refused([("Host", host) for host in hosts]) == "Host"


@pytest.mark.parametrize(
    ("settings", "let_in", "not_let_in"),
    [
        ({"advertisedAddress": "box.example.com"}, ["box.example.com:8080"], ["x.box.example.com", "example.com"]),
        (
            {"advertisedListeners": "in:pulsar://in.example.com:6650,out:https://Out.example.com:8443"},
            ["in.example.com", "out.example.com"],
            ["example.com"],
        ),
        ({"bindAddress": "box.example.com"}, ["box.example.com"], ["example.com"]),
        (
            {"httpAllowedHosts": "Box.example.com, other.example.com."},
            ["box.example.com", "other.example.com"],
            ["a.b"],
        ),
        (
            {"httpAllowedHosts": "*.example.com"},
            ["a.example.com", "a.b.example.com"],
            ["example.com", "badexample.com"],
        ),
        ({"httpAllowedHosts": "*"}, ["evil.example", "pulsar", "a:b:c"], []),
    ],
)
def test_names_of_the_box_are_let_in(settings: dict[str, str], let_in: list[str], not_let_in: list[str]) -> None:
    assert [refused([("Host", host)], **settings) for host in let_in] == [""] * len(let_in)
    assert [refused([("Host", host)], **settings) for host in not_let_in] == ["Host"] * len(not_let_in)


@pytest.mark.parametrize(
    "host",
    [
        "pulsar",
        "pulsar:8080",
        "box.local",
        "host.docker.internal",
        "pulsar.ns.svc",
        "p.ns.svc.cluster.local",
        "a.home.arpa",
    ],
)
def test_names_of_private_networks_are_let_in_where_the_box_serves_one(host: str) -> None:
    """Service names in a compose network or a cluster do not exist in public DNS."""
    assert refused([("Host", host)], bindAddress=EVERYWHERE) == ""
    assert refused([("Host", host)]) == "Host"
    for evil in ("evil.example", "pulsar.com", "svc.com", "notlocal", "local.evil.example"):
        assert refused([("Host", evil)], bindAddress=EVERYWHERE) == ("" if "." not in evil else "Host")


@pytest.mark.parametrize(
    ("host", "origin", "rule"),
    [
        ("localhost:8080", "http://localhost:8080", ""),
        ("localhost:8080", "HTTP://LOCALHOST:8080", ""),
        ("localhost", "http://localhost", ""),
        ("localhost:80", "http://localhost", ""),
        ("localhost", "https://localhost", ""),
        ("[::1]:8080", "http://[::1]:8080", ""),
        ("192.168.1.7:8080", "http://192.168.1.7:8080", ""),
        ("localhost:8080", EVIL, "origin"),
        ("localhost:8080", "http://localhost:3000", "origin"),
        ("localhost:8080", "http://localhost", "origin"),
        ("localhost:8080", "http://127.0.0.1:8080", "origin"),
        ("localhost:8080", "https://evil.example/http://localhost:8080", "origin"),
        ("localhost:8080", "http://localhost:8080@evil.example", "origin"),
        ("localhost:8080", "null", "origin"),
        ("localhost:8080", "", "origin"),
        ("localhost:8080", "localhost:8080", "origin"),
        ("localhost:8080", "chrome-extension://abcdef", "origin"),
        ("", "http://localhost:8080", "origin"),
    ],
)
def test_a_foreign_origin_is_refused(host: str, origin: str, rule: str) -> None:
    assert refused([("Host", host), ("Origin", origin)]) == rule


@pytest.mark.parametrize(
    ("site", "rule"), [("cross-site", "cross-site"), (" Cross-Site ", "cross-site"), ("same-origin", ""), ("none", "")]
)
def test_a_cross_site_fetch_is_refused(site: str, rule: str) -> None:
    assert refused([("Host", "localhost:8080"), ("Sec-Fetch-Site", site)]) == rule


@pytest.mark.parametrize(
    ("allowed", "origin", "rule"),
    [
        ("http://localhost:3000", "http://localhost:3000", ""),
        ("https://Board.example.com, null", "https://board.example.com", ""),
        ("https://board.example.com, null", "null", ""),
        ("*", EVIL, ""),
        ("https://board.example.com", "http://board.example.com", "origin"),
        ("https://board.example.com", EVIL, "origin"),
    ],
)
def test_origins_that_the_setting_names_are_let_in(allowed: str, origin: str, rule: str) -> None:
    headers = [("Host", "localhost:8080"), ("Origin", origin), ("Sec-Fetch-Site", "cross-site")]
    assert refused(headers, httpAllowedOrigins=allowed) == rule


@pytest.mark.parametrize(
    "settings",
    [
        *({"httpAllowedHosts": text} for text in ("http://box", "box:8080", "a b", "*x", ".example.com", "a/b", "*.")),
        *({"httpAllowedOrigins": text} for text in ("box.example.com", "http://", "http://a/b", "http://a b", "*.com")),
    ],
)
def test_what_no_host_or_origin_can_be_is_refused(settings: dict[str, str]) -> None:
    (name,) = settings
    with pytest.raises(ConfigError, match=f'{name}: ".*" is not a'):
        Settings(**settings)


# Over HTTP

ATTACKS: tuple[dict[str, str], ...] = (
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Host": "evil.example"},
)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
async def test_nothing_is_done_for_a_foreign_page_on_any_path(box: HttpBox, attack: dict[str, str]) -> None:
    shut: list[str] = []
    box.broker.host = Host(on_shutdown=shut.append)
    topic = "/persistent/public/default/t"
    assert (await box.put(topic)).status == 204
    for method, path in (
        ("POST", "/topics/persistent/public/default/t"),
        ("POST", f"{ADMIN}{topic}/terminate"),
        ("DELETE", f"{ADMIN}{topic}"),
        ("POST", f"{ADMIN}/brokers/shutdown"),
        ("GET", f"{ADMIN}/brokers/health"),
        ("HEAD", f"{ADMIN}/brokers/ready"),
        ("GET", "/metrics"),
        ("GET", "/status.html"),
        ("GET", "/pulsarbox/v1/events?follow=true"),
        ("GET", "/nothing"),
        ("OPTIONS", "/metrics"),
        ("PATCH", "/metrics"),
    ):
        got = await box.ask(method, path, b"x", headers=attack)
        assert got.status == 403, (method, path)
        if method != "HEAD":
            assert "httpAllowed" in got.reason and "docs/security.md" in got.reason
    assert not shut
    assert (await box.get("/persistent/public/default")).value == ["persistent://public/default/t"]


async def test_a_change_of_the_settings_holds_at_once(box: HttpBox) -> None:
    async def status(**headers: str) -> int:
        return (await box.ask("GET", CLUSTERS, headers=headers)).status

    assert await status(Host="box.example.com") == 403
    assert await status(Origin="http://b.example") == 403
    for name, value in (("httpAllowedHosts", "box.example.com"), ("httpAllowedOrigins", "http:%2F%2Fb.example")):
        assert (await box.post(f"/brokers/configuration/{name}/{value}")).status == 200
    assert await status(Host="box.example.com") == 200
    assert await status(Origin="http://b.example") == 200
    assert await status(Origin="http://c.example") == 403
    assert (await box.post("/brokers/configuration/httpAllowedHosts/http:%2F%2Fx")).status == 412
    assert (await box.delete("/brokers/configuration/httpAllowedHosts")).status == 200
    assert await status(Host="box.example.com") == 403


@pytest.mark.settings(Settings(httpAllowedOrigins="https://board.example"))
async def test_pages_that_are_let_in_may_ask_beforehand_and_read_the_answers(box: HttpBox) -> None:
    asked = {"Origin": "https://board.example", "Access-Control-Request-Method": "DELETE"}
    got = await box.ask("OPTIONS", CLUSTERS, headers=asked | {"Access-Control-Request-Headers": "authorization"})
    assert got.status == 204
    assert got.headers["Access-Control-Allow-Origin"] == "https://board.example"
    assert "DELETE" in got.headers["Access-Control-Allow-Methods"]
    assert got.headers["Access-Control-Allow-Headers"] == "authorization"
    for path in (CLUSTERS, "/metrics", "/nothing"):
        got = await box.ask("GET", path, headers={"Origin": "https://board.example"})
        assert got.headers["Access-Control-Allow-Origin"] == "https://board.example", path
        assert "Access-Control-Allow-Credentials" not in got.headers
    for headers in ({}, {"Origin": f"http://127.0.0.1:{box.port}"}):
        got = await box.ask("GET", CLUSTERS, headers=headers)
        assert (got.status, "Access-Control-Allow-Origin" in got.headers) == (200, False)
    refused = await box.ask("OPTIONS", CLUSTERS, headers=asked | {"Host": "evil.example"})
    assert refused.status == 403


FOREIGN_HOST = {"Host": "box.example.com"}
FOREIGN_PAGE = {"Origin": EVIL}


def guarded(**settings: Any) -> Settings:
    return Settings(**GUARDED | settings)


@pytest.mark.settings(guarded())
async def test_a_token_is_added_by_no_browser(box: HttpBox) -> None:
    proof = {"Authorization": f"Bearer {token(sub='ann').decode()}"}
    for foreign in (FOREIGN_HOST, FOREIGN_PAGE, {"Sec-Fetch-Site": "cross-site"}):
        assert (await box.ask("GET", CLUSTERS, headers=proof | foreign)).status == 200
        assert (await box.ask("GET", CLUSTERS, headers=foreign)).status == 401
        assert (await box.ask("GET", f"{ADMIN}/brokers/ready", headers=foreign)).status == 200


@pytest.mark.settings(guarded())
async def test_a_password_is_added_by_browsers_for_the_host_that_it_was_given_to(box: HttpBox) -> None:
    proof = {"Authorization": "Basic YWRtaW46MTIzNDU2"}
    assert (await box.ask("GET", CLUSTERS, headers=proof)).status == 200
    assert (await box.ask("GET", CLUSTERS, headers=proof | FOREIGN_HOST)).status == 200
    assert (await box.ask("POST", f"{ADMIN}/brokers/shutdown", headers=proof | FOREIGN_PAGE)).status == 403


@pytest.mark.settings(guarded(anonymousUserRole="guest"))
async def test_what_the_anonymous_role_may_a_page_could(box: HttpBox) -> None:
    assert (await box.ask("GET", CLUSTERS)).status == 200
    for foreign in (FOREIGN_HOST, FOREIGN_PAGE):
        assert (await box.ask("GET", CLUSTERS, headers=foreign)).status == 403
        proof = {"Authorization": f"Bearer {token(sub='ann').decode()}"}
        assert (await box.ask("GET", CLUSTERS, headers=proof | foreign)).status == 200


async def test_a_body_that_a_page_sends_is_not_read(box: HttpBox) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
    writer.write(b"POST /topics/persistent/public/default/t HTTP/1.1\r\nHost: localhost\r\n")
    writer.write(b"Origin: http://evil.example\r\nContent-Length: 1000000\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 403")
    writer.close()
