"""Requests generated from the endpoint table: valid, nearly valid, and invalid, determined by the seed."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

from pulsarbox.server.http.admin_endpoints import Endpoint

NONSENSE: Final = (
    "", " ", "+", "a+b", "a b", "%", "%zz", "%00", "%FF", "%2F", "..", ".", "%2e%2e%2f", "a%2Fb", "\u202e", "é", "🐠",
    "a;b=c", "?", "#", "'", '"', "<b>", "{x}", "null", "true", "0", "-1", "1.5", "1e9", "NaN", "9" * 19, "9" * 40,
    "-9223372036854775809", "n" * 300, "n" * 2500, "__change_events", "x-partition-0", "x-partition-99999999999",
    "persistent", "stats", "partitions", "subscription", "\n", "\x7f",
)  # fmt: skip
"""Values that no well-behaved client sends, some of them escaped."""

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "tenant": ("acme",) * 9 + ("second",),
    "property": ("acme",),
    "namespace": ("prod",) * 9 + ("default",),
    "topic": ("orders",) * 4 + ("parts",) * 3 + ("parts-partition-0", "parts-partition-7", "ended", "made", "none"),
    "subscription": ("billing", "billing", "billing", "audit"),
    "bundle": ("0x00000000_0xffffffff", "0x00000000_0x40000000", "0xc0000000_0xffffffff"),
    "role": ("admin", "reader"),
    "key": ("k", "owner"),
    "cluster": ("standalone", "other"),
    "name": ("allowAutoTopicCreation", "defaultNumPartitions", "brokerShutdownTimeoutMs", "clusterName"),
    "value": ("true", "false", "3", "20000"),
    "version": ("0", "1", "99"),
    "type": ("function", "function", "source"),
    "packageName": ("code",),
    "domainName": ("a", "b"),
    "policyName": ("p", "brokers"),
    "broker": ("localhost:8080", "b1"),
    "bookie": ("b1:3181", "b2"),
    "allocator": ("default", "ml-cache"),
    "group": ("g",),
    "coordinatorId": ("0", "0", "1"),
}
"""Values of path variables. The tenant public is excluded: every start creates it again."""
METHODS: Final = ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS")
_NUMBERS: Final = ("0", "1", "2", "5", "100", "4000000000", "1700000000000")

_TEXTS: Final = ("a", "b", "", "é", "x" * 500, "null", "🐠")
_ANYTHING: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 1.5, 2**31, 2**63, 10**30, "", "text", [], {}, [[]], [None], {"": {}}, ["a", "a"], {"a": None},
)  # fmt: skip
_POSITIONS: Final[tuple[Any, ...]] = (
    "earliest", "latest", {"ledgerId": 2, "entryId": 1}, {"ledgerId": -1, "entryId": -1}, {"ledgerId": 3, "entryId": 0},
    {"ledgerId": 9999, "entryId": 1, "batchIndex": 3, "partitionIndex": 0, "excluded": True}, {"ledgerId": 2**62},
    {"ledgerId": 2, "entryId": 0, "batchIndex": 1, "properties": {"a": "b"}},
)  # fmt: skip
_TOPICS: Final = "persistent://acme/prod/orders", "persistent://acme/prod/none", "orders", "", "a://b"
_URLS: Final = "http://a:8080", "pulsar://a:6650", "", "a b", None
_SCHEMAS: Final = ("AVRO", "JSON", "STRING", "KEY_VALUE", "PROTOBUF_NATIVE", "NONE", "nothing", 5)


def some(dice: random.Random, values: Sequence[Any]) -> list[Any]:
    """Return up to three random values."""
    return dice.choices(values, k=dice.randrange(4))


def options(dice: random.Random) -> list[dict[str, Any]]:
    """Return permissions of several topics."""
    return [
        {"topic": dice.choice(_TOPICS), "role": dice.choice(_TEXTS), "actions": some(dice, ("produce", "fly"))}
        for _ in range(dice.randrange(4))
    ]


BODIES: Final[dict[str, Callable[[random.Random], Any]]] = {
    "TenantInfo": lambda dice: {"adminRoles": some(dice, _TEXTS), "allowedClusters": ["standalone"]},
    "Policies": lambda dice: {"bundles": {"numBundles": dice.choice((1, 4, 0, -1, 64, 10**9))}},
    "Map<String, String>": lambda dice: dict(zip(some(dice, _TEXTS), some(dice, _TEXTS), strict=False)),
    "ResetCursorData": lambda dice: dice.choice(_POSITIONS),
    "MessageId": lambda dice: dice.choice(_POSITIONS),
    "PartitionedTopicMetadata": lambda dice: dice.choice((1, 3, 5, 0, -1, {"partitions": 2, "properties": {"a": "b"}})),
    "Set<AuthAction>": lambda dice: some(dice, ("produce", "consume", "functions", "sinks", "fly")),
    "Set<String>": lambda dice: some(dice, _TEXTS),
    "List<String>": lambda dice: some(dice, ("standalone", "other")),
    "List<GrantTopicPermissionOptions>": options,
    "List<RevokeTopicPermissionOptions>": options,
    "PostSchemaPayload": lambda dice: {
        "type": dice.choice(_SCHEMAS),
        "schema": dice.choice(("", "{", '{"type":"record","name":"R","fields":[]}', 5)),
        "properties": dice.choice(({}, {"a": "b"}, None, [])),
    },
    "PackageMetadata": lambda dice: {
        "description": dice.choice(_TEXTS),
        "properties": dict(zip(some(dice, _TEXTS), some(dice, _TEXTS), strict=False)),
    },
    "ClusterData": lambda dice: {"serviceUrl": dice.choice(_URLS), "brokerServiceUrl": dice.choice(_URLS)},
    "ClusterUrl": lambda dice: dice.choice(({}, {"serviceUrl": "http://a:1"})),
    "LinkedHashSet<String>": lambda dice: some(dice, ("standalone", "other", "none")),
    "FailureDomain": lambda dice: {"brokers": some(dice, ("b1", "b2", "b3"))},
    "NamespaceIsolationData": lambda dice: {
        "namespaces": ["acme/.*"],
        "primary": [dice.choice(("b1.*", "(", "a{1000}{1000}"))],
        "secondary": some(dice, ("b2", ".*")),
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": dice.choice((1, "2", "x")), "usage_threshold": 80},
        },
    },
    "BookieInfo": lambda dice: {"rack": dice.choice(("/r", "r/s", "")), "hostname": dice.choice(_TEXTS)},
    "BookieAffinityGroupData": lambda dice: {"bookkeeperAffinityGroupPrimary": dice.choice(_TEXTS)},
    "ResourceQuota": lambda dice: {"msgRateIn": dice.choice((1, -1, 1e300)), "dynamic": dice.choice((True, False))},
    "List<Long>": lambda dice: some(dice, (1, 2**31, 2**32 - 1, 2**40, -1)),
    "boolean": lambda dice: dice.choice((True, False)),
    "int": lambda dice: dice.choice((1, 4, 5, 0, -1)),
}
"""Valid and nearly valid bodies, by the Java type in the table."""

JSON_BREAKERS: Final = (
    b"{", b"[" * 10_000, b'{"a":NaN}', b"\xff\xfe", b"\x00", b'"\\ud800"', b"9" * 5000, b'{"a":1}{"a":1}', b" " * 2000,
    b"nul", b'{"bundles":{"boundaries":["0x0"],"numBundles":1}}', b'{"partitions":"' + b"9" * 400 + b'"}',
)  # fmt: skip


_PART: Final = b'--xyz\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
_METADATA: Final = _PART % (b"metadata", b'{"description":"d"}')
FORMS: Final = (
    *[_METADATA + _PART % (b"file", b"code" * size) + b"--xyz--\r\n" for size in (0, 1, 1, 1000, 200_000)],
    _METADATA, _METADATA + _PART % (b"file", b"code" * 100_000), _PART % (b"file", b"code") + b"--xyz--", b"--xyz--",
    _PART * 20, b"",
)  # fmt: skip
"""Bodies of package uploads with this boundary: complete ones, then incomplete ones."""


SOURCES: Final[tuple[tuple[dict[str, str], bool], ...]] = (
    ({"Host": "evil.example"}, True),
    ({"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}", "Sec-Fetch-Site": "same-origin"}, True),
    ({"Host": "127.0.0.1.evil.example"}, True),
    ({"Host": "localhost:{port}@evil.example"}, True),
    ({"Host": "%6cocalhost"}, True),
    ({"Host": "[::1"}, True),
    ({"Origin": "http://evil.example"}, True),
    ({"Origin": "null"}, True),
    ({"Origin": "http://127.0.0.1:1"}, True),
    ({"Origin": "\x7f"}, True),
    ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "cross-site"}, True),
    ({"Host": "localhost:{port}"}, False),
    ({"Host": "[::1]:{port}"}, False),
    ({"Host": "203.0.113.7"}, False),
    ({"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}, False),
    ({"Sec-Fetch-Site": "none"}, False),
)
"""Headers that give the origin of a request, and whether that origin must be rejected."""


class Request(NamedTuple):
    """One request, as sent over the wire."""

    endpoint: Endpoint
    method: str
    target: str
    body: bytes | None
    headers: dict[str, str]
    is_foreign: bool
    """Whether its headers name a page of another site."""

    def __str__(self) -> str:
        body = "" if self.body is None else f" {self.body[:200]!r}"
        return f"{self.method} {self.target[:300]}{f' {self.headers}' if self.headers else ''}{body}"


def made(endpoint: Endpoint, dice: random.Random, wildness: float = 0.05) -> Request:
    """Return a request to an endpoint; ``wildness`` is the probability of nonsense in each part of the path."""
    segments = [_segment(part, dice, wildness) for part in endpoint.path.split("/")]
    method = endpoint.method if dice.random() < 0.97 else dice.choice(METHODS)
    target, body = "/".join(segments) + _query(endpoint, dice), _body(endpoint, dice)
    headers, is_foreign = dice.choice(SOURCES) if dice.random() < 0.1 else ({}, False)
    if endpoint.operation == "upload" and dice.random() < 0.9:
        headers, body = headers | {"Content-Type": "multipart/form-data; boundary=xyz"}, dice.choice(FORMS)
    return Request(endpoint, method, target, body, headers, is_foreign)


def _segment(part: str, dice: random.Random, wildness: float) -> str:
    if not part.startswith("{"):
        return part
    variable = part.strip("{}")
    if variable == "domain":
        return dice.choice(("persistent", "persistent", "persistent", "non-persistent"))
    if dice.random() < wildness:
        text = dice.choice(NONSENSE)
        plain = (
            text
            if text.isascii() and text.isprintable() and not set(text) & set(" ?#<>\"{}'")
            else quote(text, safe="")
        )
        return plain or "%20"
    return quote(dice.choice(NAMES.get(variable, _NUMBERS)), safe="")


def _query(endpoint: Endpoint, dice: random.Random) -> str:
    values = ("true", "false", "1", "-1", "x", "", "9" * 30, "earliest", "ALL", "é", "0x00000000_0xffffffff", "k")
    given = [(name, dice.choice(values)) for name in endpoint.query if dice.random() < 0.5]
    if dice.random() < 0.1:
        given.append((dice.choice(("unknown", "", "authoritative", "force", "a b")), dice.choice(NONSENSE)))
    return f"?{urlencode(given, errors='replace')}" if given else ""


def _body(endpoint: Endpoint, dice: random.Random) -> bytes | None:
    chance = dice.random()
    if chance < 0.05:
        return dice.choice(JSON_BREAKERS)
    if chance < 0.12:
        return json.dumps(dice.choice(_ANYTHING)).encode()
    fitting = BODIES.get(endpoint.body)
    if fitting is None or chance < 0.2:
        return None
    value = fitting(dice)
    if chance < 0.3 and isinstance(value, dict) and value:
        value[dice.choice(list(value))] = dice.choice(_ANYTHING)
    return json.dumps(value).encode()
