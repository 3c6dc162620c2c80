"""Benchmark of Python plugins against the built-in ones that they replace: publishing through a router, and dispatch.

Reads its job from stdin and prints figures, as raw_driver.py does, but starts a box itself, since the plugins must be
installed. Both sides are measured alternately, three times: the medians are shown, with their ratio.

- ``produce``: lines with keys through ``pulsarbox produce`` to 4 partitions; ``http``: the same in requests of 500,
  with the box as router.
- ``shared``, ``hash``, ``selector``: 4 consumers receive and acknowledge a backlog of 1000 keys.

The plugins do almost nothing (CRC32, a remainder, a minimum): the cost of Python and of the guards around a plugin is
measured.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.drivers.raw_driver import Job, Link, busy, message, publish
from benchmarks.drivers.raw_subscriptions import SLICE, Subscriber, every
from pulsarbox.plugins.opening import INSTEAD
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageIdData
from tests.tools.box import BoxProcess, admin

TURNS: Final = 3
CONSUMERS: Final = 4
PARTITIONS: Final = 4
KEYS: Final = 1000
A_REQUEST: Final = 500
TOPIC: Final = "persistent/public/default"
_HEAD: Final = "class Plugin:\n    kind = {kind!r}\n    name = {name!r}\n    api = 1\n"
PLUGINS: Final = {
    "mine-hash": "import zlib\n"
    + _HEAD.format(kind="hashing", name="mine-hash")
    + "    def hash32(self, key):\n        return zlib.crc32(key) & 0x7FFFFFFF\n",
    "mine-choice": _HEAD.format(kind="routing", name="mine-choice")
    + "    def choose(self, ready):\n        return min(ready, key=lambda each: each.unacked)\n",
    "mine-selector": _HEAD.format(kind="routing", name="mine-selector")
    + "    def divide(self):\n        made = Plugin()\n        made.here = []\n        return made\n"
    + "    def add(self, consumer):\n        self.here.append(consumer)\n"
    + "    def remove(self, consumer):\n        self.here.remove(consumer)\n"
    + "    def select(self, slot):\n        return self.here[slot % len(self.here)]\n",
    "mine-router": _HEAD.format(kind="routing", name="mine-router")
    + "    def open(self, producing):\n        hash32 = producing.hash32\n"
    + "        return lambda message, partitions: hash32(message.key or b'') % partitions\n",
}
SUBSCRIPTIONS: Final = {
    # figure: (type, property, built-in, plugin); ``shared`` compares two that choose by unacknowledged messages
    "shared": (CommandSubscribe.Shared, "sharedConsumerSelection", "leastUnacked", "mine-choice"),
    "hash": (CommandSubscribe.Key_Shared, "keySharedHashing", "murmur3", "mine-hash"),
    "selector": (CommandSubscribe.Key_Shared, "keySharedSelector", "consistentHashing", "mine-selector"),
}

Measured = tuple[float, float]
"""Messages per second, and microseconds of the box's CPU time per message."""


def keyed(number: int) -> str:
    return f"key-{number % KEYS}"


def backlog(job: Job, count: int) -> None:
    """Publish messages with keys to the job's topic."""
    link = Link(job)
    link.open({0: job["topic"]})
    body = bytes(job["size"])
    for first in range(0, count, SLICE):
        numbers = range(first, min(first + SLICE, count))
        link.prepare([message(link, 0, number, body, keyed(number)) for number in numbers])
        publish([link], job["pending"], len(numbers))
    link.socket.close()


def caught_up(job: Job, name: str, kind: CommandSubscribe.SubType, count: int, pid: int) -> Measured:
    """Measure new consumers until they have received everything."""
    seen = 0

    def receive(consumer: int, message_id: MessageIdData, payload: bytes) -> bool:
        nonlocal seen
        seen += 1
        return every(seen)

    link = Subscriber(job, receive)
    used, begin = busy(pid), time.perf_counter()
    for consumer in range(1, CONSUMERS + 1):
        link.subscribe(consumer, job["topic"], name, kind)
    while seen < count:
        link.pump()
    measured = count / (time.perf_counter() - begin), (busy(pid) - used) / count * 1e6
    link.socket.close()
    return measured


def by_turns(measure: Callable[[bool, int], Measured]) -> dict[str, float]:
    """Call ``measure`` alternately without and with the plugin, with the number of the turn, and return the medians."""
    found: dict[bool, list[Measured]] = {False: [], True: []}
    for turn in range(TURNS):
        for plugin in (False, True) if turn % 2 else (True, False):
            found[plugin].append(measure(plugin, turn))
    rate = {plugin: statistics.median(each[0] for each in all_) for plugin, all_ in found.items()}
    used = {plugin: statistics.median(each[1] for each in all_) for plugin, all_ in found.items()}
    return {"rate": rate[True], "without": rate[False], "ratio": rate[True] / rate[False],
            "broker_us": used[True], "without_us": used[False]}  # fmt: skip


