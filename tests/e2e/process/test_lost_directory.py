"""A box over three data directories loses one, rebuilds its copies in a new one, and survives the loss of another."""

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.e2e import commands
from tests.e2e.clients import connect, numbered, read, send_all, until
from tests.e2e.process.test_directories import command
from tests.tools.box import BoxProcess, admin

TOPIC = "persistent://public/copies/messages"
COUNT = 300


@pytest.fixture
def box(tmp_path: Path) -> Iterator[BoxProcess]:
    """A running box over the directories a, b and c, with two copies of messages."""
    own = BoxProcess(tmp_path / "a", command(tmp_path))
    own.start()
    admin(own.web_url, "PUT", "namespaces/public/copies")
    policy = {"bookkeeperEnsemble": 3, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 2}
    body = json.dumps(policy | {"managedLedgerMaxMarkDeleteRate": 0})
    admin(own.web_url, "POST", "namespaces/public/copies/persistence", body)
    yield own
    own.kill()


def publish(box: BoxProcess, start: int) -> None:
    client = connect(box.url)
    send_all(client.create_producer(TOPIC), numbered(COUNT, start))
    client.close()


def assert_all_are_read(box: BoxProcess, count: int) -> None:
    client = connect(box.url)
    assert read(client.create_reader(TOPIC, pulsar.MessageId.earliest), count) == numbered(count)
    client.close()


def ensemble(box: BoxProcess) -> dict[str, Any]:
    with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/ensemble", timeout=60) as response:
        found: dict[str, Any] = json.load(response)
    return found


def storage(box: BoxProcess, *words: str, code: int = 0) -> str:
    return commands.run("storage", *words, "--admin-url", box.web_url, code=code).stdout.decode()


def metric(box: BoxProcess, name: str) -> float:
    with urllib.request.urlopen(f"{box.web_url}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    (value,) = [float(line.split()[-1]) for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
    return value


def kinds_of_events(box: BoxProcess) -> set[str]:
    with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/events", timeout=60) as response:
        return {each["kind"] for each in json.load(response)["events"]}


def test_copies_are_rebuilt_in_a_running_box(box: BoxProcess) -> None:
    publish(box, 0)
    rest, lost = ensemble(box)["segment"]["members"]  # the only directories with these messages
    shutil.rmtree(lost)
    publish(box, COUNT)
    until(lambda: metric(box, "replication_worker_NUM_BYTES_WRITTEN") > 0)
    assert metric(box, "bookie_ledger_writable_dirs") == 2
    assert "lost" in storage(box, "members", "--filter", f'directory == "{lost}"')
    config = ("--config", str(box.data.parent / "box.toml"))
    told = json.loads(commands.run("status", *config, "-o", "json").stdout)["ensemble"]["summary"]
    assert told.startswith(f"3 data directories: 2 active, 1 lost ({lost}: ")
    told = commands.run("doctor", *config, "--port", "0", "--web-port", "0", code=1).stdout.decode()
    assert f"{lost} is lost" in told and f"pulsarbox storage replace {lost}" in told
    storage(box, "replace", lost, "--wait")
    storage(box, "under-replicated", "--wait")
    assert {each["state"] for each in ensemble(box)["members"]} == {"active"}
    until(lambda: kinds_of_events(box) >= {"member-lost", "member-joined", "fragments-repaired"})
    publish(box, 2 * COUNT)
    shutil.rmtree(rest)
    box.kill()
    box.start()
    assert_all_are_read(box, 3 * COUNT)
    assert box.stop() == 0
