"""The Admin API over HTTP: each scenario is a list of requests, each observation a status and response.

Numbers that differ between any two brokers (ids, sizes, instants, rates) appear as ``number``, addresses as ``url``.
"""

import http.client
import json
import re
import urllib.parse
from typing import Any, Final

from tests.differences.broker import HTTP_SECONDS, Broker
from tests.differences.scenario import Steps, scenario

TENANT: Final = "differences-tenant"
"""Placeholder for the scenario's own tenant."""
N: Final = f"namespaces/{TENANT}/n"
T: Final = f"persistent/{TENANT}/n/t"
SUB: Final = f"{T}/subscription"
NOWHERE: Final = {"ledgerId": -1, "entryId": -1}
END: Final = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}

Request = tuple[str, str] | tuple[str, str, Any]

_NUMBERS: Final = re.compile(
    "(?i).*(time|timestamp|size|rate|throughput|ledgerid|ledger|bytes|createdat|since|uptime|date|offset|age|position|"
    "entry|duration|counter|msgin|msgout|usage|limit|update)"
)
_NOT_NUMBERS: Final = {"storageSize", "backlogSize", "entryId", "msgInCounter", "msgOutCounter", "batchSize"}
_ID: Final = re.compile(r"-?\d+:-?\d+")
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_OURS: Final = {"why", "backlogMessages", "secondsToDrain"}
"""Statistics fields that Pulsar does not have."""
_ADDRESS: Final = re.compile(r"(pulsar|http)://[\w.:-]+|\b(localhost|127\.0\.0\.1)(:\d+)?\b")


def asked(broker: Broker, *requests: Request, raw: bool = False) -> Steps:
    """Return the responses to requests, in order, in a temporary tenant and namespace. ``raw``: keep all numbers."""
    for each in ((("PUT", f"tenants/{TENANT}", {"allowedClusters": ["standalone"]})), ("PUT", N)):
        _ask(broker, *each)
    try:
        for method, path, *body in requests:
            shown = f" {json.dumps(body[0])}" if body else ""
            yield f"{method} {path}{shown}", _ask(broker, method, path, *body, raw=raw)
    finally:
        _tidy(broker)


def _tidy(broker: Broker) -> None:
    for path, rest in ((f"persistent/{TENANT}/n/partitioned", "/partitions"), (f"{N}/topics", "")):
        status, names = _ask(broker, "GET", path, raw=True)
        for name in names if status == 200 else ():
            _ask(broker, "DELETE", f"{name.replace('://', '/')}{rest}?force=true")
    _ask(broker, "DELETE", N)
    _ask(broker, "DELETE", f"tenants/{TENANT}")


def _ask(broker: Broker, method: str, path: str, body: Any = None, *, raw: bool = False) -> list[Any]:
    """Return the status and the response body."""
    own = f"{TENANT}-{broker.scenario.rpartition('.')[2]}-{broker.run}"
    path, body = path.replace(TENANT, own), json.loads(json.dumps(body).replace(TENANT, own))
    status, told = _exchange(broker, method, path, body)
    told = json.loads(json.dumps(told).replace(own, TENANT))
    return [status, told if raw or status >= 400 else comparable(told)]


def _exchange(broker: Broker, method: str, path: str, body: Any) -> tuple[int, Any]:
    where = urllib.parse.urlsplit(broker.web_url)
    link = http.client.HTTPConnection(where.netloc, timeout=HTTP_SECONDS)
    try:
        data = None if body is None else json.dumps(body)
        link.request(method, f"/admin/v2/{path}", data, {"Content-Type": "application/json"})
        answer = link.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        link.close()
    return answer.status, _told(text)


def _told(text: str) -> Any:
    try:
        parsed = json.loads(text)
    except ValueError:
        return "a page" if text.startswith("<") else _ADDRESS.sub("url", text.partition("\n")[0])
    if isinstance(parsed, dict) and set(parsed) == {"reason"}:
        reason = str(parsed["reason"])
        return "an unexpected error" if "An unexpected error occurred" in reason else _ADDRESS.sub("url", reason)
    return parsed


