"""Ledgers offloaded to S3-compatible storage: moto, and as a campaign a real server and offloads killed by SIGKILL."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox import PulsarBox
from pulsarbox.spark.offload import object_path
from pulsarbox.spark.offload.layout import files_in, folder_of
from pulsarbox.spark.offload.manifest import OffloadManifest
from pulsarbox.spark.offload.object_path import ObjectPath, place_of
from pulsarbox.spark.offload.offloading import Offload
from pulsarbox.spark.offload.s3_access import S3Settings
from pulsarbox.spark.offload.verifying import verify
from pulsarbox.spark.source import object_files
from tests.e2e.clients import connect
from tests.e2e.offloaded import all_rows, asked, box_options, file_rows, files, offload
from tests.unit.spark.offload import s3_server

TOPIC = "persistent://public/default/t"
SETTINGS: dict[str, Any] = {
    "managedLedgerMaxEntriesPerLedger": 10,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
}


class Killed(BaseException):
    """Simulated kill: no cleanup runs."""


def kill_uploaded(step: str) -> None:
    if step == "uploaded":
        raise Killed


def publish(box: PulsarBox, numbers: range) -> None:
    client = connect(box.service_url)
    producer = client.create_producer(TOPIC, batching_enabled=False)
    for number in numbers:
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    client.close()


@pytest.fixture
def used() -> Iterator[None]:
    yield
    object_path.use(None)


def root_of(settings: S3Settings) -> ObjectPath:
    object_path.use(settings)
    found = place_of(f"s3://{s3_server.BUCKET}/history")
    assert isinstance(found, ObjectPath)
    return found


def check(box: PulsarBox, root: ObjectPath, messages: int) -> None:
    """Compare the table's parts, files and tail, with the messages, and the files with the manifest."""
    assert [int(row[0] or b"") for row in all_rows(box, root, TOPIC)] == list(range(messages))
    (found,) = verify(root, lambda _: True, box_options(box))
    assert found.problems == () and found.ledgers == found.compared > 0


def test_objects_and_tail_are_complete_wherever_an_offload_ends(tmp_path: Path, used: None) -> None:
    dice = random.Random(5)
    with s3_server.moto() as settings, PulsarBox(data_dir=tmp_path / "data", process=True, **SETTINGS) as box:
        root = root_of(settings)
        for turn in range(3):
            publish(box, range(25 * turn, 25 * turn + 25))
            left = dice.randrange(2, 14)

            def step(_: str) -> None:
                nonlocal left
                left -= 1
                if not left:
                    raise Killed

            try:
                Offload(asked(box, root, TOPIC, file_bytes=0), lambda _: None, step=step).round()
            except Killed:
                pass
            if files_in(folder_of(root, TOPIC)):
                assert [int(row[0] or b"") for row in all_rows(box, root, TOPIC)] == list(range(25 * turn + 25))
        (done,) = Offload(asked(box, root, TOPIC, file_bytes=0), lambda _: None).round()
        assert not done.problem
        check(box, root, 75)
        folder = folder_of(root, TOPIC)
        assert len(files_in(folder)) == len(files(root, TOPIC)), "files of killed offloads are deleted"
        sizes = [each.bytes for each in OffloadManifest(folder).histories[TOPIC].files]
        with pytest.raises(Killed):
            Offload(asked(box, root, TOPIC, file_bytes=3 * max(sizes)), lambda _: None, step=kill_uploaded).round()
        check(box, root, 75)
        assert len(files(root, TOPIC)) == len(sizes) == len(files_in(folder)) - 1, "a merged file without a line"
        assert offload(box, root, TOPIC, file_bytes=3 * max(sizes)) == [""]
        check(box, root, 75)
        assert len(sizes) == 7 and len(files(root, TOPIC)) == 3 and len(files_in(folder)) == 9
        assert offload(box, root, TOPIC, file_bytes=0) == [""]
        assert len(files_in(folder)) == 3, "replaced files are deleted after the grace period"
        first = files(root, TOPIC)[-1]
        assert len(file_rows(first)) == 10
        columns = pa.schema([pa.field("value", pa.large_binary()), pa.field("missing", pa.string())])
        (rows,) = object_files._batches(str(first), columns)
        assert rows.schema == columns and rows.to_pylist()[3] == {"value": b"63", "missing": None}
        first.unlink()
        (found,) = verify(root, lambda _: True)
        assert len(found.problems) == 1 and f"{first} is missing" in found.problems[0]


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_sigkill_leaves_no_wrong_table_on_a_real_server(tmp_path: Path, used: None) -> None:
    dice = random.Random(7)
    kills = 0
    with (
        s3_server.gateway(tmp_path) as settings,
        PulsarBox(data_dir=tmp_path / "data", process=True, **SETTINGS) as box,
    ):
        root = root_of(settings)
        words = [sys.executable, "-m", "pulsarbox", "pipeline", "offload", TOPIC, "--to", str(root)]
        words += ["--file-size", "60K", "--grace", "0s"]
        urls = ["--url", box.service_url, "--admin-url", box.admin_url]
        environ = os.environ | s3_server.environment(settings)
        for turn in range(25):
            publish(box, range(40 * turn, 40 * turn + 40))
            with subprocess.Popen(
                [*words, *urls], env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as process:
                assert process.stderr is not None
                for _ in range(dice.randrange(1, 4)):
                    process.stderr.readline()
                try:
                    process.wait(dice.random() * 0.2)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
            assert [int(row[0] or b"") for row in all_rows(box, root, TOPIC)] == list(range(40 * turn + 40))
        for _ in range(3):  # a run may merge what the one before merged; the next one deletes what they replace
            done = subprocess.run([*words, *urls], env=environ, check=False, capture_output=True, text=True)
            assert done.returncode == 0 and s3_server.SECRET not in done.stderr + done.stdout
        check(box, root, 1000)
        assert len(files_in(folder_of(root, TOPIC))) == len(files(root, TOPIC)) < 50, "most of 99 files are merged"
    assert kills > 10
