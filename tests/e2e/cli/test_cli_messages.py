"""produce, consume, peek and tap, with the official client on the other side of the box."""

import base64
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import CODECS, EARLIEST, admin_path, left, numbered, receive, send_all, take, until
from tests.e2e.commands import command, envelopes, environment, ndjson, run, running
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess, accepts
from tests.tools.campaigns import short

BIG = 6 * 1024 * 1024
"""More than the largest message that the box accepts, so it is sent in chunks."""


def subscribed(client: Any, topic: str, name: str = "official", **options: Any) -> Any:
    return client.subscribe(topic, name, initial_position=EARLIEST, **options)


# Published by our command, read by the official client --------------------------------------------------------------


@pytest.mark.parametrize("batch", ["--batch", "--no-batch"])
@pytest.mark.parametrize("codec", short(CODECS, 2))
def test_the_official_client_reads_what_produce_sends(
    box: Running, client: Any, topic: str, codec: str, batch: str
) -> None:
    lines = [*numbered(50), b"", "ü\t".encode(), b"\xff\0x", b"y" * 70_000]
    run("produce", topic, "--url", box.url, "--compress", codec, batch, stdin=b"\n".join(lines) + b"\n")
    consumer = subscribed(client, topic)
    assert take(consumer, len(lines)) == lines


def test_keys_properties_and_times(box: Running, client: Any, topic: str) -> None:
    made = ["-k", "a", "--ordering-key", "o", "-p", "x=1=2", "-p", "y=", "--event-time", "1700000000000"]
    run("produce", topic, "hello", "--url", box.url, *made)
    message = receive(subscribed(client, topic))
    assert (message.data(), message.partition_key(), message.ordering_key()) == (b"hello", "a", "o")
    assert (message.properties(), message.event_timestamp()) == ({"x": "1=2", "y": ""}, 1_700_000_000_000)


def test_batches_hold_one_key_so_key_shared_is_right(box: Running, client: Any, topic: str) -> None:
    consumers = [
        client.subscribe(topic, "keys", pulsar.ConsumerType.KeyShared, consumer_name=name) for name in ("a", "b")
    ]
    lines = b"".join(b"%d\t%d\n" % (number % 20, number) for number in range(400))
    run("produce", topic, "-f", "%k\\t%v", "--url", box.url, stdin=lines)
    got: list[dict[str, list[int]]] = [{}, {}]
    while sum(len(values) for each in got for values in each.values()) < 400:
        for keys, consumer in zip(got, consumers, strict=True):
            try:
                message = consumer.receive(timeout_millis=20)
            except pulsar.Timeout:
                continue
            keys.setdefault(message.partition_key(), []).append(int(message.data()))
            consumer.acknowledge(message)
    assert not set(got[0]) & set(got[1])
    assert all(values == sorted(values) for keys in got for values in keys.values())


def test_a_message_in_chunks(box: Running, client: Any, topic: str) -> None:
    payload = random.Random(3).randbytes(BIG)
    run("produce", topic, "-i", "raw", "-k", "k", "--url", box.url, stdin=payload)
    message = receive(subscribed(client, topic))
    assert (message.data() == payload, message.partition_key()) == (True, "k")


def test_partitions_by_key_and_in_turn(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "4")
    lines = b"".join(b"%d:%d\n" % (number % 10, number) for number in range(100))
    run("produce", topic, "-f", "%k:%v", "--url", box.url, stdin=lines)
    run("produce", topic, "-n", "8", "--no-batch", "plain", "--url", box.url)
    consumer = subscribed(client, topic)
    keyed: dict[str, set[str]] = {}
    plain: list[str] = []
    for _ in range(108):
        message = receive(consumer)
        if message.partition_key():
            keyed.setdefault(message.partition_key(), set()).add(message.topic_name())
        else:
            plain.append(message.topic_name())
    assert {len(topics) for topics in keyed.values()} == {1} and len(keyed) == 10
    assert sorted(plain.count(each) for each in set(plain)) == [2, 2, 2, 2]


def test_a_tombstone(box: Running, client: Any, topic: str) -> None:
    run("produce", topic, "--tombstone", "-k", "gone", "--url", box.url)
    (envelope,) = envelopes(run("consume", topic, "-n", "1", "-o", "ndjson", "--url", box.url).stdout)
    assert (envelope["payload"], envelope["key"]) == (None, "gone")
    message = receive(subscribed(client, topic))
    assert (message.data(), message.partition_key()) == (b"", "gone")


