"""Campaign that kills a broker repeatedly under load, restarts it in place, and checks its clients' history.

``make crash N=25`` starts its own broker; ``--start-cmd`` is the command of another broker, with the placeholders
``{data}``, ``{port}`` and ``{web_port}``. Progress on stderr, the summary on stdout; exits with 1 if a rule was broken.
The seed is printed: the same seed kills at the same moments.

With ``--dedup``, the broker deduplicates, and publishers number their messages. They disconnect midway, reconnect under
their names, and continue after the last sequence ID that the broker returns. Each message must be in the log once.

With ``--compact``, the kills occur while the broker compacts a topic: see ``tests.crash.compaction``.
"""

import argparse
import json
import random
import select
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from tests.crash import compaction
from tests.crash.history import Checker, Verdict
from tests.tools.box import PULSARBOX, BoxProcess
from tests.tools.go import GoError, build

TOPIC: Final = "persistent://public/default/crash-"
# (topic; publishers, each named for its kind of messages; subscriptions: name, shared, consumers)
Layout = tuple[tuple[str, tuple[str, ...], tuple[tuple[str, bool, int], ...]], ...]
LAYOUT: Final[Layout] = (
    ("a", ("a-batched",), (("a-exclusive", False, 1), ("a-shared", True, 2))),
    ("b", ("b-single",), (("b-exclusive", False, 1), ("b-shared", True, 2))),
    ("c", ("c-batched", "c-single"), (("c-exclusive", False, 1), ("c-shared", True, 3))),
)
DEDUP_LAYOUT: Final[Layout] = (
    ("d", ("d-single",), (("d-exclusive", False, 1),)),
    ("e", ("e-batched",), (("e-exclusive", False, 1),)),
    ("f", ("f-chunked", "g-chunked"), (("f-exclusive", False, 1),)),
    ("h", ("h-single", "h-batched", "h-chunked"), (("h-exclusive", False, 1),)),
)
# Small enough that a chunked publisher's messages have up to five chunks.
DEDUP_ENVIRONMENT: Final = ("env", "PULSARBOX_brokerDeduplicationEnabled=true", "PULSARBOX_maxMessageSize=4096")
RATE: Final = 150  # messages per second of each publisher
DELAYED: Final = 5  # one message in this many is delayed
LIFE_SECONDS: Final = (0.3, 1.5)
# Share of kills during the start of the broker, and seconds within which they occur.
EARLY_SHARE: Final = 0.15
EARLY_SECONDS: Final = 0.3
ANSWER_SECONDS: Final = 250.0


@dataclass
class Run:
    """Results of a run."""

    seed: int
    kills: int = 0
    start_seconds: list[float] = field(default_factory=list)
    outage_seconds: list[float] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)


class WorkerError(Exception):
    """The worker ended or does not answer."""


class Clients:
    """The worker process: publishers and consumers."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        self._log = log

    def await_answer(self, answer: str, seconds: float = ANSWER_SECONDS) -> None:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], seconds)
        got = self._process.stdout.readline().decode().strip() if readable else "nothing"
        if got != answer:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise WorkerError(f"the worker answers {got!r}, not {answer!r}, after {seconds:g} s at most\n{tail}")

    def order(self, word: str, answer: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()
        self.await_answer(answer)

    def finish(self) -> None:
        """Wait for the worker to end, or kill it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def queue(rate: int) -> int:
    """Return the receiver queue size of each consumer.

    The Go client returns the permits of messages that it skips in a partly acknowledged batch. It may therefore receive
    more messages than its queue holds. Then its reader waits for the queue, and the ack responses wait for the reader.
    At high rates, a short queue blocks it forever.
    """
    return 100 if rate <= 500 else 1000


def window(rate: int) -> int:
    """Return the maximum number of messages in a client: queued, being processed, or in a batch being unpacked."""
    return 2 * queue(rate) + 100


