"""Reading from brokers other than a box: ledgers from the Admin API if available, otherwise over the protocol.

The session's box acts as Apache Pulsar; with E2E_URL and E2E_WEB_URL, a real one is used.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pulsar
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox.spark.connect.broker_api import LATEST, Service
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.source.data_source import PulsarboxSource
from pulsarbox.spark.source.offsets import IN_FRONT
from pulsarbox.spark.source.stream_reader import StreamReader
from pulsarbox.spark.topic_segments import BEGINNING, DataLost, Reach, ReadPosition
from tests.e2e.clients import admin_path, numbered, send_all, until
from tests.e2e.conftest import Running

WANTED = frozenset({"payload", "ledger", "entry", "batch"})


def foreign(box: Running, *, web: bool) -> Service:
    """Return a service that treats the box as Apache Pulsar."""
    service = Service(Reach(box.url, box.web_url if web else ""))
    service._is_box = False
    return service


def read(
    service: Service, topic: str, start: ReadPosition = BEGINNING, end: ReadPosition = LATEST
) -> list[bytes | None]:
    found = service.segments(topic, start, end)
    return [payload for each in found for some in messages(each, WANTED, service.reach) for payload in some.payload]


def publish(client: Any, topic: str, *, chunks: bool) -> list[bytes]:
    """Publish messages one by one, in batches, and in chunks."""
    client.subscribe(topic, "keeps", initial_position=pulsar.InitialPosition.Earliest).close()
    singles, batched = [b"%d" % at for at in range(20)], [b"b%d" % at for at in range(30)]
    large = [bytes([at]) * 6_000_000 for at in range(2 if chunks else 0)]
    send_all(client.create_producer(topic, batching_enabled=False), singles)
    send_all(client.create_producer(topic, batching_enabled=True, batching_max_messages=7), batched)
    if large:
        send_all(client.create_producer(topic, batching_enabled=False, chunking_enabled=True), large)
    return singles + batched + large


@pytest.mark.parametrize("web", [True, False])
def test_all_of_it_and_any_range(box: Running, client: Any, topic: str, web: bool) -> None:
    # A standalone Pulsar with little memory crashes with chunks of maximum size.
    expected = publish(client, topic, chunks=box.is_ours)
    with foreign(box, web=web) as service:
        assert read(service, topic) == expected
        ends = service.bounds(topic)
        places = [
            ReadPosition(ledger, entry, batch or 0)
            for each in service.segments(topic, BEGINNING, LATEST)
            for some in messages(each, WANTED, service.reach)
            for ledger, entry, batch in zip(some.ledger, some.entry, some.batch, strict=True)
        ]
        assert ends.end == ReadPosition(places[-1].ledger, places[-1].entry + 1)
        assert service.segments(topic, ends.end, LATEST) == []
        # A range that ends before a chunked message excludes it, as does a range that begins after its first chunk.
        cuts = [0, 5, 24, 33, 49, *range(50, len(places))]
        for low, high in pairwise(cuts):
            assert read(service, topic, places[low], places[high]) == expected[low:high]
        assert read(service, topic, places[cuts[-1]]) == expected[cuts[-1] :]


def test_a_subscription_goes_on_where_it_is_told_to(box: Running, client: Any, topic: str) -> None:
    send_all(client.create_producer(topic, batching_enabled=False), [b"%d" % at for at in range(9)])
    with foreign(box, web=True) as service:
        (only,) = service.segments(topic, BEGINNING, LATEST)
        service.acknowledge(topic, "mine", ReadPosition(only.ledger, 4))
        assert service.subscription_place(topic, "mine") == ReadPosition(only.ledger, 4)
        assert read(service, topic, service.subscription_place(topic, "mine")) == [b"%d" % at for at in range(4, 9)]
        service.acknowledge(topic, "mine", service.latest(topic))
        assert service.subscription_place(topic, "mine") == service.latest(topic)
        assert service.at_time(topic, 10**12) <= ReadPosition(only.ledger, 0)
        assert service.partitions(topic) == [topic]
    consumer = client.subscribe(topic, "mine", initial_position=pulsar.InitialPosition.Earliest)
    send_all(client.create_producer(topic, batching_enabled=False), [b"next"])
    assert consumer.receive(timeout_millis=30_000).data() == b"next"


def test_partitions_and_topics(box: Running, fresh: Callable[[str], str], client: Any) -> None:
    name = fresh("parts")
    box.admin("PUT", f"{name.replace('://', '/')}/partitions", "3")
    send_all(client.create_producer(name, batching_enabled=False), [b"%d" % at for at in range(12)])
    with foreign(box, web=True) as service:
        parts = service.partitions(name)
        assert parts == [f"{name}-partition-{at}" for at in range(3)]
        assert set(parts) <= set(service.topics("public/default"))
        assert sorted(payload or b"" for part in parts for payload in read(service, part)) == sorted(
            b"%d" % at for at in range(12)
        )


class Query:
    """Stream that is read micro-batch by micro-batch, as Spark does."""

    def __init__(self, box: Running, **more: str) -> None:
        options = {"service.url": box.url, "admin.url": box.web_url, "startingOffsets": "earliest", **more}
        reader = PulsarboxSource(options).streamReader(StructType([StructField("value", BinaryType())]))
        assert isinstance(reader, StreamReader)
        self.reader = reader
        self.at: dict[str, Any] = reader.initialOffset()

    def next(self) -> list[bytes]:
        """Return the values of a micro-batch, or none if no messages are available."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())))
        found: list[bytes] = []
        for part in self.reader.partitions(self.at, end) if end != self.at else ():
            found += [value for some in self.reader.read(part) for value in some.column(0).to_pylist()]
        self.at = end
        return found

    def until(self, count: int) -> list[bytes]:
        """Return the next ``count`` values, over as many micro-batches as needed."""
        found: list[bytes] = []

        def enough() -> bool:
            found.extend(self.next())
            return len(found) >= count

        until(enough)
        return found

    def __enter__(self) -> "Query":
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()


