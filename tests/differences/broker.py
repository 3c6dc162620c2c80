"""The environment of a scenario: a broker with its two URLs, and cleanup of all opened objects."""

import contextlib
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, Final

import pulsar

from tests.differences.telling import Ledgers, scrub
from tests.differences.wire import Wire
from tests.tools.box import admin

HTTP_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 0.3
"""After this much silence, no further frames are expected."""

NO_STATS: Final = "no stats, but the status"
"""Placeholder in an observation of a topic without stats."""

OPERATION_SECONDS: Final = 10

PULSARBOX_ADMIN: Final = (sys.executable, "-m", "pulsarbox", "admin")


class Broker:
    """One of the two brokers, for one scenario.

    ``patience`` scales all waiting, for a second attempt after a difference. Values below 1 only check that a scenario
    runs.
    """

    def __init__(
        self,
        url: str,
        web_url: str,
        scenario: str,
        patience: float = 1.0,
        admin_command: tuple[str, ...] = PULSARBOX_ADMIN,
        bare: bool = False,
    ) -> None:
        self.url = url
        self.web_url = web_url.rstrip("/")
        self.patience = patience
        self.run = f"{time.time_ns():x}"
        """Suffix unique to this run: a broker may not delete everything that an earlier run created."""
        self.ledgers = Ledgers()
        self.scenario = scenario
        self.admin_command = admin_command
        """Command that runs pulsar-admin command lines."""
        self.bare = bare
        """Whether only the failure of such a command is reported, without its message."""
        self._wires: list[Wire] = []
        self._clients: list[Any] = []
        self._topics: list[str] = []

    # Topics

    def topic(self, word: str = "t", partitions: int = 0, persistent: bool = True) -> str:
        """Return an unused topic. Its name is the same in each run, because routing and dispatch depend on its hash."""
        domain = "persistent" if persistent else "non-persistent"
        name = f"{domain}://public/default/differences-{self.scenario}-{word}"
        self._delete(name, partitions)
        if partitions:
            self.admin("PUT", f"{path_of(name)}/partitions", partitions)
        self._topics.append(name)
        for each in [f"{name}-partition-{number}" for number in range(partitions)] or [name]:
            self._look_up(each)
        return name

    def _look_up(self, name: str) -> None:
        """Look up the topic, as every client does first: Pulsar serves a topic only after a lookup."""
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{self.web_url}/lookup/v2/topic/{path_of(name)}", timeout=HTTP_SECONDS) as answer,
        ):
            answer.read()

    def _delete(self, name: str, partitions: int = 0) -> None:
        self.admin("DELETE", f"{path_of(name)}/partitions?force=true")
        if not partitions:
            self.admin("DELETE", f"{path_of(name)}?force=true")

    # The Admin API

    def admin(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the response of one request; JSON is parsed."""
        try:
            text = admin(self.web_url, method, path, None if body is None else json.dumps(body), 20 * self.patience)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, scrub(_reason(error.read().decode()))
        return 200, _parsed(text)

    def stats(self, topic: str) -> dict[str, Any]:
        """Return the stats of a topic; without stats, the status under NO_STATS."""
        status, stats = self.admin("GET", f"{path_of(topic)}/stats?getPreciseBacklog=true")
        return stats if status == 200 and isinstance(stats, dict) else {NO_STATS: status}

    def subscription(self, topic: str, *fields: str, sub: str = "s") -> dict[str, Any]:
        """Return fields of a subscription from the stats of its topic; ``consumers.x`` is field x of each consumer."""
        stats = self.stats(topic)
        if NO_STATS in stats:
            return stats
        found = stats.get("subscriptions", {}).get(sub)
        if found is None:
            return {"subscription": "absent"}
        told = {}
        for name in fields:
            if name.startswith("consumers."):
                field = name.removeprefix("consumers.")
                each = {one.get("consumerName", "?"): one.get(field, "absent") for one in found.get("consumers", [])}
                told[name] = dict(sorted(each.items()))
            else:
                told[name] = found.get(name, "absent")
        return told

    def subscriptions(self, topic: str) -> Any:
        """Return the names of the topic's subscriptions from the Admin API."""
        found = self.admin("GET", f"{path_of(topic)}/subscriptions")[1]
        return sorted(found) if isinstance(found, list) else found

    # Connections

    def wire(self, label: str) -> Wire:
        """Open a raw connection."""
        target = urllib.parse.urlsplit(self.url)
        made = Wire(label, (target.hostname or "", target.port or 6650), self.ledgers, self.patience)
        self._wires.append(made)
        return made

    def client(self, **options: Any) -> Any:
        """Return the official Python client, with logging disabled."""
        options.setdefault("operation_timeout_seconds", OPERATION_SECONDS)
        logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        made = pulsar.Client(self.url, logger=logger, **options)
        self._clients.append(made)
        return made

    # Waiting and observing

    def settle(self, seconds: float = 0.0) -> None:
        """Wait until all connections have been silent for a while, at least ``seconds`` from now."""
        quiet, begin = QUIET_SECONDS * self.patience, time.monotonic()
        until = begin + max(seconds * min(1.0, self.patience), quiet)
        while (left := until - time.monotonic()) > 0:
            time.sleep(left)
            until = max(until, max((wire.last_arrival for wire in self._wires), default=0) + quiet)

    def frames(self, seconds: float = 0.0) -> dict[str, list[str]]:
        """Return the frames of each connection since the last call, after all connections are silent."""
        self.settle(seconds)
        return {wire.label: taken for wire in self._open() if (taken := wire.take())}

    def shares(self, count: int = 0) -> dict[str, list[str]]:
        """Return the payloads of each consumer of each connection since the last call; wait for ``count`` of them."""
        deadline = time.monotonic() + 5 * self.patience
        while time.monotonic() < deadline and self._held() < count:
            time.sleep(0.01)
        self.settle()
        told = {}
        for wire in self._open():
            for number, payloads in sorted(wire.took().items()):
                told[f"{wire.label}{number}"] = payloads
        return told

    def _open(self) -> list[Wire]:
        return [wire for wire in self._wires if not wire.closed]

    def _held(self) -> int:
        return sum(len(payloads) for wire in self._open() for payloads in list(wire.held.values()))

    def forget(self) -> None:
        """Discard the frames received so far."""
        self.settle()
        for wire in self._wires:
            wire.took()
            wire.take()

    def until(self, holds: Callable[[], bool], seconds: float = 5.0) -> bool:
        """Wait until ``holds`` returns true. Return False on timeout."""
        deadline = time.monotonic() + seconds * self.patience
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """Close the connections and clients of the scenario and delete its topics."""
        for wire in self._wires:
            wire.close()
        for client in self._clients:
            with contextlib.suppress(Exception):
                client.close()
        for name in self._topics:
            with contextlib.suppress(OSError):
                self._delete(name)


def path_of(topic: str) -> str:
    """Return the topic as it appears in paths of the Admin API."""
    domain, _, rest = topic.partition("://")
    return f"{domain}/{rest}"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return scrub(text)


def _reason(text: str) -> str:
    parsed = _parsed(text)
    return str(parsed.get("reason", parsed)) if isinstance(parsed, dict) else str(parsed)
