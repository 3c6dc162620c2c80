"""The process commands with real processes: background start, status, stop, and conflicts."""

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests import forks
from tests.e2e.clients import PATIENCE_SECONDS, connect, numbered, read_to_end, receive, until
from tests.tools.box import BoxProcess, accepts, admin
from tests.tools.campaigns import short

Done = subprocess.CompletedProcess[str]
ANY_PORTS = ("--port", "0", "--web-port", "0")


class Place:
    """Working directory of pulsarbox, with the data directory ``data``."""

    def __init__(self, path: Path, *, forks: bool = True) -> None:
        """Run commands and boxes as forks, or each in a new interpreter."""
        self.path = path
        self._forks = forks
        self.started: list[int] = []
        self.runtime = path.with_name(f"{path.name}-runtime")
        """Runtime directory of in-memory boxes: excludes those of concurrent tests."""
        self.runtime.mkdir(exist_ok=True)
        others = {name: value for name, value in os.environ.items() if not name.startswith("PULSARBOX_")}
        self.environ = {**others, "XDG_RUNTIME_DIR": str(self.runtime), "TMPDIR": str(self.runtime)}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "pulsarbox", *words]

    def call(self, *words: str) -> Done:
        done = self._run(*words)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def _run(self, *words: str) -> Done:
        if self._forks:
            return forks.text(forks.run(*words, cwd=self.path, env=self.environ))
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=250, check=False, cwd=self.path,
            env=self.environ, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, *words: str) -> dict[str, str]:
        """Start in the background; return the printed values by name."""
        done = self.call("start", "--detach", *ANY_PORTS, *words)
        assert done.returncode == 0, done.stderr
        rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        self.started.append(int(rows["process"]))
        return rows

    def status(self) -> tuple[int, dict[str, Any]]:
        done = self.call("status", "-o", "json")
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    kill_all(made)


def kill_all(place: Place) -> None:
    for pid in place.started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def interpreters(tmp_path: Path) -> Iterator[Place]:
    """Return a place where each command and box is a new interpreter, as for users."""
    made = Place(tmp_path, forks=False)
    yield made
    kill_all(made)


def test_a_life_in_the_background(interpreters: Place) -> None:
    place = interpreters
    code, document = place.status()
    assert (code, document["state"], document["pid"]) == (3, "not running", None)
    rows = place.start()
    code, document = place.status()
    assert (code, document["state"], document["health"]) == (0, "running", "ok")
    assert str(document["pid"]) == rows["process"]
    assert (document["brokerUrl"], document["webUrl"]) == (rows["pulsar"], rows["http"])
    assert document["data"] == rows["data"] == str(place.path / "data")
    assert document["memoryBytes"] > 0 and document["dataBytes"] > 0
    assert accepts(document["port"]) and accepts(document["webPort"])
    assert "ready after" in Path(rows["log"]).read_text()
    done = place.call("stop")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"stopped: process {rows['process']} has exited" in done.stderr
    assert place.status()[1]["state"] == "not running"
    done = place.call("stop")
    assert (done.returncode, done.stderr) == (0, "pulsarbox: not running: no process holds data\n")
    done = place.call("storage", "check", "data")
    assert "no damage, 0 warnings" in done.stdout  # files of these commands are part of the format


def test_status_for_the_eye(place: Place) -> None:
    rows = place.start()
    done = place.call("status")
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (lines["state"], lines["process"], lines["pulsar"]) == ("running", rows["process"], rows["pulsar"])
    assert "UTC" in lines["since"] and "B" in lines["memory"] and lines["health"] == "ok"


def test_status_is_watched_until_ctrl_c(place: Place) -> None:
    command = place.command("status", "-o", "json", "--watch", "0.1")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place.path, stdin=subprocess.DEVNULL,
        env=place.environ,
    ) as watching:  # fmt: skip
        try:
            assert watching.stdout is not None
            states = [json.loads(watching.stdout.readline())["state"] for _ in range(3)]
            watching.send_signal(signal.SIGINT)
            _, said = watching.communicate(timeout=60)
        finally:
            watching.kill()
    assert (states, watching.returncode, said) == (["not running"] * 3, 3, "pulsarbox: stopped watching\n")


def test_a_killed_box_is_not_running_whatever_it_left(place: Place) -> None:
    pid = int(place.start()["process"])
    os.kill(pid, signal.SIGKILL)
    while place.status()[1]["state"] != "not running":
        pass
    assert (place.path / "data" / "RUNNING").exists()
    assert place.call("stop").returncode == 0
    assert place.start()["process"] != str(pid)


def test_two_on_one_directory(place: Place) -> None:
    pid = place.start()["process"]
    for words in ((), ("--detach",)):
        done = place.call("start", *ANY_PORTS, *words)
        assert done.returncode == 4
        assert f"in use by process {pid} (" in done.stderr
        assert "pulsarbox stop --data-dir data" in done.stderr
    assert place.status()[1]["health"] == "ok"


