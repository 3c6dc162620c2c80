"""The live view of clients, and disconnecting a client."""

import pytest

from pulsarbox.broker.connection.clients import find, kick
from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import BadRequest, NotFound
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from pulsarbox.server.live.overview import overview
from pulsarbox.server.live.view import ViewScope
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.server.live.views import Row, rows

OTHER = "persistent://public/default/other"


def clients(box: Box, **query: str) -> dict[str, Row]:
    """Return the rows by ID."""
    return {row["id"]: row for row in rows(box, "clients", sort="id", order="asc", **query)}


def go(box: Box, client_id: str) -> None:
    """Disconnect a client."""
    kick(find(box.broker, client_id), "ops", box.now)
    box.turn()


def a_client(box: Box) -> Client:
    """Return a client with a producer and a consumer."""
    client = box.client()
    client.producer(3, producer_name=f"sender-{client.cnx.number}")
    client.subscribe("s", 5, subType=CommandSubscribe.Shared, consumer_name="reader")
    client.flow(10, 5)
    return client


def test_connections_producers_and_consumers_each_have_a_row() -> None:
    box = Box()
    box.client()
    client = a_client(box)
    client.cnx.principal = Principal("app", "token", original="ann")
    client.send(0, producer_id=3)
    found = clients(box)
    assert list(found) == ["1", "2", "2-c5", "2-p3"]
    connection, consumer, producer = (found[each] for each in ("2", "2-c5", "2-p3"))
    assert (connection["kind"], connection["topic"], connection["name"]) == ("connection", None, None)
    assert (connection["producers"], connection["consumers"], connection["address"]) == (1, 1, "127.0.0.1:1")
    assert (connection["role"], connection["version"], connection["tls"]) == ("app for ann", "test", False)
    assert (connection["since"], connection["connection"]) == (box.wall, "2")
    assert (producer["kind"], producer["topic"], producer["name"]) == ("producer", TOPIC, "sender-2")
    assert (producer["rate"], producer["unacked"], producer["connection"]) == (1.0, 0, "2")
    assert (consumer["kind"], consumer["topic"], consumer["subscription"]) == ("consumer", TOPIC, "s")
    assert (consumer["name"], consumer["unacked"], consumer["permits"], consumer["rate"]) == ("reader", 1, 9, 1.0)
    assert connection["rate"] == 2.0
    assert connection["bytes"] == producer["bytes"] + consumer["bytes"] > 0
    assert found["1"]["role"] is None


def test_what_waits_says_why() -> None:
    box = Box(maxThrottledPublishMbytesPerConnection=1, maxPublishRatePerTopicInMessages=10)
    client = box.client()
    for number in (1, 2, 3):
        client.producer(number, f"{OTHER}-{number}")
    for i in range(12):
        client.send(i, producer_id=1)
    for i in range(30):
        client.send(i, b"x" * 100_000, producer_id=2)
    found = clients(box)
    rate = "10 messages per second for the topic, set at broker level"
    held, suspended = found["1-p1"], found["1-p2"]
    assert (held["cause"], held["causeSince"]) == ("throttled", box.wall)
    assert held["causeText"] == f"2 receipts ({held['held']:,} bytes) wait for the publish rate: {rate}"
    assert (suspended["cause"], suspended["held"] > 400_000) == ("suspended", True)
    assert suspended["causeText"].startswith("suspended until its receipts are sent, then its client resends the rest")
    assert (found["1"]["cause"], found["1-p3"]["cause"]) == (None, None)
    totals = overview(box.broker, ViewScope(), box.now)["totals"]
    assert (totals["throttled"], totals["suspended"], totals["unread"]) == (2, 1, 0)
    client.cnx.reading_stops(box.now)
    found = clients(box)
    why = ("unread", "the connection is not read: the box waits for the disk")
    assert {(found[each]["cause"], found[each]["causeText"]) for each in ("1", "1-p1", "1-p3")} == {why}
    assert found["1-p2"]["cause"] == "suspended"
    assert overview(box.broker, ViewScope(), box.now)["totals"]["unread"] == 1


