"""Topic lists, requested and watched: ``broker.topic.list_watchers``, ``broker.handlers.lookup``."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.broker.topic import list_watchers
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.protocol.topics_hash import topics_hash
from tests.tools.campaigns import examples
from tests.unit.broker.playbook import Box, Client

SPACE = "persistent://public/default/"
PATTERN = f"{SPACE}w-.*"


def create(box: Box, *names: str) -> None:
    for name in names:
        box.broker.topics.create(parse_topic(SPACE + name), box.now)
    box.turn()


def delete(box: Box, *names: str) -> None:
    for name in names:
        box.broker.topics.delete(parse_topic(SPACE + name), box.now, force=True)
    box.turn()


def watch(client: Client, watcher_id: int = 7, pattern: str = PATTERN, **fields: Any) -> Any:
    fields = {"namespace": "public/default"} | fields
    return client.request("watchTopicList", watcher_id=watcher_id, topics_pattern=pattern, **fields)


def updates(client: Client) -> list[tuple[list[str], list[str], str]]:
    """Return the updates of one second: local names of new topics, local names of deleted topics, and the hash."""
    client.box.advance(1)
    found = []
    while client.inbox:
        told = client.take("watchTopicUpdate")
        assert told.watcher_id == 7
        new, gone = ([name.removeprefix(SPACE) for name in names] for names in (told.new_topics, told.deleted_topics))
        found.append((new, gone, told.topics_hash))
    return found


def hashed(*names: str) -> str:
    return topics_hash([SPACE + name for name in names])


def test_a_watcher_is_told_of_what_comes_and_goes() -> None:
    box = Box()
    create(box, "w-0", "x")
    client = box.client()
    told = watch(client)
    assert (told.watcher_id, list(told.topic), told.topics_hash) == (7, [f"{SPACE}w-0"], hashed("w-0"))
    create(box, "w-1")
    assert updates(client) == [(["w-1"], [], hashed("w-0", "w-1"))]
    create(box, "x-1")
    assert updates(client) == [], "it does not match"
    delete(box, "w-0")
    assert updates(client) == [([], ["w-0"], hashed("w-1"))]
    box.broker.topics.create_partitioned(parse_topic(f"{SPACE}w-p"), 2, box.now)
    box.turn()
    parts = ["w-p-partition-0", "w-p-partition-1"]
    assert updates(client) == [(parts, [], hashed("w-1", *parts))]
    box.broker.topics.grow(parse_topic(f"{SPACE}w-p"), 3, box.now)
    box.turn()
    assert updates(client) == [(["w-p-partition-2"], [], hashed("w-1", *parts, "w-p-partition-2"))]
    for step in box.broker.removal.of_partitioned(parse_topic(f"{SPACE}w-p"), force=True):
        step(box.now)
    box.turn()
    assert [update[1] for update in updates(client)] == [[*parts, "w-p-partition-2"]]


def test_many_changes_are_told_together() -> None:
    box = Box()
    client = box.client()
    watch(client)
    create(box, *(f"w-{number}" for number in range(50)))
    delete(box, "w-3")
    told = updates(client)
    left = [f"w-{number}" for number in range(50) if number != 3]
    assert told == [(left, [], hashed(*left))], "what came and went within the pause is not told"
    delete(box, "w-4")
    create(box, "w-4")
    assert updates(client) == []


def test_what_is_told_is_durable() -> None:
    box = Box()
    client = box.client()
    watch(client)
    box.auto = False
    create(box, "w-1")
    assert updates(client) == []
    assert box.commit(), "the topic"
    box.advance(1)
    while box.commit():
        pass
    assert updates(client) == [(["w-1"], [], hashed("w-1"))]


def test_only_persistent_topics_of_users_in_the_namespace_are_watched() -> None:
    box = Box()
    client = box.client()
    watch(client, pattern=".*")
    other = box.client()
    other.subscribe(topic="non-persistent://public/default/w-1")
    other.subscribe(consumer_id=2, topic="persistent://public/default/__change_events")
    box.broker.tenants.create_namespace("public/other", None)
    other.subscribe(consumer_id=3, topic="persistent://public/other/w-1")
    assert updates(client) == []
    other.subscribe(consumer_id=4, topic=f"{SPACE}anything")
    assert [update[0] for update in updates(client)] == [["anything"]]


def test_asked_again_it_answers_whether_anything_was_missed() -> None:
    box = Box()
    client = box.client()
    create(box, "w-1")
    known = watch(client, topics_hash="nothing like it")
    assert list(known.topic) == [f"{SPACE}w-1"]
    again = watch(client, topics_hash=known.topics_hash)
    assert (list(again.topic), again.topics_hash) == ([], known.topics_hash)
    again = watch(client, topics_hash="other")
    assert list(again.topic) == [f"{SPACE}w-1"]
    create(box, "w-2")
    assert len(updates(client)) == 1, "it is one watcher still"


def test_a_watcher_leaves_with_its_connection_or_before() -> None:
    box = Box()
    client, other = box.client(), box.client()
    watch(client)
    watch(other)
    lists = box.broker.topics.lists
    assert client.request("watchTopicListClose", watcher_id=99) is not None, "there is none"
    assert client.request("watchTopicListClose", watcher_id=7) is not None
    create(box, "w-1")
    assert updates(client) == [] and len(updates(other)) == 1
    assert list(watch(client).topic) == [f"{SPACE}w-1"]
    create(box, "w-2")
    other.cnx.closed(box.now)
    client.cnx.closed(box.now)
    assert lists._lists == {} and lists._behind == {}
    create(box, "w-3")
    box.advance(1)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"pattern": "x" * 51}, ServerError.NotAllowedError, "Pattern longer than maximum: 50"),
        ({"pattern": "(?!x).*"}, ServerError.NotAllowedError, "invalid RE2 pattern"),
        ({"pattern": "foo://x"}, ServerError.NotAllowedError, "Does not support topic domain: foo"),
        ({"namespace": "nonsense"}, ServerError.InvalidTopicName, "expected tenant/namespace"),
    ],
)
def test_a_watch_is_refused_with_a_code_that_is_not_tried_again(fields: dict[str, Any], error: int, text: str) -> None:
    client = Box().client()
    refused = watch(client, **fields)
    assert refused.error == error and text in refused.message


def test_a_watch_where_watching_is_off() -> None:
    for name in ("enableBrokerTopicListWatcher", "enableBrokerSideSubscriptionPatternEvaluation"):
        off: dict[str, Any] = {name: False}
        box = Box(**off)
        client = box.client(connect=False)
        client.ask("connect", client_version="test", protocol_version=21)
        assert not client.take("connected").feature_flags.supports_topic_watchers
        assert watch(client).error == ServerError.NotAllowedError
    assert len(watch(Box(subscriptionPatternMaxLength=100).client(), pattern="x" * 100).topics_hash) == 8


def test_where_watching_is_on_clients_are_told_so() -> None:
    client = Box().client(connect=False)
    client.ask("connect", client_version="test", protocol_version=21)
    flags = client.take("connected").feature_flags
    assert flags.supports_topic_watchers and flags.supports_topic_watcher_reconcile


def test_of_a_namespace_that_is_not_there_the_list_is_empty() -> None:
    client = Box().client()
    told = watch(client, namespace="public/nowhere", pattern=".*")
    assert (list(told.topic), told.topics_hash) == ([], "00000000")
    told = client.request("getTopicsOfNamespace", namespace="public/nowhere")
    assert (list(told.topics), told.changed) == ([], True)


def test_lists_that_are_asked_for() -> None:
    box = Box()
    create(box, "w-1", "x")
    client = box.client()
    client.subscribe(topic="non-persistent://public/default/w-2")

    def ask(**fields: Any) -> tuple[list[str], bool, bool]:
        told = client.request("getTopicsOfNamespace", namespace="public/default", **fields)
        return [name.rpartition("/")[2] for name in told.topics], told.filtered, told.changed

    assert ask() == (["w-1", "x"], False, True)
    assert ask(mode=1) == (["w-2"], False, True)
    assert ask(mode=2, topics_pattern="public/default/w-.*") == (["w-2", "w-1"], True, True)
    assert ask(topics_pattern="public/default/w-.*", topics_hash=hashed("w-1")) == ([], True, False)
    assert ask(topics_pattern="x" * 51) == (["w-1", "x"], False, True), "left to the client"
    assert ask(topics_pattern="public/default/(?!w).*") == (["w-1", "x"], False, True)
    refused = client.request("getTopicsOfNamespace", namespace="nonsense")
    assert refused.error == ServerError.InvalidTopicName


def test_a_long_list_is_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.broker.handlers.lookup.LOOKED_AT_ONCE", 10)
    monkeypatch.setattr("pulsarbox.broker.topic.registry.PAGE", 10)
    box = Box()
    names = [f"{word}-{number:02}" for word in "wx" for number in range(25)]
    create(box, *names)
    client = box.client()
    asked = {"request_id": 7, "namespace": "public/default", "topics_pattern": "public/default/w-.*"}
    client.ask("getTopicsOfNamespace", **asked)
    turns = 0
    while not client.inbox:
        box.broker.on_timer(box.now)
        box.flush()
        turns += 1
    assert turns == len(names) // 10
    told = client.take("getTopicsOfNamespaceResponse")
    assert [name.rpartition("/")[2] for name in told.topics] == names[:25]
    assert told.topics_hash == hashed(*names[:25])
    client.ask("getTopicsOfNamespace", **asked)
    client.cnx.closed(box.now)
    box.advance(1)


def test_a_client_that_does_not_read_hears_later_what_it_missed() -> None:
    box = Box()
    client, other = box.client(), box.client()
    create(box, "w-0")
    watch(client)
    watch(other)
    client.outbox.blocked = client.outbox.full = True
    create(box, "w-1")
    assert len(updates(other)) == 1
    delete(box, "w-0")
    assert len(updates(other)) == 1 and updates(client) == []
    client.outbox.blocked = client.outbox.full = False
    box.advance(2)
    assert updates(client) == [(["w-1"], ["w-0"], hashed("w-1"))]
    create(box, "w-2")
    assert updates(client) == [(["w-2"], [], hashed("w-1", "w-2"))]


def test_there_are_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_watchers, "LISTS_MAX", 2)
    monkeypatch.setattr(list_watchers, "WATCHERS_MAX", 3)
    box = Box()
    client, other = box.client(), box.client()
    for watcher_id in range(3):
        assert len(watch(client, watcher_id).topics_hash) == 8
    assert "a connection can have at most 3" in watch(client, 4).message
    watch(other, 1, "a")
    assert "at most 2 lists" in watch(other, 2, "b").message
    assert len(watch(other, 2, "a").topics_hash) == 8, "one that is watched already"


def test_an_update_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_watchers, "UPDATE_NAMES", 2)
    box = Box()
    client = box.client()
    watch(client)
    names = [f"w-{number}" for number in range(5)]
    create(box, *names)
    assert updates(client) == [
        (names[:2], [], hashed(*names[:2])),
        (names[2:4], [], hashed(*names[:4])),
        (names[4:], [], hashed(*names)),
    ]


def test_long_lists_are_told_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box()
    client = box.client()
    create(box, *(f"w-{number}" for number in range(100)))
    watch(client)
    monkeypatch.setattr(list_watchers, "PAUSE_SECONDS_A_NAME", 0.01)
    create(box, "w-a")
    box.advance(0.9)
    create(box, "w-b")
    assert client.inbox == []
    box.advance(0.2)
    assert [update[0] for update in updates(client)] == [["w-a", "w-b"]]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from("cdpw"), st.integers(0, 4)), max_size=25))
def test_all_that_is_told_comes_to_the_list_itself(steps: list[tuple[str, int]]) -> None:
    box = Box()
    client = box.client()
    known = set(watch(client).topic)
    there: set[int] = set()
    for step, number in steps:
        if step == "c" and number not in there:
            create(box, f"w-{number}")
            there.add(number)
        elif step == "d" and number in there:
            delete(box, f"w-{number}")
            there.discard(number)
        elif step == "p":
            box.advance(0.004 * number)
        else:
            watch(client)
    box.advance(1)
    while client.inbox:
        told = client.take("watchTopicUpdate")
        assert not known & set(told.new_topics) and set(told.deleted_topics) <= known
        known = known | set(told.new_topics) - set(told.deleted_topics)
        known -= set(told.deleted_topics)
        assert told.topics_hash == topics_hash(known)
    assert known == {f"{SPACE}w-{number}" for number in there}