def test_a_time_of_delivery_is_stored(box: Running, topic: str) -> None:
    before = time.time_ns() // 1_000_000
    run("produce", topic, "later", "--after", "10m", "--url", box.url)
    run("produce", topic, "then", "--at", "1700000000000", "--url", box.url)
    found = envelopes(run("consume", topic, "-n", "1", "-o", "ndjson", "--from", "-1", "--url", box.url).stdout)
    assert found[0]["deliver_at"] == 1_700_000_000_000
    assert before > 0


# Published by the official client, read by our command --------------------------------------------------------------


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("codec", short(CODECS, 2))
def test_consume_reads_what_the_official_client_sends(
    box: Running, client: Any, topic: str, codec: str, batched: bool
) -> None:
    producer = client.create_producer(topic, batching_enabled=batched, compression_type=CODECS[codec])
    payloads = [*numbered(50), b"", b"\xff\0x", b"y" * 70_000]
    for number, payload in enumerate(payloads):
        producer.send_async(payload, lambda *_: None, partition_key=f"k{number}", properties={"a": str(number)})
    producer.flush()
    found = envelopes(run("consume", topic, "-o", "ndjson", "--until", "end", "--url", box.url).stdout)
    read = [
        base64.b64decode(each["payload_b64"]) if "payload_b64" in each else each["payload"].encode() for each in found
    ]
    assert read == payloads
    assert [(each["key"], each["props"]) for each in found] == [
        (f"k{at}", {"a": str(at)}) for at in range(len(payloads))
    ]


def test_a_chunked_message_of_the_official_client(box: Running, client: Any, topic: str) -> None:
    payload = random.Random(4).randbytes(BIG)
    producer = client.create_producer(topic, chunking_enabled=True)
    producer.send(payload)
    producer.send(b"after")
    assert run("consume", topic, "-o", "raw", "-n", "1", "-s", "sub", "--url", box.url).stdout == payload
    assert run("consume", topic, "-s", "sub", "--until", "end", "--url", box.url).stdout == b"after\n"


def test_partitions_are_read_together(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "3")
    send_all(client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution),
             numbered(90))  # fmt: skip
    found = envelopes(run("consume", topic, "-o", "ndjson", "--until", "end", "--url", box.url).stdout)
    assert sorted(int(each["payload"]) for each in found) == list(range(90))
    assert {each["id"].split(":")[2] for each in found} == {"0", "1", "2"}
    last = run("consume", topic, "--from", "-2", "--until", "end", "--url", box.url).stdout
    assert len(last.splitlines()) == 6  # per partition


# Round trips ---------------------------------------------------------------------------------------------------------


def strange(number: int, dice: random.Random) -> dict[str, Any]:
    """Return an envelope of arbitrary content."""
    made: dict[str, Any] = {
        "props": {dice.choice("abcäöü\0"): dice.choice(["", "x", "ÿ"]) for _ in range(dice.randrange(3))}
    }
    made["payload_b64"] = base64.b64encode(dice.randbytes(dice.choice([0, 1, 100, 5000]))).decode()
    if number % 3 == 0:
        made["key"] = dice.choice(["", "k", "ключ", "\n"])
    elif number % 3 == 1:
        made["key_b64"] = base64.b64encode(dice.randbytes(5)).decode()
    if number % 5 == 0:
        made["ordering_key_b64"] = base64.b64encode(dice.randbytes(4)).decode()
    if number % 2:
        made["event_time"] = dice.randrange(1, 2**60)
    if number % 11 == 0:
        del made["payload_b64"]
        made["payload"] = None
    return made


KEPT = ("payload", "payload_b64", "key", "key_b64", "ordering_key_b64", "props", "event_time")


