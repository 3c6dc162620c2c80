"""Jobs that replay, edit, drop, export and group dead letters of official clients and of the box.

Jobs survive a kill of the box, and stop if replayed messages fail again.
"""

import contextlib
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests.e2e import commands
from tests.e2e.clients import EARLIEST, connect, left, numbered, receive, take, until
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess

SHARED = pulsar.ConsumerType.Shared
Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Order(pulsar.schema.Record):  # type: ignore[misc]
    """Message with a schema."""

    number = pulsar.schema.Integer()


pytestmark = pytest.mark.usefixtures("ours")


def short(topic: str) -> str:
    return topic.removeprefix("persistent://public/default/")


def dead_letters(client: Any, topic: str, bodies: list[bytes], **properties: str) -> str:
    """Return a dead letter topic with these messages, as clients write them, and the subscription ``kept``.

    Also create the origin topic.
    """
    client.subscribe(topic, "s", SHARED, initial_position=EARLIEST).close()
    dlq = f"{topic}-s-DLQ"
    client.subscribe(dlq, "kept", SHARED, initial_position=EARLIEST).close()
    producer = client.create_producer(dlq, batching_enabled=False)
    told = {"REAL_TOPIC": topic, "ORIGIN_MESSAGE_ID": "1:2:-1"} | properties
    for body in bodies:
        producer.send_async(body, lambda *_: None, properties=told)
    producer.flush()
    producer.close()
    return dlq


def jobs(run: Run, *words: str, code: int = 0) -> Any:
    done = run(*words, "-o", "json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_what_a_client_gave_up_is_put_back(client: Any, topic: str, run: Run) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(1, initial_subscription_name="kept")
    consumer = client.subscribe(
        topic, "s", SHARED, negative_ack_redelivery_delay_ms=20, dead_letter_policy=policy, initial_position=EARLIEST
    )
    client.create_producer(topic).send(b"poison", properties={"colour": "red"}, partition_key="k")
    dlq = f"{topic}-s-DLQ"
    for _ in range(2):
        consumer.negative_acknowledge(receive(consumer))

    def arrived() -> bool:
        listed = run("dlq", "list", "-o", "json", "--filter", f"name == '{short(dlq)}'").stdout
        return any(row["backlogs"].get("kept") == 1 for row in json.loads(listed or "[]"))

    until(arrived)
    told = jobs(run, "dlq", "replay", dlq, "--wait")
    assert (told["state"], told["done"], told["targets"]) == ("done", 1, {short(topic): 1})
    again = receive(consumer)
    assert (again.data(), again.partition_key()) == (b"poison", "k")
    assert again.properties() == {"colour": "red", "REPLAY_JOB": str(told["id"]), "REPLAY_COUNT": "1"}
    consumer.acknowledge(again)


def test_what_the_box_moved_is_put_back(client: Any, topic: str, run: Run, box: Running) -> None:
    consumer = client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=20, initial_position=EARLIEST)
    assert run("sub", "dead-letter", topic, "s", "0").returncode == 0
    schema = pulsar.schema.JsonSchema(Order)
    client.create_producer(topic, schema=schema).send(Order(number=7))
    consumer.negative_acknowledge(receive(consumer))
    dlq = f"{topic}-s-DLQ"
    shown = ("dlq", "show", dlq, "--url", box.url)
    until(lambda: '"value":{"number":7}' in run(*shown, "-o", "ndjson", "--decode").stdout)
    (group,) = jobs(run, "dlq", "groups", dlq)
    assert (group["origin"], group["shape"]) == (short(topic), "{number: number}")
    only = f'fingerprint == "{group["fingerprint"]}" and json.number == 7'
    assert run(*shown, "--filter", only).stdout.count("\n") == 2  # below the titles
    assert jobs(run, "dlq", "replay", dlq, "--filter", only, "--wait")["done"] == 1
    again = receive(consumer)
    assert json.loads(again.data()) == {"number": 7}
    consumer.acknowledge(again)
    assert jobs(run, "dlq", "groups", dlq) == [], "what was put back is stored, but no dead letter any more"
    assert [each["count"] for each in jobs(run, "dlq", "groups", dlq, "--stored")] == [1]
    assert "--stored and -s cannot be combined" in run("dlq", "groups", dlq, "--stored", "-s", "dead-letters").stderr
    assert run("sub", "create", dlq, "other").returncode == 0
    assert "select one with -s" in run("dlq", "groups", dlq).stderr


