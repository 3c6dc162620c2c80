"""The option table: parsing, and rejected values with advice."""

import pickle
from typing import Any

import pytest

from pulsarbox.spark.options import BATCH, READ, READS, ROWS, STREAM, WRITE, OptionError, SparkOptions, parse
from pulsarbox.spark.topic_segments import ReadPosition

ORDERS = "persistent://public/default/orders"


def batch(**given: str) -> SparkOptions:
    return parse({"topic": "orders", **{name.replace("_", "."): text for name, text in given.items()}}, BATCH)


def refused(given: dict[str, str], use: str = BATCH) -> str:
    with pytest.raises(OptionError) as error:
        parse(given, use)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("topic", "orders", "topic", ORDERS),
        ("SERVICE.URL", "pulsar://h:1", "service_url", "pulsar://h:1"),
        ("predefinedSubscription", "s", "subscription", "s"),
        ("waitingForNonExistedTopic", "TRUE", "wait_for_topic", True),
        ("startingOffsets", "Earliest", "starting_offsets", "earliest"),
        ("startingOffsets", '{"orders": "1:2:3"}', "starting_offsets", {ORDERS: ReadPosition(1, 2, 3)}),
        ("endingOffsets", '{"orders": "latest"}', "ending_offsets", {ORDERS: "latest"}),
        ("startingTime", "1700000000000", "starting_time", 1700000000000),
        ("startingTime", "2026-11-21T10:00+00:00", "starting_time", 1795255200000),
        ("startingTime", "0", "starting_time", 0),
        ("maxBytesPerPartition", "16m", "max_partition_bytes", 16 << 20),
        ("maxBytesPerPartition", "1048576", "max_partition_bytes", 1 << 20),
        ("minPartitions", "7", "min_partitions", 7),
        ("pollTimeoutMs", "6000", "timeout_ms", 6000),
        ("pollTimeoutMs", "5s", "timeout_ms", 5000),
        ("mode", "FAILFAST", "mode", "failfast"),
        ("columns", "all", "columns", "all"),
    ],
)
def test_an_option_is_read(name: str, text: str, field: str, value: Any) -> None:
    given = {name: text} if name == "topic" else {"topic": "orders", name: text}
    assert getattr(parse(given, BATCH), field) == value


@pytest.mark.parametrize(("given", "expected"), [({}, 2), ({"parallelism": "5"}, 5), ({"Parallelism": "5"}, 5)])
def test_parallelism_is_that_of_the_session_unless_given(given: dict[str, str], expected: int) -> None:
    assert parse({"topic": "orders", "session.parallelism": "2", **given}, READ).parallelism == expected


def test_several_topics_are_named_once_each() -> None:
    assert parse({"topics": "orders, bills,orders"}, BATCH).named == (ORDERS, "persistent://public/default/bills")


@pytest.mark.parametrize(("wrong", "right"), [("toppic", "topic"), ("startingOffset", "startingOffsets")])
def test_an_unknown_option_is_refused_with_the_nearest_right_one(wrong: str, right: str) -> None:
    assert refused({"topic": "orders", wrong: "x"}).endswith(f"did you mean {right}?")


def test_an_option_that_is_like_no_other_is_refused_with_the_page() -> None:
    assert "docs/spark.md" in refused({"topic": "orders", "zzzzzzzzzzzz": "x"})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"topic": "a", "topics": "b,c"}, ["topic", "topics"]),
        ({"topic": "a", "topicsPattern": "b.*"}, ["topic", "topicsPattern"]),
        ({}, ["topic", "topics", "topicsPattern"]),
        ({"topic": "a", "startingOffsets": "earliest", "startingTime": "-1h"}, ["startingOffsets", "startingTime"]),
        ({"topic": "a", "endingOffsets": "latest", "endingTime": "-1h"}, ["endingOffsets", "endingTime"]),
        ({"topic": "a", "startingOffsets": "subscription"}, ["subscription"]),
        ({"topic": "a", "token": "x", "tokenFile": "y"}, ["token", "tokenFile"]),
        ({"topic": "a", "readCompacted": "true", "startingOffsets": "latest"}, ["readCompacted", "startingOffsets"]),
        (
            {"topic": "a", "subscription": "x", "predefinedSubscription": "y"},
            ["subscription", "predefinedSubscription"],
        ),
        ({"topic": "a", "allowDifferentTopicSchemas": "true", "valueFormat": "json"}, ["valueFormat=json"]),
        ({"topic": "a", "access": "wire", "data.dir": "/x"}, ["access=wire", "data.dir"]),
        (
            {"topic": "a", "startingTime": "1700000000000", "endingTime": "1600000000000"},
            ["startingTime", "endingTime"],
        ),
        ({"topic": "a", "pollTimeoutMs": "0"}, ["pollTimeoutMs"]),
        ({"topics": "a,non-persistent://public/default/b"}, ["non-persistent://public/default/b", "store no messages"]),
        ({"topicsPattern": "non-persistent://public/default/.*"}, ["only persistent topics"]),
        ({"topic": "a", "waitingForNonExistedTopic": "perhaps"}, ["option waitingForNonExistedTopic = "]),
    ],
)
def test_options_that_contradict_each_other_are_refused_by_name(given: dict[str, str], named: list[str]) -> None:
    said = refused(given)
    assert all(name in said for name in named), said