@pytest.mark.parametrize("sending", short([[], ["--no-batch"], ["--mix-keys", "--compress", "zstd"]], 1))
def test_envelopes_lose_nothing_on_the_way(box: Running, fresh: Callable[[str], str], sending: list[str]) -> None:
    first, second = fresh("first"), fresh("second")
    dice = random.Random(5)
    given = [strange(number, dice) for number in range(300)]
    run("produce", first, "-i", "ndjson", *sending, "--url", box.url, stdin=ndjson(given))
    read = run("consume", first, "-o", "ndjson", "--until", "end", "--url", box.url).stdout
    run("produce", second, "-i", "ndjson", "--url", box.url, stdin=read)
    again = run("consume", second, "-o", "ndjson", "--until", "end", "--url", box.url).stdout
    here, there = envelopes(read), envelopes(again)
    assert [{name: each.get(name) for name in KEPT} for each in here] == [
        {name: each.get(name) for name in KEPT} for each in there
    ]
    for told, found in zip(given, here, strict=True):
        payload = base64.b64decode(found["payload_b64"]) if "payload_b64" in found else found["payload"]
        payload = payload.encode() if isinstance(payload, str) else payload
        assert payload == (base64.b64decode(told["payload_b64"]) if "payload_b64" in told else None)
        for name in ("key", "key_b64", "ordering_key_b64", "event_time"):
            assert found.get(name) == told.get(name)
        assert found.get("props", {}) == told["props"]


def test_preserve_takes_publish_time_and_sequence_id_too(box: Running, topic: str) -> None:
    given = [{"payload": str(at), "publish_time": 1000 + at, "seq": 7 * at} for at in range(1, 5)]
    run("produce", topic, "-i", "ndjson", "--preserve", "--url", box.url, stdin=ndjson(given))
    found = envelopes(run("consume", topic, "-o", "ndjson", "--until", "end", "--url", box.url).stdout)
    assert [(each["publish_time"], each["seq"]) for each in found] == [(1000 + at, 7 * at) for at in range(1, 5)]
    run("produce", topic, "-i", "ndjson", "--preserve", "--url", box.url, stdin=ndjson(given[::-1]))
    found = envelopes(run("consume", topic, "-o", "ndjson", "--until", "end", "--url", box.url).stdout)
    assert [each["seq"] for each in found[4:]] == [28, 21, 14, 7]


# Start and end positions ---------------------------------------------------------------------------------------------


def test_where_reading_begins_and_ends(box: Running, topic: str) -> None:
    def read(*words: str) -> list[int]:
        return [int(line) for line in run("consume", topic, *words, "--url", box.url).stdout.split()]

    ids = (
        run("produce", topic, "--ids", "--no-batch", "--url", box.url, stdin=b"0\n1\n2\n3\n4\n").stdout.decode().split()
    )
    batch = run("produce", topic, "--ids", "--url", box.url, stdin=b"5\n6\n7\n8\n9\n").stdout.decode().split()
    assert len({*ids, *batch}) == 10
    assert read("--until", "end") == list(range(10))
    assert read("--from", "-3", "--until", "end") == [7, 8, 9]
    assert read("--from", "-100", "--until", "end") == list(range(10))
    assert read("--from", ids[3], "--until", batch[1]) == [3, 4, 5, 6]
    assert read("--from", batch[2], "--until", "2") == [7, 8]
    assert read("--from", "latest", "--until", "end") == []
    assert read("--until", "@-1h") == []
    assert read("--from", "@-1h", "--until", "end") == list(range(10))
    assert read("--from", "@+1h", "--until", "end") == []
    assert read("--filter", "matches(payload, '[13579]')", "-n", "3") == [1, 3, 5]
    assert read("-s", "sub", "-n", "7") == list(range(7))
    assert read("-s", "sub", "--until", "end") == [7, 8, 9]
    assert read("-s", "sub", "--until", "end") == []
    assert read("-s", "sub", "--from", batch[3], "--until", "end") == [8, 9]
    assert read("-s", "sub", "--from", "-4", "-n", "2") == [6, 7]
    assert read("-s", "sub", "--from", "earliest", "-n", "1") == [0]


def test_a_topic_that_is_empty_or_missing(box: Running, topic: str) -> None:
    assert b"no topic" in run("consume", topic, "--url", box.url, code=3).stderr
    assert b"no topic" in run("peek", topic, "--url", box.url, code=3).stderr
    assert b"no topic" in run("tap", topic, "--url", box.url, code=3).stderr
    box.admin("PUT", admin_path(topic))
    for name in ("consume", "peek", "tap"):
        said = run(name, f"{topic}s", "--url", box.url, code=3).stderr.decode()
        short = topic.rpartition("/")[2]
        assert said == f"pulsarbox: no topic '{short}s'; did you mean {short}?\n"
    assert run("consume", topic, "--until", "end", "--url", box.url).stdout == b""
    assert run("peek", topic, "--url", box.url).stdout == b""


