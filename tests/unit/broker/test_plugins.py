"""Plugins in the broker: hash functions of subscriptions, consumer selection, and missing plugins."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pulsarbox.broker.dispatch.plugin_hash_registry import rows
from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.broker.plugins import HASHING, Plugins
from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.guard import ERRORS_MAX
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, KeyValue
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.plugins.dividing import ByTurns

KEY_SHARED, SHARED = CommandSubscribe.Key_Shared, CommandSubscribe.Shared


class Hashed:
    """A hashing plugin."""

    def __init__(self, hash32: Callable[[bytes], int]) -> None:
        self.hash32 = hash32


class Chosen:
    """A routing plugin of the second API version."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self.choose = choose


def plugins(**there: Any) -> Plugins:
    def load(kind: str, name: str) -> Any:
        if name not in there:
            raise PluginError(f"there is no plugin {name!r} for {kind}")
        return there[name]

    return Plugins(load)


def by_number(key: bytes) -> int:
    """Hash numeric keys to their number: half of them fall into the lower half of the slots."""
    return int(key)


def properties(**those: str) -> list[KeyValue]:
    return [KeyValue(key=name, value=value) for name, value in those.items()]


def join(box: Box, name: str, sub_type: int, permits: int = 1000, **fields: Any) -> Client:
    client = box.client()
    reply = client.subscribe("s", consumer_name=name, subType=sub_type, **fields)
    assert not hasattr(reply, "error"), reply
    client.flow(permits)
    return client


def publish(box: Box, *keys: str) -> None:
    producer = box.client()
    producer.producer(1)
    for sequence, key in enumerate(keys):
        producer.send(sequence, partition_key=key)


def entries_of(client: Client) -> list[int]:
    return [entry for _, entry in client.received()]


RANGES: dict[str, Any] = {"subscriptionKeySharedUseConsistentHashing": False}
"""The second consumer owns the lower half of the slots."""


@pytest.mark.parametrize("by_property", [True, False])
def test_keys_go_by_the_hash_of_a_plugin(by_property: bool) -> None:
    given: dict[str, Any] = {} if by_property else {"keySharedHashing": "number"}
    fields: dict[str, Any] = {"subscription_properties": properties(keySharedHashing="number")} if by_property else {}
    box = Box(plugins=plugins(number=Hashed(by_number)), **RANGES, **given)
    high, low = (join(box, name, KEY_SHARED, **fields) for name in ("high", "low"))
    publish(box, "1", "40000", "2", "40001", "65537")
    assert (entries_of(high), entries_of(low)) == ([1, 3], [0, 2, 4])
    cost = box.broker.plugins.guards["hashing", "number"].cost()
    assert (cost.calls >= 5, cost.errors) == (True, 0)


def test_what_is_given_back_goes_by_it_too() -> None:
    box = Box(plugins=plugins(number=Hashed(by_number)), keySharedHashing="number", **RANGES)
    first = join(box, "first", KEY_SHARED)
    publish(box, "1", "40000")
    assert entries_of(first) == [0, 1]
    join(box, "low", KEY_SHARED)
    third = join(box, "third", KEY_SHARED)
    first.request("close_consumer", consumer_id=1)
    assert len(entries_of(third)) == 1  # Splits the range above or below, thus one neighbor's.


def test_a_key_whose_hash_fails_goes_by_murmur3() -> None:
    box = Box(plugins=plugins(number=Hashed(by_number)), keySharedHashing="number", **RANGES)
    high, low = join(box, "high", KEY_SHARED), join(box, "low", KEY_SHARED)
    publish(box, "no number")
    expected = [low, high][key_hash(b"no number") % 65536 > 32768]
    assert entries_of(expected) == [0]
    assert "invalid literal" in box.broker.plugins.guards["hashing", "number"].last


def test_a_hash_that_nobody_has_refuses_the_consumer_and_says_so() -> None:
    box = Box()
    reply = box.client().subscribe("s", subType=KEY_SHARED, subscription_properties=properties(keySharedHashing="x"))
    assert "The hashing plugin 'x' cannot be used: there is no plugin 'x'" in reply.message
    join(box, "other", SHARED)  # other subscription types ignore the property


