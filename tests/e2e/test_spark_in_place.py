"""Reading a data directory in place while its box packs, trims and restarts, and readers are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox import PulsarBox
from pulsarbox.spark import access
from pulsarbox.spark.access import extractor, mapped_reader
from pulsarbox.spark.connect.broker_api import LATEST, Service
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.topic_segments import BEGINNING, DataLost, Lost, Reach, ReadPosition, TopicSegment
from tests.e2e.clients import EARLIEST, connect, send_all, until
from tests.e2e.process.test_compression_at_rest import DEFLATE

SMALL: dict[str, Any] = {
    "journalVolumeSizeMbytes": 1,
    "journalCheckpointMbytes": 1,
    "journalMaxBatchMbytes": 1,
    "maxMessageSize": 200_000,
    "managedLedgerMaxEntriesPerLedger": 100,
}
T = "persistent://public/default/t"
PAYLOAD = frozenset({"payload", "ledger", "entry"})
HOLD = """
import sys
from pulsarbox.spark import access
from pulsarbox.spark.access import mapped_reader as mapped
store = mapped.store_of(sys.argv[1], sys.argv[2])
ledger = int(sys.argv[3])
store.read(ledger, 0, 10)
store.read(ledger, int(sys.argv[4]), int(sys.argv[4]))
held = [volume._begin() for volume in store._volumes.values()]
reading = store._meta.environment.begin()
print("reads", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(data_dir=tmp_path / "data", process=True, **SMALL) as one:
        yield one
    mapped_reader.close_all()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def reach_of(box: PulsarBox, access: str, data: Path | str = "", **more: Any) -> Reach:
    return Reach(box.service_url, box.admin_url, str(data), access, **more)


def publish(box: PulsarBox, topic: str, count: int, size: int = 100, first: int = 0) -> list[bytes]:
    bodies = [b"%s-%06d-" % (topic.encode(), number) + b"x" * size for number in range(first, first + count)]
    client = connect(box.service_url)
    client.subscribe(topic, "keeps", initial_position=EARLIEST).close()
    send_all(client.create_producer(topic, batching_enabled=False, block_if_queue_full=True), bodies)
    client.close()
    return bodies


def segments(box: PulsarBox, topic: str = T) -> list[TopicSegment]:
    with Service(reach_of(box, "wire")) as service:
        return service.segments(topic, BEGINNING, LATEST)


def read(found: list[TopicSegment], reach: Reach) -> list[bytes | None]:
    return [payload for one in found for some in messages(one, PAYLOAD, reach) for payload in some.payload]


def volumes(box: PulsarBox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = box.admin("GET", "/pulsarbox/v1/top/storage")["rows"]
    return found


def lost(what: Lost) -> None:
    raise AssertionError(what)


def test_what_is_packed_while_it_is_read(box: PulsarBox, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extractor, "ROWS_MAX", 5)
    expected = []
    for turn in range(10):
        expected += publish(box, "t", 10, first=10 * turn)
        publish(box, "beside", 20, 50_000)
    found = segments(box)
    assert {name.partition("/")[0] for each in found for name in each.volumes} == {"volumes"}
    (only,) = found
    entries = access.entries(only, reach_of(box, "mmap", data), lost, lambda part: [part])
    rows = next(entries)
    assert len(rows) < 100
    box.admin("DELETE", "/admin/v2/persistent/public/default/beside?force=true")
    until(lambda: any(row["state"] == "packed" for row in volumes(box)))
    until(lambda: not (data / only.volumes[0]).exists())
    for some in entries:
        rows += some
    assert [body[-len(one) :] for (_, _, body), one in zip(rows, expected, strict=True)] == expected


def test_a_reader_that_is_killed_pins_nothing(box: PulsarBox, data: Path) -> None:
    publish(box, "t", 50, 50_000)
    (only,) = segments(box)
    command = [sys.executable, "-c", HOLD, str(data), only.instance, str(only.ledger), str(only.last)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "reads\n"
        until(lambda: any((row["oldestReader"] or {}).get("pid") == child.pid for row in volumes(box)))
        child.send_signal(signal.SIGKILL)
    assert len(only.volumes) > 1  # the last volume has data of other topics
    box.admin("DELETE", "/admin/v2/persistent/public/default/t?force=true")
    publish(box, "beside", 60, 50_000)  # checkpoints follow further writes

    def is_free() -> bool:
        held = any((row["oldestReader"] or {}).get("pid") == child.pid for row in volumes(box))
        return not held and not any((data / name).exists() for name in only.volumes[:-1])

    until(is_free)


def test_a_forked_process_reads_too(box: PulsarBox, data: Path) -> None:
    expected = publish(box, "t", 20)
    found, reach = segments(box), reach_of(box, "mmap", data)
    assert read(found, reach) == expected
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(sending, b"same" if read(found, reach) == expected else b"other")
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as told:
        assert told.read() == b"same"
    os.waitpid(child, 0)
    assert read(found, reach) == expected


def test_what_is_damaged_is_told_exactly(box: PulsarBox, data: Path) -> None:
    expected = publish(box, "t", 300)
    publish(box, "beside", 60, 50_000)
    until(lambda: any(row["state"] == "sealed" for row in volumes(box)))
    damage = expected[142]
    for file in (data / "volumes").glob("*/data.mdb"):
        at = file.read_bytes().find(damage)
        if at >= 0:
            with file.open("r+b") as opened:
                opened.seek(at + 30)
                opened.write(b"y")
    found = segments(box)
    ledger = sorted(each.ledger for each in found)[1]
    with pytest.raises(DataLost, match=rf"entries from {ledger}:42 up to {ledger}:43 .*damaged.*failOnDataLoss=false"):
        read(found, reach_of(box, "mmap", data))
    left = [body for body in expected if body != damage]
    assert read(found, reach_of(box, "mmap", data, fail_on_data_loss=False)) == left
    assert [row for some in messages(found, PAYLOAD, reach_of(box, "mmap", data, fail_on_data_loss=False))
            for row in some.payload] == left  # fmt: skip


@pytest.mark.parametrize("way", ["mmap", "wire"])
def test_what_was_trimmed_since_it_was_planned_is_told_exactly(box: PulsarBox, data: Path, way: str) -> None:
    expected = publish(box, "t", 350)
    found = segments(box)
    with Service(reach_of(box, way)) as service:
        bounds = service.bounds(T)
        assert (bounds.before, bounds.total) == (0, 350)
        assert service.segments(T, bounds.end, LATEST, seen=bounds.total) == []
    box.admin("POST", "/admin/v2/persistent/public/default/t/subscription/keeps/skip_all")
    until(lambda: len(segments(box)) == 1)
    if way == "mmap":
        assert read(found, reach_of(box, way, data)) == expected  # it remains in place until its volume is deleted
        publish(box, "beside", 60, 50_000)
        box.admin("DELETE", "/admin/v2/persistent/public/default/beside?force=true")
        publish(box, "more", 60, 50_000)
        until(lambda: not (data / found[0].volumes[0]).exists())
    gone, stays = found[0].ledger, found[-1].ledger
    where = str(data) if way == "mmap" else ""
    with pytest.raises(DataLost, match=rf"entries from {gone}:0 up to {gone}:100 "):
        read(found, reach_of(box, way, where))
    assert read(found, reach_of(box, way, where, fail_on_data_loss=False)) == expected[300:]
    with Service(reach_of(box, way)) as service:
        with pytest.raises(DataLost, match=rf"from {gone}:50 up to {stays}:0 .*250 messages"):
            service.segments(T, ReadPosition(gone, 50), LATEST, seen=50)
        assert service.segments(T, ReadPosition(gone, 100), LATEST, seen=300)[0].first == 0


def test_another_box_is_read_over_the_network(box: PulsarBox, tmp_path: Path) -> None:
    expected = publish(box, "t", 20)
    other = tmp_path / "other"
    with PulsarBox(data_dir=other, process=True, **SMALL):
        found = segments(box)
        for there in (other, tmp_path, tmp_path / "nothing"):
            assert read(found, reach_of(box, "auto", there)) == expected
            with pytest.raises(extractor.NotInPlace, match=str(there)):
                read(found, reach_of(box, "mmap", there))


def test_ranges_begin_and_end_within_batches(box: PulsarBox, data: Path) -> None:
    client = connect(box.service_url)
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_messages=5, batching_max_publish_delay_ms=10_000
    )
    bodies = [b"%d" % number for number in range(30)]
    for body in bodies:
        producer.send_async(body, lambda *_: None)
    producer.flush()
    (whole,) = segments(box)
    wanted = frozenset({"payload", "ledger", "entry", "batch", "message_id"})
    (some,) = messages(whole, wanted, reach_of(box, "mmap", data))
    rows = zip(some.ledger, some.entry, some.batch, strict=True)
    places = [ReadPosition(ledger, entry, batch or 0) for ledger, entry, batch in rows]
    assert [place.batch for place in places] == [0, 1, 2, 3, 4] * 6
    reader = client.create_reader(
        "t", pulsar.MessageId.deserialize(some.message_id[7]), start_message_id_inclusive=True
    )
    assert reader.read_next(timeout_millis=10_000).data() == bodies[7]
    with Service(reach_of(box, "wire")) as service:
        for low, high in ((0, 7), (3, 4), (4, 26), (5, 10), (12, 12), (7, 9), (29, 30)):
            end = places[high] if high < 30 else LATEST
            found = service.segments(T, places[low], end)
            for way in ("mmap", "wire"):
                assert read(found, reach_of(box, way, data)) == bodies[low:high]
            one_by_one = [part for each in found for part in each.parts(1)]
            assert read(one_by_one, reach_of(box, "mmap", data)) == bodies[low:high]
        service.acknowledge(T, "mine", places[12])
        assert service.subscription_place(T, "mine") == places[12]
        service.acknowledge(T, "mine", service.latest(T))
        assert service.subscription_place(T, "mine") == service.latest(T)
        assert service.at_time(T, 1) == service.earliest(T) == places[0]
        assert service.at_time(T, 1 << 43) == service.latest(T)
    client.close()


@pytest.mark.parametrize("way", ["mmap", "wire"])
def test_a_compacted_view_is_what_the_official_reader_gets(box: PulsarBox, data: Path, way: str) -> None:
    client = connect(box.service_url)
    producer: Any = None
    for batching in (False, True):
        producer = client.create_producer("t", batching_enabled=batching, batching_max_messages=7)
        for number in range(200):
            body = b"" if number % 17 == 3 else b"%d" % number
            producer.send_async(body, lambda *_: None, partition_key=f"k{number % 23}")
        producer.flush()
    box.admin("PUT", "/admin/v2/persistent/public/default/t/compaction")
    until(lambda: box.admin("GET", "/admin/v2/persistent/public/default/t/compaction")["status"] == "SUCCESS")
    producer.send(b"behind", partition_key="k1")
    reader = client.create_reader("t", pulsar.MessageId.earliest, is_read_compacted=True)
    expected = []
    while reader.has_message_available():
        expected.append(reader.read_next(timeout_millis=10_000).data())
    client.close()
    assert expected[-1] == b"behind"
    with Service(reach_of(box, way)) as service:
        found = service.segments(T, BEGINNING, LATEST, compacted=True)
        assert found[0].compacted and len(found) == 2
        assert read(found, reach_of(box, way, data)) == expected
        (some,) = messages(found[0], frozenset({"payload", "ledger", "entry", "batch"}), reach_of(box, way, data))
        middle = ReadPosition(some.ledger[9], some.entry[9], some.batch[9] or 0)
        later = service.segments(T, middle, LATEST, compacted=True)
        assert read(later, reach_of(box, way, data)) == expected[9:]
        sooner = service.segments(T, BEGINNING, middle, compacted=True)
        assert read(sooner, reach_of(box, way, data)) == expected[:9]


def test_entries_by_a_codec_of_a_plugin_are_read_where_its_file_is_and_else_over_the_network(tmp_path: Path) -> None:
    plugins, data = tmp_path / "codecs", tmp_path / "data"
    plugins.mkdir()
    (plugins / "deflate.py").write_text(DEFLATE)
    own: dict[str, Any] = {"pluginsDirectory": str(plugins), "compressionAtRest": "deflate"}
    with PulsarBox(data_dir=data, process=True, **SMALL, **own) as box:
        expected = publish(box, "t", 60, 50_000)

        def is_compressed() -> bool:
            publish(box, "beside", 30, 50_000)  # a checkpoint follows further writes, and compression a checkpoint
            rows = box.admin("GET", "/pulsarbox/v1/compression")
            return any((row["topic"], row["codec"]) == (T, "deflate") for row in rows)

        until(is_compressed)
        found = segments(box)
        assert read(found, reach_of(box, "mmap", data, plugins_dir=str(plugins))) == expected
        mapped_reader.close_all()
        assert read(found, reach_of(box, "auto", data)) == expected
        with pytest.raises(extractor.NotInPlace, match=r"cannot use the codec 'deflate'.*pluginsDir"):
            read(found, reach_of(box, "mmap", data))
    mapped_reader.close_all()


def test_a_compacted_view_that_is_replaced_while_it_is_read(box: PulsarBox, data: Path) -> None:
    """The view is complete while its volumes exist. Afterwards, reading fails instead of mixing two views."""
    client = connect(box.service_url)
    client.subscribe("t", "keeps", initial_position=EARLIEST).close()

    def round_of(number: int) -> list[bytes]:
        bodies = [b"%d-%d-" % (number, key) + b"x" * 50_000 for key in range(60)]
        producer = client.create_producer("t", batching_enabled=False)
        for key, body in enumerate(bodies):
            producer.send(body, partition_key=f"k{key}")
        producer.close()
        before = view()
        box.admin("PUT", "/admin/v2/persistent/public/default/t/compaction")
        until(lambda: view() != before)
        return bodies

    def view() -> Any:
        with Service(reach_of(box, "wire")) as service:
            return [each.compacted for each in service.segments(T, BEGINNING, LATEST, compacted=True) if each.compacted]

    first = round_of(1)
    with Service(reach_of(box, "wire")) as service:
        planned = service.segments(T, BEGINNING, LATEST, compacted=True)
    assert read(planned, reach_of(box, "mmap", data)) == first
    old = {name for each in planned for name in each.volumes}
    second = round_of(2)
    client.close()

    def is_gone() -> bool:
        publish(box, "beside", 30, 50_000)
        box.admin("DELETE", "/admin/v2/persistent/public/default/beside?force=true")
        return not all((data / name).exists() for name in old)  # the last volume has more data

    until(is_gone)
    for way in ("mmap", "auto"):
        with pytest.raises(DataLost, match="in the compacted view, which has been replaced: read it again"):
            read(planned, reach_of(box, way, data))
    with Service(reach_of(box, "wire")) as service:
        again = service.segments(T, BEGINNING, LATEST, compacted=True)
    assert read(again, reach_of(box, "mmap", data)) == second
