"""Reading what is no box, or does not say so: ledgers from the Admin API where there is one, else the wire alone.

The box of the session plays Apache Pulsar; with E2E_URL and E2E_WEB_URL it is one.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pulsar
import pytest

from pulsarbox.spark.messages import messages
from pulsarbox.spark.segments import BEGINNING, Place, Reach
from pulsarbox.spark.service import LATEST, Service
from tests.e2e.clients import send_all
from tests.e2e.conftest import Running

WANTED = frozenset({"payload", "ledger", "entry", "batch"})


def foreign(box: Running, *, web: bool) -> Service:
    """A service that takes the box for Apache Pulsar."""
    service = Service(Reach(box.url, box.web_url if web else ""))
    service._is_box = False
    return service


def read(service: Service, topic: str, start: Place = BEGINNING, end: Place = LATEST) -> list[bytes | None]:
    found = service.segments(topic, start, end)
    return [payload for each in found for some in messages(each, WANTED, service.reach) for payload in some.payload]


def publish(client: Any, topic: str) -> list[bytes]:
    """Messages one by one, in batches, in chunks."""
    singles, batched = [b"%d" % at for at in range(20)], [b"b%d" % at for at in range(30)]
    large = [bytes([at]) * 6_000_000 for at in range(2)]
    send_all(client.create_producer(topic, batching_enabled=False), singles)
    send_all(client.create_producer(topic, batching_enabled=True, batching_max_messages=7), batched)
    send_all(client.create_producer(topic, batching_enabled=False, chunking_enabled=True), large)
    return singles + batched + large


@pytest.mark.parametrize("web", [True, False])
def test_all_of_it_and_any_range(box: Running, client: Any, topic: str, web: bool) -> None:
    expected = publish(client, topic)
    with foreign(box, web=web) as service:
        assert read(service, topic) == expected
        ends = service.bounds(topic)
        places = [
            Place(ledger, entry, batch or 0)
            for each in service.segments(topic, BEGINNING, LATEST)
            for some in messages(each, WANTED, service.reach)
            for ledger, entry, batch in zip(some.ledger, some.entry, some.batch, strict=True)
        ]
        assert ends.end == Place(places[-1].ledger, places[-1].entry + 1)
        assert service.segments(topic, ends.end, LATEST) == []
        # What ends before a message in chunks does not hold it, what begins behind its first chunk does.
        for low, high in pairwise((0, 5, 24, 33, 50, 51)):
            assert read(service, topic, places[low], places[high]) == expected[low:high]
        assert read(service, topic, places[51]) == expected[51:]


def test_a_subscription_goes_on_where_it_is_told_to(box: Running, client: Any, topic: str) -> None:
    send_all(client.create_producer(topic, batching_enabled=False), [b"%d" % at for at in range(9)])
    with foreign(box, web=True) as service:
        (only,) = service.segments(topic, BEGINNING, LATEST)
        service.acknowledge(topic, "mine", Place(only.ledger, 4))
        assert service.subscription_place(topic, "mine") == Place(only.ledger, 4)
        assert read(service, topic, service.subscription_place(topic, "mine")) == [b"%d" % at for at in range(4, 9)]
        service.acknowledge(topic, "mine", service.latest(topic))
        assert service.subscription_place(topic, "mine") == service.latest(topic)
        assert service.at_time(topic, 10**12) <= Place(only.ledger, 0)
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
