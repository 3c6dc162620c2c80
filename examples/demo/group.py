"""Group of worker processes on one subscription, with their reports."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from examples.demo.books import Books
from examples.demo.box import PATIENCE_SECONDS
from examples.demo.readings import Reading, read

ROOT: Final = Path(__file__).parents[2]


class Worker:
    """One worker process, and the thread that reads its reports."""

    def __init__(self, name: str, command: list[str], group: "Group") -> None:
        self.name = name
        self.done = 0
        self.failed = 0
        self.ready = threading.Event()
        self._group = group
        with group.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=ROOT
            )
        self._thread = threading.Thread(target=self._listen, name=name, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith(b"\n"):
                return  # killed while reporting a reading, which it had not acknowledged
            told = json.loads(line)
            if told["what"] == "ready":
                self.ready.set()
            elif told["what"] == "failed":
                self.failed += 1
            else:
                self.done += 1
                self._group.take(told["at"], read(told["body"].encode()))

    def kill(self) -> None:
        """Send SIGKILL."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._thread.join()

    def end(self) -> None:
        """Ask the worker to exit; kill it after a timeout."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._thread.join()


class Group:
    """Workers of one subscription."""

    def __init__(self, url: str, topic: str, subscription: str, kind: str, log: Path, *, picky: bool = False) -> None:
        self.log = log
        self.workers: list[Worker] = []
        self._words = ["--url", url, "--topic", topic, "--subscription", subscription, "--type", kind]
        self._words += ["--log", str(log)]
        if picky:
            self._words.append("--picky")
        self._told: list[tuple[int, Reading]] = []
        self._numbers: set[int] = set()
        self._lock = threading.Lock()

    def hire(self, name: str, *, fails: int = 0, weight: int = 1, takes: float = 0.0) -> Worker:
        """Start another worker, without waiting until it is ready."""
        command = [sys.executable, "-m", "examples.demo.worker", *self._words, "--name", name]
        command += ["--fails", str(fails), "--weight", str(weight), "--takes", str(takes)]
        worker = Worker(name, command, self)
        self.workers.append(worker)
        return worker

    def take(self, at: int, reading: Reading) -> None:
        """Record a reading that a worker has processed."""
        with self._lock:
            self._told.append((at, reading))
            self._numbers.add(reading.number)

    def has(self) -> set[int]:
        """Return the numbers of the processed readings."""
        with self._lock:
            return set(self._numbers)

    def books(self) -> Books:
        """Return the books of all workers, in processing order: all processes share one clock."""
        books = Books()
        for _, reading in sorted(self._told, key=lambda each: each[0]):
            books.add(reading)
        return books

    def end(self) -> None:
        for worker in self.workers:
            worker.end()
