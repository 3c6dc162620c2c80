"""Campaign over the commands that move rows into topics and out of them.

No kill may lose or repeat data: ``backfill`` publishes every row once, ``export`` writes every message once, and
``table()`` returns every message once, from offloaded files and from the topic.
"""

import collections
import json
import os
import signal
import threading
import urllib.request
from pathlib import Path
from typing import Final

from tests.spark_faults.pipelines import EPOCH, PipelineCase, client_of, values_of
from tests.spark_faults.run import POINTS, Case, Count, Driver, FaultsError, Keeper, Outcome

LEDGERS: Final = 6
LAST: Final = 20
"""Messages after the closed ledgers."""

Strike = tuple[str, str]
"""A file pattern in the case's folder, and the process to kill for a new match: ``driver``, ``jvm`` or ``box``."""
PUT_ASIDE: Final = (
    ("state/backfill/*/rows/_temporary/0/_temporary/*/*.parquet", "jvm"),
    ("state/backfill/*/rows/*.parquet", "driver"),
)
_BEGUN: Final = "out/_temporary/0/_temporary/*/*.parquet"
_BEGUN_AGAIN: Final = ".out.exporting/_temporary/0/_temporary/*/*.parquet"
"""A repeated export is complete before it replaces the previous one."""
EXPORT: Final = ((_BEGUN, "driver"), (_BEGUN_AGAIN, "jvm"), ("out/*.parquet", "driver"))
_FOLDER: Final = "history/*/*/*/partition=none"
OFFLOAD: Final = ((f"{_FOLDER}/*.tmp", "driver"), (f"{_FOLDER}/ledger=*", "driver"), (f"{_FOLDER}/*.tmp", "box"))


class Striking(threading.Thread):
    """Thread that kills a process when a new file matches the pattern."""

    def __init__(self, case: "MovingCase", driver: Driver, strike: Strike) -> None:
        super().__init__(daemon=True)
        self._case, self._driver, self._strike = case, driver, strike
        self._before = self._found()

    def _found(self) -> set[tuple[Path, int]]:
        found = set()
        for path in self._case.folder.glob(self._strike[0]):
            try:
                found.add((path, path.stat().st_mtime_ns))
            except FileNotFoundError:
                continue
        return found

    def run(self) -> None:
        pattern, whom = self._strike
        while self._driver.process.poll() is None:
            if self._found() - self._before:
                self._case.points.append(f"{whom} at {pattern}")
                os.kill(int((self._case.folder / f"{whom}.pid").read_text()), signal.SIGKILL)
                return
            threading.Event().wait(0.002)


class MovingCase(PipelineCase):
    """A case whose drivers are each struck once, in turn, until all strikes have occurred."""

    def __init__(
        self, root: Path, keeper: Keeper, what: str, points: tuple[str, ...], strikes: tuple[Strike, ...]
    ) -> None:
        super().__init__(what, root, keeper, what, points)
        self._left = list(strikes)
        self._wanted = [f"{whom} at {pattern}" for pattern, whom in strikes]

    def driver(self, partitions: int, master: str = "", conf: dict[str, str] | None = None) -> Driver:
        """Start a driver, and watch for the next strike."""
        striking = self._left.pop(0) if self._left else None
        made = super().driver(partitions, master, conf)
        (self.folder / "driver.pid").write_text(str(made.process.pid))
        if striking is not None:
            Striking(self, made, striking).start()
        return made

    def run(self, strikes: int = 0) -> None:
        """Run until the work is complete and all strikes have occurred. Raises FaultsError."""
        super().run(strikes + len(self._wanted))
        missed = [each for each in self._wanted if each not in self.points]
        if missed:
            raise FaultsError(f"never came: {', '.join(missed)}")


def backfill(
    root: Path, keeper: Keeper, points: tuple[str, ...] = POINTS, strikes: tuple[Strike, ...] = PUT_ASIDE
) -> Outcome:
    """Backfill the rows of a file as messages."""
    case = MovingCase(root, keeper, "backfill", points, strikes)
    (case.folder / "rows.csv").write_text("value\n" + "".join(f"{row}\n" for row in range(case.rows)))
    case.run()
    return case.ended(count_of(case.rows, _texts(case)))


def export(root: Path, keeper: Keeper, strikes: tuple[Strike, ...] = EXPORT) -> Outcome:
    """Export messages as rows of files."""
    import pyarrow.parquet as pq

    case = MovingCase(root, keeper, "export", (), strikes)
    published(case, 0, case.rows)
    case.run()
    files = (case.folder / "out").glob("*.parquet")
    found = [value.decode() for each in files for value in pq.read_table(each).column("value").to_pylist()]
    return case.ended(count_of(case.rows, found))


def offload(root: Path, keeper: Keeper, strikes: tuple[Strike, ...] = OFFLOAD) -> Outcome:
    """Offload ledgers to files, and read these and the later messages as one table."""
    case = MovingCase(root, keeper, "offload", (), strikes)
    case.rows = LEDGERS * EPOCH + LAST
    for number in range(LEDGERS):
        published(case, number * EPOCH, (number + 1) * EPOCH)
        closed(case)
    published(case, LEDGERS * EPOCH, case.rows)
    case.run()
    case.more |= {"what": "table"}
    reader = case.driver(1)
    if reader.wait() != 0:
        raise FaultsError(f"the table cannot be read:\n{reader.said()}")
    return case.ended(count_of(case.rows, json.loads((case.folder / "table.json").read_text())))


def published(case: Case, first: int, end: int) -> None:
    """Publish messages with these numbers, one per entry."""
    client = client_of(case)
    producer = client.create_producer(f"persistent://public/default/{case.name}", batching_enabled=False)
    for number in range(first, end):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    client.close()


def closed(case: Case) -> None:
    """Close the open ledger."""
    url = f"{case.keeper.box.web_url}/pulsarbox/v1/ledgers/public/default/{case.name}/close"
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
        assert json.loads(answer.read())["closed"] is not None


def _texts(case: PipelineCase) -> list[str]:
    return [value.decode() for value in values_of(case, case.topic)]


def count_of(rows: int, found: list[str]) -> Count:
    """Count which numbers below ``rows`` are missing, and which occur more than once."""
    counted = collections.Counter(found)
    wanted = {str(row): row for row in range(rows)}
    missing = [row for text, row in wanted.items() if not counted[text]]
    doubled = [row for text, row in wanted.items() if counted[text] > 1]
    return Count(missing, doubled, sorted(counted.keys() - wanted.keys()))
