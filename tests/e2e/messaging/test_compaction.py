"""Compaction with the official Python client: readers, consumers and table views of a compacted topic."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

import pulsar
import pytest

from pulsarbox.storage.inspection.check import check
from tests.e2e.clients import CODECS, EARLIEST, PATIENCE_MS, admin_path, connect, until
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess, admin

TABLE_VIEW = """
import json, os, sys, pulsar
client = pulsar.Client(sys.argv[1], logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/null"))
found = {}
client.create_table_view(sys.argv[2]).for_each(lambda key, value: found.update({key: value.decode()}))
print(json.dumps(found), flush=True)
os._exit(0)
"""
"""Prints a table view as JSON, and leaves the client open: closing one may crash (apache/pulsar-client-cpp#550)."""

Known = list[tuple[str, bytes]]


def status_of(box: Any, topic: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(box.admin("GET", f"{admin_path(topic)}/compaction"))
    return found


def compact(box: Any, topic: str) -> None:
    """Compact a topic, and wait until compaction succeeds."""
    box.admin("PUT", f"{admin_path(topic)}/compaction")
    until(lambda: status_of(box, topic)["status"] != "RUNNING")
    assert status_of(box, topic) == {"status": "SUCCESS", "lastError": ""}


def read_all(client: Any, topic: str, start: Any = pulsar.MessageId.earliest, *, compacted: bool = True) -> list[Any]:
    """Return all messages of a reader."""
    reader = client.create_reader(topic, start, is_read_compacted=compacted)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(timeout_millis=PATIENCE_MS))
    reader.close()
    return found


def shown(messages: list[Any]) -> Known:
    return [(message.partition_key(), message.data()) for message in messages]


def publish(producer: Any, pairs: Known) -> None:
    """Publish all messages at once, so that a batching producer sends a batch."""
    for key, value in pairs:
        producer.send_async(value, None, partition_key=key)
    producer.flush()


@pytest.mark.parametrize("batching", [False, True], ids=["single", "batched"])
def test_readers_and_consumers_of_the_compacted_view(box: Running, client: Any, topic: str, batching: bool) -> None:
    producer = client.create_producer(topic, batching_enabled=batching, batching_max_publish_delay_ms=50)
    client.subscribe(topic, "before").close()
    publish(producer, [(f"k{i % 4}", b"old %d" % i) for i in range(40)])
    publish(producer, [("gone", b"x"), ("gone", b""), ("k1", b"last")])
    compact(box, topic)
    publish(producer, [("k2", b"behind"), ("k9", b"new")])
    expected = [("k0", b"old 36"), ("k2", b"old 38"), ("k3", b"old 39"), ("k1", b"last")]
    found = read_all(client, topic)
    assert shown(found) == [*expected, ("k2", b"behind"), ("k9", b"new")]
    assert len(read_all(client, topic, compacted=False)) == 45
    # A reader begins after its start message.
    assert shown(read_all(client, topic, found[1].message_id())) == shown(found[2:])
    consumer = client.subscribe(topic, "compacted", is_read_compacted=True, initial_position=EARLIEST)
    for message in found:
        came = None
        while came is None or not came.data():  # this client returns removed messages of a batch as empty ones
            came = consumer.receive(timeout_millis=PATIENCE_MS)
            consumer.acknowledge(came)
        assert came.message_id() == message.message_id()

    def backlog() -> int:
        stats = json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))
        return int(stats["subscriptions"]["compacted"]["msgBacklog"])

    until(lambda: backlog() == 0)


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_every_codec_are_written_anew(box: Running, client: Any, topic: str, codec: str) -> None:
    producer = client.create_producer(
        topic, compression_type=CODECS[codec], batching_enabled=True, batching_max_publish_delay_ms=50
    )
    filling = b"x" * 300
    publish(producer, [(f"k{i % 7}", b"%d " % i + filling) for i in range(50)])
    publish(producer, [("k3", b"3 " + filling), ("k4", b"")])
    compact(box, topic)
    expected = [("k1", 43), ("k2", 44), ("k5", 47), ("k6", 48), ("k0", 49), ("k3", 3)]
    assert shown(read_all(client, topic)) == [(key, b"%d " % number + filling) for key, number in expected]
    compact(box, topic)
    publish(producer, [("k5", b"new")])
    compact(box, topic)
    assert [key for key, _ in shown(read_all(client, topic))] == ["k1", "k2", "k6", "k0", "k3", "k5"]


