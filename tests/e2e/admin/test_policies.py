"""Policies end to end: set by commands, effective for the official client, preserved over a restart."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import connect, receive
from tests.e2e.commands import run as command
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess

Run = Callable[..., "subprocess.CompletedProcess[str]"]
NAMESPACE = "public/policies"


@pytest.fixture(autouse=True)
def namespace(box: Running) -> Iterator[str]:
    """Create a namespace for each test. Only a box reports which level set a value."""
    if not box.is_ours:
        pytest.skip("only a box tells which level has set a policy")
    box.admin("PUT", f"namespaces/{NAMESPACE}")
    yield NAMESPACE
    for domain in ("persistent", "non-persistent"):
        for name in json.loads(box.admin("GET", f"{domain}/{NAMESPACE}/partitioned")):
            box.admin("DELETE", f"{name.replace('://', '/')}/partitions?force=true")
    for name in json.loads(box.admin("GET", f"namespaces/{NAMESPACE}/topics?mode=ALL")):
        box.admin("DELETE", f"{name.replace('://', '/')}?force=true")
    box.admin("DELETE", f"namespaces/{NAMESPACE}")


def said(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(done: "subprocess.CompletedProcess[str]") -> Any:
    return json.loads(said(done))


def test_one_policy_from_the_broker_to_the_topic_and_back(run: Run) -> None:
    topic = f"{NAMESPACE}/t"
    said(run("topic", "create", topic))

    def holds() -> tuple[Any, str]:
        found = shown(run("topic", "policy", topic, "max-consumers", "-o", "json"))
        return found["value"], found["level"]

    assert holds() == (0, "broker")
    assert said(run("ns", "policy", NAMESPACE, "max-consumers", "5")) == f"set max-consumers of {NAMESPACE} to 5\n"
    assert holds() == (5, "namespace")
    said(run("topic", "policy", topic, "max-consumers", "6"))
    assert holds() == (6, "topic")
    assert said(run("topic", "policy", topic, "max-consumers")) == "6    (topic)\n"
    said(run("topic", "policy", topic, "max-consumers", "--unset"))
    assert holds() == (5, "namespace")
    said(run("ns", "policy", NAMESPACE, "max-consumers", "--unset"))
    assert holds() == (0, "broker")


@pytest.mark.parametrize(
    ("policy", "value", "kept"),
    [
        ("message-ttl", "60", 60),
        ("deduplication", "on", True),
        ("encryption-required", "true", True),
        ("schema-compatibility-strategy", "backward", "BACKWARD"),
        ("subscription-types-enabled", "shared,exclusive", ["Exclusive", "Shared"]),
        (
            "retention",
            "retentionTimeInMinutes=60,retentionSizeInMB=-1",
            {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1},
        ),
        (
            "persistence",
            "bookkeeperEnsemble=3,bookkeeperWriteQuorum=2,bookkeeperAckQuorum=2,managedLedgerMaxMarkDeleteRate=0.5",
            {
                "bookkeeperEnsemble": 3,
                "bookkeeperWriteQuorum": 2,
                "bookkeeperAckQuorum": 2,
                "managedLedgerMaxMarkDeleteRate": 0.5,
            },
        ),
        (
            "auto-subscription-creation",
            '{"allowAutoSubscriptionCreation": false}',
            {"allowAutoSubscriptionCreation": False},
        ),
    ],
)
def test_values_of_all_shapes_for_a_namespace(policy: str, value: str, kept: Any, run: Run) -> None:
    done = run("ns", "policy", NAMESPACE, policy, value)
    said(done)
    rows = shown(run("ns", "policy", NAMESPACE, "--levels", "-o", "json", "--filter", f'policy == "{policy}"'))
    assert [(row["value"], row["level"]) for row in rows] == [(kept, "namespace")]
    assert ("without effect" in done.stderr) == (not rows[0]["applied"])
    said(run("ns", "policy", NAMESPACE, policy, "--unset"))
    (row,) = shown(run("ns", "policy", NAMESPACE, "--levels", "-o", "json", "--filter", f'policy == "{policy}"'))
    assert row["value"] != kept


def test_a_resource_group(run: Run, box: Running) -> None:
    box.admin("PUT", "resourcegroups/e2e", json.dumps({"publishRateInMsgs": 1000}))
    said(run("ns", "policy", NAMESPACE, "resource-group", "e2e"))
    assert shown(run("ns", "policy", NAMESPACE, "resource-group", "-o", "json"))["value"] == "e2e"
    said(run("ns", "policy", NAMESPACE, "resource-group", "--unset"))
    box.admin("DELETE", "resourcegroups/e2e")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["ns", "policy", NAMESPACE, "message-tll", "3"], 2, "did you mean message-ttl"),
        (["ns", "policy", NAMESPACE, "message-ttl", "soon"], 2, "or a duration such as 90s, 15m, 1h30m or 7d"),
        (["ns", "policy", NAMESPACE, "message-ttl", "3", "--unset"], 2, "unknown policy '3'"),
        (["ns", "policy", NAMESPACE, "--unset"], 2, "--unset requires the name of a policy"),
        (["ns", "policy", NAMESPACE, "max-message-size", "3"], 2, "applies to topics only"),
        (
            ["ns", "policy", NAMESPACE, "backlog-quota", "3"],
            2,
            "expected a size or an age, and one of hold, refuse, evict",
        ),
        (["ns", "policy", NAMESPACE, "message-ttl", "3", "retention"], 2, "retention has no value"),
        (["ns", "policy", NAMESPACE, "message-ttl", "3", "message-ttl", "4"], 2, "message-ttl is specified twice"),
        (["ns", "policy", "public/polices", "message-ttl", "3"], 3, "did you mean public/policies"),
        (["topic", "policy", f"{NAMESPACE}/none", "max-producers", "3"], 3, "no topic"),
        (["quota", "set", NAMESPACE, "--then", "hold"], 2, "--size, --age, or both"),
        (
            ["quota", "set", NAMESPACE, "--then", "hold", "--size", "x"],
            2,
            "expected a number of bytes, or a size such as",
        ),
        (["quota", "set", NAMESPACE, "--then", "hold", "--age", "-1"], 2, "expected a limit of 1 or more"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_is_wrong_is_said(words: list[str], code: int, message: str, run: Run) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_quotas_of_a_topic_and_a_namespace(run: Run) -> None:
    topic = f"{NAMESPACE}/t"
    said(run("topic", "create", topic))
    said(run("quota", "set", NAMESPACE, "--size", "2G", "--then", "hold"))
    said(run("quota", "set", topic, "--age", "1h", "--then", "refuse"))
    rows = shown(run("topic", "policy", topic, "backlog-quota", "-o", "json"))
    assert {row["policy"]: (row["level"], row["value"]["policy"]) for row in rows} == {
        "backlog-quota:destination_storage": ("namespace", "producer_request_hold"),
        "backlog-quota:message_age": ("topic", "producer_exception"),
    }
    assert rows[0]["value"]["limitSize"] == 2 << 30
    assert rows[1]["value"]["limitTime"] == 3600
    said(run("quota", "unset", topic))
    said(run("quota", "unset", NAMESPACE, "--size"))
    rows = shown(run("topic", "policy", topic, "backlog-quota", "-o", "json"))
    assert [row["level"] for row in rows] == ["broker", "broker"]


def test_several_policies_in_one_command(run: Run) -> None:
    topic = f"{NAMESPACE}/several"
    said(run("topic", "create", topic))
    done = said(run("topic", "policy", topic, "retention", "7d,1G", "backlog-quota", "100M,hold", "message-ttl", "1h"))
    assert done.splitlines() == [
        f"set retention of {topic} to 7d,1GiB",
        f"set backlog-quota:destination_storage of {topic} to 100MiB,hold",
        f"set message-ttl of {topic} to 1h",
    ]
    said(run("topic", "policy", topic, "backlog-quota:message_age", "2d,evict"))
    rows = shown(run("topic", "policy", topic, "-o", "json", "--filter", 'level == "topic"'))
    assert {row["policy"]: row["setting"] for row in rows} == {
        "backlog-quota:destination_storage": "100MiB,hold",
        "backlog-quota:message_age": "2d,evict",
        "message-ttl": "1h",
        "retention": "7d,1GiB",
    }
    # Nothing is changed if one value is invalid.
    refused = run("topic", "policy", topic, "message-ttl", "5h", "retention", "7x")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert said(run("topic", "policy", topic, "message-ttl")) == "1h    (topic)\n"
    said(run("topic", "policy", topic, "--unset", "backlog-quota", "retention"))
    said(run("topic", "policy", topic, "message-ttl", "default"))
    assert shown(run("topic", "policy", topic, "-o", "json", "--filter", 'level == "topic"')) == []


def test_a_quota_may_be_off_or_removed(run: Run) -> None:
    topic = f"{NAMESPACE}/quotas"
    said(run("topic", "create", topic))
    set_to = ("quota", "set", topic, "--then", "producer_request_hold")
    assert said(run(*set_to, "--size", "2G", "--age", "1h")).splitlines() == [
        f"set the size quota of {topic} to 2GiB,hold",
        f"set the age quota of {topic} to 1h,hold",
    ]
    done = said(run("quota", "set", topic, "--size", "off", "--age", "default")).splitlines()
    assert done == [f"set the size quota of {topic} to unlimited", f"unset the age quota of {topic}"]
    rows = shown(run("topic", "policy", topic, "-o", "json", "--filter", 'level == "topic"'))
    assert {row["policy"]: row["setting"] for row in rows} == {"backlog-quota:destination_storage": "unlimited"}
    said(run("quota", "set", topic, "--size", "default"))


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("set orders --size 0 --then hold", 2, "expected a limit of 1 or more, not '0'; for no limit, specify off"),
        ("set orders --size 1,5G --then hold", 2, "or off or unlimited; or default, not '1,5G'; did you mean 1.5G?"),
        ("set orders --size 1G --then keep", 2, "hold (producer_request_hold), "),
        ("set orders --size 1G", 2, "specify the action at the limit: --then hold, refuse, evict"),
        ("set orders", 2, "specify --size, --age, or both"),
        ("show public/default", 2, "public/default is a namespace: specify a topic"),
        ("show default", 3, "public/default is a namespace: specify tenant/namespace or a topic"),
    ],
)
def test_what_a_quota_needs(run: Run, words: str, code: int, told: str) -> None:
    done = run("quota", *words.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr


def test_default_removes_policies_that_are_text(run: Run) -> None:
    said(run("ns", "policy", NAMESPACE, "anti-affinity-group", '"default"', "compression-at-rest", "zstd"))
    rows = {row["policy"]: row for row in shown(run("ns", "policy", NAMESPACE, "--levels", "-o", "json"))}
    assert rows["anti-affinity-group"]["value"] == "default"
    assert rows["anti-affinity-group"]["setting"] == '"default"'
    said(run("ns", "policy", NAMESPACE, "anti-affinity-group", "default", "compression-at-rest", "default"))
    said(run("ns", "policy", NAMESPACE, "resource-group", "default"))
    rows = {row["policy"]: row for row in shown(run("ns", "policy", NAMESPACE, "--levels", "-o", "json"))}
    assert {row["level"] for name, row in rows.items() if name in ("anti-affinity-group", "compression-at-rest")} <= {
        "broker"
    }


def test_a_set_value_is_shown_as_it_was_understood(run: Run) -> None:
    topic = f"{NAMESPACE}/understood"
    said(run("topic", "create", topic))
    done = run("topic", "policy", topic, "publish-rate", "5mb/s", "backlog-quota", "1.5G,producer_request_hold")
    assert said(done).splitlines() == [
        f"set publish-rate of {topic} to 5MiB/s",
        f"set backlog-quota:destination_storage of {topic} to 1.5GiB,hold",
    ]
    unknown = run("topic", "policy", topic, "publish-rate", '{"foo": 1}')
    assert unknown.returncode == 2
    assert "unknown member 'foo'" in unknown.stderr
    assert "publish-rate" in run("topic", "policy", topic, "publish-rate", "1k/s").stderr
    assert said(run("topic", "policy", topic, "publish-rate")).startswith("5MiB/s ")
    too_large = run("topic", "policy", topic, "max-message-size", "100M")
    assert too_large.returncode == 2
    assert "(maxMessageSize of the broker: 5MiB)" in too_large.stderr


def test_policies_of_a_namespace_are_shown_as_people_write_them(run: Run) -> None:
    said(run("ns", "policy", NAMESPACE, "message-ttl", "1h"))
    table = said(run("ns", "policy", NAMESPACE))
    assert table.split()[:4] == ["POLICY", "SETTING", "LEVEL", "APPLIED"]
    assert ["message-ttl", "1h", "namespace", "yes"] in [line.split() for line in table.splitlines()]
    assert shown(run("ns", "policy", NAMESPACE, "-o", "json"))["message_ttl_in_seconds"] == 3600
    said(run("ns", "policy", NAMESPACE, "--unset", "message-ttl"))


def test_a_dry_run_changes_nothing(run: Run) -> None:
    assert said(run("ns", "policy", NAMESPACE, "message-ttl", "60", "--dry-run")).startswith("would have set")
    assert said(run("quota", "set", NAMESPACE, "--size", "2G", "--then", "hold", "--dry-run")).startswith("would have")
    assert shown(run("ns", "policy", NAMESPACE, "message-ttl", "-o", "json"))["level"] == "broker"


# Effects on the official client


def test_limits_on_producers_and_consumers(run: Run, client: Any) -> None:
    topic = f"persistent://{NAMESPACE}/t"
    first = client.create_producer(topic)
    said(run("topic", "policy", topic, "max-producers", "1"))
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic)
    first.close()
    client.create_producer(topic).close()
    said(run("ns", "policy", NAMESPACE, "max-consumers-per-subscription", "1"))
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    said(run("topic", "policy", topic, "max-subscriptions-per-topic", "1"))
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "other")
    consumer.close()


def test_topics_that_clients_make_have_as_many_partitions_as_the_namespace_says(
    run: Run, client: Any, box: Running
) -> None:
    value = "allowAutoTopicCreation=true,topicType=partitioned,defaultNumPartitions=3"
    said(run("ns", "policy", NAMESPACE, "auto-topic-creation", value))
    client.create_producer(f"persistent://{NAMESPACE}/new").send(b"x")
    assert json.loads(box.admin("GET", f"persistent/{NAMESPACE}/new/partitions"))["partitions"] == 3
    said(run("ns", "policy", NAMESPACE, "auto-topic-creation", "allowAutoTopicCreation=false"))
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(f"persistent://{NAMESPACE}/another")


def test_deduplication_of_one_topic(run: Run, client: Any) -> None:
    topic = f"persistent://{NAMESPACE}/t"
    producer = client.create_producer(topic, producer_name="p", initial_sequence_id=1, batching_enabled=False)
    said(run("topic", "policy", topic, "deduplication", "on"))
    producer.send(b"a", sequence_id=5)
    producer.send(b"b", sequence_id=5)
    producer.send(b"c", sequence_id=6)
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    assert [receive(consumer).data() for _ in range(2)] == [b"a", b"c"]


def test_what_is_set_is_there_after_a_kill(own_box: BoxProcess) -> None:
    own_box.start()
    url = ("--admin-url", own_box.web_url)
    command("topic", "create", "t", *url)
    command("topic", "policy", "t", "max-producers", "1", *url)
    command("ns", "policy", "public/default", "subscription-types-enabled", "Shared", *url)
    own_box.kill()
    own_box.start()
    client = connect(own_box.url)
    try:
        client.create_producer("t")
        with pytest.raises(pulsar.ProducerBusy):
            client.create_producer("t")
        with pytest.raises(pulsar.NotAllowedError):
            client.subscribe("t", "s")
        client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
    finally:
        client.close()


def test_quotas_are_shown_and_explained(run: Run, client: Any) -> None:
    topic = f"persistent://{NAMESPACE}/explained"
    rate = "dispatchThrottlingRateInMsg=1,dispatchThrottlingRateInByte=-1,ratePeriodInSecond=3600"
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    said(run("ns", "policy", NAMESPACE, "subscription-dispatch-rate", rate))
    said(run("quota", "set", topic, "--size", "1M", "--then", "refuse"))
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(5):
        producer.send(b"%d" % number)
    receive(consumer)
    rows = {row["limit"]: row for row in shown(run("quota", "show", topic, "-o", "json"))}
    assert (rows["dispatch"]["scope"], rows["dispatch"]["messagesLimit"], rows["dispatch"]["waiting"]) == (
        "subscription", 1, 1,
    )  # fmt: skip
    assert (rows["backlog size"]["setBy"], rows["backlog size"]["then"]) == ("topic", "producer_exception")
    table = said(run("quota", "show", topic, "s"))
    assert "1 message in 3600 s" in table
    lines = said(run("quota", "explain", topic, "s")).splitlines()
    assert "a backlog of 5 messages" in lines[0]
    assert "not dispatched: the dispatch rate is reached" in lines[1]
    assert "  namespace  1 message in 3600 s    <- in effect" in lines
    assert "  topic      1.0 MiB, then producers are rejected    <- in effect" in lines
    said(run("ns", "policy", NAMESPACE, "subscription-dispatch-rate", "--unset"))
    assert [receive(consumer).data() for _ in range(4)] == [b"1", b"2", b"3", b"4"]
    consumer.close()
    producer.close()
    missing = run("quota", "explain", topic, "t")
    assert (missing.returncode, missing.stderr) == (3, f"pulsarbox: no subscription 't' on {NAMESPACE}/explained\n")
