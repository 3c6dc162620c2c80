"""Storage benchmark of a whole box: startup with a long log, and memory with a large backlog."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pulsar

from benchmarks.bench import measure
from benchmarks.storage_table import Line, Options, folder, say
from pulsarbox.storage.format import ENTRY_HEADER, LOG_KEY
from pulsarbox.storage.inspection.box import Box as Inspected
from tests.tools.box import PULSARBOX, BoxProcess

TOPIC: Final = "persistent://public/default/bench-storage"
TAILS_MIB: Final = (0, 16, 64, 128)
TAIL_SIZES: Final = (1024, 100)
METADATA_BYTES: Final = 40
"""Approximate size of a client's metadata in an entry."""
PENDING: Final = 30
"""Messages in flight, and so about the entries per batch of the log."""
CHECKPOINT_MIB: Final = 4096
"""Large enough to prevent checkpoints while a log is filled."""
CHUNK: Final = 1 << 20
FILL_SECONDS: Final = 1800.0


class NotFilled(Exception):
    """The driver failed."""


def client_of(box: BoxProcess) -> Any:
    return pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


@contextmanager
def box_in(path: Path, *words: str) -> Iterator[BoxProcess]:
    """Provide a box that is not started yet."""
    box = BoxProcess(path / "data", (*PULSARBOX, *words))
    try:
        yield box
    finally:
        box.kill()


def publish(options: Options, box: BoxProcess, **job: Any) -> None:
    """Have the driver publish to the topic. Raises NotFilled."""
    whole = {"url": box.url, "topic": TOPIC, "row": "publish", "limit_seconds": FILL_SECONDS, **job}
    if measure(options.command, whole) is None:
        raise NotFilled


def tail_bytes(data: Path) -> int:
    """Return the bytes of the log after the checkpoint of a stopped box."""
    inspected, size = Inspected(data), 0
    with inspected.open("meta", growing=False) as meta:
        mark = meta.number(b"mark", b"position")
    for name in inspected.volumes():
        with inspected.open(name, growing=False) as volume:
            for chunk in volume.chunks(b"log", LOG_KEY.pack(mark + 1)):
                size += sum(len(value) for _, value in chunk)
    return size


def start_again(box: BoxProcess) -> tuple[float, float]:
    """Start a box; return the seconds until its port serves, and until a message is acknowledged."""
    begin = time.monotonic()
    serving = box.start()
    client = client_of(box)
    client.create_producer(TOPIC).send(b"first")
    seconds = time.monotonic() - begin
    client.close()
    return serving, seconds


def restart(options: Options) -> Iterator[Line]:
    """Fill the log after the checkpoint, kill the box, and restart it."""
    for size in TAIL_SIZES:
        for mib in TAILS_MIB:
            say(f"restart: {mib * options.scale:g} MiB of {size} byte entries behind the checkpoint")
            with folder(options) as path:
                config = path / "box.toml"
                config.write_text(f"[journal]\njournalCheckpointMbytes = {CHECKPOINT_MIB}\n")
                with box_in(path, "--config", str(config)) as box:
                    box.start()
                    client = client_of(box)
                    client.create_producer(TOPIC).send(b"there")
                    client.close()
                    box.stop()  # with a checkpoint
                    count = int(mib * 2**20 * options.scale) // (ENTRY_HEADER.size + METADATA_BYTES + size)
                    if count:
                        box.start()
                        publish(options, box, messages=count, size=size, pending=PENDING)
                        box.kill()
                    tail = tail_bytes(box.data)
                    serving, first = start_again(box)
            title = f"restart, {mib * options.scale:g} MiB of log, {size} byte entries"
            yield Line(title, "log behind the checkpoint", tail / 2**20, "MiB")
            yield Line(title, "port serves", serving, "s")
            yield Line(title, "first acknowledged message", first, "s")


def memory_of(pid: int) -> dict[str, float]:
    """Return the resident and proportional memory of a process in MiB, as the system reports it."""
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE))
    names = {"RSS": "Rss", "PSS": "Pss", "PSS, anonymous": "Pss_Anon", "PSS, of files": "Pss_File"}
    return {name: int(found[key]) / 1024 for name, key in names.items()}


def disk_bytes(path: Path) -> int:
    return sum(each.stat().st_blocks * 512 for each in path.rglob("*"))


def backlog(options: Options) -> Iterator[Line]:
    """Measure the memory and disk use of a backlog without consumers."""
    left = messages = max(1000, int(options.backlog_gib * options.scale * 2**20))
    title = f"backlog of {messages / 2**20:,.3g} GiB, 1 KiB messages in batches"
    with folder(options) as path, box_in(path) as box:
        box.start()
        client = client_of(box)
        client.subscribe(TOPIC, "idle", initial_position=pulsar.InitialPosition.Earliest).close()
        client.close()
        for name, value in memory_of(box.pid).items():
            yield Line("the same box while it is empty", name, value, "MiB")
        while left:
            publish(options, box, messages=min(left, CHUNK), size=1024, pending=1000, batched=True)
            left -= min(left, CHUNK)
            say(f"backlog: {messages - left:,} of {messages:,} messages")
        for name, value in memory_of(box.pid).items():
            yield Line(title, f"{name}, at once", value, "MiB")
        time.sleep(options.rest_seconds)
        for name, value in memory_of(box.pid).items():
            yield Line(title, f"{name}, after {options.rest_seconds:g} s", value, "MiB")
        yield Line(title, "disk", disk_bytes(box.data) / 2**20, "MiB")
