"""Script of the demo, and its result.

    make demo                  # about a minute; exits with 1 if the numbers do not agree
    make demo ARGS=--no-spark  # about 20 seconds: without the pipeline, as when Java is missing

Diagnostics on stderr, the result on stdout.
"""

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pulsar
from rich.console import Console
from rich.table import Table

from examples.demo.archive import CODEC, Archive, compress, wait_until_packed
from examples.demo.books import Account, Books, same
from examples.demo.box import PATIENCE_SECONDS, Box
from examples.demo.consumer import Consumer
from examples.demo.group import Group
from examples.demo.publisher import Publisher
from examples.demo.readings import is_poison
from examples.demo.shares import Share, shares
from examples.demo.spark import QUERIES, Outcome, Runner, missing, outcome
from examples.demo.telemetry import TELEMETRY as TOPIC

DEAD_LETTERS: Final = "persistent://public/default/telemetry-dead-letters"
ARCHIVE: Final = "persistent://public/default/telemetry-archive"
PARTITIONS: Final = 3
MAX_REDELIVERIES: Final = 3
TAKES: Final = 0.3
"""Seconds that a worker takes to process a reading."""

talk: Final = Console(stderr=True, highlight=False)


@dataclass
class Cast:
    """All participants of the demo."""

    box: Box
    publisher: Publisher
    ledger: Consumer
    dead: Consumer
    workers: Group
    keys: Group
    archive: Archive
    times: dict[str, float] = field(default_factory=dict)
    shares: list[Share] = field(default_factory=list)
    """Shares of the first two workers, until one of them is killed."""
    archived: set[int] = field(default_factory=set)
    """Numbers of the readings found in the archive."""
    packed: dict[str, Any] | None = None
    """Compression statistics of the archive, if any."""
    plugins: list[dict[str, Any]] = field(default_factory=list)
    """The box's plugin statistics since its second start."""
    runner: Runner | None = None
    """Runner of the pipeline, if Spark is available."""
    outcome: Outcome | None = None
    """Results of the pipeline."""


def play(seconds: float, folder: Path, *, spark: bool) -> Cast:
    """Run the demo; ``spark``: with the pipeline."""
    box = Box(folder / "data")
    start = box.start()
    talk.print(f"the box listens on {box.url}, started in {start:.2f} s")
    with contextlib.ExitStack() as stack:
        stack.callback(box.end, signal.SIGTERM)
        client = pulsar.Client(box.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(folder / "client.log")))
        stack.callback(client.close)
        box.make_partitions(TOPIC, PARTITIONS)
        workers = Group(box.url, TOPIC, "workers", "Shared", folder / "workers.log", picky=True)
        stack.callback(workers.end)
        keys = Group(box.url, TOPIC, "keys", "KeyShared", folder / "keys.log")
        stack.callback(keys.end)
        archive = Archive(client, ARCHIVE)
        ledger, dead = Consumer(client, TOPIC, "ledger", archive), Consumer(client, DEAD_LETTERS, "undertaker")
        cast = Cast(box, Publisher(client, TOPIC, seconds), ledger, dead, workers, keys, archive, {"start": start})
        if spark:
            cast.runner = Runner(box, folder)
            stack.callback(cast.runner.end, signal.SIGKILL)
            cast.runner.start()
            talk.print("a Spark pipeline will check the readings and aggregate them by device")
        employ(cast)
        box.dead_letters(TOPIC, "workers", MAX_REDELIVERIES, DEAD_LETTERS)
        for each in (ledger, dead, cast.publisher):
            each.start()
        disturb(cast, seconds)
        cast.publisher.join()
        finish(cast)
        if cast.runner is not None:
            cast.outcome = conclude(cast, cast.runner, client)
        return cast


def employ(cast: Cast) -> None:
    """Start both groups and wait until they are ready. One of the workers fails now and then."""
    cast.workers.hire("worker 1", weight=3, takes=TAKES)
    cast.workers.hire("worker 2, unreliable", fails=5, takes=TAKES)
    cast.keys.hire("keys 1")
    cast.keys.hire("keys 2")
    for group in (cast.workers, cast.keys):
        for worker in group.workers:
            if not worker.ready.wait(PATIENCE_SECONDS):
                raise SystemExit(f"{worker.name} is not ready after {PATIENCE_SECONDS:g} s:\n{group.log.read_text()}")
    runner = cast.runner
    if runner is not None and not runner.wait_until(lambda: runner.shown == set(QUERIES)):
        raise SystemExit("the pipeline is not running")
    talk.print(f"{PARTITIONS} partitions; two workers share the readings, two more share the devices")


