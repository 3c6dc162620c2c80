"""Ready-made pipelines with a real box, each restarted meanwhile; commands in the shared session."""

import contextlib
import csv
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import pulsar
import pytest

from pulsarbox.client.admin_call import ask
from pulsarbox.spark.pipelines.shipped import publish_job, publishing
from tests.e2e.clients import connect
from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.e2e.spark.conftest import Command, Take

NOW = 1_700_000_000_000


def kept(box: Running, topic: str, subscription: str) -> None:
    """Create a topic with a subscription, which retains later messages."""
    client = connect(box.url)
    client.subscribe(topic, subscription, pulsar.ConsumerType.Shared).close()
    client.close()


def backlog(box: Running, topic: str, subscription: str) -> int:
    told = json.loads(box.admin("GET", f"{topic.replace('://', '/')}/stats"))
    return int(told["subscriptions"][subscription]["msgBacklog"])


class Killed(Exception):
    """Replacement for kill -9."""


def killing_at(part: int) -> Callable[[Any, int], dict[str, str]]:
    """Return the naming function for parts, which raises Killed at the given part."""
    named = publish_job.PublishJob.part

    def name(job: publish_job.PublishJob, number: int) -> dict[str, str]:
        if number == part:
            raise Killed
        return named(job, number)

    return name


# Backfill and export