def comparable(value: Any, name: str = "") -> Any:
    """Return the value without parts that differ between any two brokers."""
    if isinstance(value, dict):
        told = {_ADDRESS.sub("url", key): comparable(each, key) for key, each in sorted(value.items())}
        return {key: each for key, each in told.items() if key not in _OURS}
    if isinstance(value, list):
        plain = [comparable(each, name) for each in value]
        return sorted(plain) if all(isinstance(each, str) for each in plain) else plain
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return "number" if _NUMBERS.match(name) and name not in _NOT_NUMBERS else value
    return _ADDRESS.sub("url", _ID.sub("id", _INSTANT.sub("instant", value)))


@scenario
def tenants(broker: Broker) -> Steps:
    one = "tenants/differences-2"
    info = {"adminRoles": ["b", "a"], "allowedClusters": ["standalone"]}
    yield from asked(
        broker,
        ("DELETE", one),
        ("GET", one),
        ("PUT", one, info),
        ("PUT", one, info),
        ("GET", one),
        ("POST", one, {"adminRoles": [], "allowedClusters": ["standalone"]}),
        ("GET", one),
        ("PUT", "tenants/differences-3", {"allowedClusters": []}),
        ("PUT", "tenants/differences-3", {"allowedClusters": ["elsewhere"]}),
        ("PUT", "tenants/differences-3", {}),
        ("PUT", "tenants/bad%20name", info),
        ("POST", "tenants/differences-none", info),
        ("DELETE", one),
        ("DELETE", one),
        ("DELETE", f"tenants/{TENANT}"),
        ("POST", "tenants"),
        ("GET", "nonsense"),
    )


@scenario
def brokers(broker: Broker) -> Steps:
    change = "brokers/configuration"
    yield from asked(
        broker,
        ("GET", "brokers"),
        ("GET", "brokers/standalone"),
        ("GET", "brokers/leaderBroker"),
        ("GET", "brokers/health"),
        ("GET", "brokers/health?brokerId=nobody:1"),
        ("GET", "brokers/ready"),
        ("GET", "clusters"),
        ("GET", "clusters/none"),
        ("POST", f"{change}/dispatcherMaxReadBatchSize/99"),
        ("GET", f"{change}/values"),
        ("POST", f"{change}/nonsense/1"),
        ("POST", f"{change}/brokerServicePort/1"),
        ("DELETE", f"{change}/nonsense"),
        ("DELETE", f"{change}/dispatcherMaxReadBatchSize"),
        ("DELETE", f"{change}/dispatcherMaxReadBatchSize"),
        ("GET", f"{change}/values"),
        ("DELETE", "brokers"),
    )


@scenario
def namespaces(broker: Broker) -> Steps:
    bundle = f"{N}/0x00000000_0x40000000"
    yield from asked(
        broker,
        ("GET", f"namespaces/{TENANT}"),
        ("GET", N),
        ("PUT", N),
        ("GET", "namespaces/none"),
        ("GET", f"namespaces/{TENANT}/none"),
        ("PUT", "namespaces/none/n"),
        ("PUT", f"namespaces/{TENANT}/bad%20name"),
        ("GET", f"{N}/topics"),
        ("GET", f"{N}/bundles"),
        ("PUT", f"{N}/property/k/v"),
        ("GET", f"{N}/property/k"),
        ("GET", f"{N}/property/none"),
        ("PUT", f"{N}/properties", {"a": "b"}),
        ("GET", f"{N}/properties"),
        ("DELETE", f"{N}/property/a"),
        ("DELETE", f"{N}/property/a"),
        ("DELETE", f"{N}/properties"),
        ("GET", f"{N}/properties"),
        ("PUT", f"{N}/unload"),
        ("PUT", f"{bundle}/unload"),
        ("PUT", f"{N}/0x00000000_0x12345678/unload"),
        ("PUT", f"{N}/0x00000001_0x40000000/unload"),
        ("POST", f"{N}/clearBacklog"),
        ("POST", f"{N}/unsubscribe/s"),
        ("GET", f"{N}/replication"),
        ("GET", f"{N}/allowedClusters"),
        ("DELETE", f"namespaces/{TENANT}/none"),
        ("DELETE", N),
    )