def disturb(cast: Cast, seconds: float) -> None:
    """Kill a worker of each group, and the box in between."""
    begin = time.monotonic()

    def wait_until(part: float) -> None:
        time.sleep(max(0.0, begin + part * seconds - time.monotonic()))

    wait_until(0.35)
    cast.shares = shares(cast.box, [f"{TOPIC}-partition-{each}" for each in range(PARTITIONS)], "workers")
    unreliable = cast.workers.workers[1]
    talk.print(f"{unreliable.name}: {unreliable.done} done, {unreliable.failed} failed; kill -9, worker 3 takes over")
    unreliable.kill()
    cast.workers.hire("worker 3", weight=2, takes=TAKES)
    wait_until(0.5)
    talk.print(
        f"{cast.publisher.receipts} readings acknowledged to the publisher so far; kill -9 of the box while it is "
        "publishing"
    )
    cast.box.end(signal.SIGKILL)
    cast.times["restart"] = cast.box.start()
    talk.print(f"restarted on the same data in {cast.times['restart']:.2f} s; the clients reconnect on their own")
    wait_until(0.75)
    talk.print(f"keys 1: {cast.keys.workers[0].done} done; kill -9, keys 3 takes over beside keys 2")
    cast.keys.workers[0].kill()
    cast.keys.hire("keys 3")


def finish(cast: Cast) -> None:
    """Wait until all groups have everything, or until the timeout."""
    wanted = cast.publisher.books.numbers
    talk.print(f"{len(wanted)} readings published; waiting for the consumers to receive all of them")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        handled = cast.workers.has() | cast.dead.books.numbers
        if wanted <= cast.ledger.books.numbers and wanted <= handled and wanted <= cast.keys.has():
            break
        time.sleep(0.05)
    cast.ledger.end()
    cast.dead.end()
    cast.archive.close()
    talk.print(f"{cast.archive.pages} pages are in the archive; the box now compresses it")
    compress(cast.box, ARCHIVE)
    cast.packed = wait_until_packed(cast.box, ARCHIVE)
    cast.archived = cast.archive.read()
    cast.plugins = cast.box.ask("GET", "/pulsarbox/v1/plugins")


def conclude(cast: Cast, runner: Runner, client: Any) -> Outcome:
    """Kill the pipeline, restart it without its bug, replay its dead letters, and wait for completion."""
    published = cast.publisher.books
    runner.wait_until(lambda: runner.dead_letters() > 0)
    talk.print(f"the pipeline has {runner.dead_letters()} dead letters so far; kill -9, then a restart without the bug")
    runner.end(signal.SIGKILL)
    runner.start(mended=True)
    talk.print("the box groups the dead letters by cause and replays them")
    runner.replay()
    for reason in sorted({each["reason"] for each in runner.groups}):
        talk.print(f"why: {reason}")
    talk.print(f"{runner.put_back} replayed; waiting for the pipeline to process them")
    runner.wait_until(lambda: outcome(client).is_whole(published))
    runner.end(signal.SIGTERM)
    return outcome(client)


def worked(cast: Cast) -> Books:
    """Return the books of the workers and the dead letters: together, each reading once."""
    books = cast.workers.books()
    for reading in cast.dead.readings:
        books.add(reading)
    return books


def verdicts(cast: Cast) -> dict[str, bool]:
    """Return the conditions that must hold, in words, and whether they do."""
    published = cast.publisher.books
    poison = {number for number in published.numbers if is_poison(number)}
    keys = cast.keys.books()
    return spark_verdicts(cast) | {
        "every reading was acknowledged to the publisher": cast.publisher.receipts == published.count
        and not cast.publisher.failed,
        "the ledger has every reading": cast.ledger.books.agrees_with(published),
        "the ledger has each device's readings in order": cast.ledger.books.out_of_order == 0,
        "workers and dead letters together have every reading": worked(cast).agrees_with(published),
        "poison readings are on the dead letter topic": poison <= cast.dead.books.numbers,
        "and no worker has processed them": not poison & cast.workers.has(),
        "the keyed workers have every reading": keys.agrees_with(published),
        "the keyed workers have each device's readings in order": keys.out_of_order == 0,
        "all devices of a kind are in one partition": all(len(each) == 1 for each in cast.ledger.topics.values()),
        "the workers received readings according to their weights": bool(cast.shares)
        and all(s.is_near for s in cast.shares),
        "the archive has every reading": cast.archived == published.numbers,
        "every plugin was called and none has failed": is_well(cast),
    }