def test_rows_of_csv_are_published_once_with_their_times_and_keys_and_exported(
    command: "Command",
    box: Running,
    topic: str,
    take: "Take",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept(box, topic, "s")
    path, job, state = tmp_path / "orders.csv", topic.rpartition("/")[2], ("--state", str(tmp_path / "state"))
    rows = [{"id": f"k{n % 3}", "at": NOW + n, "n": n, "colour": "red" if n % 2 else None} for n in range(10)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    asked = ["backfill", str(path), "--format", "csv", "--to", topic, "--key", "id", "--event-time", "at", "--job", job]
    asked += ["--schema", "id string, at bigint, n int, colour string", "--property", "colour", *state]
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "PART_ROWS", 4)
        patched.setattr(publish_job.PublishJob, "part", killing_at(1))
        assert isinstance(command(*asked, ends_with=1).exception, Killed)
    assert len(take(topic)) == 4
    path.unlink()  # the staged data is sufficient
    result = command(*asked)
    assert "10 messages published" in result.stderr
    found = take(topic)
    assert [json.loads(each.data()) for each in found] == [{"at": NOW + n, "n": n} for n in range(10)]
    assert [(each.partition_key(), each.event_timestamp()) for each in found] == [(r["id"], r["at"]) for r in rows]
    assert [each.properties() for each in found[:2]] == [{}, {"colour": "red"}]
    assert "has already completed" in command(*asked).stderr
    assert "was started with --format 'csv'" in command(*asked[:3], "json", *asked[4:], ends_with=4).stderr
    anew = [*asked[:-1], str(tmp_path / "other")]
    rows_again = tmp_path / "orders.csv"
    rows_again.write_text("id,at,n,colour\nk,1,1,red\n")
    assert "was started with a --state other" in command(*anew, ends_with=4).stderr
    _export_it(command, topic, tmp_path)


@pytest.mark.campaign
def test_what_no_message_can_be_is_said_before_any_is_published(
    command: "Command", box: Running, topic: str, take: "Take", tmp_path: Path
) -> None:
    kept(box, topic, "s")
    path, job = tmp_path / "odd.csv", topic.rpartition("/")[2]
    asked = ["backfill", str(path), "--format", "csv", "--to", topic, "--job", job, "--state", str(tmp_path / "st[1]")]
    path.write_text("order.id,a b,at\n1,x,1969-12-31T23:59:59Z\n")
    assert "column 'a b' cannot be a record field" in command(*asked, "--key", "order.id", ends_with=2).stderr
    asked += ["--key", "order.id", "--property", "a b", "--option", "header=true"]
    before = command(*asked, "--event-time", "at", ends_with=1).stderr
    assert "column at: 1969-12-31 23:59:59 is before 1970" in before
    path.write_text("order.id,a b,at\n1,x\n")
    assert "Malformed CSV record: 1,x" in command(*asked, ends_with=1).stderr
    assert take(topic) == []
    path.write_text("order.id,a b,at\n1,x,2026-11-22T10:00:00Z\n")
    command(*asked, "--event-time", "at")
    (found,) = take(topic)
    assert (found.partition_key(), found.properties(), found.event_timestamp()) == ("1", {"a b": "x"}, 1795341600000)


def _export_it(command: "Command", topic: str, folder: Path) -> None:
    place = folder / "out"
    asked = ("--format", "csv", "--bytes", "text", "--columns", "n,__key,__messageProperties")
    command("export", topic, "--to", str(place), *asked)
    found = [row for each in place.glob("*.csv") for row in csv.DictReader(each.read_text().splitlines())]
    assert sorted((int(row["n"]), row["__key"], row["__messageProperties"]) for row in found)[:2] == [
        (0, "k0", "{}"),
        (1, "k1", '{"colour":"red"}'),
    ]
    assert len(found) == 10
    assert "is not empty: use --append" in command("export", topic, "--to", str(place), ends_with=4).stderr
    assert "10 messages written" in command("export", topic, "--to", str(place), "--overwrite").stderr


def place_of(message: pulsar.Message) -> str:
    """Return the ID of a message in the format of our commands."""
    told = message.message_id()
    return f"{told.ledger_id()}:{told.entry_id()}:-1:{told.batch_index()}"


@pytest.mark.campaign
def test_rows_go_where_each_says_in_the_order_asked_for_and_come_back_by_id_or_time(
    command: "Command", topic: str, take: "Take", tmp_path: Path
) -> None:
    path, job = tmp_path / "rows.json", topic.rpartition("/")[2]
    rows = [{"n": n, "to": f"{topic}-{n % 2}", "text": f"v{n}", "who": "a"} for n in (5, 3, 1, 2, 4, 0)]
    path.write_text("\n".join(map(json.dumps, rows)))
    asked = ["backfill", str(path), "--format", "json", "--topic-column", "to", "--value", "text", "--order-by", "n"]
    command(*asked, "--ordering-key", "who", "--job", job, "--state", str(tmp_path / "state"))
    found = take(f"{topic}-0")
    assert [(each.data(), each.ordering_key()) for each in found] == [(b"v0", "a"), (b"v2", "a"), (b"v4", "a")]
    assert [each.data() for each in take(f"{topic}-1")] == [b"v1", b"v3", b"v5"]
    ranges = {
        "one": (["--from", place_of(found[1]), "--until", place_of(found[1])], ["v2"]),
        "rest": (["--from", place_of(found[1])], ["v2", "v4"]),
        "hour": (["--from", "-1h"], ["v0", "v2", "v4"]),
        "none": (["--until", "2020-01-01T00:00"], []),
    }
    for name, (words, wanted) in ranges.items():
        place = tmp_path / name
        form = ("--format", "csv", "--bytes", "text", "--columns", "value")
        command("export", f"{topic}-0", "--to", str(place), *form, *words)
        lines = [line for each in place.glob("*.csv") for line in each.read_text().splitlines() if line != "value"]
        assert sorted(lines) == wanted, name


@pytest.mark.campaign
def test_topics_that_keep_nothing_are_named_before_the_first_row_and_a_subscription_keeps_them(
    command: "Command", box: Running, space: str, topic: str, tmp_path: Path
) -> None:
    box.admin("POST", f"namespaces/{space}/retention", '{"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}')
    path, job, lossy = tmp_path / "rows.json", topic.rpartition("/")[2], f"persistent://{space}/lossy"
    path.write_text("\n".join(json.dumps({"to": to, "text": "v"}) for to in (f"{lossy}-0", f"{lossy}-1", topic)))
    asked = ["backfill", str(path), "--format", "json", "--value", "text", "--state", str(tmp_path / "state")]
    said = command(*asked, "--topic-column", "to", "--job", f"{job}-1").stderr
    assert re.findall(r"warning: topic (\S+) has no subscription", said) == [f"{lossy}-0", f"{lossy}-1"]
    assert said.index("warning") < said.index("3 of 3 messages published"), "before it begins"
    assert f"warning: topic {lossy}-2 " in command(*asked, "--to", f"{lossy}-2", "--job", f"{job}-2").stderr
    said = command(*asked, "--topic-column", "to", "--job", f"{job}-3", "--keep", "archive").stderr
    assert "warning" not in said
    stats = json.loads(box.admin("GET", f"persistent/{space}/lossy-1/stats"))
    assert stats["subscriptions"]["archive"]["backlogMessages"] == 2, "what the first job wrote is there yet"


# Dead letters


def letters(client: Any, home: str, dlq: str, count: int) -> None:
    """Publish dead letters of two kinds."""
    producer = client.create_producer(dlq)
    for number in range(count):
        told = {"REAL_TOPIC": home, "REAL_SUBSCRIPTION": "s", "exception": f"no {number}" if number % 3 else "boom"}
        told |= {"RECONSUMETIMES": "4", "n": str(number)}
        producer.send(b'{"n": %d}' % number, told, partition_key="k", event_timestamp=NOW + number)
    producer.send(b"lost", {"exception": "boom"})
    producer.close()


def test_dead_letters_are_grouped_as_by_the_box(
    command: "Command", box: Running, client: Any, topic: str, tmp_path: Path
) -> None:
    dlq = f"{topic}-s-DLQ"
    kept(box, dlq, "triage")
    letters(client, topic, dlq, 9)
    parquet = tmp_path / "parquet"
    groups = json.loads(command("dlq-triage", dlq, "-o", "json", "--parquet", str(parquet)).stdout)
    path = f"/pulsarbox/v1/dlq/{dlq.removeprefix('persistent://')}/groups"
    wanted = {each["fingerprint"]: each["count"] for each in ask(box.web_url, "GET", path)["groups"]}
    assert {each["fingerprint"]: each["count"] for each in groups} == wanted
    assert sorted(wanted.values()) == [1, 3, 6]
    _parquet_has(parquet, 10)
    assert backlog(box, dlq, "triage") == 10


@pytest.mark.campaign
def test_single_messages_of_a_batch_that_were_acknowledged_are_not_meant(
    command: "Command", client: Any, topic: str, tmp_path: Path
) -> None:
    dlq = f"{topic}-s-DLQ"
    consumer = client.subscribe(dlq, "triage", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
    producer = client.create_producer(dlq, batching_enabled=True, batching_max_publish_delay_ms=60_000)
    for number in range(6):
        told = {"REAL_TOPIC": topic, "exception": "boom"}
        producer.send_async(b"%d" % number, lambda *_: None, properties=told)
    producer.flush()
    for number in range(6):
        message = consumer.receive(10_000)
        if number in (1, 4):
            consumer.acknowledge(message)
    consumer.close()
    exported = tmp_path / "exported"
    asked = ["--format", "csv", "--bytes", "text", "-s", "triage", "--columns", "value"]
    command("export", dlq, "--to", str(exported), *asked)
    lines = sorted(line for each in exported.glob("*.csv") for line in each.read_text().splitlines()[1:])
    assert lines == ["0", "2", "3", "5"]
    (group,) = json.loads(command("dlq-triage", dlq, "-s", "triage", "-o", "json").stdout)
    assert group["count"] == 4


def _parquet_has(place: Path, rows: int) -> None:
    import pyarrow.parquet as pq

    assert sum(pq.read_metadata(each).num_rows for each in place.glob("*.parquet")) == rows


@pytest.mark.campaign
def test_what_was_put_back_and_failed_again_is_counted(command: "Command", client: Any, topic: str) -> None:
    producer = client.create_producer(f"{topic}-DLQ")
    for number in range(3):
        told = {"REAL_TOPIC": topic, "exception": "boom"}
        producer.send(b"x", told | ({"REPLAY_JOB": "a", "REPLAY_COUNT": str(number)} if number else {}))
    (group,) = json.loads(command("dlq-triage", f"{topic}-DLQ", "-o", "json").stdout)
    assert (group["count"], group["returned"], group["replays"]) == (3, 2, 2)
    producer.send(b'{"n": 1}', {"REAL_TOPIC": topic, "exception": "boom", "REPLAY_JOB": "a", "REPLAY_COUNT": "1"})
    heads, row, *more = command("dlq-triage", f"{topic}-DLQ").stdout.splitlines()
    counted = dict(zip(re.split(r"  +", heads.strip()), re.split(r"  +", row.strip()), strict=False))
    assert (counted["COUNT"], counted["SHAPE"], counted["RETURNED"], more) == ("4", "2 shapes", "3", [])


# Rollups


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, spark: "SparkSession") -> None:
    """Make the runner use the session shared by all tests."""
    from pulsarbox.spark.pipelines import runner

    monkeypatch.setattr(runner, "session", lambda *_args, **_more: spark)
    monkeypatch.setattr(runner, "stop_spark", lambda _spark: None)


@pytest.mark.campaign
@pytest.mark.usefixtures("shared", "with_state")
def test_a_rollup_counts_every_message_once_over_a_restart(
    command: "Command", spark: "SparkSession", box: Running, client: Any, topic: str, tmp_path: Path
) -> None:
    """Between its two runs, the rollup is in the state of a kill after a commit to the topic, before Spark's own
    commit.
    """
    kept(box, topic, "s")
    asked = ["rollup", topic, "--to", f"{topic}-rolled", "--parquet", str(tmp_path / "parquet"), "--once"]
    asked += ["--window", "1s", "--delay", "500ms", "--max-entries", "50", "--state", str(tmp_path / "state")]
    producer = client.create_producer(topic)
    for number in range(120):
        producer.send(b"x", partition_key=f"k{number % 2}", event_timestamp=NOW + 100 * number)
    command(*asked)
    (commit,) = (tmp_path / "state" / "rollup" / "rollup" / "checkpoint" / "commits").glob("2")
    commit.unlink()
    producer.send(b"late", event_timestamp=NOW)
    producer.send(b"end", event_timestamp=NOW + 100_000)
    command(*asked)
    rows = [row.asDict() for row in spark.read.parquet(str(tmp_path / "parquet")).collect()]
    assert Counter((row["messages"], row["late"]) for row in rows) == {(10, False): 12, (1, True): 1}
    assert {row["topic"] for row in rows} == {topic}
    urls = {"service.url": box.url, "admin.url": box.web_url}
    told = spark.read.format("pulsarbox").options(**urls).option("topic", f"{topic}-rolled").load()
    assert sorted(tuple(row) for row in told.select("windowStart", "messages").collect()) == sorted(
        (int(row["windowStart"].timestamp() * 1000), row["messages"]) for row in rows
    )


# Documentation page

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"
SECTION = PAGE.read_text("utf-8").partition("## Included pipelines\n")[2].partition("\n## ")[0]
SHOWN = re.findall(r"^    pulsarbox pipeline (.*)$", SECTION, re.MULTILINE)


@pytest.mark.campaign
@pytest.mark.usefixtures("shared", "with_state")
def test_the_commands_of_the_page_run(
    command: "Command", box: Running, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, subscription in (("orders", "s"), ("orders-again", "s"), ("orders-billing-DLQ", "triage")):
        with contextlib.suppress(HTTPError):  # other pages also have an orders topic
            box.admin("DELETE", f"persistent/public/default/{name}?force=true")
        kept(box, f"persistent://public/default/{name}", subscription)
    producer = client.create_producer("orders")
    for number in range(10):
        producer.send(b"%d" % number, partition_key="k", event_timestamp=NOW + number)
    letters(client, "persistent://public/default/orders", "orders-billing-DLQ", 3)
    (tmp_path / "old-orders.csv").write_text("id,at,n\nk,2026-11-21T10:00:00Z,1\n")
    order = ("export", "backfill", "rollup", "dlq-triage")
    shown = sorted((shlex.split(each) for each in SHOWN), key=lambda words: order.index(words[0]))
    assert {words[0] for words in shown} == set(order)
    for words in shown:
        if words[0] != "rollup" or "--once" in words:
            command(*words)
    reader = client.create_reader("orders-again", pulsar.MessageId.earliest)
    first = reader.read_next(5000)
    assert (first.data(), first.partition_key(), first.event_timestamp()) == (b"0", "k", NOW)
