"""Campaign that kills workers, drivers and the broker while Spark writes a stream, and counts with the official client.

``make spark-faults`` writes 2,000 rows in epochs to two topics and strikes each of the named points once. The points
are workers, the driver's JVM and the broker before, during and after the commit, and failing tasks. After each death of
the driver, it restarts with another number of partitions.

Further cases: a driver that was believed dead resumes; a standalone master runs a slow task twice (speculation);
workers receive pulsarbox from their driver (archive). The same points are struck while shipped pipelines run: rollup,
also on a standalone master, and backfill. Commands are killed as their files appear (backfill,
export, offload). Finally, driver and broker are killed at random (N times). ``--short`` strikes only the points that
fit into one restart.

Progress on stderr, the summary on stdout; exits with 1 if a row is missing or duplicated. The broker restarts on the
same directory.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pulsar
from rich.console import Console
from rich.table import Table

from pulsarbox.spark.pipelines.session import interpreter
from tests.spark_faults.faulty import FOLDER
from tests.tools.box import BoxProcess, admin, free_ports

ROWS: Final = 2000
ROOT: Final = Path(__file__).parents[2]
DRIVER_SECONDS: Final = 240.0
JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
POINTS: Final = (
    "worker task-before",
    "worker task-during",
    "worker task-after",
    "fail task-after",
    "box task-during",
    "box commit-before",
    "box commit-during",
    "box commit-after",
    "jvm task-during",
    "jvm task-after",
    "jvm commit-before",
    "jvm commit-during",
    "jvm commit-after",
)
SHORT: Final = ("worker task-during", "fail task-after", "box task-during", "box commit-during", "jvm commit-during")


class FaultsError(Exception):
    """The campaign itself did not proceed as planned."""


@dataclass
class Count:
    """Rows in the topics: missing, duplicated and unexpected ones."""

    missing: list[int]
    doubled: list[int]
    strange: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """Result of one case."""

    name: str
    rows: int
    points: list[str]
    drivers: int
    seconds: float
    count: Count

    @property
    def is_good(self) -> bool:
        """Return whether each row is present exactly once."""
        return not (self.count.missing or self.count.doubled or self.count.strange)


_BEGIN: Final = time.monotonic()


def say(text: str) -> None:
    print(f"spark-faults: {time.monotonic() - _BEGIN:4.0f} s: {text}", file=sys.stderr, flush=True)


class Keeper:
    """A broker that is restarted on the same directory after each kill."""

    def __init__(self, folder: Path) -> None:
        self.box = BoxProcess(folder / "data")
        self.kills = 0
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep)

    def __enter__(self) -> "Keeper":
        self._start()
        # Without retention, fully acknowledged ledgers would be trimmed once closed.
        keep = json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
        admin(self.box.web_url, "POST", "namespaces/public/default/retention", keep)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.box.kill()

    def _start(self) -> None:
        self.box.start()
        new = self._folder / "box.pid.new"
        new.write_text(str(self.box.pid))
        new.replace(self._folder / "box.pid")

    def _keep(self) -> None:
        while not self._over.wait(0.02):
            assert self.box.process is not None
            if self.box.process.poll() is not None:
                self.kills += 1
                self.box.kill()
                self._start()


class Driver:
    """One life of the driver, in its own process group."""

    def __init__(self, folder: Path, plan: dict[str, Any], number: int, environ: dict[str, str]) -> None:
        path = folder / f"plan-{number}.json"
        path.write_text(json.dumps(plan))
        self.log = folder / f"driver-{number}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", plan["module"], str(path)],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self, seconds: float = DRIVER_SECONDS) -> int:
        """Return the exit code. Raises FaultsError if the driver does not end in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FaultsError(f"a driver does not end within {seconds:g} s:\n{self.said()}") from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the driver and all its child processes by their process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        """Return the end of the driver's output."""
        return self.log.read_text(errors="replace")[-3000:]


