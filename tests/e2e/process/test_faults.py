"""Faults as seen by official clients, set in Python and on the command line."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox import BoxError, PulsarBox
from tests import forks
from tests.e2e.clients import EARLIEST, connect, is_quiet, receive, take
from tests.e2e.process.test_process import Place


@pytest.fixture
def faulty() -> Iterator[PulsarBox]:
    with PulsarBox(faults=True) as box:
        yield box


@pytest.fixture
def client(faulty: PulsarBox) -> Iterator[Any]:
    opened = connect(faulty.service_url)
    yield opened
    opened.close()


def test_boxes_inject_none_unless_they_are_made_for_it() -> None:
    with PulsarBox() as box, pytest.raises(BoxError, match="start it with --faults"):
        box.faults.add("drop")


def test_one_message_that_is_refused_is_sent_again(faulty: PulsarBox, client: Any) -> None:
    producer = client.create_producer("orders")
    with faulty.faults.rule("error", command="send", topic="orders", nth=3, error="PersistenceError") as rule:
        for number in range(4):
            producer.send(b"%d" % number)  # the client reconnects and resends
        assert rule.fired == 1
    assert faulty.faults.rules() == []
    consumer = client.subscribe("orders", "s", initial_position=EARLIEST)
    assert take(consumer, 4) == [b"0", b"1", b"2", b"3"]


def test_a_named_error_is_what_the_application_gets(faulty: PulsarBox, client: Any) -> None:
    with faulty.faults.rule("error", command="producer", topic="orders", error="AuthorizationError"):
        with pytest.raises(pulsar.AuthorizationError):
            client.create_producer("orders")
        client.create_producer("others")
    client.create_producer("orders")


def test_lookups_that_fail_at_first_are_tried_again(faulty: PulsarBox, client: Any) -> None:
    rule = faulty.faults.add("error", command="lookup", first=2, error="ServiceNotReady")
    client.create_producer("orders").send(b"x")
    assert rule.fired == 2
    rule.remove()
    with pytest.raises(BoxError, match="404"):
        rule.remove()


def test_a_lost_receipt_and_a_resend_make_two_messages(faulty: PulsarBox, client: Any) -> None:
    faulty.faults.add("disconnect", command="send", at="answer", first=1)
    client.create_producer("orders").send(b"x")
    consumer = client.subscribe("orders", "s", initial_position=EARLIEST)
    assert take(consumer, 2) == [b"x", b"x"]


def test_a_duplicated_receipt_is_no_second_message(faulty: PulsarBox, client: Any) -> None:
    rule = faulty.faults.add("duplicate", command="send")
    producer = client.create_producer("orders")
    for number in range(10):
        producer.send(b"%d" % number)
    assert rule.fired == 10
    consumer = client.subscribe("orders", "s", initial_position=EARLIEST)
    assert take(consumer, 10) == [b"%d" % number for number in range(10)]
    assert is_quiet(consumer)


def test_a_delay_is_waited_for_and_keeps_the_order(faulty: PulsarBox, client: Any) -> None:
    faulty.faults.add("delay", command="send", delay="300ms", nth=2)
    producer = client.create_producer("orders")
    began = time.monotonic()
    for number in range(4):
        producer.send_async(b"%d" % number, lambda result, message_id: None)
    producer.flush()
    assert time.monotonic() - began >= 0.3
    consumer = client.subscribe("orders", "s", initial_position=EARLIEST)
    assert take(consumer, 4) == [b"0", b"1", b"2", b"3"]


def test_a_lost_acknowledgement_is_delivered_again(faulty: PulsarBox, client: Any) -> None:
    consumer = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared)
    client.create_producer("orders").send(b"x")
    rule = faulty.faults.add("drop", command="ack", subscription="billing")
    consumer.acknowledge(receive(consumer))
    consumer.close()
    assert rule.fired == 1
    again = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared)
    assert take(again, 1) == [b"x"]


def test_from_the_command_line(faulty: PulsarBox, client: Any) -> None:
    def fault(*words: str) -> subprocess.CompletedProcess[str]:
        return forks.text(forks.run("fault", *words, "--admin-url", faulty.admin_url))

    added = fault(
        "add", "error", "--command", "send", "--topic", "orders", "--first", "1", "--error", "ServiceNotReady"
    )
    assert added.stdout.splitlines()[1].split()[:2] == ["1", "error"] and "first=1" in added.stdout, added.stderr
    fault("add", "drop", "--command", "flow", "--probability", "0", "--seed", "4")
    client.create_producer("orders").send(b"x")
    shown = json.loads(fault("list", "-o", "json").stdout)
    assert [(each["action"], each["fired"]) for each in shown] == [("error", 1), ("drop", 0)]
    misspelt = fault("add", "error", "--error", "TooManyRequest")
    assert (misspelt.returncode, "did you mean TooManyRequests" in misspelt.stderr) == (2, True)
    assert fault("remove", "1").returncode == 0
    assert fault("remove", "1").returncode == 3
    assert fault("clear").returncode == 0
    assert fault("list", "-o", "name").stdout == ""


def test_the_command_line_is_told_where_faults_are_off() -> None:
    with PulsarBox() as box:
        done = forks.text(forks.run("fault", "list", "--admin-url", box.admin_url))
        assert (done.returncode, "start it with --faults" in done.stderr) == (4, True)


def test_a_start_with_faults_says_so_everywhere(tmp_path: Path) -> None:
    place = Place(tmp_path)
    rows = place.start("--faults")
    try:
        assert place.status()[1]["faults"] is True
        assert "injection enabled" in place.call("status").stdout
        assert "injection enabled" in Path(rows["log"]).read_text()
        assert place.call("fault", "add", "drop", "--command", "flow").returncode == 0
    finally:
        place.call("stop")