def test_too_few_messages_in_time(box: Running, topic: str) -> None:
    run("produce", topic, "one", "--url", box.url)
    done = run("consume", topic, "-n", "2", "--timeout", "3", "--url", box.url, code=7)
    assert (done.stdout, b"no message for 3 s after 1 message" in done.stderr) == (b"one\n", True)


# Acknowledgement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", ["--batch", "--no-batch"])
def test_only_what_was_read_is_acknowledged(box: Running, client: Any, topic: str, batch: str) -> None:
    run("produce", topic, batch, "--url", box.url, stdin=b"\n".join(numbered(10)))
    read = run("consume", topic, "-s", "s", "-n", "4", "--url", box.url).stdout
    assert read.split() == numbered(4)
    run("consume", topic, "-s", "s", "-n", "2", "--ack", "none", "--url", box.url)
    run("consume", topic, "-s", "s", "--until", "end", "--filter", "payload == '7'", "--url", box.url)
    assert left(client, topic, "s", 5) == [b"4", b"5", b"6", b"8", b"9"]
    run("consume", topic, "-s", "s", "-n", "1", "--filter", "payload == '6'", "--ack-filtered", "--url", box.url)
    assert left(client, topic, "s", 2) == [b"8", b"9"]


def test_before_is_before(box: Running, client: Any, topic: str) -> None:
    run("produce", topic, "--no-batch", "--url", box.url, stdin=b"1\n2\n")
    run("consume", topic, "-s", "s", "--ack", "before", "--until", "end", "--url", box.url)
    assert left(client, topic, "s", 0) == []


def read_exactly(pipe: Any, size: int) -> bytes:
    """Read exactly this many bytes: bytes read ahead would count as consumed."""
    read = b""
    while len(read) < size:
        read += os.read(pipe.fileno(), size - len(read))
    return read


@pytest.mark.parametrize("batch", ["--batch", "--no-batch"])
@pytest.mark.parametrize("kind", short(["exclusive", "shared"], 1))
@pytest.mark.parametrize("how", ["pipe", "ctrl-c"])
def test_what_nobody_read_is_not_acknowledged(
    box: Running, client: Any, topic: str, how: str, kind: str, batch: str
) -> None:
    """The backlog exceeds a pipe's buffer, and the reader reads little. Messages in the pipe's buffer are redelivered
    as well.
    """
    size, count = 1000, 500
    lines = [b"%0*d" % (size - 1, number) for number in range(count)]
    run("produce", topic, batch, "--url", box.url, stdin=b"\n".join(lines))
    with running("consume", topic, "-s", "s", "--type", kind, "--url", box.url) as process:
        assert process.stdout is not None
        assert read_exactly(process.stdout, 10 * size + 1).split()[:10] == lines[:10]
        if how == "pipe":
            process.stdout.close()
            assert process.wait(60) == 0
        else:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
    assert left(client, topic, "s", count - 10) == lines[10:]


def test_who_waits_for_the_end_before_reading_finds_everything_in_the_pipe(
    box: Running, client: Any, topic: str
) -> None:
    run("produce", topic, "--url", box.url, stdin=b"a\nb")
    with running("consume", topic, "-s", "s", "--until", "end", "--url", box.url) as process:
        assert process.wait(60) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"a\nb\n"
    assert left(client, topic, "s", 0) == []


@pytest.mark.parametrize("words", short([["consume"], ["consume", "-s", "s"], ["tap"]], 1), ids=" ".join)
def test_a_reader_that_goes_is_noticed_before_the_next_message(
    box: Running, topic: str, words: tuple[str, ...]
) -> None:
    run("produce", topic, "x", "--url", box.url)
    with running(words[0], topic, *words[1:], "--url", box.url) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0


def test_the_end_waits_for_whoever_reads(box: Running, client: Any, topic: str) -> None:
    run("produce", topic, "--no-batch", "--url", box.url, stdin=b"one\ntwo\nthree\n")
    with running("consume", topic, "-s", "s", "-n", "2", "--url", box.url) as process:
        assert process.stdout is not None
        assert read_exactly(process.stdout, 4) == b"one\n"
        path = f"{admin_path(topic)}/stats"
        until(lambda: json.loads(box.admin("GET", path))["subscriptions"]["s"]["msgBacklog"] == 2)
        assert process.poll() is None
        assert process.stdout.read() == b"two\n"
        assert process.wait(60) == 0
    assert left(client, topic, "s", 1) == [b"three"]


