"""Live views beside the official client: a backlog with its cause, connected clients, disconnected clients."""

import json
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pulsar
import pytest

from tests.e2e.clients import receive, send_all, until
from tests.e2e.commands import run
from tests.e2e.conftest import Running


def rows(box: Running, view: str, **query: str) -> list[dict[str, Any]]:
    """Return the rows of a live view."""
    return list(look(box, view, **query)["rows"])


def look(box: Running, view: str, **query: str) -> dict[str, Any]:
    """Return the response of a live view."""
    with urlopen(f"{box.web_url}/pulsarbox/v1/top/{view}?{urlencode(query)}", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


pytestmark = pytest.mark.usefixtures("ours")


def test_a_backlog_is_seen_with_its_cause_until_it_is_gone(box: Running, client: pulsar.Client, topic: str) -> None:
    def row() -> dict[str, Any]:
        found = rows(box, "subscriptions", filter=f'topic == "{topic}"')
        return found[0] if found else {"backlog": -1}

    consumer = client.subscribe(topic, "s", receiver_queue_size=1)
    producer = client.create_producer(topic, block_if_queue_full=True)
    send_all(producer, [b"%d" % i for i in range(20)])
    until(lambda: row()["backlog"] == 20)
    found = row()
    assert (found["subscription"], found["type"], found["consumers"], found["loaded"]) == ("s", "Exclusive", 1, True)
    until(lambda: row()["cause"] == "no-permits")
    until(lambda: row()["oldest"] is not None)
    for _ in range(20):
        consumer.acknowledge(receive(consumer))
    until(lambda: row()["backlog"] == 0 and row()["cause"] is None)


def test_clients_that_are_let_go_come_back_and_nothing_is_lost(box: Running, client: pulsar.Client, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)

    def there() -> dict[str, str]:
        """Return the IDs of the topic's users by kind."""
        listed = run("client", "list", "--admin-url", box.web_url, "-o", "json", "--filter", f'topic == "{topic}"')
        return {row["kind"]: row["id"] for row in json.loads(listed.stdout)}

    def kick(client_id: str) -> None:
        done = run("client", "kick", client_id, "--yes", "--admin-url", box.web_url)
        assert done.stdout.decode() == f"kicked {client_id}\n"

    sent: list[bytes] = []

    def exchange() -> None:
        sent.append(b"%d" % len(sent))
        producer.send(sent[-1])
        message = receive(consumer)
        while message.data() != sent[-1]:  # an earlier acknowledgement may have been lost with the connection
            consumer.acknowledge(message)
            message = receive(consumer)
        consumer.acknowledge(message)

    exchange()
    before = there()
    assert set(before) == {"producer", "consumer"}
    kick(before["consumer"])
    kick(before["producer"])
    exchange()
    kick(before["producer"].partition("-")[0])
    exchange()
    connection = before["producer"].partition("-")[0]
    until(lambda: {each.partition("-")[0] for each in there().values()} & {connection} == set())
    until(lambda: set(there()) == {"producer", "consumer"})
    refused = run("client", "kick", "999999999", "--yes", "--admin-url", box.web_url, code=3)
    assert b"Client 999999999 not found" in refused.stderr


def test_clients_by_a_filter(box: Running, client: pulsar.Client, topic: str) -> None:
    client.create_producer(topic, producer_name=f"one-{topic[-8:]}")
    client.create_producer(topic, producer_name=f"two-{topic[-8:]}")
    wanted = f'kind == "producer" and topic == "{topic}" and startswith(name, "two-")'
    dry = run("client", "kick", "--filter", wanted, "--dry-run", "--admin-url", box.web_url)
    assert dry.stdout.count(b"would have kicked") == 1
    assert b"invalid expression" in run("client", "kick", "--filter", "a b", "--admin-url", box.web_url, code=2).stderr
    run("client", "kick", "--filter", 'topic == "none"', "--yes", "--admin-url", box.web_url, code=3)
    assert run("client", "kick", "--filter", wanted, "--yes", "--admin-url", box.web_url).stdout.startswith(b"kicked ")


def test_the_overview_counts_what_goes_on(box: Running, client: pulsar.Client, topic: str) -> None:
    producer = client.create_producer(topic)

    def goes_on() -> bool:
        producer.send(b"x")
        found = look(box, "overview")
        return bool(found["totals"]["publishRate"] > 0 and found["totals"]["p99"] and found["series"]["publishRate"])

    until(goes_on)
    assert look(box, "overview")["totals"]["connections"] >= 1