def test_a_table_view_of_a_compacted_topic(box: Running, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    publish(producer, [(f"k{i % 5}", b"%d" % i) for i in range(50)])
    compact(box, topic)
    publish(producer, [("k0", b"new"), ("k1", b"")])
    command = [sys.executable, "-c", TABLE_VIEW, box.url, topic]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    assert {key: value for key, value in found.items() if value} == {"k0": "new", "k2": "47", "k3": "48", "k4": "49"}


def test_what_stands_in_statistics_and_metrics(box: Running, client: Any, topic: str) -> None:
    path = admin_path(topic)
    producer = client.create_producer(topic)
    assert status_of(box, topic) == {"status": "NOT_RUN", "lastError": ""}
    publish(producer, [(f"k{i % 5}", b"%d" % i) for i in range(50)])
    before = time.time() * 1000 - 1
    compact(box, topic)
    stats = json.loads(box.admin("GET", f"{path}/stats"))
    assert stats["compaction"]["lastCompactionRemovedEventCount"] == 45
    assert stats["compaction"]["lastCompactionSucceedTimestamp"] >= before
    assert stats["subscriptions"]["__compaction"]["msgBacklog"] == 0
    ledger = json.loads(box.admin("GET", f"{path}/internalStats"))["compactedLedger"]
    assert ledger["ledgerId"] > 0 and 0 < ledger["entries"] <= 5 and ledger["size"] > 0
    with urlopen(f"{box.web_url}/metrics/", timeout=30) as response:
        lines = [line for line in response.read().decode().splitlines() if f'topic="{topic}"' in line]
    values = {line.partition("{")[0]: line.rpartition(" ")[2] for line in lines}
    assert values["pulsar_compaction_removed_event_count"] == "45"
    assert values["pulsar_compaction_succeed_count"] == "1"
    assert values["pulsar_compaction_compacted_entries_count"] == str(ledger["entries"])


def _running(own_box: BoxProcess) -> Running:
    return Running(own_box.url, own_box.web_url)


def test_the_view_survives_kill_9_and_the_log_that_it_was_made_of(own_box: BoxProcess) -> None:
    own_box.start()
    topic = "persistent://public/default/kept"
    client = connect(own_box.url)
    producer = client.create_producer(topic)
    publish(producer, [(f"k{i % 5}", b"%d" % i) for i in range(50)])
    compact(_running(own_box), topic)
    publish(producer, [("k0", b"new")])
    compact(_running(own_box), topic)
    client.close()
    own_box.kill()
    assert not [one for one in check(own_box.data).findings if one.ledger >= 0]
    own_box.start()
    client = connect(own_box.url)
    expected = [("k1", b"46"), ("k2", b"47"), ("k3", b"48"), ("k4", b"49"), ("k0", b"new")]
    assert shown(read_all(client, topic)) == expected
    admin(own_box.web_url, "DELETE", f"{admin_path(topic)}/truncate")
    assert read_all(client, topic, compacted=False) == []
    assert shown(read_all(client, topic)) == expected
    assert status_of(_running(own_box), topic)["status"] == "SUCCESS"
    client.close()


def test_the_command(run: Callable[..., Any], client: Any, topic: str) -> None:
    publish(client.create_producer(topic), [(f"k{i % 5}", b"%d" % i) for i in range(50)])
    done = run("topic", "compact", topic, "--wait")
    assert done.returncode == 0, done.stderr
    assert "compacted" in done.stderr
    found = json.loads(run("topic", "compact", topic, "--status", "-o", "json").stdout)
    assert found[0]["status"] == "compacted"
    assert run("topic", "compact", topic, "--cancel").returncode == 4