def hashed_box(**settings: Any) -> Box:
    """Build a box with a subscription that uses the hash function ``number``."""
    own = settings.pop("own", False)
    named: dict[str, Any] = {} if own else {"keySharedHashing": "number"}
    box = Box(plugins=plugins(number=Hashed(by_number)), **settings, **named)
    join(box, "one", KEY_SHARED, subscription_properties=properties(keySharedHashing="number") if own else [])
    return box


@pytest.mark.parametrize("own", [True, False])
def test_a_box_does_not_start_without_the_hash_of_its_subscriptions(own: bool) -> None:
    box = hashed_box(own=own)
    settings: dict[str, Any] = {} if own else {"keySharedHashing": "number"}
    with pytest.raises(PersistenceError) as refused:
        Box(box.disk, **settings)
    said = str(refused.value)
    assert "the hashing plugin 'number' cannot be used" in said
    assert f"Key_Shared subscriptions use it: {TOPIC} (s)" in said
    assert "keySharedHashingMissing" in said
    Box(box.disk, plugins=plugins(number=Hashed(by_number)), **settings)


def test_a_setting_that_names_no_hash() -> None:
    with pytest.raises(PersistenceError, match=f"'nothing' cannot be used.*; it is the value of {HASHING}"):
        Box(keySharedHashing="nothing")


def test_the_operator_may_go_on_without_it() -> None:
    box = hashed_box()
    other = Box(box.disk, keySharedHashing="number", keySharedHashingMissing="murmur3")
    join(other, "one", KEY_SHARED)


def test_another_hash_in_the_settings_is_the_operators_choice() -> None:
    box = hashed_box()
    other = Box(box.disk)
    assert rows(other.broker.catalog) == []
    join(other, "one", KEY_SHARED)


def test_a_subscription_that_is_gone_needs_no_hash() -> None:
    box = hashed_box(own=True)
    assert len(rows(box.broker.catalog)) == 1
    (subscribed,) = box.outboxes.values()
    assert isinstance(subscribed, Client)
    assert hasattr(subscribed.request("unsubscribe", consumer_id=1), "request_id")
    assert rows(box.broker.catalog) == []
    Box(box.disk)


def test_a_choice_of_a_plugin_and_what_it_costs() -> None:
    box = Box(
        plugins=plugins(last=Chosen(lambda ready: ready[-1])),
        sharedConsumerSelection="last",
        dispatcherMaxRoundRobinBatchSize=1,
    )
    one, two = join(box, "one", SHARED, permits=1), join(box, "two", SHARED, permits=10)
    publish(box, *"abc")
    assert len(entries_of(one)) + len(entries_of(two)) == 3
    cost = box.broker.plugins.guards["routing", "last"].cost()
    assert (cost.calls >= 3, cost.errors) == (True, 0)


def test_a_choice_that_fails_is_not_asked_any_more() -> None:
    box = Box(
        plugins=plugins(bad=Chosen(lambda ready: None)),
        sharedConsumerSelection="bad",
        dispatcherMaxRoundRobinBatchSize=1,
    )
    one, two = join(box, "one", SHARED), join(box, "two", SHARED)
    publish(box, *"abcdefghijklmnop")
    assert (len(entries_of(one)), len(entries_of(two))) == (8, 8)
    guard = box.broker.plugins.guards["routing", "bad"]
    assert (guard.tripped, guard.calls) == (True, ERRORS_MAX)


