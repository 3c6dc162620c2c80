"""Order per key on Key_Shared subscriptions under arbitrary plugin results: random histories and a checker."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pulsarbox.broker.dispatch import pinned_hash
from pulsarbox.broker.dispatch.pinned_hash import PinnedHash
from pulsarbox.broker.dispatch.selectors.plugged import PluggedSelector
from pulsarbox.broker.dispatch.sticky_hash import key_of
from pulsarbox.broker.plugins import Plugins
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from tests.unit.broker.playbook import Box, Client

KEYS = [f"key-{i}" for i in range(6)]
At = tuple[int, int]


class Fickle:
    """A selector that returns a random consumer each time, or none."""

    name, api = "it", 1

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.here: list[Any] = []

    def divide(self) -> "Fickle":
        return Fickle(self.dice)

    def add(self, consumer: Any) -> None:
        self.here.append(consumer)
        if self.dice.random() < 0.2:
            raise ValueError("not this one")

    def remove(self, consumer: Any) -> None:
        if self.dice.random() < 0.2:
            raise SystemExit(1)
        self.here.remove(consumer)

    def select(self, slot: int) -> Any:
        found = self.dice.choice([*self.here, None, "somebody"])
        if found is None:
            raise KeyError(slot)
        return found


class Moving:
    """A hash function with unstable results that fails occasionally."""

    name, api = "it", 1

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def hash32(self, key: bytes) -> int:
        if self.dice.random() < 0.5:
            raise ValueError("no idea")
        return self.dice.randrange(1 << 31)


def loaded(dice: random.Random) -> Callable[[str, str], Any]:
    def load(kind: str, name: str) -> Any:
        if name != "it":
            raise PluginError("there is none")
        return Fickle(dice) if kind == "routing" else Moving(dice)

    return load


class Watched:
    """Consumers of one subscription and their unacknowledged messages: the checker."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.dice = random.Random(seed)
        # Each error falls into another minute, so that the guard never trips and hides later errors.
        ticks = iter(range(0, 10**18, 10**11))
        self.box = Box(plugins=Plugins(loaded(self.dice), lambda: next(ticks)), **settings)
        self.producer = self.box.client()
        self.producer.producer(1)
        self.keys: list[str] = []
        """Key of each entry, in order."""
        self.held: dict[Client, list[At]] = {}
        self.acked: set[At] = set()

    def key(self, at: At) -> str:
        return self.keys[at[1]]

    def publish(self) -> None:
        key = self.dice.choice(KEYS)
        self.keys.append(key)
        self.producer.send(len(self.keys), partition_key=key)
        self.producer.inbox.clear()

    def join(self) -> None:
        client = self.box.client()
        self.held[client] = []
        reply = client.subscribe("s", subType=CommandSubscribe.Key_Shared, consumer_name=f"c{self.dice.randrange(3)}")
        assert not hasattr(reply, "error"), reply

    def leave(self) -> None:
        if len(self.held) > 1:
            client = self.dice.choice(list(self.held))
            del self.held[client]
            client.request("close_consumer", consumer_id=1)

    def acknowledge(self, client: Client, ats: Iterable[At]) -> None:
        for at in ats:
            self.acked.add(at)
            self.held[client].remove(at)
            client.ack(at)
            self.look()

    def some(self) -> tuple[Client, list[At]]:
        client = self.dice.choice(list(self.held))
        return client, [at for at in list(self.held[client]) if self.dice.random() < 0.5]

    def give_back(self) -> None:
        client = self.dice.choice(list(self.held))
        self.held[client].clear()
        client.ask("redeliverUnacknowledgedMessages", consumer_id=1)

    def look(self) -> None:
        """Receive messages and check that each delivery preserves the order."""
        for client in self.held:
            self.held[client] += client.received()
        for client, held in self.held.items():
            for key in {self.key(at) for at in held}:
                mine = [at for at in held if self.key(at) == key]
                assert mine == sorted(mine), "a key's messages come in order"
                assert len(set(mine)) == len(mine), "a message comes once"
                others = [each for each in self.held if each is not client]
                assert not any(self.key(at) == key for each in others for at in self.held[each]), (
                    "messages of a key are with one consumer at a time"
                )
                before = {at for at in self.published(key) if at < mine[-1]}
                assert before <= self.acked | set(mine), "no message overtakes an earlier one of its key"

    def published(self, key: str) -> list[At]:
        (ledger,) = {at[0] for held in self.held.values() for at in held} | {at[0] for at in self.acked}
        return [(ledger, i) for i, each in enumerate(self.keys) if each == key]

    def run(self, steps: int) -> None:
        self.join()
        for _ in range(steps):
            step = self.dice.choices(
                ["publish", "flow", "ack", "join", "leave", "back"], weights=[40, 20, 25, 4, 4, 3]
            )[0]
            if step == "publish":
                self.publish()
            elif step == "flow":
                self.dice.choice(list(self.held)).flow(self.dice.randrange(1, 5))
            elif step == "ack":
                self.acknowledge(*self.some())
            elif step == "back":
                self.give_back()
            elif step == "leave":
                self.leave()
            elif len(self.held) < 4:
                self.join()
            self.look()

    def end(self) -> None:
        """Check that every message is delivered eventually."""
        for _ in range(len(self.keys) + 10):
            for client in self.held:
                client.flow(100)
                self.look()
                self.acknowledge(client, list(self.held[client]))
        assert len(self.acked) == len(self.keys)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check pending entries every few entries instead of every thousand."""
    monkeypatch.setattr(pinned_hash, "_MORE", 4)


PLUGINS = {
    "selector": {"keySharedSelector": "it"},
    "hash": {"keySharedHashing": "it"},
    "both": {"keySharedSelector": "it", "keySharedHashing": "it"},
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", PLUGINS.values(), ids=PLUGINS)
def test_a_key_keeps_its_order(settings: dict[str, str], seed: int) -> None:
    history = Watched(seed, **settings)
    history.run(250)
    history.end()
    guards = history.box.broker.plugins.guards
    assert all(guard.errors for guard in guards.values())  # the plugins did fail
    assert not any(guard.tripped for guard in guards.values())


ADD, REMOVE = PluggedSelector.add, PluggedSelector.remove
KEEP = PinnedHash.unpin_except


def _nobody_lost_by_a_newcomer(self: Any, consumer: Any) -> list[Any]:
    ADD(self, consumer)
    return []


def _nobody_lost_by_a_leaver(self: Any, consumer: Any) -> list[Any]:
    REMOVE(self, consumer)
    return []


def _asked_each_time(self: Any, entry: Any) -> int:
    found: int = self._hash32(key_of(entry))
    return found


def _waiting_forgotten(self: Any, waiting: Any, *held: Any) -> None:
    KEEP(self, *held)


def _held_forgotten(self: Any, waiting: Any, *held: Any) -> None:
    KEEP(self, waiting)


@pytest.mark.parametrize(
    ("plugin", "where", "name", "bug"),
    [
        ("selector", PluggedSelector, "add", _nobody_lost_by_a_newcomer),
        ("selector", PluggedSelector, "remove", _nobody_lost_by_a_leaver),
        ("hash", PinnedHash, "of", _asked_each_time),
        ("hash", PinnedHash, "unpin_except", _waiting_forgotten),
        ("hash", PinnedHash, "unpin_except", _held_forgotten),
    ],
)
def test_a_planted_bug_is_noticed(
    monkeypatch: pytest.MonkeyPatch, plugin: str, where: type, name: str, bug: Any
) -> None:
    monkeypatch.setattr(where, name, bug)
    for seed in range(9, 40):
        try:
            Watched(seed, **PLUGINS[plugin]).run(250)
        except AssertionError:
            return
    pytest.fail("nothing has noticed it")


def test_hashes_are_forgotten_with_what_was_under_way() -> None:
    asked: list[bytes] = []

    def hash32(key: bytes) -> int:
        asked.append(key)
        return 1

    history = Watched(1)
    history.join()
    pinned = PinnedHash(hash32)
    for _ in range(20):
        history.publish()
    (client,) = history.held
    client.flow(100)
    topic = next(iter(history.box.broker.topics))
    entries = [each for ledger in topic.ledger.tail.values() for each in ledger.values()]  # type: ignore[attr-defined]
    for entry in entries * 100:
        pinned.of(entry)
    assert sorted(asked) == sorted({key.encode() for key in history.keys})  # once per key
    first, last = entries[0], entries[-1]
    pinned.unpin_except({(first[0], first[1])}, {})
    asked.clear()
    pinned.of(first)
    assert asked == []
    if history.keys[0] != history.keys[-1]:
        pinned.of(last)
        assert asked == [history.keys[-1].encode()]
