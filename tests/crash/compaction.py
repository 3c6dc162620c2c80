"""``make crash ARGS="--compact"``: kills the broker during compaction, and verifies the compacted view after each
start.

One publisher sends values and deletions of some hundred keys continuously. A reader of the view and of the log after it
must receive, for every key, the latest receipted message or a later one. Up to the view's end, each key occurs once. So
the view is entirely the old one or the new one, whenever the kill occurred.
"""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pulsar
from rich.console import Console
from rich.table import Table

from pulsarbox.storage.inspection.check import check
from tests.tools.box import BoxProcess, admin

TOPIC: Final = "persistent://public/default/crash-compacted"
PATH: Final = "persistent/public/default/crash-compacted"
ENVIRONMENT: Final = (
    "env", "PULSARBOX_managedLedgerMaxEntriesPerLedger=500", "PULSARBOX_managedLedgerMinLedgerRolloverTimeMinutes=0",
)  # fmt: skip
KEYS: Final = 1000
RATE: Final = 1000
DELETIONS: Final = 20
"""One message in this many deletes its key."""
WAIT_SECONDS: Final = 60.0
RUNNING_SECONDS: Final = (0.0, 0.05)
"""Seconds for which a compaction has read or written before the kill."""
Read = tuple[str, int]
"""Key and number of a message that a reader received."""


def key_of(seq: int) -> str:
    """Return the key of a message: some keys are frequent, some rare."""
    return f"key-{seq * seq % KEYS if seq % 2 else seq % KEYS}"


def deletes(seq: int) -> bool:
    """Return whether a message deletes its key."""
    return seq % DELETIONS == DELETIONS - 1


def payload(seq: int) -> bytes:
    """Return the payload of a message, empty for a deletion."""
    return b"" if deletes(seq) else b"%d:" % seq + b"x" * (seq % 200)


@dataclass
class Sent:
    """State of the publisher; its callbacks run in another thread."""

    last: int = -1
    receipted: dict[str, int] = field(default_factory=dict)
    """Last receipted number of each key."""


@dataclass
class Run:
    """Results of a run."""

    seed: int
    kills: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def judge(read: Sequence[Read], receipted: dict[str, int], last: int) -> list[str]:
    """Return the violations in the messages of a reader that started after these receipts, in order."""
    wrong: list[str] = []
    known: dict[str, int] = {}
    for key, seq in read:
        if key_of(seq) != key or seq > last:
            wrong.append(f"{key} is {seq}, which was never sent")
        known[key] = seq
    for key, seq in receipted.items():
        got = known.get(key)
        deleted = any(deletes(later) and key_of(later) == key for later in range(seq, last + 1))
        if (got is None and not deleted) or (got is not None and got < seq):
            wrong.append(f"the latest of {key} is {got}, and {seq} has a receipt")
    return wrong


def twice(read: Iterable[tuple[tuple[int, int], str]], horizon: tuple[int, int]) -> list[str]:
    """Return the keys that occur more than once in a view, of the entries up to its end."""
    counts = Counter(key for at, key in read if at <= horizon)
    return [f"{key} is there {count} times up to {horizon}" for key, count in counts.items() if count > 1]


class Publisher(threading.Thread):
    """Publisher that sends continuously at a rate until it is stopped, then waits for all receipts."""

    def __init__(self, client: Any) -> None:
        super().__init__(daemon=True)
        self._client = client
        self.sent = Sent()
        self.stopping = threading.Event()
        self._pending = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        """See Thread."""
        producer = self._client.create_producer(
            TOPIC, send_timeout_millis=0, block_if_queue_full=True, max_pending_messages=500, batching_enabled=False
        )
        begin, seq = time.monotonic(), 0
        while not self.stopping.wait(max(0.0, begin + seq / RATE - time.monotonic())):
            self._send(producer, seq)
            seq += 1
        while self._pending:
            time.sleep(0.01)
        producer.close()

    def _send(self, producer: Any, seq: int) -> None:
        def receipted(result: Any, message_id: Any) -> None:
            with self._lock:
                self._pending -= 1
                if result == pulsar.Result.Ok:
                    key = key_of(seq)
                    self.sent.receipted[key] = max(seq, self.sent.receipted.get(key, -1))

        with self._lock:
            self._pending += 1
            self.sent.last = seq
        producer.send_async(payload(seq), receipted, partition_key=key_of(seq), properties={"seq": str(seq)})

    def receipts(self) -> dict[str, int]:
        """Return the last receipted number of each key so far."""
        with self._lock:
            return dict(self.sent.receipted)


