"""State after a stop or kill of a box, and data directories with which a start is rejected."""

import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.recovery import Store
from tests import forks
from tests.e2e.clients import EARLIEST, PATIENCE_MS, connect, numbered, read_to_end, receive, send_all, take
from tests.e2e.conftest import START_CMD
from tests.tools.box import BoxProcess, accepts, admin

WAYS = {"SIGTERM": BoxProcess.stop, "SIGKILL": BoxProcess.kill}


@pytest.fixture(params=list(WAYS))
def restarted(request: pytest.FixtureRequest, own_box: BoxProcess) -> Callable[[], None]:
    """Stop the box, by SIGTERM or SIGKILL, and start it in place."""

    def again() -> None:
        if WAYS[request.param](own_box) is not None:
            own_box.process = None
        own_box.start()

    return again


def test_everything_receipted_is_there_in_order(own_box: BoxProcess, restarted: Callable[[], None]) -> None:
    topic = "persistent://public/default/kept"
    own_box.start()
    for life in range(3):
        client = connect(own_box.url)
        producer = client.create_producer(topic, batching_enabled=life == 1)
        send_all(producer, numbered(100, start=100 * life))
        restarted()
        client.close()
    client = connect(own_box.url)
    assert read_to_end(client.create_reader(topic, pulsar.MessageId.earliest)) == numbered(300)
    client.close()


def test_positions_and_single_acknowledgements_are_kept(own_box: BoxProcess, restarted: Callable[[], None]) -> None:
    topic, shared = "persistent://public/default/kept", pulsar.ConsumerType.Shared
    own_box.start()
    client = connect(own_box.url)
    cumulative = client.subscribe(topic, "cumulative")
    single = client.subscribe(topic, "single", shared)
    producer = client.create_producer(topic)
    send_all(producer, numbered(20))
    cumulative.acknowledge_cumulative([receive(cumulative) for _ in range(20)][11])
    for message in [receive(single) for _ in range(20)][::2]:
        single.acknowledge(message)
    cumulative.close()
    single.close()  # flushes the acknowledgements that the client has buffered
    producer.send(b"20")  # the journal is ordered: with this receipt, earlier records are on disk too
    client.close()
    restarted()
    client = connect(own_box.url)
    assert take(client.subscribe(topic, "cumulative"), 9) == numbered(9, start=12)
    assert take(client.subscribe(topic, "single", shared), 11) == [*numbered(20)[1::2], b"20"]
    client.close()


def test_clients_carry_on_by_themselves(own_box: BoxProcess, restarted: Callable[[], None]) -> None:
    topic = "persistent://public/default/carry-on"
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    send_all(producer, numbered(10))
    assert take(consumer, 10) == numbered(10)
    restarted()
    send_all(producer, numbered(10, start=10))
    got: list[bytes] = []
    while not got or got[-1] != b"19":
        got += take(consumer, 1)
    # The last acknowledgements may still be in the client: their messages may be redelivered, but in order.
    assert got[-10:] == numbered(10, start=10)
    client.close()


def test_what_the_admin_api_made_is_kept(own_box: BoxProcess, restarted: Callable[[], None]) -> None:
    own_box.start()
    admin(own_box.web_url, "PUT", "tenants/acme", '{"allowedClusters": ["standalone"], "adminRoles": []}')
    admin(own_box.web_url, "PUT", "namespaces/acme/shop")
    admin(own_box.web_url, "PUT", "persistent/acme/shop/orders/partitions", "2")
    restarted()
    client = connect(own_box.url)
    assert len(client.get_topic_partitions("persistent://acme/shop/orders")) == 2
    client.close()


@pytest.mark.parametrize("stops", [True, False], ids=["stopped", "killed"])
def test_a_start_after_a_stop_has_nothing_to_read(own_box: BoxProcess, stops: bool) -> None:
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe("persistent://public/default/later", "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer("persistent://public/default/later")
    for payload in numbered(300):
        producer.send_async(payload, None, deliver_after=timedelta(days=10))
    producer.flush()
    producer.send(b"now")
    consumer.acknowledge(consumer.receive(timeout_millis=PATIENCE_MS))
    own_box.stop() if stops else own_box.kill()
    with suppress(pulsar.PulsarException):  # it may have noticed the kill already
        client.close()
    engine = LmdbEngine(own_box.data)
    try:
        store = Store(engine.recover())
        topic = store.topic("persistent://public/default/later")
        assert topic is not None
        assert topic.ledger.confirmed_messages == 301
        assert (store.replayed_bytes == 0) is stops
    finally:
        engine.close()


def test_new_message_ids_are_greater_after_a_restart(own_box: BoxProcess, restarted: Callable[[], None]) -> None:
    topic = "persistent://public/default/growing"
    own_box.start()
    ids = []
    for _ in range(3):
        client = connect(own_box.url)
        producer = client.create_producer(topic)
        ids += [producer.send(payload) for payload in numbered(3)]
        client.close()
        restarted()
    places = [(each.ledger_id(), each.entry_id()) for each in ids]
    assert places == sorted(set(places))


def refused(command: list[str]) -> str:
    """Return the error output of a start that must fail."""
    nothing = subprocess.DEVNULL
    with forks.box(command, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, env=os.environ) as process:
        said: str = process.communicate(timeout=100)[1].decode()
    assert process.returncode not in (0, -9), said
    assert "Traceback" not in said
    return said


def test_a_data_directory_that_is_held_is_refused_and_the_holder_named(own_box: BoxProcess) -> None:
    own_box.start()
    other = BoxProcess(own_box.data, START_CMD)
    assert str(own_box.pid) in refused(other.command())
    assert accepts(own_box.port)


def test_a_port_that_is_taken_is_refused_and_named(own_box: BoxProcess, tmp_path: Path) -> None:
    free = own_box.port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        own_box.port = taken.getsockname()[1]
        assert str(own_box.port) in refused(own_box.command())
    own_box.port = free
    own_box.start()  # files of the failed start do not block the next


def test_a_stopped_box_leaves_with_zero_while_clients_are_connected(own_box: BoxProcess) -> None:
    own_box.start()
    client: Any = connect(own_box.url)
    client.subscribe("persistent://public/default/t", "s", initial_position=EARLIEST)
    client.create_producer("persistent://public/default/t").send(b"x")
    assert own_box.stop() == 0
    client.close()
