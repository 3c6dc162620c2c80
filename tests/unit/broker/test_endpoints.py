"""Addresses returned to clients: ``broker.endpoints``, ``broker.handlers.lookup``."""

from typing import Any

import pytest

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.endpoints import Ports, endpoints_of
from pulsarbox.config import Settings
from pulsarbox.config.setting import OFF
from pulsarbox.protocol.PulsarApi_pb2 import CommandLookupTopicResponse, ServerError
from tests.unit.broker.playbook import TOPIC, Box, Client

LISTENERS = (
    "in:pulsar://10.0.0.1:6650,in:http://10.0.0.1:8080,out:pulsar://a.example:16650,out:pulsar+ssl://a.example:16651"
)


class Settled(Box):
    """A box with the endpoints of its settings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.broker.endpoints = endpoints_of(Settings(**settings), "localhost", Ports(6650, 8080))


def look_up(client: Client, listener: str | None = None) -> Any:
    named = {} if listener is None else {"advertised_listener_name": listener}
    return client.request("lookupTopic", topic=TOPIC, **named)


def test_without_a_setting_the_client_stays_with_the_address_by_which_it_has_come() -> None:
    box = Settled()
    client = box.client()
    client.cnx.reached = "192.168.0.7:6650"
    got = look_up(client)
    assert got.response == CommandLookupTopicResponse.Connect
    assert got.authoritative
    assert got.proxy_through_service_url
    assert got.brokerServiceUrl == "pulsar://192.168.0.7:6650"
    assert not got.HasField("brokerServiceUrlTls")


@pytest.mark.parametrize(
    ("address", "through"), [("box.example", False), ("10.1.2.3", False), ("localhost", True), ("127.0.0.2", True)]
)
def test_an_advertised_address_is_where_clients_go_unless_it_is_loopback(address: str, through: bool) -> None:
    client = Settled(advertisedAddress=address).client()
    client.cnx.reached = "192.168.0.7:6650"
    got = look_up(client)
    assert got.brokerServiceUrl == f"pulsar://{address}:6650"
    assert got.proxy_through_service_url is through


@pytest.mark.parametrize(
    ("listener", "url", "url_tls"),
    [
        (None, "pulsar://10.0.0.1:6650", "pulsar+ssl://a.example:16651"),
        ("", "pulsar://10.0.0.1:6650", "pulsar+ssl://a.example:16651"),
        (" ", "pulsar://10.0.0.1:6650", "pulsar+ssl://a.example:16651"),
        ("in", "pulsar://10.0.0.1:6650", ""),
        ("out", "pulsar://a.example:16650", "pulsar+ssl://a.example:16651"),
    ],
)
def test_a_client_gets_the_addresses_of_the_listener_that_it_names(listener: str, url: str, url_tls: str) -> None:
    got = look_up(Settled(advertisedListeners=LISTENERS).client(), listener)
    assert (got.brokerServiceUrl, got.brokerServiceUrlTls) == (url, url_tls)
    assert not got.proxy_through_service_url


def test_the_box_adds_no_address_of_its_own_to_advertised_ones() -> None:
    found = endpoints_of(Settings(advertisedListeners="in:pulsar://a:1"), "box", Ports(6650, 8080, 6651, 8443))
    assert found.of("") == found.of("in") == ("pulsar://a:1", "", "http://box:8080", "https://box:8443")


def test_the_internal_listener_is_the_one_that_is_named_so() -> None:
    box = Settled(advertisedListeners=LISTENERS, internalListenerName="out")
    assert look_up(box.client()).brokerServiceUrl == "pulsar://a.example:16650"


def test_a_client_on_a_listeners_own_port_need_not_name_it() -> None:
    client = Settled(advertisedListeners=LISTENERS).client()
    client.cnx.listener = "out"
    assert look_up(client).brokerServiceUrl == "pulsar://a.example:16650"
    assert look_up(client, "in").brokerServiceUrl == "pulsar://10.0.0.1:6650"


@pytest.mark.parametrize("settings", [{}, {"advertisedListeners": LISTENERS}, {"advertisedListeners": "x:http://a:1"}])
def test_an_unknown_listener_is_refused_in_pulsars_words(settings: dict[str, str]) -> None:
    name = "x" if settings else "test"
    got = look_up(Settled(**settings).client(), name)
    assert got.response == CommandLookupTopicResponse.Failed
    assert got.error == ServerError.ServiceNotReady  # C++ clients map this text to ConnectError
    assert got.message == f"the broker do not have {name} listener"


def test_a_listener_for_http_only_leaves_the_other_address_as_it_is() -> None:
    endpoints = endpoints_of(Settings(advertisedListeners="x:http://a:1"), "box", Ports(6650, 8080))
    assert endpoints.of("")[:2] == ("pulsar://box:6650", "")
    assert endpoints.web_url == "http://a:1"


def test_an_ipv6_address_is_a_url_with_brackets() -> None:
    endpoints = endpoints_of(Settings(advertisedAddress="fd00::1"), "box", Ports(6650, 8080))
    assert endpoints[:2] == ("pulsar://[fd00::1]:6650", "http://[fd00::1]:8080")
    assert not endpoints.of("").through_service_url


def test_the_broker_keeps_what_it_is_told_of_a_connection() -> None:
    box = Box()
    broker: Broker = box.broker
    cnx = broker.connected(broker.new_outbox(), "10.0.0.2:4000", box.now, reached="10.0.0.1:6652", listener="out")
    assert (cnx.reached, cnx.listener) == ("10.0.0.1:6652", "out")


@pytest.mark.parametrize(
    ("secure", "url", "url_tls"),
    [
        (False, "pulsar://192.168.0.7:6650", "pulsar+ssl://192.168.0.7:6651"),
        (True, "pulsar://192.168.0.7:6650", "pulsar+ssl://192.168.0.7:6651"),
    ],
)
def test_a_client_is_told_both_ports_of_the_host_that_it_has_reached(secure: bool, url: str, url_tls: str) -> None:
    box = Settled()
    box.broker.endpoints = endpoints_of(Settings(), "localhost", Ports(6650, 8080, 6651, 8443))
    client = box.client()
    client.cnx.secure, client.cnx.reached = secure, f"192.168.0.7:{6651 if secure else 6650}"
    got = look_up(client)
    assert (got.brokerServiceUrl, got.brokerServiceUrlTls) == (url, url_tls)


def test_with_tls_only_there_is_no_other_url() -> None:
    box = Settled()
    box.broker.endpoints = found = endpoints_of(Settings(), "localhost", Ports(OFF, OFF, 6651, 8443))
    client = box.client()
    client.cnx.secure, client.cnx.reached = True, "10.0.0.1:6651"
    got = look_up(client)
    assert not got.HasField("brokerServiceUrl")
    assert got.brokerServiceUrlTls == "pulsar+ssl://10.0.0.1:6651"
    assert (found.broker_id, found.host) == ("localhost:8443", "localhost")
    client.cnx.reached = ""
    assert look_up(client).brokerServiceUrlTls == "pulsar+ssl://localhost:6651"
