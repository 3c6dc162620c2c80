"""A box with a replica in another process: either of them is killed, suspended or loses its directory."""

import json
import os
import shutil
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import connect
from tests.tools.box import BoxError, BoxProcess

TOPIC = "persistent://public/default/copies"
SECONDS = 60.0
SERVICE_NOT_READY = 503


class Pair:
    """A box and its replica, in processes of their own."""

    def __init__(self, folder: Path, ack_quorum: int) -> None:
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("the secret of this test\n")
        self.secret.chmod(0o600)
        self.replica = BoxProcess(folder / "replica", self._serve())
        self.address = f"replica://127.0.0.1:{self.replica.port}"
        self.box = BoxProcess(folder / "box", self.start_command(f"{folder / 'box'},{self.address}", ack_quorum))

    def _serve(self) -> list[str]:
        listen = ("--listen", "127.0.0.1:{port}", "--secret-file", str(self.secret))
        return [sys.executable, "-m", "pulsarbox", "storage", "serve", "{data}", *listen]

    def start_command(self, directories: str, ack_quorum: int, *more: str) -> list[str]:
        """Return the command of a box with two copies of each message, or one if it has one directory."""
        copies = min(2, directories.count(",") + 1)
        file = self.folder / f"box-{copies}-{ack_quorum}.toml"
        quorums = {"EnsembleSize": copies, "WriteQuorum": copies, "AckQuorum": ack_quorum}
        file.write_text(
            f'[ensemble]\ndataDirectories = "{directories}"\nensembleLateSeconds = 1\n'
            f'ensembleReplicaSecretFile = "{self.secret}"\n[managedLedger]\n'
            + "".join(f"managedLedgerDefault{name} = {number}\n" for name, number in quorums.items())
        )
        ports = ("--port", "{port}", "--web-port", "{web_port}")
        return [sys.executable, "-m", "pulsarbox", "start", "--config", str(file), *ports, *more]

    def start_replica(self) -> None:
        self.replica.spawn()
        self.replica.wait_for(self.replica.port)

    def start(self) -> None:
        self.start_replica()
        self.box.start()

    def status(self) -> dict[str, Any]:
        """Return the status of the data directories."""
        with urllib.request.urlopen(f"{self.box.web_url}/pulsarbox/v1/ensemble", timeout=SECONDS) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def state(self) -> str:
        """Return the state of the replica."""
        states = {each["name"]: each["state"] for each in self.status()["members"]}
        return str(states[self.address])

    def is_complete(self) -> bool:
        """Return whether all entries have their copies, as of an audit since the last change of the directories."""
        found = self.status()
        since = max(each["since"] for each in found["members"])
        return (
            all(each["state"] == "active" for each in found["members"])
            and found["audited"] >= since
            and not found["underReplicated"]["fragments"]
        )

    def kill(self) -> None:
        for process in (self.box, self.replica):
            process.kill()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Messages are acknowledged when both have them."""
    made = Pair(tmp_path, 2)
    yield made
    made.kill()


@pytest.fixture
def loose(tmp_path: Path) -> Iterator[Pair]:
    """Messages are acknowledged when one of both has them."""
    made = Pair(tmp_path, 1)
    yield made
    made.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def remove(box: BoxProcess, directory: str) -> bool:
    """Remove a directory; False if the copies have not been audited yet."""
    where = f"{box.web_url}/pulsarbox/v1/ensemble/members?{urllib.parse.urlencode({'directory': directory})}"
    try:
        urllib.request.urlopen(urllib.request.Request(where, method="DELETE"), timeout=SECONDS).close()
    except urllib.error.HTTPError as error:
        if error.code != SERVICE_NOT_READY:
            raise
        return False
    return True


def publish(box: BoxProcess, first: int, end: int) -> None:
    client = connect(box.url)
    producer = client.create_producer(TOPIC)
    for number in range(first, end):
        producer.send(b"%d" % number)
    client.close()


def assert_all_are_there(box: BoxProcess, end: int) -> None:
    client = connect(box.url)
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
    assert [int(reader.read_next(20_000).data()) for _ in range(end)] == list(range(end))
    client.close()


def test_acknowledged_messages_survive_the_loss_of_the_machine_of_the_box(pair: Pair, tmp_path: Path) -> None:
    pair.start()
    publish(pair.box, 0, 100)
    pair.box.kill()
    shutil.rmtree(tmp_path / "box")
    pair.box.start()  # as on a new machine, with an empty directory
    assert_all_are_there(pair.box, 100)
    publish(pair.box, 100, 120)
    wait_until(pair.is_complete)
    pair.kill()
    shutil.rmtree(tmp_path / "box")

    alone = BoxProcess(tmp_path / "replica", pair.start_command(str(tmp_path / "replica"), 1))
    try:
        alone.start()  # on the machine of the replica
        assert_all_are_there(alone, 120)
        wait_until(lambda: remove(alone, str(tmp_path / "box")))
        publish(alone, 120, 130)
        assert_all_are_there(alone, 130)
    finally:
        alone.kill()


def test_a_replica_that_was_killed_catches_up(loose: Pair, tmp_path: Path) -> None:
    loose.start()
    publish(loose.box, 0, 50)
    loose.replica.kill()
    publish(loose.box, 50, 100)
    wait_until(lambda: loose.state() == "lost")
    loose.start_replica()
    publish(loose.box, 100, 120)
    wait_until(loose.is_complete)
    loose.box.kill()
    shutil.rmtree(tmp_path / "box")
    command = loose.start_command(f"{tmp_path / 'box'},{loose.address}", 1, "--accept-loss-of", str(tmp_path / "box"))
    again = BoxProcess(tmp_path / "box", command)
    try:
        again.start()  # the replica alone may have had the last copy
        assert_all_are_there(again, 120)
    finally:
        again.kill()


def test_a_suspended_replica_delays_publishing_only_for_a_moment(loose: Pair) -> None:
    loose.start()
    publish(loose.box, 0, 20)
    os.kill(loose.replica.pid, signal.SIGSTOP)
    publish(loose.box, 20, 60)
    wait_until(lambda: loose.state() in ("late", "lost"))
    os.kill(loose.replica.pid, signal.SIGCONT)
    wait_until(loose.is_complete)
    publish(loose.box, 60, 70)
    assert_all_are_there(loose.box, 70)


def test_publishing_is_refused_without_the_replica_if_both_copies_are_asked_for(pair: Pair) -> None:
    pair.start()
    publish(pair.box, 0, 10)
    client = connect(pair.box.url)
    # Before the loss: once the box has noticed that, it refuses producers, and the client retries for a minute.
    producer = client.create_producer(TOPIC, send_timeout_millis=3000)
    pair.replica.kill()
    with pytest.raises(pulsar.PulsarException):
        producer.send(b"10")
    assert_all_are_there(pair.box, 10)
    pair.start_replica()
    wait_until(pair.is_complete)
    producer.close()
    publish(pair.box, 10, 20)
    assert_all_are_there(pair.box, 20)
    client.close()


def test_a_box_starts_without_its_replica_only_if_nothing_can_be_lost(loose: Pair) -> None:
    loose.start()
    publish(loose.box, 0, 10)
    loose.kill()
    with pytest.raises(BoxError, match=f"--accept-loss-of {loose.address}"):
        loose.box.start()
    loose.box.kill()
    loose.start()
    assert_all_are_there(loose.box, 10)


def test_a_new_box_does_not_start_while_the_replica_is_missing(pair: Pair) -> None:
    pair.box.spawn()
    assert pair.box.process is not None
    assert pair.box.process.wait(SECONDS) == 1
    assert "another data directory cannot be used: " in pair.box.said()
    assert "cannot be reached: Connection refused" in pair.box.said()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(6))
def test_acknowledged_messages_survive_kills_of_either_side_under_load(pair: Pair, tmp_path: Path, seed: int) -> None:
    """Kill or suspend the replica, the box, or both while messages are published; lose the directory of the box."""
    random = Random(seed)
    pair.start()
    acknowledged: set[int] = set()
    number = 0
    for _ in range(5):
        client = connect(pair.box.url, operation_timeout_seconds=20)
        try:
            producer = client.create_producer(TOPIC, send_timeout_millis=1500, max_pending_messages=500)
            kill_at = random.randrange(50, 300)
            for each in range(number, number + 400):
                producer.send_async(b"%d" % each, lambda result, _, each=each: _note(acknowledged, result, each))
                if each - number == kill_at:
                    _break(pair, random, tmp_path)
                time.sleep(random.random() / 1000)
        except pulsar.PulsarException:
            pass  # as while nothing can be published
        client.shutdown()
        number += 400
        _restore(pair)
    client = connect(pair.box.url)
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
    found: set[int] = set()
    while reader.has_message_available():
        found.add(int(reader.read_next(20_000).data()))
    client.close()
    assert acknowledged
    assert acknowledged <= found


def _note(acknowledged: set[int], result: Any, number: int) -> None:
    if result == pulsar.Result.Ok:
        acknowledged.add(number)


def _break(pair: Pair, random: Random, folder: Path) -> None:
    what = random.choice(("replica", "box", "directory", "suspended"))
    if what == "suspended":
        os.kill(pair.replica.pid, signal.SIGSTOP)
    elif what == "replica":
        pair.replica.kill()
    else:
        pair.box.kill()
        if what == "directory":
            shutil.rmtree(folder / "box")


def _restore(pair: Pair) -> None:
    """Bring both back, and wait until all copies are complete."""
    if pair.replica.process is None:
        pair.start_replica()
    os.kill(pair.replica.pid, signal.SIGCONT)
    if pair.box.process is None:
        pair.box.start()
    wait_until(pair.is_complete)
