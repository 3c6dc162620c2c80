"""Parsing of advertisedListeners and bindAddresses."""

import pytest

from pulsarbox.config import ConfigError, Settings
from pulsarbox.config.listeners import Address, advertised, bound, is_loopback, unnamed


def test_listeners_are_told_apart_in_their_order() -> None:
    text = "in:pulsar://10.0.0.1:6650, in:http://10.0.0.1:8080,out:pulsar+ssl://a.example:6651 ,"
    assert advertised(text) == {
        "in": {"pulsar": "pulsar://10.0.0.1:6650", "http": "http://10.0.0.1:8080"},
        "out": {"pulsar+ssl": "pulsar+ssl://a.example:6651"},
    }


def test_clients_that_name_no_listener_get_the_internal_one_and_the_first_for_other_schemes() -> None:
    listeners = advertised(
        "in:pulsar://a:1,out:pulsar://b:2,out:pulsar+ssl://b:3,far:pulsar+ssl://c:4,far:https://c:5,far:http://c:6"
    )
    rest = {"http": "http://c:6", "https": "https://c:5"}
    assert unnamed(listeners, "") == {"pulsar": "pulsar://a:1", "pulsar+ssl": "pulsar+ssl://b:3"} | rest
    assert unnamed(listeners, "out") == {"pulsar": "pulsar://b:2", "pulsar+ssl": "pulsar+ssl://b:3"} | rest
    assert unnamed(listeners, "far") == {"pulsar": "pulsar://a:1", "pulsar+ssl": "pulsar+ssl://c:4"} | rest
    assert unnamed({}, "") == {}


def test_an_ipv6_address_keeps_its_brackets() -> None:
    assert advertised("in:pulsar://[fd00::1]:6650") == {"in": {"pulsar": "pulsar://[fd00::1]:6650"}}
    assert bound("in:pulsar://[::]:6652") == (Address("in", "pulsar", "::", 6652),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pulsar://a:1", "expected name:scheme://host:port"),
        (":pulsar://a:1", "expected name:scheme://host:port"),
        ("in", "expected name:scheme://host:port"),
        ("in:pulsar://a", "expected name:scheme://host:port"),
        ("in:pulsar://:1", "expected name:scheme://host:port"),
        ("in:pulsar://a:70000", "expected name:scheme://host:port"),
        ("in:a:1", "expected name:scheme://host:port"),
        ("in:amqp://a:1", "expected scheme pulsar, pulsar"),
        ("in:pulsar://a:1/b", "expected name:scheme://host:port"),
        ("in:pulsar://a:1,in:pulsar://b:1", "listener in has two addresses for pulsar"),
        ("in:pulsar://a:1,out:http://A:1", "a:1 is assigned to in and to out"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        advertised(text)
    with pytest.raises(ConfigError, match=f"advertisedListeners: .*{problem}"):
        Settings(advertisedListeners=text)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"bindAddresses": "in:pulsar://0.0.0.0:1"}, "bindAddresses: listener in is not in advertisedListeners"),
        ({"bindAddresses": "in:http://0.0.0.0:1"}, "bindAddresses: .*expected scheme pulsar, .*not http"),
        ({"internalListenerName": "in"}, "internalListenerName: listener in is not in advertisedListeners"),
        (
            {"advertisedListeners": "in:pulsar://a:1", "bindAddresses": "in:pulsar://b:1,in:pulsar://b:1"},
            "bindAddresses: duplicate address",
        ),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Settings(**settings)


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "localhost.example", "10.0.0.1", "::", "0.0.0.0"])
def test_no_loopback(host: str) -> None:
    assert not is_loopback(host)