def test_of_a_batch_only_what_is_not_put_back_is_shown(client: Any, topic: str, run: Run, box: Running) -> None:
    client.subscribe(topic, "s", SHARED, initial_position=EARLIEST).close()
    dlq = f"{topic}-s-DLQ"
    client.subscribe(dlq, "kept", SHARED, initial_position=EARLIEST).close()
    producer = client.create_producer(dlq, batching_enabled=True, batching_max_publish_delay_ms=60_000)
    for body in (b"one", b"two", b"three"):
        producer.send_async(body, lambda *_: None, properties={"REAL_TOPIC": topic})
    producer.flush()
    producer.close()
    assert jobs(run, "dlq", "replay", dlq, "--filter", 'payload == "two"', "--wait")["done"] == 1
    shown = run("dlq", "show", dlq, "--url", box.url, "-o", "lines")
    assert shown.stdout.splitlines() == ["one", "three"], shown.stderr
    stored = run("dlq", "show", dlq, "--url", box.url, "-o", "lines", "--stored")
    assert stored.stdout.splitlines() == ["one", "two", "three"]


def test_a_changed_payload_has_to_fit_the_schema(client: Any, topic: str, run: Run) -> None:
    schema = pulsar.schema.JsonSchema(Order)
    consumer = client.subscribe(topic, "s", SHARED, schema=schema, initial_position=EARLIEST)
    dlq = f"{topic}-s-DLQ"
    client.subscribe(dlq, "kept", SHARED, initial_position=EARLIEST).close()
    producer = client.create_producer(dlq, schema=schema)
    producer.send(Order(number=1), properties={"REAL_TOPIC": topic})
    producer.close()
    refused = run("dlq", "replay", dlq, "--payload", '{"number": "x"}', "--all", "--dry-run")
    assert refused.returncode == 8
    assert "does not match the JSON schema of" in refused.stdout
    edit = ("--payload", '{"number": 2}', "--set", "fixed=yes", "--key", "k")
    unasked = run("dlq", "replay", dlq, *edit, "--wait")
    assert unasked.returncode == 2
    assert "select messages with --filter E" in unasked.stderr
    told = jobs(run, "dlq", "replay", dlq, *edit, "--all", "--wait")
    assert told["done"] == 1
    message = receive(consumer)
    assert (message.value().number, message.properties()["fixed"], message.partition_key()) == (2, "yes", "k")


def test_dropped_exported_and_sent_again(client: Any, topic: str, run: Run, box: Running) -> None:
    dlq = dead_letters(client, topic, numbered(4), region="eu")
    exported = run("dlq", "export", dlq, "--url", box.url)
    lines = [json.loads(line) for line in exported.stdout.splitlines()]
    assert [line["payload"] for line in lines] == ["0", "1", "2", "3"]
    commands.run("produce", topic, "-i", "ndjson", "--url", box.url, stdin=exported.stdout.encode())
    assert take(client.subscribe(topic, "s", SHARED), 4) == numbered(4)
    assert run("dlq", "drop", dlq, "--all").returncode == 2  # no terminal to confirm on
    assert jobs(run, "dlq", "drop", dlq, "--filter", 'payload in ["1", "2"]', "--yes", "--wait")["done"] == 2
    assert left(client, dlq, "kept", 2) == [b"0", b"3"]


