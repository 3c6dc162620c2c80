"""Ledgers offloaded into an Iceberg table: each message is in one row, wherever an offload is killed."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from pulsar.schema import AvroSchema, Integer, Record, String

from pulsarbox import PulsarBox
from pulsarbox.names import OFFLOADED_PROPERTY
from pulsarbox.spark.lakehouse.catalogs import opened
from pulsarbox.spark.lakehouse.sink_options import TableOptions, parse_options
from pulsarbox.spark.offload.offloading import OffloadRequest
from pulsarbox.spark.offload.table_offload import TableOffload, release_table
from pulsarbox.spark.offload.table_state import RANGES, WRITER, state_of
from tests.e2e.clients import connect
from tests.e2e.offloaded import box_options

if TYPE_CHECKING:
    from pyiceberg.table import Table

TOPIC = "persistent://public/default/t"
NAME = "shop.t"
SETTINGS: dict[str, Any] = {
    "managedLedgerMaxEntriesPerLedger": 10,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
}


class Killed(BaseException):
    """Simulated kill: no cleanup runs."""


class KilledAt:
    """Step of an offload that raises at the nth time of a name."""

    def __init__(self, name: str, times: int) -> None:
        self._name, self._left = name, times

    def __call__(self, name: str) -> None:
        self._left -= name == self._name
        if not self._left:
            raise Killed


POINTS: Final = (
    ("held", 1), ("table ledger", 1), ("table written", 1), ("table committed", 1), ("held", 2), ("table written", 2),
    ("table ledger", 2),
)  # fmt: skip


class Order(Record):  # type: ignore[misc]
    id = Integer()
    name = String()


def publish(box: PulsarBox, numbers: range, topic: str = TOPIC) -> None:
    client = connect(box.service_url)
    producer = client.create_producer(topic, batching_enabled=False)
    for number in numbers:
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    client.close()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(data_dir=tmp_path / "data", process=True, **SETTINGS) as box:
        yield box


def options_in(folder: Path) -> TableOptions:
    return parse_options({"table": str(folder / "lake" / NAME)})


def offload(box: PulsarBox, folder: Path, step: Any = lambda _: None, **more: Any) -> str:
    """Run one round, with a snapshot for each ledger unless ``file_bytes`` is given; return its problem."""
    known: dict[str, Any] = {"directory": folder, "box": box_options(box), "topics": (TOPIC,)}
    known |= {"file_bytes": 1, "grace_ms": 0}
    asked = OffloadRequest(**(known | more))
    (done,) = TableOffload(asked, options_in(folder), lambda _: None, step=step).round()
    return done.problem


def rows(table: "Table", column: str = "value") -> list[Any]:
    """Return a column of the current snapshot's files, read with pyarrow, in log order."""
    found = []
    for path in table.inspect.files()["file_path"].to_pylist():
        read = pq.read_table(urlsplit(path).path, partitioning=None).to_pylist()
        found += [(row["__ledgerId"], row["__entryId"], row[column]) for row in read]
    return [value for _, _, value in sorted(found)]


def numbers(table: "Table") -> list[int]:
    return [int(value) for value in rows(table)]


def test_each_message_is_in_one_row_wherever_an_offload_is_killed(box: PulsarBox, tmp_path: Path) -> None:
    published = 0
    for point in POINTS:
        publish(box, range(published, published + 20))
        published += 20
        with pytest.raises(Killed):
            offload(box, tmp_path, KilledAt(*point))
    publish(box, range(published, published + 15))
    assert offload(box, tmp_path, file_bytes=1 << 20) == ""
    with opened(options_in(tmp_path)) as catalog:
        table = catalog.load_table(NAME)
        progress = state_of(table, TOPIC).progress[TOPIC]
        assert numbers(table) == list(range(progress.next.seen)) and published <= progress.next.seen < published + 15
        told = [json.loads(each.summary[RANGES] or "")[TOPIC] for each in table.snapshots() if each.summary]
        assert [first for first, _ in told[1:]] == [end for _, end in told[:-1]], "ranges follow each other"
        first = table.snapshots()[0].snapshot_id
        early = sorted(int(value) for value in table.scan(snapshot_id=first).to_arrow()["value"].to_pylist())
        assert early == list(range(len(early))) and 0 < len(early) < published
        files = {urlsplit(path).path for path in table.inspect.files()["file_path"].to_pylist()}
    assert {str(path) for path in (tmp_path / "lake").rglob("*.parquet")} == files, "no files of killed offloads"
    held = [name for name in subscriptions(box) if name.startswith("pulsarbox-offload-")]
    assert len(held) == 1
    stats = box.admin("GET", "/admin/v2/persistent/public/default/t/stats")["subscriptions"][held[0]]
    offloaded = f"{progress.begin.place.ledger}-{progress.next.place.ledger}"
    assert stats["subscriptionProperties"] == {OFFLOADED_PROPERTY: offloaded}
    assert release_table(options_in(tmp_path), box_options(box), lambda _: True) == [TOPIC]
    assert subscriptions(box) == []


