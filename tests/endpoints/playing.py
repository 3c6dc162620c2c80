"""Requests of a group to one broker: the objects that they need, and the answers."""

import contextlib
import http.client
import json
import os
import re
import sys
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pulsar

from tests.differences.broker import Broker
from tests.differences.themes.transactions import coordinator
from tests.endpoints.answers import NO_ANSWER, Answer, answer_of
from tests.endpoints.bodies import LAST
from tests.endpoints.steps import Group, Step

HTTP_SECONDS: Final = 20.0
"""Some requests Pulsar never answers."""
SLOW_SECONDS: Final = 5.0
_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_WITH_MESSAGES: Final = re.compile(
    r".*(subscription/|examinemessage|ledger/|messageid|ByIndex|backlog|lastMessageId|nternal|/stats|trim|truncate"
    r"|broker-stats|terminate$|compaction$|expireMessages|learBacklog).*"
)
"""Groups whose topic has messages."""
_WITH_TOPIC: Final = re.compile(r".*(\{topic\}|learBacklog|subscribe|broker-stats).*")
_VALUES: Final = {
    "domain": "persistent",
    "topic": "t",
    "subscription": "s",
    "bundle": "0x00000000_0x40000000",
    "role": "r",
    "key": "k",
    "value": "v",
    "name": "brokerShutdownTimeoutMs",
    "bookie": "differences:3181",
    "resourcegroup": "{tenant}-g",
    "cluster": "{tenant}-{namespace}",
    "domainName": "d",
    "policyName": "p",
    "group": "g",
    "allocator": "default",
    "type": "function",
    "packageName": "package",
    "coordinatorId": "0",
    "mostSigBits": "0",
    "leastSigBits": "999999",
    "timeout": "1000",
    "timestamp": "0",
    "messagePosition": "1",
    "numMessages": "1",
    "expireTimeInSeconds": "3600",
    "version": "0",
    "functionName": "f",
    "sinkName": "f",
    "sourceName": "f",
    "instanceId": "0",
}
"""Values of path variables; ``namespace``, ``ledgerId`` and ``entryId`` differ from group to group."""
_OF_CONFIGURATION: Final = {"value": "60000"}
_MISSING: Final = {"bundle": "0x00000001_0x00000002", "domain": "nowhere"}


class Target(NamedTuple):
    """A broker that is asked."""

    url: str
    """Service URL, for the messages of topics."""
    web_url: str


class GroupRequests:
    """One group at one broker, in a namespace of its own in an existing tenant.

    ``settle`` is a pause in seconds after each change: Pulsar applies policies of topics after it has answered.
    """

    def __init__(self, target: Target, tenant: str, group: Group, number: int, settle: float = 0.0) -> None:
        self._target = target
        self._exchange = Exchange(target.web_url)
        self._tenant = tenant
        self._group = group
        self._namespace = f"n{number}"
        self._settle = settle
        self._last: dict[str, Any] = {"ledgerId": -1, "entryId": -1}

    def play(self) -> Iterator[tuple[Step, Answer]]:
        """Yield the answers to the requests of the group, in order."""
        with contextlib.closing(self._exchange):
            self._prepare()
            yield from self._played()

    def _played(self) -> Iterator[tuple[Step, Answer]]:
        for step in self._group.steps:
            began = time.monotonic()
            answer = self._answer(step)
            seconds = time.monotonic() - began
            if seconds > SLOW_SECONDS:
                sys.stderr.write(f"{seconds:.0f} s at {self._target.web_url}: {step.state} | {step.name}\n")
            yield step, answer
            if step.writes and self._settle:
                time.sleep(self._settle)

    # Objects

    def _prepare(self) -> None:
        name, topic = self._group.name, f"persistent/{self._tenant}/{self._namespace}/t"
        self._send("PUT", f"/admin/v2/namespaces/{self._tenant}/{self._namespace}", None)
        if "/namespaces/" in name and "resourcegroup" in name:
            self._send("PUT", f"/admin/v2/resourcegroups/{self._tenant}-g", "{}")
        if "{cluster}/" in name:
            nowhere = '{"serviceUrl": "http://localhost:1", "brokerServiceUrl": "pulsar://localhost:2"}'
            self._send("PUT", f"/admin/v2/clusters/{self._tenant}-{self._namespace}", nowhere)
        if not _WITH_TOPIC.fullmatch(name):
            return
        self._send("PUT", f"/admin/v2/{topic}", None)
        self._send("GET", f"/lookup/v2/topic/{topic}", None)
        self._send("PUT", f"/admin/v2/{topic}/subscription/s", '"earliest"')
        if "terminate/partitions" in name:
            self._send("PUT", f"/admin/v2/{topic[:-1]}parts/partitions", "2")
        if _WITH_MESSAGES.fullmatch(name):
            self._publish(topic.replace("persistent/", "persistent://", 1))

    def _publish(self, topic: str) -> None:
        silent = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        client = pulsar.Client(self._target.url, logger=silent)
        try:
            producer = client.create_producer(topic, producer_name="p", batching_enabled=False)
            sent = [
                producer.send(b"m%d" % number, properties={"n": str(number)}, partition_key="k") for number in range(5)
            ]
            self._last = {"ledgerId": sent[-1].ledger_id(), "entryId": sent[-1].entry_id()}
        finally:
            client.close()

    # Requests

    def _answer(self, step: Step) -> Answer:
        endpoint = step.endpoint
        path = _VARIABLE.sub(lambda found: urllib.parse.quote(self._value(found[1], step), safe=""), endpoint.path)
        if step.query:
            path += f"?{step.query}"
        status, headers, body = self._send(endpoint.method, path, self._body(step))
        text = body.replace(f"/{self._namespace}".encode(), b"/n")
        return answer_of(status, headers, text, endpoint.path, self._tenant)

    def _value(self, variable: str, step: Step) -> str:
        if variable == "broker" and variable != step.missing:
            return self._broker()
        if variable == step.missing:
            missing = f"{self._tenant}-{self._namespace}-none"
            return _MISSING.get(variable, missing if f"missing {variable}" == step.state else "x")
        own = self._group.own_names.get(variable)
        if own is not None:
            return own.replace("{tenant}", self._tenant)
        if variable in self._last:
            return str(self._last[variable])
        values = _VALUES | {"tenant": self._tenant, "namespace": self._namespace}
        if "ownedNamespaces" in step.endpoint.path:
            values |= {"cluster": "standalone"}
        if "/configuration/" in step.endpoint.path:
            values |= _OF_CONFIGURATION
        return values[variable].replace("{tenant}", self._tenant).replace("{namespace}", self._namespace)

    def _broker(self) -> str:
        """Return the first broker of the cluster."""
        return str(json.loads(self._send("GET", "/admin/v2/brokers", None)[2])[0])

    def _body(self, step: Step) -> str | None:
        if step.body is None:
            return None
        text = step.body.replace(f'"{LAST}"', json.dumps(self._last))
        if "{broker}" in text:
            text = text.replace("{broker}", self._broker())
        for variable, value in (("tenant", self._tenant), ("namespace", self._namespace), ("topic", "t")):
            text = text.replace(f"{{{variable}}}", value)
        return text

    def _send(self, method: str, path: str, body: str | None) -> tuple[int, dict[str, str], bytes]:
        return self._exchange.send(method, path, body)