def test_a_choice_that_is_missing_is_taken_in_turn(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(sharedConsumerSelection="nothing", dispatcherMaxRoundRobinBatchSize=1)
    one, two = join(box, "one", SHARED), join(box, "two", SHARED)
    publish(box, *"abcd")
    assert (entries_of(one), entries_of(two)) == ([0, 2], [1, 3])
    assert caplog.text.count("the routing plugin 'nothing' cannot be used: there is no plugin 'nothing'") == 1


def test_what_is_disabled_is_not_asked_until_it_is_enabled() -> None:
    box = Box(
        plugins=plugins(last=Chosen(lambda ready: ready[-1])),
        sharedConsumerSelection="last",
        dispatcherMaxRoundRobinBatchSize=1,
    )
    join(box, "one", SHARED)

    def guard_calls() -> int:
        return box.broker.plugins.guards["routing", "last"].calls

    box.broker.configuration.update("pluginsDisabled", "routing:last, hashing:x", box.now)
    before = guard_calls()
    publish(box, "a", "b")
    assert guard_calls() == before
    reply = box.client().subscribe("k", subType=KEY_SHARED, subscription_properties=properties(keySharedHashing="x"))
    assert "pulsarbox plugins enable x" in reply.message
    box.broker.configuration.update("pluginsDisabled", "", box.now)
    publish(box, "c")
    assert guard_calls() > before


def test_a_hash_that_is_disabled_stays_with_who_goes_by_it_and_is_nobody_elses() -> None:
    box = Box(plugins=plugins(number=Hashed(by_number)), keySharedHashing="number")
    join(box, "one", KEY_SHARED)
    box.broker.configuration.update("pluginsDisabled", "hashing:number", box.now)
    join(box, "two", KEY_SHARED)
    for topic in (TOPIC, TOPIC.replace("persistent", "non-persistent")):
        reply = box.client().subscribe("new", subType=KEY_SHARED, topic=topic)
        assert "pulsarbox plugins enable number" in reply.message
    assert [row["subscription"] for _, row in rows(box.broker.catalog)] == ["s"]


def test_the_hash_of_topics_that_are_not_persistent() -> None:
    box = Box(plugins=plugins(number=Hashed(by_number)), keySharedHashing="number", **RANGES)
    topic = "non-persistent://public/default/t"
    clients = []
    for name in ("high", "low"):
        client = box.client()
        client.subscribe("s", topic=topic, consumer_name=name, subType=KEY_SHARED)
        client.flow(100)
        clients.append(client)
    producer = box.client()
    producer.producer(1, topic=topic)
    producer.send(0, partition_key="1")
    producer.send(1, partition_key="40000")
    assert [len(client.received()) for client in clients] == [1, 1]
    assert box.broker.plugins.guards["hashing", "number"].calls == 2


# Outside the event loop


class Beside:
    """A box whose plugins are loaded only when the test calls ``bring``."""

    def __init__(self, **settings: Any) -> None:
        self.box = Box(plugins=Plugins(beside=True), **settings, **RANGES)

    def bring(self, found: Any) -> list[tuple[str, str]]:
        """Load all requested plugins and return their keys."""
        wanted = self.box.broker.take_plugins()
        for key in wanted:
            self.box.broker.plugin_loaded(key, found, self.box.now)
        self.box.turn()
        return wanted

    def ask(self, client: Client, request_id: int, consumer_id: int = 1, **fields: Any) -> None:
        client.ask("subscribe", topic=TOPIC, subscription="s", consumer_id=consumer_id, request_id=request_id, **fields)


HASHED: dict[str, Any] = {"subType": KEY_SHARED, "subscription_properties": properties(keySharedHashing="number")}


def test_a_consumer_waits_for_its_plugin_and_nobody_else_does() -> None:
    beside = Beside()
    first, second, other = beside.box.client(), beside.box.client(), beside.box.client()
    beside.ask(first, 1, **HASHED)
    beside.ask(second, 2, **HASHED)
    assert first.inbox == second.inbox == []
    assert hasattr(other.subscribe("other", subType=SHARED), "request_id")
    assert beside.bring(Hashed(by_number)) == [("hashing", "number")]  # one load for both requests
    assert (first.names(), second.names()) == (["success"], ["success"])
    assert beside.bring(None) == []


def test_a_plugin_that_cannot_be_had_refuses_its_consumer_and_is_looked_for_again_later() -> None:
    beside = Beside()
    client = beside.box.client()
    ticks = iter([0] * 100)
    beside.box.broker.plugins._clock = lambda: next(ticks, 20_000_000_000)
    beside.ask(client, 1, **HASHED)
    beside.bring(PluginError("it is broken"))
    assert "it is broken" in client.take("error").message
    beside.ask(client, 2, **HASHED)
    assert "it is broken" in client.take("error").message  # the failure is cached, and no load is requested
    assert beside.bring(None) == []
    assert list(ticks)
    beside.ask(client, 3, **HASHED)
    assert beside.bring(Hashed(by_number)) == [("hashing", "number")]
    assert client.names() == ["success"]


def test_a_consumer_that_goes_while_it_waits() -> None:
    beside = Beside()
    closes, breaks = beside.box.client(), beside.box.client()
    beside.ask(closes, 1, **HASHED)
    beside.ask(breaks, 1, **HASHED)
    closes.ask("close_consumer", consumer_id=1, request_id=9)
    breaks.cnx.closed(beside.box.now)
    beside.bring(Hashed(by_number))
    assert closes.names() == ["error", "success"]  # for SUBSCRIBE and for CLOSE_CONSUMER
    topic = next(iter(beside.box.broker.topics))
    assert not any(each.consumers for each in topic.all_subscriptions())


def test_what_the_settings_name_is_asked_for_at_the_start() -> None:
    settings: dict[str, Any] = {
        "routing": "a",
        "routingHashing": "b",
        "sharedConsumerSelection": "c",
        "keySharedSelector": "d",
    }
    box = Box(plugins=Plugins(beside=True), **settings)
    assert box.broker.take_plugins() == [("routing", "a"), ("hashing", "b"), ("routing", "c"), ("routing", "d")]
    assert Box(plugins=Plugins(beside=True)).broker.take_plugins() == []


@pytest.mark.parametrize("by_property", [True, False])
def test_keys_go_where_a_selector_says(by_property: bool) -> None:
    given: dict[str, Any] = {} if by_property else {"keySharedSelector": "turns"}
    own: dict[str, Any] = {"subscription_properties": properties(keySharedSelector="turns")} if by_property else {}
    there = plugins(number=Hashed(by_number), turns=ByTurns())
    box = Box(plugins=there, keySharedHashing="number", **given)
    even, odd = (join(box, name, KEY_SHARED, **own) for name in ("even", "odd"))
    publish(box, "1", "2", "3", "65537", "40000")
    assert (entries_of(odd), entries_of(even)) == ([0, 2, 3], [1, 4])
    assert box.broker.plugins.guards["routing", "turns"].cost().errors == 0


def test_a_built_in_selector_by_its_name_and_one_that_is_none() -> None:
    for name in ("hashRange", "nobody"):
        box = Box(
            plugins=plugins(number=Hashed(by_number)), keySharedHashing="number", keySharedSelector=name, **RANGES
        )
        high, low = join(box, "high", KEY_SHARED), join(box, "low", KEY_SHARED)
        publish(box, "1", "40000")
        assert (entries_of(high), entries_of(low)) == ([1], [0])


def test_each_trouble_is_told_at_one_place() -> None:
    box = Box(plugins=plugins(bad=Chosen(lambda ready: None)), sharedConsumerSelection="bad")
    join(box, "one", SHARED)
    publish(box, "a")
    box.client().subscribe("k", subType=KEY_SHARED, subscription_properties=properties(keySharedHashing="x"))
    box.broker.events.settle(box.now)
    told = [each.text for each in box.broker.events.after(-1, 100) if each.kind == "plugin-failed"]
    assert ["bad" in told[0], "'x' cannot be used" in told[1], len(told)] == [True, True, 2]


def test_another_property_holds_once_nobody_is_there() -> None:
    box = Box(plugins=plugins(number=Hashed(by_number), turns=ByTurns()), **RANGES)
    first = join(box, "first", KEY_SHARED)
    topic = next(iter(box.broker.topics))
    (subscription,) = topic.all_subscriptions()
    subscription.properties.update(keySharedHashing="number", keySharedSelector="turns")  # type: ignore[attr-defined]
    first.request("close_consumer", consumer_id=1)
    even, odd = join(box, "even", KEY_SHARED), join(box, "odd", KEY_SHARED)
    publish(box, "1", "2", "3")
    assert (entries_of(odd), entries_of(even)) == ([0, 2], [1])
    assert [row["hashing"] for _, row in rows(box.broker.catalog)] == ["number"]


def test_names_that_clients_make_up_are_not_kept_for_ever() -> None:
    found = plugins()
    for number in range(1100):
        found.choice_of(f"n{number}", {})
    assert len(found.missing) == len(found._failed) == 1000


def test_a_rejected_codec_is_not_listed_as_missing() -> None:
    found = Plugins()
    for _ in range(2):
        with pytest.raises(PluginError):
            found.require_codec("7x")
    assert found.missing == {}
