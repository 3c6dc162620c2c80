"""Requests in words, as events show them."""

import json
import re
from typing import Any

import pytest

from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from pulsarbox.server.http.framework.change_phrases import OWN, PHRASES
from pulsarbox.server.http.framework.change_words import VALUE_MAX, change_subject, change_words, refusal_words
from pulsarbox.server.http.route_table import ROOMS

T = "/admin/v2/persistent/public/default/orders"
N = "/admin/v2/namespaces/acme/prod"


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("PUT", "/admin/v2/tenants/acme", {}, "tenant acme created"),
        ("POST", "/admin/v2/tenants/acme", {}, "tenant acme changed"),
        ("DELETE", N, None, "namespace acme/prod deleted"),
        ("PUT", T, None, "topic orders created"),
        ("DELETE", "/admin/v2/non-persistent/acme/prod/a%20b", None, "topic non-persistent://acme/prod/a b deleted"),
        ("PUT", f"{T}/partitions", 4, "topic orders created with 4 partitions"),
        ("POST", f"{T}/partitions", 8, "topic orders extended to 8 partitions"),
        ("PUT", f"{T}/subscription/billing", "latest", "subscription billing of orders created"),
        ("POST", f"{T}/subscription/billing/skip_all", None, "subscription billing of orders cleared"),
        ("POST", f"{T}/subscription/b/skip/7", None, "up to 7 entries of subscription b of orders skipped"),
        ("POST", f"{T}/subscription/b/skip/1", None, "up to 1 entry of subscription b of orders skipped"),
        ("POST", f"{T}/subscription/b/resetcursor", {}, "subscription b of orders reset to a message"),
        ("POST", f"{N}/messageTTL", 3600, "message-ttl of acme/prod set to 1h"),
        (
            "POST",
            f"{N}/retention",
            {"retentionTimeInMinutes": 10_080, "retentionSizeInMB": -1},
            "retention of acme/prod set to 7d",
        ),
        ("DELETE", f"{N}/retention", None, "retention of acme/prod removed"),
        ("POST", f"{N}/retention", "soon", 'retention of acme/prod set to "soon"'),
        ("POST", f"{T}/maxProducers", 3, "max-producers of orders set to 3"),
        ("POST", "/admin/v2/brokers/configuration/ttl/7d", None, "setting ttl set to 7d"),
        ("PUT", "/admin/v2/clusters/other", {}, "cluster other created"),
        ("POST", f"{N}/unheardOf", 1, "namespaces acme prod unheard of changed"),
        ("POST", f"{N}/replication", [], "replication clusters of acme/prod set"),
        ("POST", f"{N}/permissions/app%2F1", ["produce"], "permissions of app/1 on acme/prod granted"),
        (
            "DELETE",
            "/admin/v2/persistent/acme/prod/t/permissions/app",
            None,
            "permissions of app on acme/prod/t revoked",
        ),
        ("PUT", f"{T}/shadowTopics", [], "shadow topics of orders set"),
        ("PUT", f"{N}/unload", None, "namespace acme/prod unloaded"),
        ("POST", "/admin/v3/sinks/acme/prod/jdbc/stop", None, "sink acme/prod/jdbc stopped"),
        ("POST", "/pulsarbox/v1/jobs/7/pause", {}, "job 7 paused"),
        ("POST", "/pulsarbox/v1/clients/7-c0/kick", {}, "client 7-c0 disconnected"),
        (
            "DELETE",
            "/pulsarbox/v1/dead-letter-policy/persistent/public/default/orders/b",
            None,
            "dead letter policy of subscription b of orders removed",
        ),
        ("POST", f"{N}/resourcegroup/%7Bx%7D", None, "resource group of acme/prod set to {x}"),
        ("POST", f"{T}/publishRate", {"publishThrottlingRateInMsg": 5}, "publish-rate of orders set to 5/s"),
    ],
)
def test_a_request_in_words(method: str, path: str, body: Any, words: str) -> None:
    assert change_words(method, path, {}, b"" if body is None else json.dumps(body).encode()) == words


def test_values_in_the_query() -> None:
    assert change_words("POST", f"{T}/messageTTL", {"messageTTL": "90"}, b"") == "message-ttl of orders set to 1m30s"
    quota = {"limitSize": 1 << 30, "policy": "producer_exception"}
    kind = {"backlogQuotaType": "destination_storage"}
    assert change_words("POST", f"{N}/backlogQuota", kind, json.dumps(quota).encode()) == (
        "backlog-quota:destination_storage of acme/prod set to 1GiB,refuse"
    )