class Case:
    """A folder, a broker, and a sequence of drivers."""

    def __init__(self, name: str, root: Path, keeper: Keeper, rows: int, epochs: int) -> None:
        self.name, self.keeper, self.rows = name, keeper, rows
        self.folder = root / name
        (self.folder / "faults").mkdir(parents=True)
        (self.folder / "in").mkdir()
        (self.folder / "box.pid").symlink_to(root / "box.pid")
        for epoch in range(epochs):
            lines = (str(row) for row in range(epoch * rows // epochs, (epoch + 1) * rows // epochs))
            (self.folder / "in" / f"{epoch:04}.txt").write_text("\n".join(lines) + "\n")
        self.drivers = 0
        self.points: list[str] = []
        self.master = "local[2,4]"
        self.conf: dict[str, str] = {}
        self.more: dict[str, Any] = {"module": "tests.spark_faults.job"}
        """Additional entries of the drivers' plan."""
        self.strikes = 0
        """Deaths that are planned elsewhere."""
        self._begin = time.monotonic()

    def plan(self, epoch: int, point: str) -> None:
        """Plan a strike at this point of the epoch."""
        (self.folder / "faults" / str(epoch)).write_text(point)

    def driver(self, partitions: int, master: str = "", conf: dict[str, str] | None = None) -> Driver:
        """Start a driver."""
        (self.folder / "jvm.pid").unlink(missing_ok=True)
        box = self.keeper.box
        plan = {
            "folder": str(self.folder),
            "partitions": partitions,
            "master": master or self.master,
            "conf": conf or self.conf,
            "topic": f"persistent://public/default/{self.name}",
            "url": box.url,
            "web_url": box.web_url,
        } | self.more
        self.drivers += 1
        return Driver(self.folder, plan, self.drivers, environment(self.folder))

    def until_written(self, partitions: Iterator[int]) -> None:
        """Start drivers until one has written everything. Raises FaultsError."""
        said = ""
        for _ in range(len(list((self.folder / "faults").iterdir())) + 3 + self.strikes):
            driver = self.driver(next(partitions))
            code = driver.wait()
            self.note_struck()
            if code == 0:
                return
            said = driver.said()
            say(f"{self.name}: driver {self.drivers} has ended ({code}); starting another one")
        raise FaultsError(f"the stream does not come to its end:\n{said}")

    def note_struck(self) -> None:
        """Record which points were struck, in the order of epochs."""
        for each in sorted((self.folder / "faults").glob("*.struck"), key=lambda path: int(path.stem)):
            text = f"{each.read_text()} (epoch {each.stem})"
            if text not in self.points:
                self.points.append(text)
                say(f"{self.name}: struck {text}")

    def end(self) -> Outcome:
        """Count the rows in the topics and return the outcome."""
        return self.ended(counted(self.keeper.box.url, f"persistent://public/default/{self.name}", self.rows))

    def ended(self, count: Count) -> Outcome:
        """Return the outcome of the case."""
        return Outcome(self.name, self.rows, self.points, self.drivers, time.monotonic() - self._begin, count)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of all Spark processes."""
    return os.environ | {
        FOLDER: str(folder),
        "PYSPARK_PYTHON": interpreter(folder),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_SUBMIT_OPTS": JVM,
    }


def counted(url: str, topic: str, rows: int) -> Count:
    """Count both topics with the official client."""
    found: collections.Counter[str] = collections.Counter()
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        for name in (f"{topic}-a", f"{topic}-b"):
            reader = client.create_reader(name, pulsar.MessageId.earliest)
            while reader.has_message_available():
                value = reader.read_next(timeout_millis=10_000).data().decode()
                belongs = name.endswith("-b") == (value.isdigit() and int(value) % 5 == 0)
                found[value if belongs else f"{value} in {name}"] += 1
            reader.close()
    finally:
        client.close()
    wanted = {str(row) for row in range(rows)}
    return Count(
        sorted(int(row) for row in wanted - found.keys()),
        sorted(int(row) for row, times in found.items() if row in wanted and times > 1),
        sorted(found.keys() - wanted),
    )


def points(root: Path, keeper: Keeper, chosen: tuple[str, ...]) -> Outcome:
    """Strike each point in a separate epoch; each death of the driver changes the number of partitions."""
    case = Case("points", root, keeper, ROWS, len(chosen) + 2)
    for epoch, point in enumerate(chosen, 1):
        case.plan(epoch, point)
    case.until_written(iter([3, 2, 4, 1, 5, 3, 2, 4, 1, 5, 3, 2, 4, 1, 5, 3, 2, 4]))
    left = [each.read_text() for each in (case.folder / "faults").iterdir() if each.suffix != ".struck"]
    if left:
        raise FaultsError(f"points that were never come by: {', '.join(left)}")
    return case.end()


def zombie(root: Path, keeper: Keeper) -> Outcome:
    """Stop a driver before its commit, have another one replace it and write everything, then resume the first."""
    case = Case("zombie", root, keeper, ROWS, 6)
    case.plan(2, "wait commit-before")
    first = case.driver(3)
    try:
        deadline = time.monotonic() + DRIVER_SECONDS
        while not (case.folder / "waiting").exists():
            if first.process.poll() is not None or time.monotonic() > deadline:
                raise FaultsError(f"the first driver does not come to its commit:\n{first.said()}")
            time.sleep(0.05)
        case.note_struck()
        second = case.driver(2)
        if second.wait() != 0:
            raise FaultsError(f"the second driver fails:\n{second.said()}")
        (case.folder / "go").touch()
        code = first.wait()
    finally:
        first.kill()
    if code == 0 or "has begun since" not in first.log.read_text(errors="replace"):
        raise FaultsError(f"the first driver was not refused ({code}):\n{first.said()}")
    case.points.append("the first driver goes on: refused")
    return case.end()


@contextlib.contextmanager
def cluster(folder: Path, environ: dict[str, str] | None = None) -> Iterator[str]:
    """Run a standalone master with two workers and yield its URL."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, web = free_ports(2)
    master = f"spark://127.0.0.1:{port}"
    spark_class, deploy = str(home / "bin" / "spark-class"), "org.apache.spark.deploy"
    environ = (environ or environment(folder)) | {
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    commands = [["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]]
    for number in (1, 2):  # on separate hosts: Spark does not run a speculative attempt on the host of the slow one
        here = ["--work-dir", str(folder / f"work-{number}"), "--webui-port", "0", "--host", f"127.0.0.{number}"]
        commands.append(["worker.Worker", *here, "--cores", "1", "--memory", "700m", master])
    processes = []
    try:
        for command in commands:
            with (folder / f"{command[0]}.log").open("ab") as log:
                processes.append(
                    subprocess.Popen(
                        [spark_class, f"{deploy}.{command[0]}", *command[1:]],
                        env=environ | {"SPARK_LOCAL_IP": command[command.index("--host") + 1]},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        _wait_for_master(processes[0], port)
        yield master
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for_master(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + DRIVER_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), DRIVER_SECONDS).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise FaultsError("the master does not start") from None
            time.sleep(0.1)
        else:
            return


def of_executors(folder: Path) -> dict[str, str]:
    """Return Spark settings under which the executors of a cluster can be struck."""
    return {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": JVM,
        f"spark.executorEnv.{FOLDER}": str(folder),
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }


def speculation(root: Path, keeper: Keeper) -> Outcome:
    """On a standalone master, hang attempts with all or half of their rows staged; other attempts overtake them."""
    case = Case("speculation", root, keeper, ROWS, 5)
    case.plan(1, "slow task-after")
    case.plan(2, "worker task-during")
    case.plan(3, "slow task-during")
    conf = of_executors(case.folder) | {
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
    }
    with cluster(case.folder) as master:
        driver = case.driver(4, master, conf)
        if driver.wait() != 0:
            raise FaultsError(f"the driver fails:\n{driver.said()}")
    case.note_struck()
    if len(case.points) != 3:
        raise FaultsError(f"not all points were come by: {case.points}")
    return case.end()


def archive(root: Path, keeper: Keeper) -> Outcome:
    """On a standalone master without pulsarbox, have the driver ship it and register the format."""
    case = Case("archive", root, keeper, ROWS, 1)
    packed, python = case.folder / "pulsarbox.zip", bare_python(case.folder / "bare")
    with zipfile.ZipFile(packed, "w") as into:
        for folder, _, files in os.walk(ROOT / "pulsarbox", followlinks=True):
            for each in files:
                if not each.endswith(".pyc"):
                    into.write(Path(folder, each), Path(folder, each).relative_to(ROOT))
    box, plan = keeper.box, case.folder / "plan.json"
    environ = environment(case.folder) | {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    del environ["PYTHONPATH"]
    script = Path(__file__).with_name("archived.py")
    with cluster(case.folder, environ) as master:
        told = {
            "master": master,
            "conf": {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": JVM},
            "archive": str(packed),
            "rows": ROWS,
            "topic": f"persistent://public/default/{case.name}",
            "url": box.url,
            "web_url": box.web_url,
        }
        plan.write_text(json.dumps(told))
        words = [str(python), str(script), str(plan)]
        found = subprocess.run(
            words, cwd=case.folder, env=environ, capture_output=True, text=True, timeout=DRIVER_SECONDS, check=False
        )
    if found.returncode or f"read {ROWS}\n" not in found.stdout:
        raise FaultsError(f"the driver fails ({found.returncode}):\n{found.stdout[-500:]}{found.stderr[-3000:]}")
    case.drivers = 1
    case.points.append("nothing: nobody has pulsarbox installed")
    return case.end()


def bare_python(folder: Path) -> Path:
    """Return an interpreter with all installed packages except pulsarbox. Raises FaultsError if it has pulsarbox."""
    venv.create(folder, with_pip=False, symlinks=True)
    (theirs,) = folder.glob("lib/*/site-packages")
    (theirs / "theirs.pth").write_text(f"{Path(pulsar.__file__).parents[1]}\n")
    found = folder / "bin" / "python"
    code = "import pyspark, importlib.util as u, sys; sys.exit(u.find_spec('pulsarbox') is not None)"
    if subprocess.run([str(found), "-c", code], cwd=folder, check=False).returncode:
        raise FaultsError("an environment without pulsarbox has it")
    return found


def soak(root: Path, keeper: Keeper, kills: int, dice: random.Random) -> Outcome:
    """Kill the driver or broker at random moments, ``kills`` times; then run the stream to completion."""
    case = Case("soak", root, keeper, ROWS, 40)
    for number in range(kills):
        driver = case.driver(dice.randint(1, 5))
        try:
            whom = dice.choice(("jvm", "jvm", "box"))
            _wait_for(case.folder / "jvm.pid", driver)
            time.sleep(dice.uniform(0.5, 9.0))
            if driver.process.poll() is not None:
                break
            say(f"soak: {number + 1}/{kills} kills, {whom}")
            case.points.append(whom)
            os.kill(int((case.folder / f"{whom}.pid").read_text()), signal.SIGKILL)
            if whom == "box":
                time.sleep(dice.uniform(0.0, 6.0))
        finally:
            driver.kill()
    counts = collections.Counter(case.points)
    case.until_written(iter([3, 2, 4]))
    case.points = [f"{whom} killed {times} times" for whom, times in counts.items()]
    return case.end()


def _wait_for(path: Path, driver: Driver) -> None:
    deadline = time.monotonic() + DRIVER_SECONDS
    while not path.exists():
        if driver.process.poll() is not None or time.monotonic() > deadline:
            raise FaultsError(f"a driver does not start:\n{driver.said()}")
        time.sleep(0.05)


def campaign(root: Path, only: str, short: bool, kills: int, seed: int) -> list[Outcome]:
    """Run the cases in order, or only the case ``only``, empty for all."""
    found = []
    with Keeper(root) as keeper:
        for name, case in cases(root, keeper, short, kills, seed).items():
            if only and name != only:
                continue
            found.append(case())
            say(f"{found[-1].name}: {'good' if found[-1].is_good else 'ROWS ARE MISSING OR DOUBLED'}")
        say(f"the box was killed {keeper.kills} times")
    return found


def cases(root: Path, keeper: Keeper, short: bool, kills: int, seed: int) -> dict[str, Callable[[], Outcome]]:
    """Return all cases by name."""
    from tests.spark_faults import moving, pipelines

    if short:
        return {"points": partial(points, root, keeper, SHORT)}
    return {
        "points": partial(points, root, keeper, POINTS),
        "zombie": partial(zombie, root, keeper),
        "speculation": partial(speculation, root, keeper),
        "archive": partial(archive, root, keeper),
        "rollup": partial(pipelines.rollup, root, keeper),
        "backfill": partial(moving.backfill, root, keeper),
        "export": partial(moving.export, root, keeper),
        "offload": partial(moving.offload, root, keeper),
        "rollup-cluster": partial(pipelines.rollup_cluster, root, keeper),
        "soak": partial(soak, root, keeper, kills, random.Random(seed)),
    }


NAMES: Final = (
    *("points", "zombie", "speculation", "archive"),
    *("rollup", "backfill", "export", "offload", "rollup-cluster", "soak"),
)


def show(outcomes: list[Outcome]) -> None:
    """Print the summary."""
    table = Table(title="spark-faults")
    for name in ("case", "rows", "struck", "drivers", "seconds", "doubled", "missing"):
        table.add_column(name)
    for each in outcomes:
        count = each.count
        cells = (str(each.drivers), f"{each.seconds:.0f}", str(len(count.doubled)), str(len(count.missing)))
        table.add_row(each.name, f"{each.rows:,}", "\n".join(each.points), *cells)
    Console(width=120).print(table)
    for each in outcomes:
        for what, which in (("doubled", each.count.doubled), ("missing", each.count.missing)):
            if which:
                print(f"VIOLATION {each.name}: {len(which)} rows {what}, the first {which[:10]}")
        if each.count.strange:
            print(f"VIOLATION {each.name}: what nobody wrote there: {each.count.strange[:10]}")


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="some points, one restart: what CI runs")
    parser.add_argument("--kills", type=int, default=10, help="of the soak")
    parser.add_argument("--seed", type=int, default=None, help="of the soak; default: another one each time")
    parser.add_argument("--only", choices=NAMES, default="", help="one case")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1_000_000)
    root = Path(tempfile.mkdtemp(prefix="pulsarbox-spark-faults-"))
    say(f"seed {seed}, files in {root}")
    outcomes = campaign(root, arguments.only, arguments.short, arguments.kills, seed)
    show(outcomes)
    if not all(each.is_good for each in outcomes):
        say(f"rows are missing or doubled; the files are in {root}")
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
