"""The pipeline of ``telemetry.py`` in a process of its own; and what came of it, read by the official client."""

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
"""Spark takes its time to start, the more so where others are at work."""
QUERIES: Final = ("checked", "rollup")
JOB: Final = "mended"


def missing() -> str:
    """What is not there of what Spark needs, in a line; empty where it is all there."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed (pip install 'pulsarbox[spark]')"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin", "java").exists()):
        return "Java is not installed"
    return ""


@dataclass
class Outcome:
    """What came to the pipeline and what it has made of that, from the first message of its topics on.

    A reading may come twice: the publisher has sent it again, as the box died with its receipt; or it was put back. The
    pipeline answers for messages, so these are counted as they come.
    """

    came: Counter[int] = field(default_factory=Counter)
    """By reading: the messages of its input."""
    checked: Books = field(default_factory=Books)
    rows_checked: Counter[int] = field(default_factory=Counter)
    accounts: dict[str, Account] = field(default_factory=dict)
    """By device: all that was checked, what came twice counted twice."""
    rollup: dict[str, Account] = field(default_factory=dict)
    """By device: the last word of all its windows."""
    rows: int = 0
    """Messages of the rollup's topic."""
    unchecked: Counter[int] = field(default_factory=Counter)
    """The readings that became dead letters."""

    def add_checked(self, reading: Reading) -> None:
        """A message of the topic of what is checked."""
        self.checked.add(reading)
        self.rows_checked[reading.number] += 1
        self.accounts.setdefault(reading.device, Account()).add(reading)

    def is_whole(self, published: Books) -> bool:
        """Whether every reading was checked, each message of it is dealt with, and in its window."""
        return self.checked.numbers == published.numbers and self.is_exact() and self.adds_up()

    def is_exact(self) -> bool:
        """Whether of each message that came there is one that was checked, or one dead letter."""
        return self.rows_checked + self.unchecked == self.came

    def adds_up(self) -> bool:
        """Whether the windows have all that was checked, as many of each device and with the same sum."""
        if self.rollup.keys() != self.accounts.keys():
            return False
        return all(near(account, self.accounts[device]) for device, account in self.rollup.items())


def outcome(client: Any) -> Outcome:
    """What is in the topics of the pipeline now."""
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
    """Whether two sides have added up the same, in whatever order."""
    return one.count == other.count and math.isclose(one.total, other.total, rel_tol=1e-9, abs_tol=1e-9)


def _messages(client: Any, topic: str) -> Iterator[Any]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    try:
        while reader.has_message_available():
            yield reader.read_next(int(BOX_PATIENCE_SECONDS * 1000))
    finally:
        reader.close()


class Runner:
    """``pulsarbox pipeline run``, which can be killed and started again."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.shown: set[str] = set()
        """The queries that the box knew to be running: what the dashboard shows."""
        self.groups: list[dict[str, Any]] = []
        """The dead letters, by why they failed."""
        self.put_back = 0
        self._box = box
        self._state = folder / "pipelines"
        self._log = folder / "pipeline.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, mended: bool = False) -> None:
        """Start it; it goes on where it stopped."""
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
        """Send a signal, and wait for the end."""
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
        """Wait for the pipeline to have done something; false where nobody believes in it any more."""
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
        """How many its queries have told of since the runner began."""
        return sum(row["deadLetters"] or 0 for row in self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._box.ask("GET", "/pulsarbox/v1/pipelines")
        return found

    def replay(self) -> None:
        """Look at the dead letters by why they failed, and have a job put them back where they came from."""
        self.groups = self._asked("dlq", "groups", UNCHECKED)
        words = ["--replay", "--job", JOB, "--rate", "0", "--master", "local[2]", "--state", str(self._state)]
        ways = self._asked("pipeline", "dlq-triage", UNCHECKED, *words, "--url", self._box.url)
        self.put_back = sum(each["messages"] for each in ways if not each["refused"])

    def _asked(self, *words: str) -> list[dict[str, Any]]:
        command = self._command(*words, "-o", "json")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            told = f"{' '.join(words)} has not ended within {PATIENCE_SECONDS:g} s: is this machine busy?"
            raise SystemExit(f"{told} ARGS=--no-spark plays without Spark") from None
        if done.returncode:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "pulsarbox", *words, "--admin-url", self._box.web_url]