def test_a_time_is_readable() -> None:
    words = change_words("POST", f"{T}/subscription/b/resetcursor/1700000000000", {}, b"")
    assert words == "subscription b of orders reset to 2023-11-14 22:13:20 UTC"
    assert "9999" in change_words("POST", f"{T}/subscription/b/resetcursor/{10**15 - 1}", {}, b"")


def test_hostile_bodies_are_bounded() -> None:
    words = change_words("POST", f"{N}/retention", {}, json.dumps("y" * 10_000).encode())
    assert VALUE_MAX < len(words) < VALUE_MAX + 100
    assert change_words("POST", f"{N}/retention", {}, json.dumps({"x": "y" * 100_000}).encode()) == (
        "retention of acme/prod set"
    )
    assert change_words("POST", f"{N}/retention", {}, b"[" * 16_000) == "retention of acme/prod removed"


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        (f"{T}/publishRate", "persistent://public/default/orders"),
        ("/pulsarbox/v1/policies/persistent/public/default/orders/x", "persistent://public/default/orders"),
        ("/pulsarbox/v1/policies/persistent/public/default/50%2525/x", "persistent://public/default/50%25"),
        ("/pulsarbox/v1/policies/acme/prod/x", "acme/prod"),
        (f"{T}/subscription/b/skip_all", "persistent://public/default/orders"),
        (f"{N}/retention", "acme/prod"),
        ("/admin/v2/tenants/acme", "tenant acme"),
        ("/admin/v2/clusters/other/peers", "cluster other"),
        ("/admin/v2/brokers/configuration/ttl/7d", "setting ttl"),
        ("/admin/v2/schemas/acme/prod/orders/schema", "persistent://acme/prod/orders"),
        ("/pulsarbox/v1/faults", "faults"),
        ("/pulsarbox/v1/jobs/7/pause", "job 7"),
        ("/pulsarbox/v1/dead-letter-policy/persistent/acme/prod/orders/b", "persistent://acme/prod/orders"),
        ("/admin/v3/sinks/acme/prod/jdbc/stop", "sink acme/prod/jdbc"),
        ("/", "box"),
    ],
)
def test_the_object_of_a_request(path: str, subject: str) -> None:
    assert change_subject(path) == subject


@pytest.mark.parametrize("endpoint", endpoints(), ids=lambda each: f"{each.method} {each.path}")
def test_no_endpoint_is_shown_as_a_path(endpoint: Endpoint) -> None:
    path = re.sub(r"\{(\w+)\}", r"a-\1", endpoint.path).replace("a-domain", "persistent")
    words = change_words(endpoint.method, path, {}, b"{}")
    for text in (words, refusal_words(words), change_subject(path)):
        assert text and "/admin/" not in text and not text.startswith("/")


@pytest.mark.parametrize("endpoint", [each for each in endpoints() if each.method != "GET"], ids=str)
def test_an_operation_is_put_in_words_that_name_each_object_once(endpoint: Endpoint) -> None:
    path = re.sub(r"\{(\w+)\}", r"a-\1", endpoint.path).replace("a-domain", "persistent")
    words = change_words(endpoint.method, path, {}, b"{}")
    assert not re.search(r"\b(\w+) of \1\b", words) and "persistent://" not in words
    verb = re.sub(r"[A-Z].*", "", endpoint.operation)
    assert not words.startswith(f"{verb} ") and "the request" not in refusal_words(words)


def test_phrases_are_of_operations_and_requests_that_there_are() -> None:
    paths = {(route.method, route.path) for room in ROOMS for route in room.ROUTES}
    assert set(PHRASES) <= {each.operation for each in endpoints()}
    assert [phrase for *_, phrase in OWN if "the request" in refusal_words(phrase)] == []
    assert {(method, path) for method, path, _ in OWN} <= paths
    changes = {(method, path) for method, path in paths if path.startswith("/pulsarbox/") and method != "GET"}
    assert {path for _, path in changes - {(method, path) for method, path, _ in OWN}} <= {
        path for _, path in changes if "/policies/" in path
    }


def test_a_refusal_is_a_noun() -> None:
    assert refusal_words("cluster other created") == "creation of cluster other"
    assert refusal_words("permissions of app on acme/prod granted") == "grant of permissions of app on acme/prod"
    assert refusal_words("resource group of acme/prod set to x") == "change of resource group of acme/prod to x"
    assert refusal_words("peers of cluster other set") == "change of peers of cluster other"
    skipping = "skipping of up to 7 entries of subscription b of orders"
    assert refusal_words(change_words("POST", f"{T}/subscription/b/skip/7", {}, b"")) == skipping
    assert refusal_words("topic thr deleted") == "deletion of topic thr"
    assert refusal_words("publish-rate of thr set to 5/s") == "change of publish-rate of thr to 5/s"
    assert refusal_words("topic thr created with 4 partitions") == "creation of topic thr with 4 partitions"