def plan(box: BoxProcess, rate: int, layout: Layout, delayed: int) -> dict[str, Any]:
    publishers = [
        {"topic": TOPIC + topic, "producer": name, "batched": "batched" in name, "chunked": "chunked" in name}
        for topic, names, _ in layout
        for name in names
    ]
    subscriptions = [
        {"topic": TOPIC + topic, "subscription": name, "shared": shared, "consumers": consumers}
        for topic, _, names in layout
        for name, shared, consumers in names
    ]
    audits = [{"topic": TOPIC + topic, "subscription": "audit"} for topic, _, _ in layout]
    return {
        "url": box.url,
        "web_url": box.web_url,
        "rate": rate,
        "queue": queue(rate),
        "resume": layout is DEDUP_LAYOUT,
        "delayed": delayed,
        "publishers": publishers,
        "subscriptions": subscriptions,
        "audits": audits,
    }


def worker_command(kind: str, folder: Path) -> list[str]:
    """Return the command of the Go worker if it can be built, else of the Python one; ``kind`` requires one of them."""
    files = ["-plan", str(folder / "plan.json"), "-history", str(folder / "history.jsonl")]
    if kind != "python":
        try:
            return [str(build(Path(__file__).parent / "go")), *files]
        except GoError as error:
            if kind == "go" or "not installed" not in str(error):
                raise
            say(f"{error}: the Python client it is, which has no receipts of acknowledgements")
    return [sys.executable, "-m", "tests.crash.worker", *files]


def say(text: str) -> None:
    print(f"crash: {text}", file=sys.stderr, flush=True)


def note(notes: list[dict[str, Any]], kind: str, **facts: Any) -> None:
    notes.append({"at": time.time_ns(), "kind": kind, **facts})


def kill_and_start(box: BoxProcess, notes: list[dict[str, Any]], run: Run) -> None:
    box.kill()
    note(notes, "killed")
    run.kills += 1
    run.start_seconds.append(box.start())
    note(notes, "ready", seconds=run.start_seconds[-1])


def torment(box: BoxProcess, kills: int, dice: random.Random, run: Run) -> list[dict[str, Any]]:
    """Kill the broker ``kills`` times at random moments."""
    notes: list[dict[str, Any]] = []
    while run.kills < kills:
        time.sleep(dice.uniform(*LIFE_SECONDS))
        if dice.random() < EARLY_SHARE and run.kills + 1 < kills:
            box.kill()
            note(notes, "killed")
            run.kills += 1
            box.spawn()
            time.sleep(dice.uniform(0, EARLY_SECONDS))
        kill_and_start(box, notes, run)
        say(f"{run.kills}/{kills} kills; started again in {run.start_seconds[-1]:.2f} s")
    return notes


def outages(events: Iterable[dict[str, Any]]) -> Iterator[float]:
    """Yield the seconds from each kill to the next receipt, as seen by the publishers."""
    killed = 0
    for event in events:
        if event["kind"] == "killed":
            killed = killed or event["at"]
        elif event["kind"] == "receipted" and killed:
            yield (event["at"] - killed) / 1e9
            killed = 0


def _compressing(folder: Path) -> Path:
    """Write the configuration of every second seed: small volumes, which are compressed when packed."""
    path = folder / "compressing.toml"
    sizes = "journalVolumeSizeMbytes = 1\njournalCheckpointMbytes = 1\njournalMaxBatchMbytes = 1\n"
    how = 'compressionAtRest = "zstd"\ncompressionAtRestCpuPercent = 100\n'
    path.write_text(f"[network]\nmaxMessageSize = 200000\n[journal]\n{sizes}{how}")
    return path


def crash(
    folder: Path,
    kills: int,
    seed: int,
    start_cmd: Sequence[str] | str = PULSARBOX,
    worker: str = "auto",
    rate: int = RATE,
    dedup: bool = False,
    delayed: int = DELAYED,
) -> Run:
    """Run the campaign once, with its files in ``folder``."""
    layout = DEDUP_LAYOUT if dedup else LAYOUT
    if start_cmd == PULSARBOX and not seed % 2:
        start_cmd = (*PULSARBOX, "--config", str(_compressing(folder)))
    box, run = BoxProcess(folder / "data", deduplicating(start_cmd) if dedup else start_cmd), Run(seed)
    (folder / "plan.json").write_text(json.dumps(plan(box, rate, layout, delayed)))
    command = worker_command(worker, folder)
    clients = None
    try:
        box.start()
        clients = Clients(command, folder / "worker.log")
        clients.await_answer("running")
        notes = torment(box, kills, random.Random(seed), run)
        say("draining")
        clients.order("drain", "drained")
        kill_and_start(box, notes, run)
        say("auditing")
        clients.order("audit", "audited")
    finally:
        if clients is not None:
            clients.finish()
        box.kill()
    with (folder / "history.jsonl").open() as lines:
        events = sorted([*map(json.loads, lines), *notes], key=lambda event: event["at"])
    run.outage_seconds = list(outages(events))
    run.verdict = judge(events, window(rate), layout)
    return run