@pytest.mark.parametrize("option", short(["--port", "--web-port"], 1))
@pytest.mark.parametrize("how", [(), ("--detach",)], ids=["foreground", "background"])
def test_a_port_that_is_taken(place: Place, option: str, how: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = place.call("start", *ANY_PORTS, "--host", "127.0.0.1", option, str(port), *how)
    assert done.returncode == 4
    assert f"cannot listen on port {port} of 127.0.0.1" in done.stderr
    assert f"by process {os.getpid()} (" in done.stderr and option in done.stderr
    assert place.status()[1]["state"] == "not running"
    assert list(place.path.iterdir()) == []  # no trace of a data directory remains


def test_a_start_that_fails_removes_nothing_but_what_it_made(place: Place) -> None:
    mine = place.path / "mine"
    mine.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = ("--port", str(taken.getsockname()[1]), "--web-port", "0", "--host", "127.0.0.1")
        done = place.call("start", "--detach", *port, "--data-dir", "mine/new/data")
        assert (done.returncode, list(mine.iterdir())) == (4, [])
        assert place.call("start", "--detach", *port, "--data-dir", "mine").returncode == 4
    assert [each.name for each in mine.iterdir()] == ["pulsarbox.log"]  # the directory existed before


def test_a_file_limit_that_is_too_low(place: Place) -> None:
    command = f"ulimit -n 100; exec {sys.executable} -m pulsarbox start --port 0 --web-port 0"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=100, cwd=place.path, check=False
    )
    assert done.returncode == 1
    assert "may open 100 files" in done.stderr and "ulimit -n 65536" in done.stderr


def test_in_memory_nothing_is_written_and_messages_pass(place: Place) -> None:
    rows = place.start("--memory")
    client = connect(rows["pulsar"])
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for payload in numbered(50):
        producer.send(payload)
    got = []
    for _ in range(50):
        message = receive(consumer)
        got.append(message.data())
        consumer.acknowledge(message)
    client.close()
    assert got == numbered(50)
    assert list(place.path.iterdir()) == []
    assert rows["stop"] == f"pulsarbox stop --memory --pid {rows['process']}"


def test_boxes_in_memory_are_found_and_stopped(place: Place) -> None:
    assert place.call("status", "--memory").returncode == 3
    rows = place.start("--memory")
    document = json.loads(place.call("status", "--memory", "-o", "json").stdout)
    assert (document["state"], document["pid"], document["health"]) == ("running", int(rows["process"]), "ok")
    assert (document["brokerUrl"], document["data"], document["dataBytes"]) == (rows["pulsar"], None, None)
    assert "use `pulsarbox status --memory`" in place.call("status").stderr
    assert place.call("produce", "t", "x").returncode == 0
    assert place.call("topic", "list", "-o", "name").stdout == "persistent://public/default/t\n"
    other = place.start("--memory")
    assert rows["http"] in place.call("clock", "show").stderr  # an ambiguous box is an error
    done = place.call("stop", "--memory")
    assert done.returncode == 2
    assert rows["process"] in done.stderr and other["process"] in done.stderr and "--pid" in done.stderr
    done = place.call("stop", "--memory", "--pid", other["process"])
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        0,
        f"pulsarbox: stopped: process {other['process']} has exited",
    )
    os.kill(int(rows["process"]), signal.SIGKILL)
    while place.call("status", "--memory").returncode != 3:
        pass
    done = place.call("stop", "--memory")
    assert (done.returncode, "no box of this user runs in memory" in done.stderr) == (0, True)
    assert list((place.runtime / "pulsarbox").iterdir()) == []  # files of the killed box are removed as well
    assert list(place.path.iterdir()) == []


def log_descriptors(pid: str) -> dict[str, str]:
    """Return the descriptors of a process that are open on a log file, with that file."""
    links = {}
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links[each.name] = str(each.readlink())
    return {number: path for number, path in links.items() if "pulsarbox.log" in path}