@pytest.fixture
def as_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every broker as Apache Pulsar."""
    monkeypatch.setattr(Service, "_of_box", lambda *_: None)
    monkeypatch.setattr(Service, "_knows_itself", lambda service: False)


@pytest.mark.usefixtures("as_foreign")
def test_a_stream_in_steps_and_its_subscription(box: Running, client: Any, topic: str) -> None:
    client.subscribe(topic, "mine", initial_position=pulsar.InitialPosition.Earliest).close()
    send_all(client.create_producer(topic, batching_enabled=False), numbered(10))
    options = {"topic": topic, "subscription": "mine", "startingOffsets": "subscription"}
    with Query(box, **options, maxEntriesPerTrigger="4") as query:
        assert [query.next() for _ in range(3)] == [numbered(4), numbered(4, 4), numbered(2, 8)]
        assert query.next() == [], "and then all of it is acknowledged"

    def backlog() -> int:
        told = json.loads(box.admin("GET", f"{admin_path(topic)}/stats?getPreciseBacklog=true"))
        found: int = told["subscriptions"]["mine"]["msgBacklog"]
        return found

    until(lambda: backlog() == 0)
    send_all(client.create_producer(topic, batching_enabled=False), numbered(3, 10))
    with Query(box, **options) as query:
        assert query.until(3) == numbered(3, 10)


@pytest.mark.usefixtures("as_foreign")
def test_partitions_and_topics_that_appear(box: Running, client: Any, fresh: Callable[[str], str]) -> None:
    first = fresh("grows")
    box.admin("PUT", f"{admin_path(first)}/partitions", "1")
    send_all(client.create_producer(first, batching_enabled=False), numbered(5))
    with Query(box, topicsPattern=first.rpartition("/")[2] + ".*") as query:
        assert sorted(query.until(5)) == sorted(numbered(5))
        box.admin("POST", f"{admin_path(first)}/partitions", "3")
        send_all(client.create_producer(first, batching_enabled=False), numbered(30, 5))
        send_all(client.create_producer(first + "-b", batching_enabled=False), numbered(5, 35))
        assert sorted(query.until(35)) == sorted(numbered(35, 5))
        assert len(query.at["p"]) == 4


@pytest.mark.usefixtures("as_foreign")
def test_a_stream_that_ends_at_what_there_is(box: Running, client: Any, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=False)
    send_all(producer, numbered(7))
    with Query(box, topic=topic, maxEntriesPerTrigger="3") as query:
        query.reader.prepareForTriggerAvailableNow()
        send_all(producer, numbered(5, 7))
        assert [query.next() for _ in range(4)] == [numbered(3), numbered(3, 3), numbered(1, 6), []]


def test_what_is_gone_in_front_of_messages_is_told(box: Running, client: Any, topic: str) -> None:
    if not box.is_ours:
        pytest.skip("when a truncated ledger goes is up to it")
    producer = client.create_producer(topic, batching_enabled=False)
    send_all(producer, numbered(5))
    with foreign(box, web=True) as service:
        (only,) = service.segments(topic, BEGINNING, LATEST)
        box.admin("DELETE", f"{admin_path(topic)}/truncate")
        send_all(producer, numbered(2, 5))
        until(lambda: only.ledger not in [each.ledger for each in service.segments(topic, BEGINNING, LATEST)])
        (after,) = service.segments(topic, BEGINNING, LATEST)
        said = f"{topic}: entries from {only.ledger}:3 up to {after.ledger}:0 .* no longer exist"
        with pytest.raises(DataLost, match=said):
            service.segments(topic, ReadPosition(only.ledger, 3), LATEST, seen=IN_FRONT)
        # The position after the former end may be empty: Apache Pulsar does not report this.
        assert read(service, topic, ReadPosition(only.ledger, 5)) == numbered(2, 5)
