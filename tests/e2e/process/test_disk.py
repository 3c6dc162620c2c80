"""Disk use of a box: reclaiming space, a full disk, and damage that is never served."""

import contextlib
import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pulsar
import pytest

from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from tests.e2e.clients import EARLIEST, connect, receive, send_all, take, until
from tests.e2e.commands import run
from tests.e2e.raw import RawProducer
from tests.tools.box import PULSARBOX, BoxProcess, admin

SMALL: Final = """
maxMessageSize = 1048576
journalVolumeSizeMbytes = 2
journalMaxBatchMbytes = 1
journalCheckpointMbytes = 1
journalReserveMbytes = {reserve}
managedLedgerMaxEntriesPerLedger = 200
"""
PATIENCE: Final = 60.0
BODY: Final = b"x" * 2000


def small_box(folder: Path, data: Path, reserve: int = 0) -> BoxProcess:
    """Start a box with small volumes, ledgers and checkpoints."""
    config = folder / "small.conf"
    config.write_text(SMALL.format(reserve=reserve).replace(" = ", "="))
    return BoxProcess(data, (*PULSARBOX, "--config", str(config)), log=folder / "box.log")


def disk_used(folder: Path) -> int:
    """Return the disk space of a folder's files in bytes."""
    total = 0
    for parent, _, names in os.walk(folder):  # unlike rglob, it passes over a folder that the box removes meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(parent, name).lstat().st_blocks * 512
    return total


def eventually(holds: Callable[[], bool]) -> bool:
    """Return whether the condition holds before the timeout."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def drain(consumer: pulsar.Consumer, count: int) -> None:
    """Receive and acknowledge the given number of messages."""
    for _ in range(count):
        consumer.acknowledge(receive(consumer))


def fill(producer: pulsar.Producer, is_full: Callable[[], bool], body: bytes = BODY) -> int:
    """Publish until messages are rejected for longer than the producer's timeout; return the number accepted."""
    sent = 0
    for _ in range(40_000):
        try:
            producer.send(body)
            sent += 1
        except pulsar.Timeout:  # a busy machine may cause the same delay
            if is_full():
                return sent
    raise AssertionError("the disk does not get full")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[BoxProcess]:
    if "E2E_URL" in os.environ:
        pytest.skip("starts boxes of its own")
    own = small_box(tmp_path, tmp_path / "data")
    try:
        yield own
    finally:
        own.kill()


def test_disk_is_given_back_and_a_slow_topic_keeps_only_its_own(box: BoxProcess) -> None:
    box.start()
    client = connect(box.url)
    slow = client.subscribe("slow", "s", initial_position=EARLIEST)
    slow_producer = client.create_producer("slow")
    fast = client.subscribe("fast", "s", initial_position=EARLIEST)
    fast_producer = client.create_producer("fast", batching_enabled=False)
    for number in range(10):
        send_all(slow_producer, [b"%d" % number])
        send_all(fast_producer, [BODY] * 700)
    assert eventually(lambda: disk_used(box.data) > 14_000_000)
    drain(fast, 7000)
    assert eventually(lambda: disk_used(box.data) < 4_000_000), f"still {disk_used(box.data)} bytes"
    assert [receive(slow).data() for _ in range(10)] == [b"%d" % number for number in range(10)]
    client.close()
    box.kill()
    box.start()
    client = connect(box.url)
    again = client.subscribe("slow", "s")
    assert [receive(again).data() for _ in range(10)] == [b"%d" % number for number in range(10)]
    client.close()
    run("storage", "check", str(box.data))


