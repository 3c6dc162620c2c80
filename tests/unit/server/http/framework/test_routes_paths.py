"""Unusual, invalid and hostile names in paths, with responses recorded from Pulsar 4.2.4."""

import json
import urllib.parse
from typing import Any

import pytest

from tests.unit.server.http.harness import ADMIN, HttpBox, running_box
from tests.unit.server.http.raw import said

NS = "/persistent/public/default"


async def made(box: HttpBox, segment: str) -> list[str]:
    """Create a topic of that path segment and return the local names of all topics."""
    got = await said(box, f"PUT {ADMIN}{NS}/{segment} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert got.status == 204, got
    listed = json.loads((await said(box, f"GET {ADMIN}{NS} HTTP/1.1\r\nHost: localhost\r\n\r\n")).body)
    return [name.removeprefix("persistent://public/default/") for name in listed]


@pytest.mark.parametrize(
    ("segment", "name"),
    [
        ("a+b", "a b"),
        ("a%2Bb", "a+b"),
        ("a%20b", "a b"),
        ("a%252Fb", "a%2Fb"),
        ("..", ".."),
        ("%2e%2E", ".."),
        ("x..y", "x..y"),
        ("a%0Ab", "a\nb"),
        ("a%7Fb", "a\x7fb"),
        ("%E2%80%AE", "\u202e"),
        ("a%C3%A9", "aé"),
        ("a%3Bb", "a;b"),
        ("a;b=c", "a;b=c"),
        ("a%3Fb%23", "a?b#"),
        ("a%5Cb", "a\\b"),
        ("a%25", "a%"),
        ("%25zz", "%zz"),
        ("n" * 3000, "n" * 3000),
        ("%F0%9F%90%A0" * 200, "🐠" * 200),
    ],
)
async def test_a_topic_has_the_name_that_was_meant_and_is_found_by_it(box: HttpBox, segment: str, name: str) -> None:
    assert await made(box, segment) == [name]
    quoted = urllib.parse.quote(name, safe="")
    for path in (segment, quoted, urllib.parse.quote_plus(name, safe="")):
        got = await said(box, f"GET {ADMIN}{NS}/{path}/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert got.status == 200, (path, got)
    assert (await said(box, f"DELETE {ADMIN}{NS}/{segment} HTTP/1.1\r\nHost: localhost\r\n\r\n")).status == 204


@pytest.mark.parametrize(
    ("segment", "name"), [("s+t", "s t"), ("s%2Bt", "s t"), ("s%252Bt", "s+t"), ("s%2520t", "s t"), ("s%252Ft", "s/t")]
)
async def test_subscriptions_are_decoded_twice_as_their_clients_encode_them(
    box: HttpBox, segment: str, name: str
) -> None:
    assert (await box.put(f"{NS}/t/subscription/{segment}")).status == 204
    assert (await box.get(f"{NS}/t/subscriptions")).value == [name]


async def test_a_plus_in_a_query_is_a_space(box: HttpBox) -> None:
    await box.put(f"{NS}/t")
    await box.put(f"{NS}/t/properties", {"a b": "1", "a+b": "2"})
    await box.delete(f"{NS}/t/properties?key=a+b")
    assert (await box.get(f"{NS}/t/properties")).value == {"a+b": "2"}
    await box.delete(f"{NS}/t/properties?key=a%2Bb")
    assert (await box.get(f"{NS}/t/properties")).value == {}


BAD: list[Any] = [
    *(
        (f"{NS}/{name}", 412, "Topic name is not valid")
        for name in ("a%2Fb", "a%2F..%2Fb", "..%2F..%2Fetc", "%09", "+")
    ),
    *((f"{NS}/{name}", 400, "The path has a NUL") for name in ("%00", "a%00b", "t%00")),
    *((f"{NS}/{name}", 400, "The path has a % that") for name in ("a%", "a%z", "a%zz", "%u0041", "a%-1")),
    *((f"{NS}/{name}", 400, "The path is not UTF-8") for name in ("a%FF", "a%C0%AF", "a%ED%A0%80", "a%F4%90%80%80")),
    ("/persistent/pub%2Flic/default/t", 412, "Namespace name is not valid"),
    ("/persistent/public/default%2Ft/t", 412, "Namespace name is not valid"),
    ("/persistent/../default/t", 404, "Namespace not found"),
    ("/persistent/public/../t", 404, "Namespace not found"),
    ("/persistent/public/a+b/t", 412, "Namespace name is not valid"),
    (f"{NS}/../../../tenants/evil", 404, "There is nothing at"),
    (f"{NS}//t", 404, "There is nothing at"),
    ("/persistent//default/t", 404, "There is nothing at"),
    ("//persistent/public/default/t", 404, "There is nothing at"),
    ("/tenants/a%2Bb", 412, "Tenant name is not valid"),
    ("/tenants/a%20b", 412, "Tenant name is not valid"),
    ("/tenants/%C3%A9", 412, "Tenant name is not valid"),
    ("/namespaces/public/%2e%2e%2fdefault", 412, "Namespace name is not valid"),
    (f"{NS}/t/subscription/%00", 400, "The path has a NUL"),
    (f"{NS}/t/subscription/s%2500", 400, "The path has a NUL"),
    (f"{NS}/{'n' * 9000}", 414, "Malformed HTTP request"),
]


@pytest.mark.parametrize(("path", "status", "reason"), BAD, ids=[path[:60] for path, *_ in BAD])
async def test_what_is_refused_makes_nothing(
    path: str, status: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_box() as box:
        before = (await box.get("/tenants")).value
        body = '{"allowedClusters":["standalone"]}' if path.startswith("/tenants") else ""
        got = await said(
            box, f"PUT {ADMIN}{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        assert (got.status, json.loads(got.body)["reason"][: len(reason)]) == (status, reason)
        assert list(box.broker.topics) == []
        assert (await box.get("/tenants")).value == before
        assert (await box.get("/namespaces/public")).value == ["public/default"]
    assert "Traceback" not in caplog.text