def test_exec_decides(box: Running, client: Any, topic: str, tmp_path: Any) -> None:
    seen = tmp_path / "seen"
    script = (
        f'read line; echo "$line $PULSARBOX_MESSAGE_KEY $PULSARBOX_MESSAGE_PROPERTY_p" >> {seen}; test "$line" != 2'
    )
    for number in ("1", "2", "3"):
        run("produce", topic, number, "-k", f"k{number}", "-p", "p=v", "--url", box.url)
    done = run("consume", topic, "-s", "s", "--type", "shared", "-n", "3", "--exec", script, "--url", box.url, code=8)
    assert seen.read_text() == "1 k1 v\n2 k2 v\n3 k3 v\n"
    assert b"the command exited with code 1" in done.stderr
    assert left(client, topic, "s", 1) == [b"2"]


def test_exec_gets_it_again(box: Running, topic: str, tmp_path: Any) -> None:
    """A command that fails the first time receives the message again, on a subscription of any kind."""
    run("produce", topic, "--url", box.url, stdin=b"a\nb\nc\n")
    for kind in ("exclusive", "shared"):
        seen = tmp_path / kind
        script = f'read line; echo "$line" >> {seen}; test "$line" != b || test "$(grep -c b {seen})" -gt 1'
        words = ("-s", kind, "--type", kind, "-n", "4", "--exec", script)
        run("consume", topic, *words, "--url", box.url, code=8)
        assert sorted(seen.read_text().split()) == ["a", "b", "b", "c"]


# Read-only views -----------------------------------------------------------------------------------------------------


def test_peek_changes_nothing(box: Running, client: Any, topic: str) -> None:
    subscribed(client, topic, "s").close()
    run("produce", topic, "--url", box.url, stdin=b"\n".join(numbered(5)))
    shown = run("peek", topic, "-n", "2", "-o", "lines", "--url", box.url).stdout
    assert shown == b"0\n1\n"
    assert run("peek", topic, "--from", "-1", "-o", "hex", "--url", box.url).stdout.endswith(b"|4|\n")
    assert left(client, topic, "s", 5) == numbered(5)
    assert json.loads(box.admin("GET", f"{admin_path(topic)}/subscriptions")) == ["s"]


def test_peek_shows_what_a_subscription_has_left(box: Running, client: Any, topic: str) -> None:
    consumer = subscribed(client, topic, "s")
    run("produce", topic, "--no-batch", "--url", box.url, stdin=b"\n".join(numbered(5)))
    messages = [receive(consumer) for _ in range(5)]
    for number in (0, 1, 3):
        consumer.acknowledge(messages[number])
    consumer.close()
    words = ("-s", "s", "-o", "lines", "--url", box.url, "--admin-url", box.web_url)
    assert run("peek", topic, *words).stdout == b"2\n4\n"
    assert left(client, topic, "s", 2) == [b"2", b"4"]
    assert b"no subscription 'other'" in run("peek", topic, "-s", "other", *words[2:], code=3).stderr


def test_peek_finds_what_a_subscription_has_redelivered(box: Running, client: Any, topic: str) -> None:
    consumer = subscribed(
        client, topic, "s", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=10
    )
    run("produce", topic, "--no-batch", "--url", box.url, stdin=b"\n".join(numbered(3)))
    deliveries = 0
    while deliveries < 4:
        message = receive(consumer)
        if message.data() == b"1":
            deliveries += 1
            if deliveries < 4:
                consumer.negative_acknowledge(message)
    words = ("-s", "s", "--url", box.url, "--admin-url", box.web_url)
    table = run("peek", topic, "--filter", "redelivery > 2", *words).stdout.decode().splitlines()
    assert [line.split()[-2:] for line in table] == [["REDELIVERED", "VALUE"], ["3", "1"]]
    envelopes = run("peek", topic, "-o", "ndjson", *words).stdout.splitlines()
    assert [json.loads(line)["redelivery"] for line in envelopes] == [0, 3, 0]
    consumer.close()