def deduplicating(start_cmd: Sequence[str] | str) -> list[str]:
    return [*DEDUP_ENVIRONMENT, *words(start_cmd)]


def words(start_cmd: Sequence[str] | str) -> list[str]:
    """Split a command into arguments."""
    return shlex.split(start_cmd) if isinstance(start_cmd, str) else list(start_cmd)


def judge(events: Iterable[dict[str, Any]], window: int, layout: Layout) -> Verdict:
    topics = {name: TOPIC + topic for topic, _, names in layout for name, _, _ in names}
    # After a reconnect, C++ consumers skip a message whose first chunks they received before. It is redelivered after
    # others to the next consumer. The log is checked for order everywhere.
    whole = [names for _, publishers, names in layout if not any("chunked" in each for each in publishers)]
    ordered = [name for names in whole for name, shared, _ in names if not shared]
    once = [TOPIC + topic for topic, _, _ in layout] if layout is DEDUP_LAYOUT else []
    return Checker(ordered, topics, window, once).check(events)


def show(run: Run) -> None:
    table = Table(title=f"crash, seed {run.seed}", show_header=False)
    counts = run.verdict.counts
    rows: dict[str, int | str] = {
        "kills (SIGKILL)": run.kills,
        "messages sent": counts["sent"],
        "of them delayed": counts["delayed"],
        "receipts": counts["receipted"],
        "receipts of duplicates": counts["receipts of duplicates"],
        "producers opened": counts["resumed"],
        "sends that failed": counts["failed"],
        "messages in the logs": counts["log"],
        "published twice by the client (resent)": counts["published twice by the client"],
        "deliveries": counts["received"],
        "delivered again": counts["delivered again"],
        "ack receipts": counts["acked"],
        "acks that failed": counts["ack-failed"],
        "acknowledged while in a queue": counts["acknowledged while in a queue"],
        "consumers opened": counts["opened"],
        "start to serving, p50 / max": spread(run.start_seconds),
        "kill to next receipt, p50 / max": spread(run.outage_seconds),
        "violations": sum(number for name, number in counts.items() if name.startswith("violations")),
    }
    for name, value in rows.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else value)
    Console().print(table)
    for text in run.verdict.violations:
        print(f"VIOLATION {text}")


def spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} / {max(seconds):.2f} s" if seconds else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--start-cmd", default=PULSARBOX, help="command that starts a broker in the foreground")
    parser.add_argument("--worker", choices=["auto", "go", "python"], default="auto")
    parser.add_argument("--rate", type=int, default=RATE, help="messages a second of each publisher")
    parser.add_argument("--dedup", action="store_true", help="deduplicate, and count that each message is stored once")
    parser.add_argument("--compact", action="store_true", help="kill the box while it compacts, and read the view")
    parser.add_argument("--delayed", type=int, default=DELAYED, help="one message in so many is delayed; 0: none")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="pulsarbox-crash-"))
    say(f"seed {seed}, files in {folder}")
    if arguments.compact:
        compacted = compaction.crash(folder, arguments.kills, seed, words(arguments.start_cmd), say)
        compaction.show(compacted)
        return leave(folder, compacted.violations)
    how = arguments.rate, arguments.dedup, arguments.delayed
    run = crash(folder, arguments.kills, seed, arguments.start_cmd, arguments.worker, *how)
    show(run)
    return leave(folder, run.verdict.violations)


def leave(folder: Path, violations: Sequence[str]) -> int:
    """Return the exit code; keep the files if there are violations."""
    if violations:
        say(f"rules were broken; the files are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