def test_a_job_is_listed_paused_resumed_and_cancelled(client: Any, topic: str, run: Run) -> None:
    dlq = dead_letters(client, topic, numbered(5))
    number = jobs(run, "dlq", "replay", dlq, "--rate", "0.01")["id"]
    busy = run("dlq", "replay", dlq)
    assert (busy.returncode, f"Job {number} is already using subscription" in busy.stderr) == (4, True)
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(dlq, "kept", SHARED)
    assert "paused" in run("job", "pause", str(number)).stdout
    client.subscribe(dlq, "kept", SHARED).close()
    assert "running" in run("job", "resume", str(number)).stdout
    assert "cancelled" in run("job", "cancel", str(number)).stdout
    assert run("job", "cancel", str(number)).returncode == 4
    assert run("job", "show", "999999999").returncode == 3
    (row,) = [each for each in jobs(run, "job", "list") if each["id"] == number]
    assert (row["state"], row["topic"], row["total"]) == ("cancelled", short(dlq), 5)


def test_what_comes_straight_back_stops_it(client: Any, topic: str, run: Run) -> None:
    count = 1000  # at 10 per second: long enough for the slowest machine
    dlq = dead_letters(client, topic, numbered(count))
    assert run("sub", "dead-letter", topic, "s", "0", "--to", dlq, "--keep-for", "kept").returncode == 0
    consumer = client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=10)
    number = jobs(run, "dlq", "replay", dlq, "--rate", "10", "--max-returned", "3")["id"]
    for _ in range(3):
        consumer.negative_acknowledge(receive(consumer))
    until(lambda: jobs(run, "job", "show", str(number))["state"] == "tripped")
    told = jobs(run, "job", "show", str(number))
    assert told["returned"] >= 3
    assert "dead letters again" in told["error"]
    assert told["done"] < count


def test_what_another_subscription_gives_up_stops_it_too(client: Any, topic: str, run: Run) -> None:
    """The official client creates the dead letter topic of that subscription while the job runs."""
    count = 1000
    dlq = dead_letters(client, topic, numbered(count))
    policy = pulsar.ConsumerDeadLetterPolicy(max_redeliver_count=1)
    consumer = client.subscribe(
        topic, "audit", SHARED, negative_ack_redelivery_delay_ms=10, dead_letter_policy=policy, receiver_queue_size=1
    )
    number = str(jobs(run, "dlq", "replay", dlq, "--rate", "10", "--max-returned", "3")["id"])

    def tripped() -> bool:
        with contextlib.suppress(pulsar.Timeout):
            for _ in range(20):
                consumer.negative_acknowledge(consumer.receive(timeout_millis=100))
        return bool(jobs(run, "job", "show", number)["state"] == "tripped")

    until(tripped)
    told = jobs(run, "job", "show", number)
    assert (told["state"], told["returnedIn"]) == ("tripped", {f"{short(topic)}-audit-DLQ": told["returned"]})
    assert told["done"] < count


def test_a_job_over_a_kill(own_box: BoxProcess) -> None:
    """The box is killed during the job, with no client watching: all are replayed, once, in order."""
    topic, count = "persistent://public/default/killed", 80
    own_box.start()
    client = connect(own_box.url)
    dlq = dead_letters(client, topic, numbered(count))
    client.close()
    asked = json.dumps({"kind": "dlq-replay", "topic": dlq, "rate": 150}).encode()
    number = json.loads(_post(own_box, "/pulsarbox/v1/jobs", asked))["id"]
    until(lambda: _job(own_box, number)["done"] >= 20)
    own_box.kill()
    own_box.start()
    until(lambda: _job(own_box, number)["state"] == "done")
    assert _job(own_box, number)["done"] == count
    client = connect(own_box.url)
    assert left(client, topic, "s", count) == numbered(count)
    assert left(client, dlq, "kept", 0) == []
    client.close()


def _post(box: BoxProcess, path: str, body: bytes) -> str:
    import urllib.request

    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{box.web_url}{path}", body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def _job(box: BoxProcess, number: int) -> Any:
    import urllib.request

    with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/jobs/{number}", timeout=60) as answer:
        return json.loads(answer.read())
