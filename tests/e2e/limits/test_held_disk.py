"""The disk space of consumed messages is reclaimed in spite of one delayed message."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import EARLIEST, connect, is_quiet, numbered, read_to_end, send_all, take, until
from tests.e2e.commands import run
from tests.e2e.process.test_disk import disk_used

SHARED = pulsar.ConsumerType.Shared
TOPIC = "/admin/v2/persistent/public/default/t"
MIB = 1 << 20
BODY = b"x" * 16_384
COUNT = 10 * MIB // len(BODY)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(
        data_dir=tmp_path / "data",
        process=True,
        clock="virtual",
        managedLedgerMaxSizePerLedgerMbytes=1,
        journalVolumeSizeMbytes=2,
        journalMaxBatchMbytes=1,
        journalCheckpointMbytes=1,
        journalReserveMbytes=0,
        maxMessageSize=1_000_000,
    ) as made:
        yield made


def of(box: PulsarBox, path: str) -> Any:
    return box.admin("GET", f"{TOPIC}/{path}")


def backlog(box: PulsarBox, subscription: str = "s") -> int:
    found: int = of(box, "stats")["subscriptions"][subscription]["msgBacklog"]
    return found


def checked(data: Path) -> None:
    """Raise AssertionError if the data directory of a box is damaged."""
    check = run("storage", "check", str(data))
    assert b"no damage" in check.stdout, check.stdout


def test_a_message_delayed_by_ten_days_does_not_hold_the_disk_of_what_is_consumed_behind_it(box: PulsarBox) -> None:
    data = box.data_dir
    assert data is not None
    client = connect(box.service_url)
    consumer = client.subscribe("t", "s", SHARED, initial_position=EARLIEST)
    producer = client.create_producer("t", batching_enabled=False)
    producer.send(b"later", deliver_after=timedelta(days=10))
    send_all(producer, [BODY] * COUNT)
    full = disk_used(data)
    assert full > 10 * MIB
    assert take(consumer, COUNT) == [BODY] * COUNT
    until(lambda: backlog(box) == 1)
    assert of(box, "stats")["storageSize"] < 2.5 * MIB, "its own ledger, and the one that grows"
    until(lambda: disk_used(data) < full - 6 * MIB)
    producer.close()
    client.close()

    box.kill()
    box.start()
    box.stop()
    checked(data)
    box.start()
    client = connect(box.service_url)
    consumer = client.subscribe("t", "s", SHARED)
    assert is_quiet(consumer)
    assert backlog(box) == 1
    found = of(box, "internalStats")
    assert found["numberOfEntries"] == len(read_to_end(client.create_reader("t", pulsar.MessageId.earliest)))
    analyzed = box.admin("POST", f"{TOPIC}/subscription/s/analyzeBacklog")
    assert (analyzed["entries"], analyzed["messages"]) == (1, 1)
    send_all(client.create_producer("t"), numbered(3))
    assert take(consumer, 3) == numbered(3)
    box.clock.advance(days=10)
    assert take(consumer, 1) == [b"later"]
    assert is_quiet(consumer)
    until(lambda: backlog(box) == 0)
    consumer.close()
    client.close()
    box.clock.advance(minutes=11)
    assert of(box, "stats")["storageSize"] == 0
