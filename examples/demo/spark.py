"""Subprocess of the pipeline in ``telemetry.py``, and its results as read by the official client."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pulsar

from examples.demo.books import Account, Books
from examples.demo.box import PATIENCE_SECONDS as BOX_PATIENCE_SECONDS
from examples.demo.box import Box
from examples.demo.readings import Reading, read
from examples.demo.telemetry import CHECKED, ROLLUP, TELEMETRY, UNCHECKED

FILE: Final = Path(__file__).with_name("telemetry.py")
PATIENCE_SECONDS: Final = 300.0
"""Spark starts slowly, more so on a busy machine."""
QUERIES: Final = ("checked", "rollup")


def missing() -> str:
    """Return what Spark lacks, in a line; empty if nothing."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed (pip install 'pulsarbox[spark]')"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin", "java").exists()):
        return "Java is not installed"
    return ""


@dataclass
class Outcome:
    """Input and output of the pipeline, from the first message of its topics on.

    A reading may be in the input twice, if the publisher resent it after the box died, or a dead letter was replayed.
    The pipeline guarantees exactly-once per message, so messages are counted.
    """

    came: Counter[int] = field(default_factory=Counter)
    """Input messages by reading."""
    checked: Books = field(default_factory=Books)
    rows_checked: Counter[int] = field(default_factory=Counter)
    accounts: dict[str, Account] = field(default_factory=dict)
    """All checked messages by device, duplicates included."""
    rollup: dict[str, Account] = field(default_factory=dict)
    """Latest rows of all windows, by device."""
    rows: int = 0
    """Messages of the rollup's topic."""
    unchecked: Counter[int] = field(default_factory=Counter)
    """Dead letters by reading."""

    def add_checked(self, reading: Reading) -> None:
        """Add a message of the topic of checked readings."""
        self.checked.add(reading)
        self.rows_checked[reading.number] += 1
        self.accounts.setdefault(reading.device, Account()).add(reading)

    def is_whole(self, published: Books) -> bool:
        """Return whether every reading was checked, and each message is accounted for and in its window."""
        return self.checked.numbers == published.numbers and self.is_exact() and self.adds_up()

    def is_exact(self) -> bool:
        """Return whether each input message was checked or dead-lettered exactly once."""
        return self.rows_checked + self.unchecked == self.came

    def adds_up(self) -> bool:
        """Return whether the windows contain all checked readings: equal counts and sums per device."""
        if self.rollup.keys() != self.accounts.keys():
            return False
        return all(near(account, self.accounts[device]) for device, account in self.rollup.items())


def outcome(client: Any) -> Outcome:
    """Read the topics of the pipeline."""
    found = Outcome()
    found.came.update(read(message.data()).number for message in _messages(client, TELEMETRY))
    for message in _messages(client, CHECKED):
        found.add_checked(read(message.data()))
    windows: dict[str, dict[str, Any]] = {}
    for message in _messages(client, ROLLUP):
        windows[message.partition_key()] = json.loads(message.data())
        found.rows += 1
    for row in windows.values():
        account = found.rollup.setdefault(row["device"], Account())
        account.count += row["readings"]
        account.total += row["total"]
    found.unchecked.update(read(message.data()).number for message in _messages(client, UNCHECKED))
    return found


def near(one: Account, other: Account) -> bool:
    """Return whether counts and sums agree, up to rounding."""
    return one.count == other.count and math.isclose(one.total, other.total, rel_tol=1e-9, abs_tol=1e-9)


def _messages(client: Any, topic: str) -> Iterator[Any]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    try:
        while reader.has_message_available():
            yield reader.read_next(int(BOX_PATIENCE_SECONDS * 1000))
    finally:
        reader.close()


class Runner:
    """Subprocess of ``pulsarbox pipeline run`` that can be killed and restarted."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.shown: set[str] = set()
        """Queries that the box reported as running: those that the dashboard shows."""
        self.groups: list[dict[str, Any]] = []
        """Dead letters, grouped by failure cause."""
        self.put_back = 0
        self._box = box
        self._state = folder / "pipelines"
        self._log = folder / "pipeline.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, mended: bool = False) -> None:
        """Start the runner; it resumes from its checkpoints."""
        conf = ["--conf", "spark.driver.memory=512m", "--conf", "spark.sql.shuffle.partitions=1"]
        words = ["run", str(FILE), "--master", "local[2]", "--restarts", "20", "--state", str(self._state), *conf]
        environment = os.environ | {"MENDED": "1" if mended else ""}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("pipeline", *words, "--url", self._box.url),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def end(self, how: signal.Signals) -> None:
        """Send a signal and wait for the exit."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.kill(self._process.pid, how)
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def wait_until(self, holds: Callable[[], bool]) -> bool:
        """Wait for a condition; return false on timeout."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if self._process is not None and self._process.poll() is not None:
                raise SystemExit(f"the pipeline ended:\n{self._log.read_text()}")
            if time.monotonic() > deadline:
                return False
            self.shown |= {row["query"] for row in self._rows() if row["state"] == "running"}
            time.sleep(0.5)
        return True

    def dead_letters(self) -> int:
        """Return the dead letters that its queries have reported since the runner started."""
        return sum(row["deadLetters"] or 0 for row in self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._box.ask("GET", "/pulsarbox/v1/pipelines")
        return found

    def replay(self) -> None:
        """Group the dead letters by failure cause, and replay them to their origin with a job of the box."""
        self.groups = self._asked("dlq", "groups", UNCHECKED)
        job = self._asked("dlq", "replay", UNCHECKED, "--rate", "0", "--max-returned", "0", "--wait")
        self.put_back = job["done"]

    def _asked(self, *words: str) -> Any:
        command = self._command(*words, "-o", "json")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            told = f"{' '.join(words)} has not ended within {PATIENCE_SECONDS:g} s: is this machine busy?"
            raise SystemExit(f"{told} ARGS=--no-spark plays without Spark") from None
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
        return json.loads(done.stdout)

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "pulsarbox", *words, "--admin-url", self._box.web_url]
