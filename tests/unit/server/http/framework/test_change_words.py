"""Requests in words, as events show them."""

import json
import re
from typing import Any

import pytest

from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from pulsarbox.server.http.framework.change_words import VALUE_MAX, change_subject, change_words, refusal_words

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
        ("POST", f"{T}/subscription/billing/skip/7", None, "7 of subscription billing of orders skipped"),
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
        ("PUT", "/admin/v2/clusters/other", {}, "create cluster of cluster other requested"),
        ("POST", f"{N}/unheardOf", 1, "namespaces acme prod unheard of changed"),
        ("POST", f"{N}/replication", [], "set namespace replication clusters of acme/prod requested"),
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
        "set retention of acme/prod requested"
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


def test_a_refusal_is_a_noun() -> None:
    assert refusal_words("topic thr deleted") == "deletion of topic thr"
    assert refusal_words("publish-rate of thr set to 5/s") == "change of publish-rate of thr to 5/s"
    assert refusal_words("topic thr created with 4 partitions") == "creation of topic thr with 4 partitions"
