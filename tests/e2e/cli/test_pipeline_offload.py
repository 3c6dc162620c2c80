"""``pulsarbox pipeline offload`` as a process: killed, stopped, verified, released."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pulsarbox import PulsarBox
from pulsarbox.spark.offload.layout import folder_of
from pulsarbox.spark.offload.manifest import OffloadManifest
from tests import forks
from tests.e2e.clients import connect, until
from tests.e2e.commands import called, command, environment, run
from tests.e2e.histories import truth
from tests.e2e.offloaded import all_rows, files

TOPIC = "persistent://public/default/t"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    with PulsarBox(data_dir=tmp_path / "data", process=True, managedLedgerMaxEntriesPerLedger=10, **keep) as box:
        yield box


def publish(box: PulsarBox, first: int, end: int) -> None:
    client = connect(box.service_url)
    producer = client.create_producer(TOPIC, batching_enabled=False)
    for number in range(first, end):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    client.close()


def words(box: PulsarBox, directory: Path, *more: str) -> list[str]:
    urls = ("--url", box.service_url, "--admin-url", box.admin_url)
    return ["pipeline", "offload", *more, "--to", str(directory), *urls]


def test_it_is_killed_and_goes_on_and_is_verified(box: PulsarBox, tmp_path: Path) -> None:
    directory = tmp_path / "history"
    publish(box, 0, 200)
    single = ("--file-size", "0")
    nothing = subprocess.DEVNULL
    asked = command(*words(box, directory, "t", *single))
    process = forks.box(asked, stdin=nothing, stdout=nothing, stderr=nothing, env=environment())
    until(lambda: len(ledgers(directory)) >= 3 or process.poll() is not None)
    process.kill()
    process.wait()
    before = ledgers(directory)
    done = json.loads(run(*words(box, directory, "t", "-o", "json", *single)).stdout)
    assert done[0]["ledgers"] == 19 - len(before) and done[0]["problem"] == ""
    assert len(files(directory, TOPIC)) == 19 and not list(directory.rglob("*.tmp"))
    assert all_rows(box, directory, TOPIC) == truth(box, "t")
    _is_as_promised(Path(str(files(directory, TOPIC)[0])))
    found = json.loads(called(*words(box, directory, "--verify", "--compare", "-o", "json")).stdout)
    assert (found[0]["ledgers"], found[0]["rows"], found[0]["compared"], found[0]["problems"]) == (19, 190, 19, [])
    size = 4 * max(path.stat().st_size for path in directory.rglob("*.parquet"))
    merged = called(*words(box, directory, "t", "--file-size", str(size))).stderr
    assert "merged 4 files into one with 40 rows" in merged
    assert len(files(directory, TOPIC)) < 8 and all_rows(box, directory, TOPIC) == truth(box, "t")
    _bend(Path(str(files(directory, TOPIC)[0])))
    files(directory, TOPIC)[2].unlink()
    bent = called(*words(box, directory, "--verify"), code=1)
    assert "its bytes do not match its checksum" in bent.stderr and "is missing" in bent.stderr


def ledgers(directory: Path) -> list[Any]:
    histories = OffloadManifest(folder_of(directory, TOPIC)).histories
    return histories[TOPIC].ledgers if histories else []


def _is_as_promised(path: Path) -> None:
    with pq.ParquetFile(path) as file:
        group = file.metadata.row_group(0)
        columns = {group.column(at).path_in_schema: group.column(at) for at in range(file.metadata.num_columns)}
    assert {each.compression for each in columns.values()} == {"ZSTD"}
    assert columns["value"].statistics is None and columns["__entryId"].statistics.max == 9
    assert columns["__publishTime"].has_column_index and columns["value"].has_offset_index
    assert [each.column_index for each in group.sorting_columns]


def _bend(path: Path) -> None:
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2] ^= 1
    path.write_bytes(stored)


def test_it_follows_until_it_is_stopped_and_lets_go(box: PulsarBox, tmp_path: Path) -> None:
    directory = tmp_path / "history"
    publish(box, 0, 15)
    line = words(box, directory, "--pattern", "t.*", "--follow", "--every", "100ms")
    nothing = subprocess.DEVNULL
    process = forks.box(command(*line), stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, env=environment())
    until(lambda: len(ledgers(directory)) == 1)
    publish(box, 15, 45)
    until(lambda: len(ledgers(directory)) == 4)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert process.stderr is not None
    assert b"stopped; the manifest lists all offloaded ledgers" in process.stderr.read()
    process.stderr.close()
    assert held(box)
    assert offloaded(box) == [True] * 4 + [False], "the open ledger is not"
    said = called(*words(box, directory, "--release")).stderr
    assert f"{TOPIC}: no longer held" in said and not held(box)
    assert not any(offloaded(box))


def offloaded(box: PulsarBox) -> list[bool]:
    found = box.admin("GET", "/admin/v2/persistent/public/default/t/internalStats")
    return [each["offloaded"] for each in found["ledgers"]]


def held(box: PulsarBox) -> list[str]:
    found = box.admin("GET", "/admin/v2/persistent/public/default/t/subscriptions")
    return [name for name in found if name.startswith("pulsarbox-offload-")]


def test_the_ledger_that_grows_goes_where_it_is_asked_for(box: PulsarBox, tmp_path: Path) -> None:
    directory = tmp_path / "history"
    publish(box, 0, 5)
    (none,) = json.loads(called(*words(box, directory, "t", "--roll", "1h", "-o", "json")).stdout)
    (some,) = json.loads(called(*words(box, directory, "t", "--roll", "0s", "-o", "json")).stdout)
    assert (none["ledgers"], some["ledgers"], some["rows"]) == (0, 1, 5)
    (again,) = json.loads(called(*words(box, directory, "t", "--roll", "0s", "-o", "json")).stdout)
    assert again["ledgers"] == 0, "an empty ledger is not closed"
    publish(box, 5, 7)
    assert all_rows(box, directory, TOPIC) == truth(box, "t")
    assert "--roll requires --hold" in called(*words(box, directory, "t", "--roll", "0s", "--no-hold"), code=2).stderr


def test_what_cannot_be_done_is_said(box: PulsarBox, tmp_path: Path) -> None:
    directory = tmp_path / "history"
    assert "no topic nowhere; `pulsarbox topic list`" in called(*words(box, directory, "nowhere"), code=3).stderr
    assert "specify TOPIC or --pattern" in called(*words(box, directory), code=2).stderr
    assert "nothing has been offloaded" in called(*words(box, directory, "--verify"), code=1).stderr
    (tmp_path / "file").touch()
    publish(box, 0, 1)
    said = called(*words(box, tmp_path / "file" / "history", "t"), code=1).stderr
    assert "/file" in said and "cannot use " in said and "another directory with --to" in said
