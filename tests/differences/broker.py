"""What a scenario is given: a broker by its two URLs, with everything the scenario opened closed behind it."""

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
"""Nothing came for so long: nothing more will come."""

NO_STATS: Final = "no stats, but the status"
"""Stands in an observation that was to be taken from the stats of a topic."""

OPERATION_SECONDS: Final = 10

PULSARBOX_ADMIN: Final = (sys.executable, "-m", "pulsarbox", "admin")


class Broker:
    """One of the two brokers, for one scenario.

    ``patience`` stretches all waiting, for a second look at what differed; below 1 it is for those who only want to
    know that a scenario can be played.
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
        """What no other play of the scenario has: a broker may not get rid of everything that was made in one."""
        self.ledgers = Ledgers()
        self.scenario = scenario
        self.admin_command = admin_command
        """What is asked in the words of pulsar-admin."""
        self.bare = bare
        """Of such a command that fails only that is told."""
        self._wires: list[Wire] = []
        self._clients: list[Any] = []
        self._topics: list[str] = []

    # Topics

    def topic(self, word: str = "t", partitions: int = 0, persistent: bool = True) -> str:
        """A topic that nobody has used. Its name is the same in each run, because choices hang on hashes of it."""
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
        """What every client does first: Pulsar serves a topic only after somebody looked it up."""
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
        """Status and answer of one request; JSON is parsed."""
        try:
            text = admin(self.web_url, method, path, None if body is None else json.dumps(body), 20 * self.patience)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, scrub(_reason(error.read().decode()))
        return 200, _parsed(text)

    def stats(self, topic: str) -> dict[str, Any]:
        """The stats of a topic; where there are none, the status under NO_STATS."""
        status, stats = self.admin("GET", f"{path_of(topic)}/stats?getPreciseBacklog=true")
        return stats if status == 200 and isinstance(stats, dict) else {NO_STATS: status}

    def subscription(self, topic: str, *fields: str, sub: str = "s") -> dict[str, Any]:
        """Some fields of a subscription in the stats of its topic; ``consumers.x`` are the x of its consumers."""
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
        """The names of the subscriptions of a topic, by the Admin API."""
        found = self.admin("GET", f"{path_of(topic)}/subscriptions")[1]
        return sorted(found) if isinstance(found, list) else found

    # Connections

    def wire(self, label: str) -> Wire:
        """A raw connection."""
        target = urllib.parse.urlsplit(self.url)
        made = Wire(label, (target.hostname or "", target.port or 6650), self.ledgers, self.patience)
        self._wires.append(made)
        return made

    def client(self, **options: Any) -> Any:
        """The official client for Python, silent."""
        options.setdefault("operation_timeout_seconds", OPERATION_SECONDS)
        logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        made = pulsar.Client(self.url, logger=logger, **options)
        self._clients.append(made)
        return made

    # Waiting and looking

    def settle(self, seconds: float = 0.0) -> None:
        """Returns when nothing has arrived on any connection for a while, ``seconds`` at least from now."""
        quiet, begin = QUIET_SECONDS * self.patience, time.monotonic()
        until = begin + max(seconds * min(1.0, self.patience), quiet)
        while (left := until - time.monotonic()) > 0:
            time.sleep(left)
            until = max(until, max((wire.last_arrival for wire in self._wires), default=0) + quiet)

    def frames(self, seconds: float = 0.0) -> dict[str, list[str]]:
        """What arrived on each connection since the last look, when nothing more comes."""
        self.settle(seconds)
        return {wire.label: taken for wire in self._open() if (taken := wire.take())}

    def shares(self, count: int = 0) -> dict[str, list[str]]:
        """Which payloads each consumer of each connection got since the last look; waits for ``count`` of them."""
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
        """Drops what has arrived: it is of no interest."""
        self.settle()
        for wire in self._wires:
            wire.took()
            wire.take()

    def until(self, holds: Callable[[], bool], seconds: float = 5.0) -> bool:
        """Waits until ``holds``; False if it does not come true."""
        deadline = time.monotonic() + seconds * self.patience
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """Closes what the scenario opened and deletes its topics."""
        for wire in self._wires:
            wire.close()
        for client in self._clients:
            with contextlib.suppress(Exception):
                client.close()
        for name in self._topics:
            with contextlib.suppress(OSError):
                self._delete(name)


def path_of(topic: str) -> str:
    """The topic in paths of the Admin API."""
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
