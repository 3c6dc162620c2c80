"""Partition routing: `produce` and the official client with pulsarbox routers, compared with the official client."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox.client import router
from tests.e2e.clients import EARLIEST, admin_path, receive, until
from tests.e2e.commands import run
from tests.e2e.conftest import Running
from tests.tools.generate_java_keys import PARTITIONS, java_keys, random_keys


@pytest.fixture
def parted(box: Running, topic: str) -> str:
    box.admin("PUT", f"{admin_path(topic)}/partitions", str(PARTITIONS))
    return topic


def sent(client: Any, topic: str, keys: Sequence[str], **options: Any) -> list[int]:
    """Return the partitions to which the official client sends messages with these keys."""
    producer = client.create_producer(
        topic, batching_enabled=True, block_if_queue_full=True, max_pending_messages=20_000, **options
    )
    found: dict[int, Any] = {}
    for number, key in enumerate(keys):
        producer.send_async(
            b"", lambda result, message_id, n=number: found.__setitem__(n, (result, message_id)), partition_key=key
        )
    producer.flush()
    until(lambda: len(found) == len(keys))
    producer.close()
    return [found[number][1].partition() for number in range(len(keys))]


def produced(box: Running, topic: str, keys: Sequence[str], *options: str) -> list[int]:
    """Return the partitions to which `produce` sends them."""
    lines = "".join(f"{key}\t\n" for key in keys).encode()
    ids = run("produce", topic, "-f", "%k\\t%v", "--ids", "--url", box.url, *options, stdin=lines).stdout.splitlines()
    return [int(each.split(b":")[2]) for each in ids]


def test_ten_thousand_keys_go_where_the_official_client_sends_them(box: Running, client: Any, parted: str) -> None:
    keys = [key for key in random_keys() if key]
    assert len(keys) > 9_000
    assert produced(box, parted, keys, "--hash", "boost") == sent(client, parted, keys)


def test_ten_thousand_keys_of_key_shared_go_where_java_hashes_them_and_in_order(
    box: Running, client: Any, topic: str
) -> None:
    rounds, rows = 2, {row.key: row.murmur3 for row in java_keys() if row.key}
    consumers = {}
    for name in ("a", "b", "c"):
        consumers[name] = client.subscribe(
            topic, "s", pulsar.ConsumerType.KeyShared, consumer_name=name, receiver_queue_size=30_000
        )
    stats = json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))
    owner = [""] * 65536
    for each in stats["subscriptions"]["s"]["consumers"]:
        for first, last in each["keyHashRangeArrays"]:
            owner[first : last + 1] = [each["consumerName"]] * (last + 1 - first)
    producer = client.create_producer(topic, block_if_queue_full=True, max_pending_messages=10_000)
    for number in range(rounds):
        for key in rows:
            producer.send_async(b"%d" % number, lambda result, message_id: None, partition_key=key)
    producer.flush()
    expected: dict[str, list[str]] = {name: [] for name in consumers}
    for key, hashed in rows.items():
        expected[owner[hashed % 65535 + 1]].append(key)
    for name, consumer in consumers.items():
        found = [receive(consumer) for _ in range(rounds * len(expected[name]))]
        for number in range(rounds):  # for each key the first, then the second: all in publish order
            assert [each.partition_key() for each in found if each.data() == b"%d" % number] == expected[name]
        first_of = {each.partition_key(): each.data() for each in reversed(found)}
        assert set(first_of.values()) <= {b"0"}
    assert min(map(len, expected.values())) > 1_000


@pytest.mark.parametrize(("name", "hashing"), [("round-robin", "java"), ("consistent", "murmur3")])
def test_one_router_in_the_official_client_and_in_produce(
    box: Running, client: Any, parted: str, name: str, hashing: str
) -> None:
    keys = [key for key in random_keys()[:400] if key]
    found = sent(client, parted, keys, message_router=router(name, hashing=hashing))
    assert found == produced(box, parted, keys, "--route", name, "--hash", hashing)
    assert len(set(found)) == PARTITIONS


def test_a_router_of_a_file_that_fails_halfway(box: Running, parted: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Plugin:\n    kind = 'routing'\n    name = 'mine'\n    api = 1\n"
        "    def open(self, producing):\n        return lambda message, partitions: 5 if message.sequence < 2 else 99\n"
    )
    words = ["produce", parted, "x", "-n", "20", "--no-batch", "--ids", "--url", box.url, "--route", "mine"]
    done = run(*words, "--plugins-dir", str(tmp_path))
    found = [int(each.split(b":")[2]) for each in done.stdout.splitlines()]
    assert found == [5, 5, *range(2, 16), *range(4)]
    assert (
        done.stderr.count(b"the routing plugin 'mine' failed: choose returned 99, expected one of 16 partitions") == 2
    )
    assert done.stderr.count(b"it is disabled until the next start") == 1


def test_a_route_that_is_none_sends_nothing(box: Running, parted: str) -> None:
    done = run("produce", parted, "x", "--url", box.url, "--route", "fastest", code=2)
    assert b"unknown routing plugin 'fastest': expected one of round-robin, " in done.stderr


def test_what_waits_is_asked_of_the_broker(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "2")
    consumer = client.subscribe(topic, "slow", initial_position=EARLIEST)
    where = ["--url", box.url, "--admin-url", box.web_url]
    run("produce", topic, "x", "-n", "50", "--route", "single", "--route-option", "partition=0", *where)
    done = run("produce", topic, "x", "-n", "40", "--no-batch", "--ids", "--route", "least-backlog", *where)
    assert {each.split(b":")[2] for each in done.stdout.splitlines()} == {b"1"}, done.stderr
    consumer.close()