class Bench:
    """Box with the plugins."""

    def __init__(self, job: Job, box: BoxProcess) -> None:
        self._job = job
        self._box = box
        assert box.pid is not None
        self._pid = box.pid
        self._count = job["messages"]

    def dispatch(self, figure: str) -> dict[str, float]:
        """Measure a new subscription each time, with its dispatch property."""
        kind, setting, built_in, plugin = SUBSCRIPTIONS[figure]
        job = {**self._job, "url": self._box.url, "topic": f"persistent://public/default/{figure}"}
        admin(self._box.web_url, "PUT", f"{TOPIC}/{figure}")
        for turn in range(TURNS):
            for name in (f"a{turn}", f"b{turn}"):
                path = f"{TOPIC}/{figure}/subscription/{name}"
                admin(self._box.web_url, "PUT", path)
                chosen = {setting: plugin if name[0] == "b" else built_in}
                admin(self._box.web_url, "PUT", f"{path}/properties", json.dumps(chosen))
        backlog(job, self._count)
        return by_turns(lambda with_it, turn: caught_up(job, f"{'ab'[with_it]}{turn}", kind, self._count, self._pid))

    def produce(self, lines: bytes, folder: Path) -> dict[str, float]:
        """Measure our own command, including its start and exit."""
        admin(self._box.web_url, "PUT", f"{TOPIC}/produced/partitions", str(PARTITIONS))
        where = ["--url", self._box.url, "--plugins-dir", str(folder)]
        command = [sys.executable, "-m", "pulsarbox", "produce", "produced", "-f", "%k\\t%v", "-q", *where]

        def once(with_it: bool, turn: int) -> Measured:
            used, begin = busy(self._pid), time.perf_counter()
            subprocess.run([*command, "--route", "mine-router" if with_it else INSTEAD], input=lines, check=True)
            return self._count / (time.perf_counter() - begin), (busy(self._pid) - used) / self._count * 1e6

        return by_turns(once)

    def http(self) -> dict[str, float]:
        """Measure consecutive requests, to a topic with the router and to one without."""
        for name in ("http-a", "http-b"):
            properties = {"routing": "mine-router"} if name[-1] == "b" else {}
            request = urllib.request.Request(
                f"{self._box.web_url}/admin/v2/{TOPIC}/{name}/partitions",
                json.dumps({"partitions": PARTITIONS, "properties": properties}).encode(),
                {"Content-Type": "application/vnd.partitioned-topic-metadata+json"},
                method="PUT",
            )
            urllib.request.urlopen(request).close()
        messages = [{"payload": "x" * 100, "key": keyed(number)} for number in range(A_REQUEST)]
        body, requests = json.dumps({"messages": messages}).encode(), max(1, self._count // A_REQUEST)

        def once(with_it: bool, turn: int) -> Measured:
            url = f"{self._box.web_url}/topics/{TOPIC}/http-{'ab'[with_it]}"
            used, begin = busy(self._pid), time.perf_counter()
            for _ in range(requests):
                urllib.request.urlopen(urllib.request.Request(url, body, method="POST")).close()
            count = requests * A_REQUEST
            return count / (time.perf_counter() - begin), (busy(self._pid) - used) / count * 1e6

        return by_turns(once)


def run(job: Job) -> dict[str, float]:
    """Return the figures of one way."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-") as name:
        folder = Path(name)
        for plugin, text in PLUGINS.items():
            (folder / f"{plugin.replace('-', '_')}.py").write_text(text)
        (folder / "pulsarbox.toml").write_text(f'[plugins]\npluginsDirectory = "{folder}"\n')
        box = BoxProcess(folder / "data")
        try:
            box.start()
            return _measured(job, box, folder)
        finally:
            box.kill()


def _measured(job: Job, box: BoxProcess, folder: Path) -> dict[str, float]:
    bench, way = Bench(job, box), job["way"]
    if way == "produce":
        lines = b"".join(b"%s\t%s\n" % (keyed(n).encode(), b"x" * job["size"]) for n in range(job["messages"]))
        return bench.produce(lines, folder)
    return bench.http() if way == "http" else bench.dispatch(way)


def main() -> None:
    job: dict[str, Any] = json.load(sys.stdin)
    print(json.dumps(run(job)))


if __name__ == "__main__":
    main()