def test_tap_shows_what_comes_and_new_topics(box: Running, fresh: Callable[[str], str]) -> None:
    base = fresh("tapped")
    one, two, other = f"{base}-one", f"{base}-two", fresh("other")
    for topic in (one, other):
        run("produce", topic, "before", "--url", box.url)
    with running("tap", f"{base}-*", "-o", "ndjson", "-n", "3", "--url", box.url) as process:
        assert process.stderr is not None
        assert b"1; new ones will be added" in process.stderr.readline()
        run("produce", other, "not this", "--url", box.url)
        run("produce", two, "new", "--url", box.url)
        run("produce", one, "--url", box.url, stdin=b"a\nb\n")
        out, _ = process.communicate(timeout=60)
    assert sorted((each["topic"], each["payload"]) for each in envelopes(out)) == [
        (one, "a"), (one, "b"), (two, "new"),
    ]  # fmt: skip
    assert json.loads(box.admin("GET", f"{admin_path(one)}/subscriptions")) == []


# Failures ------------------------------------------------------------------------------------------------------------


def test_exit_codes(box: Running, client: Any, topic: str) -> None:
    (closed,) = (port for port in (1,) if not accepts(port))
    nobody = f"pulsar://127.0.0.1:{closed}"
    assert b"cannot connect to pulsar://" in run("produce", topic, "x", "--url", nobody, code=6).stderr
    assert b"cannot connect to pulsar://" in run("consume", topic, "--url", nobody, code=6).stderr
    no_broker = box.web_url.replace("http", "pulsar")
    assert b"This is the port of the Admin API" in run("consume", topic, "--url", no_broker, code=6).stderr
    run("produce", "no/such/place", "x", "--url", box.url, code=3)
    run("produce", "a//b", "x", "--url", box.url, code=2)
    run("consume", topic, "--type", "shared", "--url", box.url, code=2)
    run("consume", topic, "--from", "x", "--url", box.url, code=2)
    run("produce", topic, "x", "--tombstone", "--url", box.url, code=2)
    holder = client.subscribe(topic, "taken")
    assert b"Exclusive" in run("consume", topic, "-s", "taken", "--url", box.url, code=4).stderr
    holder.close()
    producer = client.create_producer(topic, producer_name="mine")
    assert b"mine" in run("produce", topic, "x", "--name", "mine", "--url", box.url, code=4).stderr
    producer.close()
    bad = run("produce", topic, "-i", "ndjson", "--url", box.url, stdin=b'{"payload":"x"}\nrubbish\n', code=8)
    assert b"line 2 of stdin: invalid JSON" in bad.stderr and b"1 message stored before it" in bad.stderr
    run("produce", topic, "-i", "ndjson", "--url", box.url, stdin=b"rubbish\n", code=1)


def test_a_box_is_found_by_its_directory(own_box: BoxProcess) -> None:
    own_box.start()
    until((own_box.data / "RUNNING").exists)
    found = ("--data-dir", str(own_box.data))
    run("produce", "orders", "hello", *found)
    assert run("consume", "orders", "-n", "1", *found).stdout == b"hello\n"
    assert own_box.stop() == 0
    assert b"no box is running on" in run("produce", "orders", "hello", *found, code=6).stderr


def test_ctrl_c_while_producing_stores_what_was_read(box: Running, topic: str) -> None:
    with running("produce", topic, "--url", box.url, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"1\n2\n3\n")
        process.stdin.flush()
        wanted = ("consume", topic, "-s", "s", "-n", "3", "--url", box.url)
        assert run(*wanted).stdout == b"1\n2\n3\n"  # without the end of stdin or of the next line
        process.stdin.write(b"4\nhalf a li")
        process.stdin.flush()
        assert run("consume", topic, "-s", "s", "-n", "1", "--url", box.url).stdout == b"4\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"4 messages stored, then interrupted" in process.stderr.read()


