"""Partition routing of producers: built-in routes, plugin files, and invalid ones."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.client import router
from pulsarbox.client.admin import Admin
from pulsarbox.client.backlogs import AFTER_AN_ERROR_SECONDS, ASKED_EVERY_SECONDS, PartitionBacklogs
from pulsarbox.client.errors import NotConnected
from pulsarbox.client.producer import Options, Producer
from pulsarbox.client.routing import PartitionRouter
from pulsarbox.plugins.contracts import Unrouted
from pulsarbox.plugins.guard import ERRORS_MAX, Trouble
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.message_encoder import Outgoing

TOPIC = "persistent://public/default/t"
ROUTER = """
class Plugin:
    kind = "routing"
    name = "mine"
    api = 1
    def open(self, producing):
        return lambda message, partitions: {}
"""


def written(directory: Path, choose: str) -> Path:
    (directory / "mine.py").write_text(ROUTER.format(choose))
    return directory


def message(key: bytes | None = None, number: int = 0) -> Unrouted:
    return Unrouted(key, {}, 1, number, number)


def test_as_java_clients_choose() -> None:
    choose = PartitionRouter().open(TOPIC)
    assert [choose(message(key.encode()), 1 << 31) for key in ("keykeykeykeykey1", "é")] == [434058482, 233]
    assert [choose(message(None, number), 3) for number in range(4)] == [0, 1, 2, 0]


def test_a_router_of_a_file(tmp_path: Path) -> None:
    choose = PartitionRouter("mine", directory=written(tmp_path, "message.size % partitions")).open(TOPIC)
    assert choose(Unrouted(None, {}, 5, 0, 0), 3) == 2


def test_a_router_that_fails_goes_the_built_in_way(tmp_path: Path) -> None:
    told: list[Trouble] = []
    route = PartitionRouter("mine", directory=written(tmp_path, "partitions"), hashing="murmur3", warn=told.append)
    choose = route.open(TOPIC)
    found = [choose(message(None, number), 3) for number in range(ERRORS_MAX + 2)]
    assert found == [number % 3 for number in range(ERRORS_MAX + 2)]
    assert choose(message(b"key1"), 7) == 462881061 % 7
    assert [each.tripped for each in told] == [False, True]


def test_a_hash_of_a_file_that_fails_for_some_keys(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(
        "class Plugin:\n    kind = 'hashing'\n    name = 'it'\n    api = 1\n"
        "    def hash32(self, key):\n        return {b'a': 5}[key]\n"
    )
    choose = PartitionRouter(hashing="it", directory=tmp_path, warn=lambda trouble: None).open(TOPIC)
    assert [choose(message(key), 1 << 31) for key in (b"a", b"key1")] == [5, 462881061]


@pytest.mark.parametrize(
    ("route", "says"),
    [
        (PartitionRouter("nothing"), "unknown routing plugin 'nothing': expected one of round-robin, "),
        (PartitionRouter(hashing="nothing"), "unknown hashing plugin 'nothing': expected one of java, "),
        (PartitionRouter("property"), "cannot open the router 'property': missing option: expected property=NAME"),
        (PartitionRouter("single", {"partition": "x"}), "invalid option partition=x: expected a number from 0"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_sent(route: PartitionRouter, says: str) -> None:
    with pytest.raises(PluginError, match=says):
        route.open(TOPIC)


def test_a_router_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ROUTER.format("0").replace("return lambda", "raise SystemExit(1); return lambda"))
    with pytest.raises(PluginError, match="cannot open the router 'mine': SystemExit: 1"):
        PartitionRouter("mine", directory=tmp_path).open(TOPIC)


# Calls from a producer ------------------------------------------------------------------------------------------------


class Sink:
    """Substitute for the producer of a partition, with batches of two."""

    full = False

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.open = 0

    @property
    def batch_is_open(self) -> bool:
        return self.open > 0

    def add(self, message: Outgoing, token: Any) -> None:
        self.add_plain([message.payload or b""])

    def add_plain(self, payloads: Sequence[bytes], start: int = 0) -> int:
        taken = payloads[start : start + 2 - self.open]
        self.got += taken
        self.open = (self.open + len(taken)) % 2
        return len(taken)


def producing(
    monkeypatch: pytest.MonkeyPatch, route: PartitionRouter, partitions: int = 3
) -> tuple[Producer, list[Sink]]:
    sinks = [Sink() for _ in range(partitions)]
    monkeypatch.setattr(Producer, "_of", lambda self, partition: sinks[partition])

    class Broker:
        def partitions(self, topic: str, create: bool) -> int:
            return partitions

    client: Any = Broker()
    return Producer(client, TOPIC, Options(route=route), lambda *told: None), sinks


LINES = [b"%d" % number for number in range(7)]


@pytest.mark.parametrize("plain", [True, False])
def test_partitions_take_turns_with_batches(monkeypatch: pytest.MonkeyPatch, plain: bool) -> None:
    producer, sinks = producing(monkeypatch, PartitionRouter())
    if plain:
        producer.send_plain(LINES)
    else:
        for line in LINES:
            producer.send(Outgoing(line))
    assert [sink.got for sink in sinks] == [[b"0", b"1", b"6"], [b"2", b"3"], [b"4", b"5"]]


def test_a_router_that_looks_at_each_message_sees_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    route = PartitionRouter("mine", directory=written(tmp_path, "message.sequence % 2"))
    producer, sinks = producing(monkeypatch, route)
    producer.send_plain(LINES)
    assert [sink.got for sink in sinks] == [[b"0", b"2", b"4", b"6"], [b"1", b"3", b"5"], []]


def test_what_a_router_is_told_of_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    route = PartitionRouter("mine", directory=written(tmp_path, "message.properties['to'].append(message) or 0"))
    producer, _ = producing(monkeypatch, route)
    seen: Any = []
    for key, null in (("é", False), ("\udcff", False), (None, False), ("x", True)):
        producer.send(Outgoing(b"abc", key, properties=[("to", seen)], null_key=null))
    assert [each.key for each in seen] == ["é".encode(), b"\xff", None, None]
    assert [(each.size, each.sequence) for each in seen] == [(3, 0), (3, 1), (3, 2), (3, 3)]


# Backlogs -------------------------------------------------------------------------------------------------------------


class Asked:
    """Admin API with a response set by the test."""

    def __init__(self, *answers: dict[str, Any] | NotConnected) -> None:
        self.answers = list(answers)

    def stats(self, *_: Any, **__: Any) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, NotConnected):
            raise answer
        return answer


def partitions(**backlogs: list[int]) -> dict[str, Any]:
    return {
        "partitions": {
            f"{TOPIC}-partition-{name[1:]}": {
                "subscriptions": {str(i): {"msgBacklog": backlog} for i, backlog in enumerate(each)}
            }
            for name, each in backlogs.items()
        }
    }


def test_backlogs_are_asked_once_a_second() -> None:
    asked: Any = Asked(partitions(p0=[1, 2], p2=[5]), partitions(p0=[9]))
    now = [100.0]
    connect: Callable[[], Admin] = lambda: asked  # noqa: E731
    backlogs = PartitionBacklogs(connect, TOPIC, lambda text: None, lambda: now[0])
    assert [backlogs(), backlogs()] == [(3, 0, 5), (3, 0, 5)]
    now[0] += ASKED_EVERY_SECONDS
    assert backlogs() == (9,)


def test_where_backlogs_are_not_to_be_had_the_last_ones_stand() -> None:
    asked: Any = Asked(partitions(p0=[1]), NotConnected("gone"), NotConnected("gone"), partitions(p0=[2]))
    now, told = [100.0], list[str]()
    backlogs = PartitionBacklogs(lambda: asked, TOPIC, told.append, lambda: now[0])
    found = []
    for seconds in (0, ASKED_EVERY_SECONDS, AFTER_AN_ERROR_SECONDS, AFTER_AN_ERROR_SECONDS):
        now[0] += seconds
        found.append(backlogs())
    assert found == [(1,), (1,), (1,), (2,)]
    assert told == ["cannot read the backlogs, using the partitions in turn: gone"]


# Official client ------------------------------------------------------------------------------------------------------


class Message:
    """Message of the official client, reduced to the methods that routers call."""

    def __init__(self, key: str = "", **properties: str) -> None:
        self.key, self.of_it = key, properties

    def partition_key(self) -> str:
        return self.key

    def properties(self) -> dict[str, str]:
        return self.of_it

    def data(self) -> bytes:
        return b"abc"


def test_for_the_official_client() -> None:
    choose = router(hashing="murmur3", batch_messages=2)
    assert [choose(Message(), 3) for _ in range(5)] == [0, 0, 1, 1, 2]
    assert choose(Message("key1"), 7) == 462881061 % 7
    by_region = router("property", options={"property": "region"})
    assert by_region(Message(region="é"), 1 << 31) == 233


def test_what_is_wrong_with_it_is_told_at_once() -> None:
    with pytest.raises(PluginError, match="unknown routing plugin 'x'"):
        router("x")
    with pytest.raises(ValueError, match="batch_messages must be at least 1"):
        router(batch_messages=0)
    with pytest.raises(ValueError, match="admin_url requires topic="):
        router("least-backlog", admin_url="http://localhost:8080")
    with pytest.raises(ValueError, match="invalid admin_url"):
        router("least-backlog", topic="t", admin_url="localhost:8080")
