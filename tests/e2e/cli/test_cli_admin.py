"""``pulsarbox topic``, ``sub``, ``ns`` and ``tenant`` as processes, beside the official client."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests import forks
from tests.e2e.clients import EARLIEST, PATIENCE_MS, QUIET_MS, is_quiet, numbered, receive, send_all, take, until
from tests.e2e.commands import running
from tests.e2e.conftest import Running

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def data(done: "subprocess.CompletedProcess[str]") -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def published(client: Any, topic: str, count: int) -> list[Any]:
    producer = client.create_producer(topic, batching_enabled=False)
    ids = send_all(producer, numbered(count))
    producer.close()
    return ids


def comes_back_to(consumer: Any, payloads: list[bytes]) -> None:
    """Check that the messages are redelivered after a move.

    Messages that the client had buffered may precede them, as the client learns of the move later. Nothing is
    acknowledged: the client delays acknowledgements as well, possibly beyond the next move.
    """
    got: list[bytes] = []
    while True:
        try:
            message = consumer.receive(timeout_millis=QUIET_MS if got[-len(payloads) :] == payloads else PATIENCE_MS)
        except pulsar.Timeout:
            assert got[-len(payloads) :] == payloads, got
            return
        got.append(message.data())
        assert len(got) < 50, got


def when_connected(run: Run, topic: str) -> Any:
    """Return the subscriptions once each has a consumer: consumers reconnect a moment after a move."""
    rows: list[Any] = []

    def connected() -> bool:
        rows[:] = data(run("sub", "list", topic, "-o", "json"))
        return all(row["consumers"] for row in rows)

    until(connected)
    return rows


def test_a_subscription_is_moved_skipped_cleared_and_seen_by_the_client(client: Any, topic: str, run: Run) -> None:
    ids = published(client, topic, 10)
    short = topic.removeprefix("persistent://public/default/")
    assert run("sub", "create", short, "s", "--at", "earliest").stdout == f"created subscription s on {short}\n"
    assert run("sub", "skip", short, "s", "3").returncode == 0
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    assert receive(consumer).data() == b"3"
    place = f"{ids[7].ledger_id()}:{ids[7].entry_id()}"
    moved = run("sub", "seek", short, "s", place, "--yes")
    assert moved.stdout == f"reset subscription s on {short} to {place}\n"
    comes_back_to(consumer, numbered(10)[7:])
    tried = run("sub", "seek", short, "s", "earliest", "--dry-run")
    assert tried.stdout == f"would have reset subscription s on {short} to earliest\n"
    assert "to 10 messages" in tried.stderr or "no preview" in tried.stderr
    found = run("sub", "seek", short, "s", "earliest")
    assert (found.returncode, "delivered again" in found.stderr or "no change" in found.stderr) == (0, True)
    comes_back_to(consumer, numbered(10))
    assert run("sub", "seek", short, "s", "@-1h").returncode == 0
    comes_back_to(consumer, numbered(10))
    assert run("sub", "clear", short, "s", "--yes").returncode == 0
    assert is_quiet(consumer)
    assert run("sub", "expire", short, "--older", "1h", "--yes").returncode == 0
    assert run("sub", "expire", short, "--older", "3600", "--yes").returncode == 0

    assert run("sub", "seek", short, "s", "latest", "--yes").returncode == 0
    (row,) = when_connected(run, short)
    assert (row["name"], row["type"], row["backlog"], row["consumers"]) == ("s", "Shared", 0, 1)
    refused = run("sub", "delete", short, "s", "--yes")
    assert (refused.returncode, "has active connected consumers" in refused.stderr) == (4, True)
    assert run("sub", "delete", short, "s", "--yes", "--force").returncode == 0
    consumer.close()  # otherwise the client reconnects and recreates the subscription


@pytest.mark.usefixtures("ours")
def test_messages_that_a_seek_or_a_batch_skips_need_a_yes(client: Any, topic: str, run: Run) -> None:
    short = topic.removeprefix("persistent://public/default/")
    assert run("produce", short, "hello", "-n", "30", "--keep", "s").returncode == 0  # one batch
    amount = f"30 messages in 1 entry of subscription s on {short}"
    dry = run("sub", "skip", short, "s", "2", "--dry-run")
    assert dry.stdout == f"would have skipped {amount}\n"
    refused = run("sub", "skip", short, "s", "2")
    assert (refused.returncode, f"this would skip {amount}: " in refused.stderr) == (2, True)
    refused = run("sub", "seek", short, "s", "latest")
    assert (refused.returncode, f"skip 30 messages of subscription s on {short}: " in refused.stderr) == (2, True)
    done = run("sub", "skip", short, "s", "2", "--yes")
    assert (done.stdout, "backlog 30 before, 0 now" in done.stderr) == (f"skipped {amount}\n", True)
    assert run("sub", "seek", short, "s", "earliest").returncode == 0  # skips nothing
    assert run("sub", "skip", short, "none", "2", "--dry-run").returncode == 3


@pytest.mark.parametrize(
    "words", ["tenant create", "tenant show", "tenant delete --yes", "ns list", "ns create", "sub create {topic}"]
)
def test_an_empty_name_is_refused(topic: str, run: Run, words: str) -> None:
    done = run(*words.format(topic=topic).split(), "")
    assert (done.returncode, done.stdout, done.stderr.startswith("pulsarbox: invalid ")) == (2, "", True), done.stderr


@pytest.mark.usefixtures("ours")
def test_a_dry_run_checks_what_it_would_disconnect_or_delete(run: Run) -> None:
    for words, code in ((("client", "kick", "nope"), 2), (("client", "kick", "99999999"), 3)):
        assert run(*words, "--dry-run").returncode == run(*words, "--yes").returncode == code
    for words in (("tenant", "delete", "nobody"), ("ns", "delete", "public/nothing")):
        assert run(*words, "--dry-run").returncode == 3


@pytest.mark.usefixtures("ours")
def test_the_limits_of_all_topics_are_listed(run: Run, topic: str) -> None:
    assert run("topic", "create", topic).returncode == 0
    assert run("topic", "policy", topic, "publish-rate", "50/s").returncode == 0
    rows: list[Any] = []

    def listed() -> bool:
        rows[:] = data(
            run("quota", "list", "--filter", f"topic == '{topic}' and policy == 'publish-rate'", "-o", "json")
        )
        return bool(rows)

    until(listed)
    assert [(row["limit"], row["unit"], row["level"]) for row in rows] == [(50, "messages/s", "topic")]


@pytest.mark.usefixtures("ours")
def test_an_expiry_reports_its_messages(client: Any, topic: str, run: Run) -> None:
    ids = published(client, topic, 10)
    short = topic.removeprefix("persistent://public/default/")
    assert run("sub", "create", short, "s", "--at", "earliest").returncode == 0
    through = f"{ids[3].ledger_id()}:{ids[3].entry_id()}"
    dry = run("sub", "expire", short, "s", "--through", through, "--dry-run")
    assert f"s on {short}: 4 of 10 messages expire" in dry.stderr
    done = run("sub", "expire", short, "s", "--through", through, "--yes")
    assert f"s on {short}: backlog 10 before, 6 now (messages): 4 expired" in done.stderr
    assert f"s on {short}: 0 of 6 messages expire" in run("sub", "expire", short, "--older", "1h", "--dry-run").stderr


@pytest.mark.parametrize(("name", "neighbour"), [("a+b", "a b"), ("a%2Fb", "a/b"), ("100%", "100"), ("ü?#;", "ü")])
def test_subscriptions_are_told_apart_whatever_their_names(
    client: Any, topic: str, run: Run, name: str, neighbour: str
) -> None:
    for each in (neighbour, name):
        client.subscribe(topic, each, initial_position=EARLIEST).close()
    published(client, topic, 3)
    assert run("sub", "clear", topic, name, "--yes").returncode == 0
    backlogs = {each["name"]: each["backlog"] for each in data(run("sub", "list", topic, "-o", "json"))}
    assert backlogs == {name: 0, neighbour: 3}
    for words in (["seek", topic, name, "earliest"], ["skip", topic, name, "1"], ["dead-letter", topic, name]):
        assert run("sub", *words).returncode == 0, words
    assert run("sub", "delete", topic, name, "--yes").returncode == 0
    assert data(run("sub", "list", topic, "-o", "json"))[0]["name"] == neighbour


def test_holes_are_what_was_not_acknowledged(client: Any, topic: str, run: Run) -> None:
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared, initial_position=EARLIEST)
    published(client, topic, 10)
    messages = [receive(consumer) for _ in range(10)]
    for i in (2, 3, 6):
        consumer.acknowledge(messages[i])
    consumer.close()  # its acknowledgements have arrived
    rows = data(run("sub", "holes", topic, "s", "-o", "json"))
    ledger = messages[0].message_id().ledger_id()
    assert [(row["first"], row["last"], row["entries"]) for row in rows] == [
        (f"{ledger}:0", f"{ledger}:1", 2),
        (f"{ledger}:4", f"{ledger}:5", 2),
    ]


def test_statistics_of_what_goes_on(client: Any, topic: str, run: Run, box: Running) -> None:
    producer = client.create_producer(topic, producer_name="maker")
    client.subscribe(topic, "s", consumer_name="eater")
    producer.send(b"x")
    stats = data(run("topic", "stats", topic, "-o", "json"))
    assert (stats["msgInCounter"], stats["publishers"][0]["producerName"]) == (1, "maker")
    assert stats["subscriptions"]["s"]["consumers"][0]["consumerName"] == "eater"
    text = run("topic", "stats", topic).stdout
    assert ("maker" in text, "Exclusive" in text) == (True, True)
    text = run("sub", "stats", topic, "s").stdout
    assert "eater" in text
    if box.is_ours:  # Pulsar does not report this
        assert "not dispatched" in text


def test_backlogs_are_messages_as_in_the_dashboard_and_entries_stand_beside(
    client: Any, topic: str, run: Run, box: Running
) -> None:
    client.subscribe(topic, "s").close()
    client.subscribe(topic, "none").close()
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=50, batching_max_publish_delay_ms=2000
    )
    send_all(producer, numbered(100))
    client.subscribe(topic, "none").close()
    assert run("sub", "clear", topic, "none", "--yes").returncode == 0
    expected = (100, "messages", 2) if box.is_ours else (2, "entries", 2)
    title = "BACKLOG  ENTRIES" if box.is_ours else "BACKLOG (ENTRIES)"
    for words in (["sub", "list", topic], ["topic", "list", "--stats", "--filter", f"topic == '{topic}'"]):
        row = data(run(*words, "-o", "json"))[-1]
        assert (row["backlog"], row["backlog_unit"], row["backlog_entries"]) == expected, words
        assert title in run(*words).stdout.splitlines()[0], words
    assert title in run("topic", "stats", topic).stdout
    for threshold, names in ((0, ["s"]), (expected[0] - 1, ["s"]), (expected[0], [])):
        found = run("sub", "list", topic, "--filter", f"backlog > {threshold}", "-o", "name")
        assert (found.returncode, found.stdout.split()) == (0, names)
    if box.is_ours:

        def in_the_dashboard() -> list[tuple[str, int]]:
            shown = data(run("top", "--once", "--filter", f"topic == '{topic}' and backlog > 0", "-o", "json"))
            return [(row["subscription"], row["backlog"]) for row in shown["rows"]]

        until(lambda: in_the_dashboard() == [("s", 100)])  # which polls once a second


def test_the_backlogs_of_partitions(client: Any, topic: str, run: Run, box: Running) -> None:
    short = topic.removeprefix("persistent://public/default/")
    assert run("topic", "create", short, "--partitions", "2").returncode == 0
    client.subscribe(topic, "s").close()
    producer = client.create_producer(
        f"{topic}-partition-1", batching_enabled=True, batching_max_messages=50, batching_max_publish_delay_ms=2000
    )
    send_all(producer, numbered(50))
    rows = data(run("topic", "partitions", short, "-o", "json"))
    assert [row["backlog"] for row in rows] == [0, 50 if box.is_ours else 1]
    assert [row["backlog_entries"] for row in rows] == [0, 1]


def test_unloading_loses_nothing(client: Any, topic: str, run: Run) -> None:
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic, batching_enabled=False)
    pending: list[Any] = []
    for i in range(200):
        producer.send_async(b"%d" % i, lambda result, _: pending.append(result))
        if i == 100:
            assert run("topic", "unload", topic).returncode == 0
    until(lambda: len(pending) == 200)
    assert pending == [pulsar.Result.Ok] * 200
    got = list(dict.fromkeys(take(consumer, 200)))
    assert got == numbered(200)[: len(got)]


def test_a_topic_ends(client: Any, topic: str, run: Run) -> None:
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    published(client, topic, 2)
    refused = run("topic", "terminate", topic)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True), refused.stderr
    done = run("topic", "terminate", topic, "--yes")
    assert (done.returncode, done.stdout.startswith("terminated topic")) == (0, True), done
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
    assert take(consumer, 2) == numbered(2)
    assert run("topic", "terminate", topic, "--yes").returncode == 0
    said = run("admin", "topics", "terminate", topic)
    assert said.stdout.startswith("Topic successfully terminated at "), said.stderr
    parts = f"{topic}-parts"
    assert run("topic", "create", parts, "--partitions", "2").returncode == 0
    assert run("topic", "terminate", parts, "--yes").returncode == 0
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(parts)


def test_topics_that_the_box_keeps_for_itself_are_listed_apart(box: Running, run: Run) -> None:
    assert box.admin("GET", "brokers/health") == "ok"
    assert run("topic", "list", "pulsar/system", "-o", "name").stdout == ""
    own = "persistent://pulsar/system/healthcheck"
    assert run("topic", "list", "pulsar/system", "--system", "-o", "name").stdout.splitlines() == [own]
    assert run("admin", "topics", "list", "pulsar/system", "--include-system-topic").stdout.split() == [own]
    refused = run("topic", "create", "__change_events")
    assert refused.returncode != 0 and "system topic" in refused.stderr


def test_the_life_of_topics_of_a_tenant(run: Run) -> None:
    assert run("tenant", "create", "acme").stdout == "created tenant acme\n"
    assert run("ns", "create", "acme/prod").stdout == "created namespace acme/prod\n"
    assert run("topic", "create", "acme/prod/a1", "acme/prod/a2", "--partitions", "3").returncode == 0
    assert run("topic", "create", "acme/prod/b").returncode == 0
    again = run("topic", "create", "acme/prod/b", "acme/prod/c")
    assert (again.returncode, again.stdout) == (8, "created topic acme/prod/c\n")
    rows = data(run("topic", "list", "acme/prod", "-o", "json"))
    assert [(row["name"], row["partitions"]) for row in rows] == [
        ("acme/prod/a1", 3),
        ("acme/prod/a2", 3),
        ("acme/prod/b", 0),
        ("acme/prod/c", 0),
    ]
    names = run("topic", "list", "acme/prod", "-o", "name", "--filter", "partitions > 0").stdout
    assert names.splitlines() == ["persistent://acme/prod/a1", "persistent://acme/prod/a2"]
    assert len(run("topic", "list", "acme/prod", "--partitions", "-o", "name").stdout.splitlines()) == 8
    assert run("topic", "partitions", "acme/prod/a1", "4").returncode == 0
    assert len(data(run("topic", "partitions", "acme/prod/a1", "-o", "json"))) == 4
    for words in (["tenant", "delete", "acme"], ["ns", "delete", "acme/prod"]):
        assert run(*words, "--yes").returncode == 4
    shown = run("topic", "delete", "acme/prod/a*", "--dry-run")
    assert shown.stdout == "would have deleted topic acme/prod/a1\nwould have deleted topic acme/prod/a2\n"
    unasked = run("topic", "delete", "acme/prod/a*")
    assert (unasked.returncode, "specify --yes" in unasked.stderr) == (2, True)
    assert run("topic", "delete", "acme/prod/*", "--yes").returncode == 0
    assert run("topic", "list", "acme/prod", "-o", "name").stdout == ""
    assert run("ns", "delete", "acme/prod", "--yes").returncode == 0
    assert data(run("tenant", "show", "acme", "-o", "json"))["namespaces"] == []
    assert run("tenant", "delete", "acme", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["topic", "stats", "{near}"], "no topic '{near}'; did you mean {name}?"),
        (["topic", "stats", "publik/default/x"], "no tenant 'publik'; did you mean public?"),
        (["topic", "list", "public/defautl"], "no namespace 'public/defautl'; did you mean public/default?"),
        (["sub", "stats", "{name}", "billling"], "no subscription 'billling' on {name}; did you mean billing?"),
        (
            ["sub", "seek", "{name}", "billling", "latest"],
            "no subscription 'billling' on {name}; did you mean billing?",
        ),
        (["sub", "skip", "{near}", "billing", "1"], "no topic '{near}'; did you mean {name}?"),
        (["topic", "delete", "{near}", "--yes"], "no topic '{near}'; did you mean {name}?"),
        (["topic", "delete", "zzz*", "--yes"], "nothing matches 'zzz*'"),
        (["tenant", "show", "publik"], "no tenant 'publik'; did you mean public?"),
        (["ns", "policy", "public/defautl"], "no namespace 'public/defautl'; did you mean public/default?"),
        (["ns", "create", "publik/x"], "no tenant 'publik'; did you mean public?"),
    ],
)
def test_what_was_meant(run: Run, topic: str, words: list[str], text: str) -> None:
    name = topic.removeprefix("persistent://public/default/")
    near = name + "x"
    assert run("sub", "create", name, "billing").returncode == 0
    done = run(*[word.format(name=name, near=near) for word in words])
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"pulsarbox: {text.format(name=name, near=near)}\n"


def test_what_is_refused_says_what_to_do_instead(run: Run, topic: str) -> None:
    run("topic", "create", topic, "-p", "2")
    run("sub", "create", topic, "s")
    skipped = run("sub", "skip", topic, "s", "1")
    name = topic.removeprefix("persistent://public/default/")
    assert (skipped.returncode, f"`pulsarbox sub skip {name}-partition-0 s 1`" in skipped.stderr) == (2, True)
    assert run("sub", "skip", f"{topic}-partition-0", "s", "1").returncode == 0
    tenant = f"t-{name}"
    run("tenant", "create", tenant)
    run("ns", "create", f"{tenant}/n")
    run("topic", "create", f"{tenant}/n/t")
    for words, code, what in (
        (("tenant", "delete", tenant), 4, "namespaces"),
        (("ns", "delete", f"{tenant}/n"), 4, "topics"),
    ):
        kept = run(*words, "--yes")
        assert (kept.returncode, f"delete its {what} first, or use --force" in kept.stderr) == (code, True), kept.stderr
        forced = run(*words, "--yes", "--force")
        setting = f"forceDelete{'Tenant' if what == 'namespaces' else 'Namespace'}Allowed"
        assert (forced.returncode, f"update-dynamic-config -c {setting} -v true`" in forced.stderr) == (1, True)
    for words in (("topic", "delete", f"{tenant}/n/t"), ("ns", "delete", f"{tenant}/n"), ("tenant", "delete", tenant)):
        assert run(*words, "--yes").returncode == 0


def test_nobody_there_and_nobody_who_answers(run: Run) -> None:
    done = forks.text(forks.run("topic", "list", "--admin-url", "http://127.0.0.1:1"))
    assert (done.returncode, "cannot connect to" in done.stderr) == (6, True)


def test_watching_without_a_terminal_gives_lines(run: Run, box: Running) -> None:
    with running("tenant", "list", "--watch", "0.1", "--admin-url", box.web_url) as process:
        assert process.stdout is not None
        looks: dict[int, set[str]] = {}
        while len(looks) < 3:
            row = json.loads(process.stdout.readline())
            looks.setdefault(row["time"], set()).add(row["name"])
        process.terminate()
    assert list(looks) == sorted(looks)
    assert all({"public", "pulsar"} <= names for names in list(looks.values())[:2])
