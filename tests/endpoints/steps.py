"""The requests of the comparison: for each object of the Admin API, its endpoints in several states.

Endpoints that act on the same object form a group. A group has a namespace, topic and subscription of its own. Its
requests are, in this order: of missing objects, before any write, malformed, after a write, after the same write again,
after the removal, and after the same removal again.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from tests.endpoints.bodies import malformed, valid

_NS: Final = "/admin/v2/namespaces/{tenant}/{namespace}"
_TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
_CLUSTER: Final = "/admin/v2/clusters/{cluster}"
_PACKAGE: Final = "/admin/v3/packages/{type}/{tenant}/{namespace}/{packageName}"
_ISOLATION: Final = f"{_CLUSTER}/namespaceIsolationPolicies"

JOINED: Final = {
    path: paths[0]
    for paths in (
        (f"{_NS}/backlogQuota", f"{_NS}/backlogQuotaMap"),
        (f"{_TOPIC}/backlogQuota", f"{_TOPIC}/backlogQuotaMap"),
        (f"{_NS}/offloadPolicies", f"{_NS}/removeOffloadPolicies"),
        (f"{_NS}/property/{{key}}", f"{_NS}/property/{{key}}/{{value}}"),
        (f"{_NS}/resourcegroup", f"{_NS}/resourcegroup/{{resourcegroup}}"),
        (f"{_NS}/permissions", f"{_NS}/permissions/{{role}}"),
        (
            f"{_NS}/permissions/subscription",
            f"{_NS}/permissions/subscription/{{subscription}}",
            f"{_NS}/permissions/{{subscription}}/{{role}}",
        ),
        (f"{_TOPIC}/permissions", f"{_TOPIC}/permissions/{{role}}"),
        ("/admin/v2/namespaces/grantPermissionsOnTopics", "/admin/v2/namespaces/revokePermissionsOnTopics"),
        (
            "/admin/v2/brokers/configuration/values",
            "/admin/v2/brokers/configuration/{name}",
            "/admin/v2/brokers/configuration/{name}/{value}",
        ),
        ("/admin/v2/resourcegroups", "/admin/v2/resourcegroups/{resourcegroup}"),
        ("/admin/v2/clusters", _CLUSTER),
        (f"{_CLUSTER}/failureDomains", f"{_CLUSTER}/failureDomains/{{domainName}}"),
        (_ISOLATION, f"{_ISOLATION}/{{policyName}}", f"{_ISOLATION}/brokers", f"{_ISOLATION}/brokers/{{broker}}"),
        ("/admin/v2/tenants", "/admin/v2/tenants/{tenant}"),
        ("/admin/v2/namespaces/{tenant}", _NS),
        ("/admin/v2/bookies/racks-info", "/admin/v2/bookies/racks-info/{bookie}"),
        tuple(
            f"/admin/v2/schemas/{{tenant}}/{{namespace}}/{{topic}}/{word}"
            for word in ("schema", "schema/{version}", "schemas", "metadata", "compatibility", "version")
        ),
        (
            f"{_TOPIC}/partitions",
            f"{_TOPIC}/partitioned-stats",
            f"{_TOPIC}/partitioned-internalStats",
            f"{_TOPIC}/createMissedPartitions",
        ),
        (
            _TOPIC,
            "/admin/v2/{domain}/{tenant}/{namespace}",
            "/admin/v2/{domain}/{tenant}/{namespace}/partitioned",
        ),
        (f"{_TOPIC}/subscription/{{subscription}}", f"{_TOPIC}/subscriptions"),
        (f"{_PACKAGE}/{{version}}", f"{_PACKAGE}/{{version}}/metadata", _PACKAGE, _PACKAGE.rpartition("/")[0]),
    )
    for path in paths
}
"""Paths of the same object, by path; every other path is an object of its own."""

NOT_ASKED: Final = {
    ("POST", "/admin/v2/brokers/shutdown"): "ends the process",
    ("POST", "/admin/v2/metadata/migration/start"): "moves the metadata of the broker",
}
"""Endpoints that are not sent to a broker, with the reason."""

CREATED: Final[dict[str, dict[str, str]]] = {
    "/admin/v2/clusters": {"cluster": "{tenant}-made"},
    "/admin/v2/resourcegroups": {"resourcegroup": "{tenant}-made"},
    "/admin/v2/tenants": {"tenant": "{tenant}-made"},
    "/admin/v2/namespaces/{tenant}": {"namespace": "made"},
    _TOPIC: {"topic": "made"},
    f"{_TOPIC}/partitions": {"topic": "made"},
    f"{_TOPIC}/terminate/partitions": {"topic": "parts"},
    f"{_TOPIC}/subscription/{{subscription}}": {"subscription": "made"},
}
"""Groups that create their object, with the names of what does not exist before."""

QUERIES: Final[dict[tuple[str, str], tuple[str, str | None]]] = {
    ("POST", f"{_TOPIC}/messageTTL"): ("messageTTL=60", "messageTTL=x"),
    ("POST", f"{_TOPIC}/subscriptionExpirationTime"): (
        "subscriptionExpirationTime=60",
        "subscriptionExpirationTime=x",
    ),
    ("DELETE", f"{_TOPIC}/properties"): ("key=a", None),
    ("GET", f"{_TOPIC}/getMessageIdByIndex"): ("index=0", "index=x"),
    ("GET", f"{_TOPIC}/examinemessage"): (
        "initialPosition=earliest&messagePosition=1",
        "initialPosition=nowhere&messagePosition=1",
    ),
    ("POST", "/admin/v2/bookies/racks-info/{bookie}"): ("group=default", ""),
    ("POST", f"{_CLUSTER}/migrate"): ("migrated=false", "migrated=x"),
    ("GET", "/admin/v3/transactions/coordinatorStats"): ("coordinatorId=0", "coordinatorId=x"),
}
"""Query strings of valid and of malformed requests, for endpoints that need one."""

_OBJECTS: Final = (
    *("domain", "tenant", "namespace", "topic", "subscription", "cluster", "bundle", "type", "name", "allocator"),
    "broker",
)
"""Path variables whose object exists in the other states."""
_NUMBERS: Final = (
    *("timestamp", "numMessages", "messagePosition", "expireTimeInSeconds", "ledgerId", "entryId", "version"),
    *("mostSigBits", "leastSigBits", "timeout", "coordinatorId"),
)
_VERBS: Final = ("compatibility", "version", "backlogSize")
"""Last words of paths that change nothing, although their method is POST or PUT."""
_LOCKED: Final = "Pulsar does not answer, and locks the properties"
_POISONED: Final = "Pulsar stores null, and fails from then on"
UNDECIDED: Final = {
    ("written again", f"PUT {_TOPIC}/compaction"): "the compaction may run or have ended",
    ("no body", f"PUT {_NS}/properties"): _LOCKED,
    ("no body", f"PUT {_TOPIC}/properties"): _LOCKED,
    ("before", f"DELETE {_TOPIC}/properties"): _LOCKED,
    ("no body", f"PUT {_TOPIC}/subscription/{{subscription}}/properties"): _LOCKED,
    ("no body", "POST /admin/v2/resource-quotas"): _POISONED,
    ("no body", "POST /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}"): _POISONED,
    ("no body", f"POST {_CLUSTER}/failureDomains/{{domainName}}"): _POISONED,
}
"""Requests that are left out, with the reason."""
_VARIABLE: Final = re.compile(r"\{(\w+)\}")


class Step(NamedTuple):
    """One request of a group."""

    state: str
    """The preceding change to the object, or the mistake in the request."""
    endpoint: Endpoint
    query: str = ""
    body: str | None = None
    missing: str = ""
    """Path variable whose object does not exist, or that is no number."""

    @property
    def name(self) -> str:
        """The request as text, the same for every broker."""
        path = self.endpoint.path.removeprefix("/admin")
        return f"{self.endpoint.method} {path}{f'?{self.query}' if self.query else ''}"

    @property
    def full_name(self) -> str:
        """Method and path as in the endpoint table."""
        return f"{self.endpoint.method} {self.endpoint.path}"

    @property
    def writes(self) -> bool:
        """Whether the request may change the object."""
        return self.endpoint.method != "GET" and self.endpoint.path.rpartition("/")[2] not in _VERBS


class Group(NamedTuple):
    """Endpoints of one object, and their requests in order."""

    name: str
    steps: tuple[Step, ...]

    @property
    def own_names(self) -> dict[str, str]:
        """The names of objects that this group creates."""
        return CREATED.get(self.name, {})


@cache
def groups() -> tuple[Group, ...]:
    """Return all groups, in the order of the endpoint table."""
    found: dict[str, list[Endpoint]] = {}
    for row in endpoints():
        if (row.method, row.path) not in NOT_ASKED:
            found.setdefault(JOINED.get(row.path, row.path), []).append(row)
    return tuple(
        Group(name, tuple(each for each in _steps(rows) if (each.state, each.full_name) not in UNDECIDED))
        for name, rows in found.items()
    )


def _steps(rows: Sequence[Endpoint]) -> Iterator[Step]:
    own = CREATED.get(JOINED.get(rows[0].path, rows[0].path), {})
    plain = [Step("", row, QUERIES.get((row.method, row.path), ("",))[0], valid(row)) for row in rows]
    readers = [each for step in plain if not step.writes for each in _read(step)]
    writers = [step for step in plain if step.endpoint.method == "PUT" and step.writes]
    writers += [step for step in plain if step.endpoint.method == "POST" and step.writes]
    removers = [step for step in plain if step.endpoint.method == "DELETE"]
    for step in plain:
        yield from (each for each in _of_missing_objects(step) if each.missing not in own and not _remains(each))
    yield from _in("before", readers, removers, readers if removers else ())
    for step in plain:
        yield from _malformed(step)
    for number, write in enumerate(writers):
        yield from _in("written" if not number else f"written {number + 1}", [write], readers)
    yield from _in("written again", writers, readers if len(writers) > 1 else ())
    yield from _in("removed", removers, readers if removers else ())
    yield from _in("removed again", removers)


def _in(state: str, *parts: Sequence[Step]) -> Iterator[Step]:
    return (step._replace(state=state) for part in parts for step in part)


def _read(step: Step) -> Iterator[Step]:
    yield step
    if "applied" in step.endpoint.query:
        yield step._replace(query="applied=true")


def _of_missing_objects(step: Step) -> Iterator[Step]:
    for variable in _VARIABLE.findall(step.endpoint.path):
        if variable in _OBJECTS or (variable == "resourcegroup" and "namespaces" in step.endpoint.path):
            yield step._replace(state=f"missing {variable}", missing=variable)
        elif variable in _NUMBERS:
            yield step._replace(state=f"malformed {variable}", missing=variable)


def _remains(step: Step) -> bool:
    """Return whether the request would leave something behind that Pulsar cannot delete."""
    return step.missing == "cluster" and step.writes


def _malformed(step: Step) -> Iterator[Step]:
    for name, body in malformed(step.endpoint):
        yield step._replace(state=name, body=body)
    _, wrong = QUERIES.get((step.endpoint.method, step.endpoint.path), ("", None))
    if wrong is not None:
        yield step._replace(state="malformed query", query=wrong)