def test_deleting_a_topic_gives_its_disk_back(box: BoxProcess) -> None:
    box.start()
    client = connect(box.url)
    client.subscribe("gone", "s", initial_position=EARLIEST).close()
    producer = client.create_producer("gone", batching_enabled=False)
    for _ in range(10):
        send_all(producer, [BODY] * 500)
    producer.close()
    client.close()
    assert eventually(lambda: disk_used(box.data) > 10_000_000)
    admin(box.web_url, "DELETE", "persistent/public/default/gone?force=true")
    assert eventually(lambda: disk_used(box.data) < 3_000_000)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a separate file system of 40 MiB."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=40m", "none", str(mounted)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes rights that are not there")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "-l", str(mounted)], check=True)


def test_a_full_disk_refuses_messages_takes_acknowledgements_and_heals(tmp_path: Path, full_disk: Path) -> None:
    box = small_box(tmp_path, full_disk / "data", reserve=8)
    try:
        box.start()
        client = connect(box.url)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST, receiver_queue_size=100)
        producer = client.create_producer("t", batching_enabled=False, send_timeout_millis=2000)
        sent = fill(producer, lambda: "disk is full" in box.said(), BODY * 5)
        assert sent > 1000
        drain(consumer, sent)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                producer.send(b"again")
                break
            except pulsar.PulsarException:
                assert time.monotonic() < deadline, box.said()
        client.close()
        box.kill()
        box.start()
        client = connect(box.url)
        again = client.subscribe("t", "s")
        while receive(again).data() != b"again":  # messages that timed out in the client may have been stored
            pass
        client.close()
    finally:
        box.kill()


@contextlib.contextmanager
def failing_disk(box: BoxProcess) -> Iterator[None]:
    """Make writes to the files of a running box fail."""
    before = resource.prlimit(box.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(box.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(box.pid, resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fails_stores_nothing_loses_nothing_and_heals(own_box: BoxProcess) -> None:
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe("t", "s", initial_position=EARLIEST)
    producer = client.create_producer("t", batching_enabled=False, send_timeout_millis=300)
    for number in range(3):
        producer.send(b"%d" % number)
    consumer.acknowledge(receive(consumer))
    stats = "persistent/public/default/t/stats"
    until(lambda: json.loads(admin(own_box.web_url, "GET", stats))["subscriptions"]["s"]["msgBacklog"] == 2)
    with RawProducer(own_box.url, "persistent://public/default/t", "raw") as raw, failing_disk(own_box):
        raw.post(0, b"refused")
        refused, _ = raw.take("send_error")
        assert refused.error == ServerError.PersistenceError
        assert refused.message.startswith("The message could not be stored: ")
        raw.take("close_producer")
        with pytest.raises(pulsar.Timeout):  # the official client retries until its timeout
            producer.send(b"timed out")
    client.create_producer("t").send(b"again")
    client.create_producer("other").send(b"x")
    client.close()
    own_box.kill()
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe("t", "s")
    assert take(consumer, 3) == [b"1", b"2", b"again"]
    client.close()


def test_a_flipped_bit_is_reported_and_never_served(box: BoxProcess) -> None:
    box.start()
    client = connect(box.url)
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    producer = client.create_producer("t", batching_enabled=False)
    bodies = [b"message number %d of a few" % number for number in range(20)]
    send_all(producer, bodies)
    client.close()
    box.kill()
    volume = box.data / "volumes" / "00000001" / "data.mdb"
    data = bytearray(volume.read_bytes())
    at = -1
    while (at := data.find(bodies[7], at + 1)) >= 0:  # LMDB copies pages: several places
        data[at + 3] ^= 1
    volume.write_bytes(bytes(data))
    assert b"persistent://public/default/t" in run("storage", "check", str(box.data), code=1).stdout
    box.start()
    client = connect(box.url)
    consumer = client.subscribe("t", "s")
    received = [receive(consumer) for _ in range(19)]
    assert [message.data() for message in received] == bodies[:7] + bodies[8:]
    for message in received:
        consumer.acknowledge(message)
    with pytest.raises(pulsar.Timeout):
        consumer.receive(500)
    assert eventually(lambda: "is quarantined" in box.said())
    client.close()