@scenario
def permissions(broker: Broker) -> Steps:
    many = [{"topic": f"persistent://{TENANT}/n/t", "role": "r", "actions": ["produce"]}]
    yield from asked(
        broker,
        ("PUT", T),
        ("GET", f"{N}/permissions"),
        ("POST", f"{N}/permissions/bob", ["produce", "consume"]),
        ("POST", f"{N}/permissions/al", []),
        ("GET", f"{N}/permissions"),
        ("POST", f"{N}/permissions/al"),
        ("POST", f"{N}/permissions/subscription/s", ["bob", "al"]),
        ("DELETE", f"{N}/permissions/s/bob"),
        ("GET", f"{N}/permissions/subscription"),
        ("DELETE", f"{N}/permissions/bob"),
        ("DELETE", f"{N}/permissions/nobody"),
        ("GET", f"namespaces/{TENANT}/none/permissions"),
        ("POST", f"namespaces/{TENANT}/none/permissions/r", ["produce"]),
        ("POST", f"{T}/permissions/carl", ["consume"]),
        ("GET", f"{T}/permissions"),
        ("GET", f"persistent/{TENANT}/n/none/permissions"),
        ("POST", f"persistent/{TENANT}/n/none/permissions/r", ["consume"]),
        ("DELETE", f"{T}/permissions/carl"),
        ("DELETE", f"{T}/permissions/carl"),
        ("POST", "namespaces/grantPermissionsOnTopics", many),
        ("GET", f"{T}/permissions"),
        ("POST", "namespaces/revokePermissionsOnTopics", many),
        ("POST", "namespaces/revokePermissionsOnTopics", []),
        ("GET", f"{T}/permissions"),
    )


@scenario
def topics(broker: Broker) -> Steps:
    none = f"persistent/{TENANT}/n/none"
    yield from asked(
        broker,
        ("PUT", T),
        ("PUT", T),
        ("GET", f"persistent/{TENANT}/n"),
        ("GET", f"{T}/properties"),
        ("PUT", f"{T}/properties", {"a": "b", "c": "d"}),
        ("DELETE", f"{T}/properties?key=a"),
        ("GET", f"{T}/properties"),
        ("GET", f"{T}/stats"),
        ("GET", f"{T}/internalStats"),
        ("GET", f"{T}/lastMessageId"),
        ("GET", f"{T}/partitions"),
        ("GET", f"{T}/partitioned-stats"),
        ("PUT", f"{T}/unload"),
        ("POST", f"{T}/trim"),
        ("DELETE", f"{T}/truncate"),
        ("GET", f"{T}/backlog"),
        ("PUT", f"{T}/backlogSize", NOWHERE),
        ("GET", f"{T}/getMessageIdByIndex?index=0"),
        ("GET", f"{T}/examinemessage"),
        *((method, f"{none}{rest}") for method, rest in _OF_A_TOPIC),
        ("DELETE", T),
        ("DELETE", T),
    )


_OF_A_TOPIC: Final = (
    ("GET", "/stats"),
    ("GET", "/internalStats"),
    ("GET", "/lastMessageId"),
    ("GET", "/subscriptions"),
    ("GET", "/partitions"),
    ("GET", "/partitioned-stats"),
    ("GET", "/properties"),
    ("PUT", "/unload"),
    ("POST", "/trim"),
    ("DELETE", "/truncate"),
    ("GET", "/examinemessage"),
    ("GET", "/ledger/1/entry/0"),
    ("GET", "/messageid/1"),
    ("DELETE", "/partitions"),
    ("DELETE", "/subscription/s"),
    ("POST", "/subscription/s/skip_all"),
    ("POST", "/subscription/s/skip/1"),
    ("GET", "/subscription/s/position/1"),
)