def test_a_stream_does_not_end() -> None:
    assert "spark.read" in refused({"topic": "a", "endingOffsets": "latest"}, STREAM)
    assert "spark.readStream" in refused({"topic": "a", "maxEntriesPerTrigger": "5"}, BATCH)


def test_a_minimum_above_the_maximum_is_refused() -> None:
    said = refused({"topic": "a", "minEntriesPerTrigger": "9", "maxEntriesPerTrigger": "5"}, STREAM)
    assert "minEntriesPerTrigger" in said and "maxEntriesPerTrigger" in said


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("minPartitions", "0"),
        ("minPartitions", "many"),
        ("maxBytesPerPartition", "64x"),
        ("failOnDataLoss", "perhaps"),
        ("mode", "permisive"),
        ("access", "disk"),
        ("startingOffsets", "yesterday"),
        ("startingOffsets", "{"),
        ("startingOffsets", '{"orders": 7}'),
        ("startingTime", "soon"),
        ("columns", "__kye"),
        ("topic", "a/b"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_the_name_of_its_option(name: str, text: str) -> None:
    given = {"topic": "orders", name: text}
    assert refused(given).startswith(f"option {name} = {text!r}: ")


def test_a_word_that_is_nearly_right_is_told() -> None:
    assert "did you mean permissive" in refused({"topic": "orders", "mode": "permisive"})
    assert "did you mean __key" in refused({"topic": "orders", "columns": "__kye"})


def test_a_setting_of_the_java_client_is_refused_with_its_replacement() -> None:
    said = refused({"topic": "a", "pulsar.reader.receiverQueueSize": "1"})
    assert "option pulsar.reader.receiverQueueSize" in said and "use maxBytesPerPartition" in said
    assert "remove it" in refused({"topic": "a", "pulsar.client.numIoThreads": "2"})
    assert "use subscription" in refused({"topic": "a", "subscriptionPrefix": "s"})


def test_settings_of_a_producer_do_not_concern_a_read() -> None:
    assert batch(pulsar_producer_compressionType="LZ4", pulsar_producer_blockIfQueueFull="true") == batch()
    shared = {"topic": "a", "pulsar.reader.receiverQueueSize": "1"}
    assert parse(shared, WRITE) == parse({"topic": "a"}, WRITE)


def test_a_path_is_no_topic() -> None:
    assert "option topic" in refused({"topic": "orders", "path": "orders"})


def test_what_is_secret_is_neither_shown_nor_told() -> None:
    options = batch(token="hidden-word")
    assert "hidden-word" not in repr(options)
    assert "hidden-word" not in refused({"topic": "a", "token": "hidden-word", "tokenFile": "y"})


def test_options_travel() -> None:
    options = batch(startingOffsets='{"orders": "1:2"}')
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own


def test_no_two_options_share_a_name_and_every_use_has_some() -> None:
    names = [name.lower() for each in ROWS for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))
    assert all(any(use in each.used for each in ROWS) for use in (*READS, WRITE))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sinkid": "s", "delivery": "at-least-once"}, "option sinkId requires delivery=exactly-once, not at-least"),
        ({"sinkEpoch": "reset"}, "set sinkId"),
        ({"sinkId": "s", "jobId": "j"}, "set only one of them"),
        ({"jobPart": "2"}, "set jobId to the job's name"),
        ({"sinkNamespace": "default"}, "expected tenant/namespace, such as public/default"),
        ({"topic": "non-persistent://public/default/t"}, "use delivery=at-least-once"),
        (
            {"valueFormat": "bytes", "registerSchema": "true"},
            "registerSchema applies to columns, not to valueFormat=bytes",
        ),
        ({"batching": "none", "batchingMaxMessages": "5"}, "conflict"),
        ({"batchng": "key"}, "did you mean batching"),
        ({"startingOffsets": "earliest"}, "option startingOffsets applies to .*, not to write and writeStream"),
        ({"delivery": "exactly-twice"}, "must be one of exactly-once, at-least-once"),
    ],
)
def test_options_of_a_sink_that_cannot_be_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        parse({"topic": "t", **given}, WRITE)


def test_the_defaults_of_a_sink() -> None:
    found = parse({"topic": "t"}, WRITE)
    assert (found.delivery, found.batching, found.router, found.compression) == (
        "exactly-once",
        "key",
        "round-robin",
        "none",
    )