def open_coordinator(target: Target) -> None:
    """Connect to the transaction coordinator: Pulsar opens it for its first client."""
    broker = Broker(target.url, target.web_url, "endpoints.coordinator")
    try:
        coordinator(broker)
    finally:
        broker.close()


class Exchange:
    """A connection to an Admin API, opened again when the broker has closed it."""

    def __init__(self, web_url: str) -> None:
        address = urllib.parse.urlsplit(web_url).netloc
        self._link = http.client.HTTPConnection(address, timeout=HTTP_SECONDS)

    def send(self, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers with lower-case names, and body of one request; status 0 without an answer in time."""
        try:
            return self._sent(method, path, body)
        except TimeoutError:
            self.close()
            return 0, {"content-type": NO_ANSWER}, b""
        except (ConnectionError, http.client.HTTPException):
            self.close()
            return self._sent(method, path, body)

    def _sent(self, method: str, path: str, body: str | None) -> tuple[int, dict[str, str], bytes]:
        self._link.request(method, path, body, {"Content-Type": "application/json"})
        answer = self._link.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        self._link.close()


def send(web_url: str, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, str], bytes]:
    """Send one request over a connection of its own."""
    with contextlib.closing(Exchange(web_url)) as exchange:
        return exchange.send(method, path, body)


class Tenant:
    """The tenant of one comparison; on exit, it is deleted with what the groups made."""

    def __init__(self, target: Target, name: str) -> None:
        self._target = target
        self.name = name

    def create(self) -> None:
        """Create the tenant. Raises RuntimeError if the broker refuses."""
        info = json.dumps({"allowedClusters": ["standalone"]})
        status, _, body = send(self._target.web_url, "PUT", f"/admin/v2/tenants/{self.name}", info)
        if status != 204:
            raise RuntimeError(f"{self._target.web_url} refuses tenant {self.name}: {status} {body[:200]!r}")

    def delete(self) -> list[str]:
        """Delete the tenant, and what begins with its name; return what is left."""
        for namespace in self._listed(f"namespaces/{self.name}"):
            self._delete_namespace(namespace)
        for kind in ("tenants", "resourcegroups", "clusters"):
            for name in [each for each in self._listed(kind) if each.startswith(self.name)]:
                self._ask("DELETE", f"{kind}/{name}")
        self._ask("DELETE", "bookies/racks-info/differences:3181")
        return [
            *self._listed(f"namespaces/{self.name}"),
            *(f"{kind} {each}" for kind in ("tenants", "resourcegroups", "clusters") for each in self._listed(kind)
              if each.startswith(self.name)),
        ]  # fmt: skip

    def _delete_namespace(self, namespace: str) -> None:
        for domain in ("persistent", "non-persistent"):
            for topic in self._listed(f"{domain}/{namespace}/partitioned"):
                self._ask("DELETE", f"{topic.replace('://', '/')}/partitions?force=true")
        for topic in self._listed(f"namespaces/{namespace}/topics?mode=ALL"):
            self._ask("DELETE", f"{topic.replace('://', '/')}?force=true")
        self._ask("DELETE", f"namespaces/{namespace}")

    def _listed(self, path: str) -> list[str]:
        status, body = self._ask("GET", path)
        with contextlib.suppress(ValueError):
            found = json.loads(body)
            return found if status == 200 and isinstance(found, list) else []
        return []

    def _ask(self, method: str, path: str) -> tuple[int, bytes]:
        status, _, body = send(self._target.web_url, method, f"/admin/v2/{path}")
        return status, body