@scenario
def partitioned_topics(broker: Broker) -> Steps:
    p = f"persistent/{TENANT}/n/p"
    yield from asked(
        broker,
        ("PUT", f"{p}/partitions", 3),
        ("PUT", f"{p}/partitions", 3),
        ("PUT", f"{p}/partitions", 0),
        ("GET", f"{p}/partitions"),
        ("GET", f"persistent/{TENANT}/n/partitioned"),
        ("GET", f"persistent/{TENANT}/n"),
        ("PUT", f"{p}/subscription/s"),
        ("GET", f"{p}/subscriptions"),
        ("GET", f"{p}-partition-1/subscriptions"),
        ("GET", f"{p}/partitioned-stats?perPartition=true"),
        ("GET", f"{p}/stats"),
        ("POST", f"{p}/partitions", 2),
        ("POST", f"{p}/partitions", 5),
        ("GET", f"{p}/partitions"),
        ("DELETE", p),
        ("POST", f"{p}/createMissedPartitions"),
        ("POST", f"{T}/createMissedPartitions"),
        ("PUT", f"{p}/unload"),
        ("POST", f"{p}/subscription/s/skip/1"),
        ("POST", f"{p}/subscription/s/skip_all"),
        ("DELETE", f"{p}/subscription/s"),
        ("DELETE", f"{p}/subscription/s"),
        ("DELETE", f"{p}/partitions"),
        ("DELETE", f"{p}/partitions"),
    )


@scenario
def subscriptions(broker: Broker) -> Steps:
    yield from asked(
        broker,
        ("PUT", T),
        ("PUT", f"{SUB}/s"),
        ("PUT", f"{SUB}/s"),
        ("PUT", f"{SUB}/e", NOWHERE),
        ("PUT", f"{SUB}/l", END),
        ("PUT", f"{SUB}/p", END | {"properties": {"a": "b"}}),
        ("PUT", f"{SUB}/%20"),
        ("PUT", f"non-persistent/{TENANT}/n/x/subscription/s"),
        ("GET", f"{T}/subscriptions"),
        ("GET", f"{SUB}/p/properties"),
        ("PUT", f"{SUB}/p/properties", {"c": "d"}),
        ("GET", f"{SUB}/p/properties"),
        ("GET", f"{SUB}/none/properties"),
        *((method, f"{SUB}/{name}{rest}") for name in ("s", "none") for method, rest in _OF_A_SUBSCRIPTION),
        ("POST", f"{SUB}/s/resetcursor", END),
        ("POST", f"{SUB}/s/resetcursor", {"ledgerId": 1, "entryId": 99, "batchIndex": 2, "excluded": True}),
        ("POST", f"{SUB}/s/expireMessages", NOWHERE),
        ("DELETE", f"{SUB}/s"),
        ("DELETE", f"{SUB}/s"),
        ("GET", f"{T}/subscriptions"),
    )


_OF_A_SUBSCRIPTION: Final = (
    ("POST", "/skip/0"),
    ("POST", "/skip/1"),
    ("POST", "/skip/x"),
    ("POST", "/skip_all"),
    ("POST", "/expireMessages/1"),
    ("POST", "/expireMessages/x"),
    ("POST", "/resetcursor/0"),
    ("POST", "/resetcursor/9999999999999"),
    ("POST", "/resetcursor"),
    ("GET", "/position/1"),
    ("GET", "/position/0"),
)


@scenario
def statistics(broker: Broker) -> Steps:
    """The shapes of all statistics with connected clients."""
    topic = broker.topic("stats")
    wire = broker.wire("a")
    wire.producer(topic)
    wire.subscribe(topic, 1, "Shared", name="a")
    wire.flow(10)
    broker.settle(0.5)
    path = topic.replace("://", "/")
    for what in ("stats", "internalStats", "stats?getPreciseBacklog=true&subscriptionBacklogSize=true"):
        yield what, _shape(_ask(broker, "GET", f"{path}/{what}", raw=True))
    yield "broker-stats/topics", _ask(broker, "GET", "broker-stats/topics")[0]


def _shape(value: Any) -> Any:
    """Return the names of fields, and the types of their values."""
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [_shape(each) for each in value[:1]]
    return {bool: "boolean", str: "text", type(None): "null"}.get(type(value), "number")