def test_the_log_of_a_box_in_the_background_is_followed_cut_and_tells_what_was_done(place: Place) -> None:
    (place.path / "pulsarbox.toml").write_text("[network]\nbrokerMaxConnections = 1\n[logging]\nlogFileMaxMbytes = 1\n")
    rows = place.start()
    log = Path(rows["log"])
    admin(rows["http"], "PUT", "tenants/logged", '{"allowedClusters": ["standalone"]}')
    with pytest.raises(urllib.error.HTTPError):
        admin(rows["http"], "PUT", "tenants/logged", "{}")
    moved = log.rename(log.with_name("pulsarbox.log-yesterday"))
    os.kill(int(rows["process"]), signal.SIGHUP)
    while not log.exists() or "SIGHUP: log reopened" not in log.read_text():
        pass
    assert log_descriptors(rows["process"]) == {"1": str(log), "2": str(log)}
    client = connect(rows["pulsar"])
    producer = client.create_producer("t")
    for payload in numbered(200):
        producer.send(payload)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", int(rows["pulsar"].rpartition(":")[2]))) as refused:
            refused.recv(1)
    client.close()
    with log.open("a") as filler:
        filler.write("filler\n" * 200_000)
    admin(rows["http"], "DELETE", "tenants/logged")
    assert log.with_name("pulsarbox.log.1").read_text().endswith("filler\n")
    assert log_descriptors(rows["process"]) == {"1": str(log), "2": str(log)}
    assert place.call("stop").returncode == 0
    first = moved.read_text()
    assert "127.0.0.1: PUT /admin/v2/tenants/logged: done (204)" in first
    assert "127.0.0.1: PUT /admin/v2/tenants/logged: refused with 409: " in first
    assert f"starting pulsarbox {version('pulsarbox')}: process {rows['process']}" in first
    middle = log.with_name("pulsarbox.log.1").read_text().replace("filler\n", "")
    assert 1 <= middle.count("refusing the connection of") < 5  # one line for all at one moment
    assert len(middle.splitlines()) < 20  # for two hundred messages
    assert "stopping (SIGTERM)" in log.read_text() and "stopped (SIGTERM)" in log.read_text()
    assert "no damage, 0 warnings" in place.call("storage", "check", "data").stdout


def test_stopped_while_messages_are_published_nothing_receipted_is_lost(own_box: BoxProcess) -> None:
    own_box.start()
    topic = "persistent://public/default/t"
    client = connect(own_box.url)
    producer = client.create_producer(topic, max_pending_messages=2000)
    receipted: list[bytes] = []
    stopping, pending = threading.Event(), threading.Semaphore(10)

    def told(number: int) -> Callable[[Any, Any], None]:
        def receipt(result: Any, message_id: Any) -> None:
            if result == pulsar.Result.Ok:
                receipted.append(b"%d" % number)
            pending.release()

        return receipt

    def publish() -> None:
        for number in itertools.count():
            while not pending.acquire(timeout=0.05):
                if stopping.is_set():
                    return
            producer.send_async(b"%d" % number, told(number))

    publishing = threading.Thread(target=publish)
    publishing.start()
    until(lambda: len(receipted) > 100)
    done = Place(own_box.data.parent).call("stop", "--data-dir", str(own_box.data))
    assert (done.returncode, own_box.process and own_box.process.wait(PATIENCE_SECONDS)) == (0, 0), done.stderr
    stopping.set()
    publishing.join()
    client.shutdown()  # requests in progress fail
    own_box.process = None
    own_box.start()
    client = connect(own_box.url)
    kept = read_to_end(client.create_reader(topic, pulsar.MessageId.earliest))
    client.close()
    assert kept[: len(receipted)] == receipted


def test_shut_down_by_a_request_it_ends_in_order(own_box: BoxProcess) -> None:
    own_box.start()
    topic = "persistent://public/default/t"
    client = connect(own_box.url)
    ids = [client.create_producer(topic).send(b"%d" % number) for number in range(3)]
    admin(own_box.web_url, "POST", "brokers/configuration/brokerShutdownTimeoutMs/20000")
    assert admin(own_box.web_url, "POST", "brokers/shutdown") == ""
    assert own_box.process is not None and own_box.process.wait(PATIENCE_SECONDS) == 0, own_box.said()
    client.close()
    own_box.process = None
    own_box.start()
    client = connect(own_box.url)
    assert read_to_end(client.create_reader(topic, pulsar.MessageId.earliest)) == [b"0", b"1", b"2"]
    assert len(ids) == 3
    client.close()


def test_a_box_that_does_not_end_in_time_is_exit_code_7(place: Place) -> None:
    pid = int(place.start()["process"])
    os.kill(pid, signal.SIGSTOP)
    done = place.call("stop", "--timeout", "0.1")
    os.kill(pid, signal.SIGCONT)
    assert done.returncode == 7
    assert f"process {pid} is still running after 0.1 s" in done.stderr


def test_the_doctor_beside_a_box_that_runs(place: Place) -> None:
    place.start()
    document = place.status()[1]
    ports = "--port", str(document["port"]), "--web-port", str(document["webPort"])
    done = place.call("doctor", "-o", "json", *ports)
    checks = json.loads(done.stdout)["checks"]
    assert done.returncode == 0, done.stdout
    assert [each["text"] for each in checks if each["name"] == "port"] == [
        f"{document[name]} ({setting}) is served by the running box"
        for name, setting in (("port", "brokerServicePort"), ("webPort", "webServicePort"))
    ]
    assert any("p99" in each["text"] for each in checks)
    done = place.call("doctor", "-o", "json", *ports, "--data-dir", "other")
    assert done.returncode == 1
    assert done.stdout.count(f"by process {document['pid']} (") == 2