class Torment:
    """Kills of the broker during compaction."""

    def __init__(self, box: BoxProcess, client: Any, publisher: Publisher, run: Run, dice: random.Random) -> None:
        self._box = box
        self._client = client
        self._publisher = publisher
        self._run = run
        self._dice = dice

    def kill(self) -> None:
        """Wait for a compaction, kill the broker in the middle of it, start it, and read."""
        if self._dice.random() < 0.5:
            self._compact_to_the_end()
        self._compact()
        wanted = self._dice.choice(("reading", "writing"))
        deadline = time.monotonic() + WAIT_SECONDS
        while self._phase() not in (wanted, "") and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(self._dice.uniform(*RUNNING_SECONDS))
        self._run.counts["kills while " + (self._phase() or "nothing was compacted")] += 1
        self._box.kill()
        self._run.kills += 1
        self._box.start()
        self.read()

    def read(self) -> None:
        """Read the view and the rest of the log, and record violations."""
        before = self._publisher.receipts()
        reader = self._client.create_reader(TOPIC, pulsar.MessageId.earliest, is_read_compacted=True)
        horizon = self._horizon()
        read: list[Read] = []
        places: list[tuple[tuple[int, int], str]] = []
        missing = dict(before)
        end = time.monotonic() + WAIT_SECONDS
        # The log grows during the read: reaching its former end is enough.
        while time.monotonic() < end and (reader.has_message_available() and (missing or len(read) < KEYS)):
            message = reader.read_next(timeout_millis=20_000)
            seq, at = int(message.properties()["seq"]), message.message_id()
            read.append((message.partition_key(), seq))
            places.append(((at.ledger_id(), at.entry_id()), message.partition_key()))
            if missing.get(message.partition_key(), seq + 1) <= seq:
                del missing[message.partition_key()]
        reader.close()
        self._run.counts["messages read"] += len(read)
        if horizon is not None:
            self._run.counts["views read"] += 1
            self._run.violations += twice(places, horizon)
        self._run.violations += judge(read, before, self._publisher.sent.last)

    def finish(self) -> None:
        """After the last message, compact to the end and read the rest."""
        self._compact_to_the_end()
        status = self._status()
        if status["status"] != "SUCCESS":
            self._run.violations.append(f"the last compaction: {status}")
        self.read()

    def _compact_to_the_end(self) -> None:
        self._compact()
        deadline = time.monotonic() + WAIT_SECONDS
        while self._phase() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _phase(self) -> str:
        """Return the phase of the running compaction, empty for none."""
        phase: str = self._status().get("progress", {}).get("phase", "")
        return phase

    def _status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(admin(self._box.web_url, "GET", f"{PATH}/compaction"))
        return found

    def _compact(self) -> None:
        try:
            admin(self._box.web_url, "PUT", f"{PATH}/compaction")
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise

    def _horizon(self) -> tuple[int, int] | None:
        """Return the end of the view: the mark-delete position of the compaction subscription."""
        stats = json.loads(admin(self._box.web_url, "GET", f"{PATH}/internalStats"))
        if stats["compactedLedger"]["ledgerId"] < 0:
            return None
        ledger, _, entry = stats["cursors"]["__compaction"]["markDeletePosition"].partition(":")
        return int(ledger), int(entry)


def crash(folder: Path, kills: int, seed: int, start_cmd: Sequence[str], say: Any) -> Run:
    """Run the campaign once, with its files in ``folder``."""
    box, run = BoxProcess(folder / "data", [*ENVIRONMENT, *start_cmd]), Run(seed)
    client = None
    try:
        box.start()
        admin(box.web_url, "PUT", PATH)
        admin(box.web_url, "PUT", f"{PATH}/compaction")  # while empty: it retains uncompacted messages from now on
        logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(folder / "client.log"))
        client = pulsar.Client(box.url, operation_timeout_seconds=30, logger=logger)
        publisher = Publisher(client)
        publisher.start()
        torment = Torment(box, client, publisher, run, random.Random(seed))
        while run.kills < kills:
            torment.kill()
            say(f"{run.kills}/{kills} kills; {len(run.violations)} violations")
        publisher.stopping.set()
        publisher.join(WAIT_SECONDS)
        torment.finish()
        run.counts["messages sent"] = publisher.sent.last + 1
    finally:
        if client is not None:
            client.close()
        box.kill()
    found = [finding for finding in check(folder / "data").findings if finding.severity == "damage"]
    run.violations += [f"storage check: {finding}" for finding in found]
    return run


def show(run: Run) -> None:
    """Print the summary."""
    table = Table(title=f"crash of compactions, seed {run.seed}", show_header=False)
    rows: dict[str, int] = defaultdict(int, {"kills (SIGKILL)": run.kills}) | run.counts
    for name, value in (rows | {"violations": len(run.violations)}).items():
        table.add_row(name, f"{value:,}")
    Console().print(table)
    for text in run.violations[:20]:
        print(f"VIOLATION {text}")