def subscriptions(box: PulsarBox) -> list[str]:
    found: list[str] = box.admin("GET", "/admin/v2/persistent/public/default/t/subscriptions")
    return found


def test_partitions_and_new_fields_go_into_one_table(box: PulsarBox, tmp_path: Path) -> None:
    box.admin("PUT", "/admin/v2/persistent/public/default/t/partitions", 2)
    publish(box, range(12), f"{TOPIC}-partition-0")
    assert offload(box, tmp_path) == ""
    client = connect(box.service_url)
    producer = client.create_producer(f"{TOPIC}-partition-1", schema=AvroSchema(Order), batching_enabled=False)
    for number in range(12):
        producer.send(Order(id=number, name=f"n{number}"))
    client.close()
    assert offload(box, tmp_path) == ""
    with opened(options_in(tmp_path)) as catalog:
        table = catalog.load_table(NAME)
        assert sorted(each for each in rows(table, "__partition")) == [0] * 10 + [1] * 10
        found = table.scan(row_filter="id >= 8").to_arrow().to_pylist()
        assert sorted((row["id"], row["name"], row["value"]) for row in found) == [(8, "n8", None), (9, "n9", None)]
        assert sorted(state_of(table, TOPIC).progress) == [f"{TOPIC}-partition-0", f"{TOPIC}-partition-1"]


def test_of_two_offloads_one_adds_a_ledger(box: PulsarBox, tmp_path: Path) -> None:
    publish(box, range(11))

    def step(name: str) -> None:
        if name == "table written":
            assert offload(box, tmp_path) == "", "the other one"

    assert "is being written by another offload: stop one of them" in offload(box, tmp_path, step)
    with opened(options_in(tmp_path)) as catalog:
        table = catalog.load_table(NAME)
        assert numbers(table) == list(range(10))
        for each in table.snapshots():
            assert each.summary is not None and each.summary["spark.sql.streaming.queryId"] == WRITER + TOPIC
    (tmp_path / "other").mkdir()
    with PulsarBox(data_dir=tmp_path / "other" / "data", process=True, **SETTINGS) as other:
        publish(other, range(11))
        assert "from another box" in offload(other, tmp_path)


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_kill_9_neither_loses_nor_repeats_a_message(box: PulsarBox, tmp_path: Path) -> None:
    import duckdb

    dice = random.Random(3)
    kills = 0
    lake = f"iceberg:{tmp_path / 'lake' / NAME}"
    words = [sys.executable, "-m", "pulsarbox", "pipeline", "offload", TOPIC, "--to", lake, "--file-size", "20K"]
    words += ["--url", box.service_url, "--admin-url", box.admin_url]
    for turn in range(25):
        publish(box, range(40 * turn, 40 * turn + 40))
        with subprocess.Popen(words, env=os.environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            for _ in range(dice.randrange(0, 3)):
                process.stderr.readline()
            try:
                process.wait(dice.random() * 6)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
    publish(box, range(1000, 1010))
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with opened(options_in(tmp_path)) as catalog:
        table = catalog.load_table(NAME)
        paths = [urlsplit(path).path for path in table.inspect.files()["file_path"].to_pylist()]
        end = state_of(table, TOPIC).progress[TOPIC].next.seen
        assert numbers(table) == list(range(end)) and end >= 1000
    with duckdb.connect(":memory:") as database:
        count = "SELECT count(*), count(DISTINCT CAST(value AS VARCHAR)) FROM read_parquet(?)"
        assert database.execute(count, [paths]).fetchall() == [(end, end)]
    assert sorted(map(str, (tmp_path / "lake").rglob("*.parquet"))) == sorted(paths)
    assert kills > 10