def test_a_single_receipt_waits() -> None:
    box = Box(maxPublishRatePerTopicInMessages=10)
    client = box.client()
    client.producer()
    for i in range(11):
        client.send(i)
    (held,) = (each for each in clients(box).values() if each["cause"] == "throttled")
    assert held["causeText"].startswith(f"1 receipt ({held['held']:,} bytes) waits for the publish rate: ")


def test_of_a_connection_with_many_clients_the_rate_is_added_up_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.server.live.clients._AT_ONCE", 1 / 30)
    box = Box(keepAliveIntervalSeconds=86_400)
    client = box.client()
    client.producer()
    client.send(0)
    assert clients(box)["1"]["rate"] == 1.0
    box.advance(29)
    for number in range(1, 30):
        client.send(number)
    was, now = (clients(box)[which]["rate"] for which in ("1", "1-p1"))
    assert was == 1.0 != now, "of up to 30 seconds ago: there is one client"
    box.advance(1)
    found = clients(box)
    assert found["1"]["rate"] == found["1-p1"]["rate"]


def test_a_tenant_sees_those_who_use_its_topics() -> None:
    box = Box()
    box.broker.tenants.create("shop", {"adminRoles": [], "allowedClusters": ["standalone"]})
    box.broker.tenants.create_namespace("shop/eu", None)
    a_client(box)
    client = a_client(box)
    client.producer(8, "persistent://shop/eu/orders")
    assert list(clients(box, tenant="shop")) == ["2-p8"]
    assert list(clients(box, namespace="public/default")) == ["1-c5", "1-p3", "2-c5", "2-p3"]
    assert clients(box, tenant="none") == {}


def test_a_producer_is_told_to_come_back_once_all_has_its_receipt() -> None:
    box = Box(auto=False)
    client = a_client(box)
    while box.commit() or box.read():
        pass
    client.inbox.clear()
    client.send(0, producer_id=3)
    kick(find(box.broker, "1-p3"), "ops", box.now)
    box.flush()
    assert "close_producer" not in client.names()
    box.commit()
    box.flush()
    names = client.names()
    assert names.index("send_receipt") < names.index("close_producer")
    assert not client.closed
    assert [each.id for each in (find(box.broker, "1"), find(box.broker, "1-c5"))] == ["1", "1-c5"]


def test_what_a_consumer_held_goes_to_another() -> None:
    box = Box()
    client = a_client(box)
    client.send(0, producer_id=3)
    other = box.client()
    other.subscribe("s", 1, subType=CommandSubscribe.Shared)
    other.flow(10)
    assert other.names() == []
    client.inbox.clear()
    go(box, "1-c5")
    assert client.names() == ["close_consumer"]
    assert other.names() == ["message"]
    assert "1-c5" not in clients(box)
    assert "1-p3" in clients(box), "its producer stays"


def test_a_connection_is_closed_with_all_that_is_on_it() -> None:
    box = Box()
    client = a_client(box)
    other = a_client(box)
    go(box, "1")
    assert client.closed
    assert not other.closed
    assert list(clients(box)) == ["2", "2-c5", "2-p3"]
    assert list(clients(Box())) == []
    again = a_client(box)
    assert again.cnx.number == 3, "no number is given twice"


def test_of_topics_that_store_nothing_too() -> None:
    box = Box()
    client = box.client()
    client.subscribe("s", 1, "non-persistent://public/default/n")
    client.inbox.clear()
    go(box, "1-c1")
    assert client.names() == ["close_consumer"]


@pytest.mark.parametrize("client_id", ["2", "1-p4", "1-c3", "1-p5"])
def test_who_is_not_there(client_id: str) -> None:
    box = Box()
    a_client(box)
    with pytest.raises(NotFound, match=f"Client {client_id} not found"):
        find(box.broker, client_id)


@pytest.mark.parametrize("client_id", ["", "x", "1-", "1-x3", "1-p", "-1", "1-p3-c5", "1" * 30])
def test_what_is_no_id(client_id: str) -> None:
    with pytest.raises(BadRequest, match="Invalid client ID"):
        find(Box().broker, client_id)