def test_producing_goes_on_over_kill_9(own_box: BoxProcess, tmp_path: Path) -> None:
    """Each message whose ID was printed survives kill -9 of the box, and the rest follows in order."""
    own_box.start()
    count, printed = 30_000, tmp_path / "ids"
    words = command("produce", "orders", "--ids", "--url", own_box.url)
    with (
        printed.open("wb") as ids,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=ids, stderr=subprocess.PIPE, env=environment()
        ) as process,
    ):
        assert process.stdin is not None and process.stderr is not None
        for kill in range(3):
            before = printed.stat().st_size
            lines = b"".join(b"%d\n" % number for number in range(kill * count // 3, (kill + 1) * count // 3))
            process.stdin.write(lines)
            process.stdin.flush()
            until(lambda size=before: printed.stat().st_size > size)  # type: ignore[misc] # it is in the middle of it
            own_box.kill()
            confirmed = len(printed.read_bytes().splitlines())
            own_box.start()
            read = run("consume", "orders", "--until", "end", "--url", own_box.url).stdout.split()
            assert {int(each) for each in read} >= set(range(confirmed))
        # All earlier messages may have their receipts before the last kill: this line forces a reconnect.
        process.stdin.write(b"%d\n" % count)
        process.stdin.close()
        assert process.wait(60) == 0
        said = [line.partition(" (")[0] for line in process.stderr.read().decode().splitlines()]
    lost, again = "pulsarbox: connection lost", "pulsarbox: reconnected"
    assert said[-1] == f"pulsarbox: {count + 1:,} messages stored in orders"
    assert said[:2] == [lost, again] and said[:-1] == [lost, again] * (len(said) // 2)
    assert len(printed.read_bytes().splitlines()) == count + 1
    numbers = map(int, run("consume", "orders", "--until", "end", "--url", own_box.url).stdout.split())
    assert list(dict.fromkeys(numbers)) == list(range(count + 1))


def test_a_seek_redelivers_to_a_connected_consumer(own_box: BoxProcess) -> None:
    """Acknowledgements from before the seek must not undo it."""
    own_box.start()
    run("produce", "orders", "--url", own_box.url, stdin=b"1\n2\n3\n")
    with running("consume", "orders", "-s", "s", "-n", "6", "--url", own_box.url) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"1\n", b"2\n", b"3\n"]
        run("sub", "seek", "orders", "s", "earliest", "--yes", "--admin-url", own_box.web_url)
        assert [process.stdout.readline() for _ in range(3)] == [b"1\n", b"2\n", b"3\n"]
        assert process.wait(60) == 0


def test_consuming_goes_on_over_kill_9(own_box: BoxProcess) -> None:
    own_box.start()
    run("produce", "orders", "--url", own_box.url, stdin=b"1\n2\n3\n")
    with running("consume", "orders", "-s", "s", "-n", "6", "--url", own_box.url) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"1\n", b"2\n", b"3\n"]
        own_box.kill()
        own_box.start()
        run("produce", "orders", "--url", own_box.url, stdin=b"4\n5\n6\n")
        out, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    assert out.split() == [b"4", b"5", b"6"]  # unconfirmed acknowledgements are sent again


def test_a_slow_reader_keeps_its_connection(box: Running, topic: str) -> None:
    """While its output is not read, consume answers the broker's pings, and Ctrl-C stops it."""
    run("produce", topic, "--url", box.url, stdin=b"x" * 500 + b"\n" + b"y\n" * 200_000)
    with running("consume", topic, "--url", box.url) as process:
        assert process.stdout is not None
        process.stdout.read(100)
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(60) == 143


# Unusable streams ----------------------------------------------------------------------------------------------------


def redirected(redirection: str, *words: str) -> tuple[int, str]:
    """Return the exit code and stderr of a command with the shell's redirection."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *command(*words)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment(),
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_what_a_full_disk_did_not_take_is_not_acknowledged(box: Running, client: Any, topic: str) -> None:
    run("produce", topic, "x", "--url", box.url)
    full = redirected(">/dev/full", "consume", topic, "-s", "official", "-n", "1", "--url", box.url)
    assert full == (1, "pulsarbox: cannot write the output: No space left on device\n")
    assert receive(subscribed(client, topic)).data() == b"x"


def test_streams_that_are_closed(box: Running, topic: str) -> None:
    run("produce", topic, "x", "--url", box.url)
    closed = redirected(">&-", "consume", topic, "-n", "1", "--url", box.url)
    assert closed == (1, "pulsarbox: stdout is closed: redirect it to a file or pipe\n")
    nothing = redirected("<&-", "produce", topic, "--url", box.url)
    assert nothing == (2, "pulsarbox: stdin is closed: specify PAYLOAD, or redirect stdin from a file or pipe\n")
