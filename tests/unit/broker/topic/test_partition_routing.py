"""Partition routing by the box: the router, and the fallback for a missing router."""

from typing import Any

import pytest

from pulsarbox.broker.plugins import Plugins
from pulsarbox.broker.topic import partition_routing
from pulsarbox.broker.topic.partition_routing import named_values
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.plugins.hashing.boost import Boost
from pulsarbox.plugins.hashing.java_string import JavaString
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, MessageMetadata
from tests.unit.broker.playbook import Box

NAME = parse_topic("t")
COUNT = 5


class Last:
    """A router that chooses the last partition, unless the key selects another."""

    name, api = "last", 1

    def open(self, producing: Any) -> Any:
        return lambda message, partitions: 99 if message.key == b"bad" else partitions - 1


def parted(box: Box, name: TopicName = NAME, **properties: str) -> None:
    box.broker.topics.create_partitioned(name, COUNT, box.now, properties)


def route(box: Box, name: TopicName = NAME, **fields: Any) -> int:
    return box.broker.routing.route(name, MessageMetadata(**fields), 10, COUNT, box.now)


def test_in_turn_and_by_the_key_as_java_clients_do() -> None:
    box = Box()
    parted(box)
    assert [route(box) for _ in range(7)] == [0, 1, 2, 3, 4, 0, 1]
    assert route(box, partition_key="é") == JavaString().hash32("é".encode()) % COUNT
    ordered = route(box, ordering_key=b"k")
    assert {route(box, ordering_key=b"k") for _ in range(9)} == {ordered}


@pytest.mark.parametrize("own", [True, False])
def test_by_what_the_topic_says_or_the_settings(own: bool) -> None:
    how: dict[str, Any] = {"routing": "property", "routingHashing": "boost"}
    how["routingOptions"] = "property=region, other="
    box = Box() if own else Box(**how)
    parted(box, **(how if own else {}))
    found = route(box, properties=[KeyValue(key="region", value="north")], partition_key="k")
    assert found == Boost().hash32(b"north") % COUNT
    other = parse_topic("other")  # with another routing policy
    parted(box, other, routing="single", routingOptions="partition=3")
    assert {route(box, other) for _ in range(5)} == {3}


def test_a_router_of_a_plugin_that_fails_for_one_message() -> None:
    box = Box(plugins=Plugins(lambda kind, name: Last()), routing="last")
    parted(box)
    assert [route(box) for _ in range(2)] == [4, 4]
    assert route(box, partition_key="bad") == JavaString().hash32(b"bad") % COUNT
    cost = box.broker.plugins.guards["routing", "last"].cost()
    assert (cost.calls, cost.errors) == (3, 1)


def test_until_the_plugin_is_there_messages_go_in_turn() -> None:
    box = Box(plugins=Plugins(beside=True), routing="last")
    parted(box)
    assert [route(box) for _ in range(3)] == [0, 1, 2]
    assert box.broker.take_plugins() == [("routing", "last")]
    box.broker.plugin_loaded(("routing", "last"), Last(), box.now)
    assert route(box) == 3  # the fallback remains in use for up to 0.1 s
    box.time += 1
    assert [route(box) for _ in range(3)] == [4, 4, 4]


@pytest.mark.parametrize("settings", [{"routing": "none"}, {"routingHashing": "none"}, {"routing": "property"}])
def test_what_cannot_be_had_is_told_once_and_messages_go_in_turn(
    settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    box = Box(**settings)
    parted(box)
    turns = []
    for _ in range(7):
        turns.append(route(box))
        box.time += 1
    assert turns == [0, 1, 2, 3, 4, 0, 1]
    assert caplog.text.count("cannot be used") == 1


def test_of_how_many_topics_it_is_known_whose_turn_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_routing, "_TOPICS_MAX", 2)
    box = Box()
    names = [parse_topic(each) for each in "abc"]
    for name in names:
        parted(box, name)
    assert [route(box, names[0]) for _ in range(2)] == [0, 1]
    assert [route(box, name) for name in names] == [2, 0, 0]
    assert [route(box, name) for name in names] == [0, 0, 0]  # each topic evicts the next one's counter


def test_options_as_text() -> None:
    assert dict(named_values("a=b, c=d=e,f,,=x")) == {"a": "b", "c": "d=e", "f": ""}