def spark_verdicts(cast: Cast) -> dict[str, bool]:
    """Return the conditions of the pipeline, if there is one."""
    runner, found, published = cast.runner, cast.outcome, cast.publisher.books
    if runner is None or found is None:
        return {}
    reasons = {each["reason"] for each in runner.groups}
    return {
        "the pipeline has checked every reading": found.checked.agrees_with(published),
        "and handled each message exactly once": found.is_exact(),
        "its rollup has the same counts and sums per device": found.adds_up(),
        "all of its dead letters were replayed": 0 < runner.put_back == found.unchecked.total(),
        "they were poison readings, all with the same cause": len(reasons) == 1
        and all(map(is_poison, found.unchecked)),
        "the dashboard has shown both of its queries": runner.shown == set(QUERIES),
    }


def is_well(cast: Cast) -> bool:
    """Return whether each plugin was called and none failed. The box may have had nothing to compress."""
    calls = {each["name"]: each["calls"] for each in cast.plugins if not each["errors"]}
    wanted = {"hash-tag", "weighted"} | ({CODEC} if cast.packed is not None else set())
    return wanted <= calls.keys() and all(calls[name] for name in wanted) and len(calls) == len(cast.plugins)


def show(cast: Cast, held: dict[str, bool]) -> None:
    """Print the result."""
    sides = {"ledger": cast.ledger.books, "workers": worked(cast), "keys": cast.keys.books()}
    published = cast.publisher.books
    table = Table(title="telemetry by device: published readings, and those received by each group")
    for name in ("device", "published", *sides, "sum published", "checksum", ""):
        table.add_column(name, justify="left" if name == "device" else "right", no_wrap=True)
    for device, sent in sorted(published.devices.items()):
        came = [books.devices.get(device, Account()) for books in sides.values()]
        verdict = "[green]agree[/]" if all(same(sent, each) for each in came) else "[red]DIFFER[/]"
        counts = [f"{each.count:,}" for each in (sent, *came)]
        table.add_row(device, *counts, f"{sent.total:,.0f}", f"{sent.checksum:08x}", verdict)
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(table)
    for group in (cast.workers, cast.keys):
        for worker in group.workers:
            console.print(f"{worker.name:<22} {worker.done:>7,} done {worker.failed:>5,} failed")
    show_plugins(cast, console)
    if cast.outcome is not None and cast.runner is not None:
        rolled = f"{cast.outcome.rows:,} rollup rows"
        put_back = f"{cast.runner.put_back:,} dead letters replayed"
        console.print(f"pipeline   {cast.outcome.checked.count:,} readings checked, {rolled}, {put_back}")
    again = {name: books.again for name, books in sides.items()}
    console.print(
        f"dead letters {cast.dead.books.count}; redelivered and counted once: {again}; start {cast.times['start']:.2f} "
        f"s, restart {cast.times['restart']:.2f} s"
    )
    for what, holds in held.items():
        console.print(f"{'[green]yes[/]' if holds else '[red]NO [/]'}  {what}")


def show_plugins(cast: Cast, console: Console) -> None:
    """Print the box's plugin statistics."""
    for share in cast.shares:
        console.print(f"weighted   {share}")
    for kind, topics in sorted(cast.ledger.topics.items()):
        partitions = ", ".join(sorted(each.rpartition("-")[2] for each in topics))
        console.print(f"hash-tag   {kind}: partition {partitions}")
    found = cast.packed
    if found is None:
        console.print("xz         nothing is compressed yet: no full volume has enough of the archive")
    else:
        sizes = f"{found['bytes'] >> 10:,} KiB stored in {found['stored'] >> 10:,} KiB"
        pages = f"{found['entries']} of the archive's {cast.archive.pages} pages are compressed"
        console.print(f"xz         {pages}: {sizes}, {found['ratio']:.1f} times smaller")
    for each in cast.plugins:
        half = each["p50Nanos"] / 1000  # one call in 256 is timed
        cost = f", half of them within {half:,.1f} us" if half else ""
        console.print(f"{each['name']:<10} {each['calls']:,} calls since the restart{cost}, {each['errors']} errors")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=14.0, help="how many seconds to publish")
    parser.add_argument("--no-spark", action="store_true", help="run without the Spark pipeline")
    arguments = parser.parse_args()
    reason = "--no-spark" if arguments.no_spark else missing()
    if reason:
        talk.print(f"without the Spark pipeline: {reason}")
    with tempfile.TemporaryDirectory(prefix="pulsarbox-demo-") as folder:
        cast = play(arguments.seconds, Path(folder), spark=not reason)
    held = verdicts(cast)
    show(cast, held)
    if not all(held.values()):
        print("the groups DIFFER")
        return 1
    print("all groups agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
