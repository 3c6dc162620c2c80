"""The pytest plugin in separate pytest runs, as a user runs it."""

import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pulsarbox import BoxError, PulsarBox, having
from pulsarbox.embed.namespace import Namespace
from tests.e2e.clients import QUIET_MS, connect, send_all
from tests.tools.campaigns import short


class Runs:
    """Folder with tests, and pytest runs in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, tests: str, *words: str, ini: str = "", outcome: str = "", code: int = 0) -> str:
        """Run the tests, and return pytest's output. The summary must contain ``outcome``."""
        (self.path / "pytest.ini").write_text(
            f"[pytest]\naddopts = -p no:cacheprovider -p no:hypothesispytest -p no:timeout\n{ini}\n"
        )
        (self.path / "test_it.py").write_text(tests)
        command = [sys.executable, "-W", "error::ResourceWarning", "-m", "pytest", "-q", "-rs", *words]
        done = subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, check=False, timeout=250, stdin=subprocess.DEVNULL
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert outcome in done.stdout, done.stdout
        return done.stdout


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


HELLO = """
from pulsarbox import expect

def test_hello(pulsarbox, pulsarbox_client, pulsarbox_namespace):
    topic = pulsarbox_namespace.topic("orders")
    consumer = pulsarbox_client.subscribe(topic, "billing")
    producer = pulsarbox_client.create_producer(topic)
    producer.send(b"one")
    producer.send(b'{"n": 2}')
    expect(consumer).receives(b"one", {"n": 2})
    expect(consumer).receives_nothing()
    pulsarbox.assert_messages(topic, ["one", {"n": 2}])

def test_storage(pulsarbox, pytestconfig):
    import os
    assert (pulsarbox.data_dir is not None) == (pytestconfig.getini("pulsarbox_storage") == "disk")
    assert (pulsarbox.pid != os.getpid()) == (pytestconfig.getini("pulsarbox_run") == "process")
    assert pulsarbox.settings.maxMessageSize in (5 << 20, 4096)
"""
FAILS = """
def test_failure(pulsarbox):
    pulsarbox.assert_messages('t', [b'x'], within=0)
"""


@pytest.mark.parametrize(
    "ini",
    short(
        [
            "",
            "pulsarbox_storage = disk\npulsarbox_run = process",
            "pulsarbox_settings =\n    maxMessageSize = 4096\n    logLevel = warning",
        ],
        1,
    ),
    ids=["default", "disk-process", "settings"],
)
def test_a_message_and_a_failure_through_the_fixtures(runs: Runs, ini: str) -> None:
    said = runs.run(HELLO + FAILS, ini=ini, outcome="1 failed, 2 passed", code=1)
    assert f"test_it.py:{len((HELLO + FAILS).splitlines())}: AssertionError" in said
    assert "expected 1; no match within 0 s" in said
    assert "embed" not in said, "a failure shows the line of the test, and none of ours"


@pytest.mark.campaign
def test_workers_of_xdist_have_a_box_each(runs: Runs) -> None:
    tests = """
import pathlib, pytest

@pytest.mark.parametrize("number", range(8))
def test_box(pulsarbox, pulsarbox_namespace, worker_id, number):
    pathlib.Path(f"{worker_id}-{pulsarbox.port}").touch()
    pulsarbox.admin("GET", f"/admin/v2/namespaces/{pulsarbox_namespace}")
"""
    runs.run(tests, "-n", "2", "--dist", "each", outcome="16 passed")
    assert len(list(runs.path.glob("gw0-*"))) == len(list(runs.path.glob("gw1-*"))) == 1


@pytest.mark.campaign
def test_a_namespace_is_the_tests_own_and_goes_with_it(runs: Runs) -> None:
    tests = """
names = []

def test_one(pulsarbox, pulsarbox_client, pulsarbox_namespace):
    names.append(str(pulsarbox_namespace))
    pulsarbox_client.create_producer(pulsarbox_namespace.topic("a b+c"))
    pulsarbox.admin("PUT", f"/admin/v2/persistent/{pulsarbox_namespace}/parts/partitions", 3)
    pulsarbox_client.subscribe(pulsarbox_namespace.topic("parts"), "s")
    pulsarbox_client.subscribe(pulsarbox_namespace.topic("np", persistent=False), "s")

def test_two(pulsarbox, pulsarbox_namespace):
    assert str(pulsarbox_namespace) not in names
    assert names[0] not in pulsarbox.admin("GET", "/admin/v2/namespaces/public")
"""
    runs.run(tests, outcome="2 passed")


def test_a_namespace_goes_under_those_who_come_back_at_once(
    pulsarbox: PulsarBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = Namespace(pulsarbox)
    with closing(connect(pulsarbox.service_url)) as client:
        client.create_producer(namespace.topic("a"))
        client.subscribe(namespace.topic("b"), "s")
        delete = Namespace._delete

        def slowly(self: Namespace, path: str) -> None:
            delete(self, path)
            time.sleep(QUIET_MS / 1000)  # the client would have reconnected by now

        monkeypatch.setattr(Namespace, "_delete", slowly)
        namespace.remove()
    assert namespace.name not in pulsarbox.admin("GET", "/admin/v2/namespaces/public")
    namespace.remove()  # nothing remains to remove


@pytest.mark.campaign
def test_a_test_can_leave_the_box_as_it_was(runs: Runs) -> None:
    tests = """
import pytest
from pulsarbox import BoxError

def test_one(pulsarbox_restored, pulsarbox_client):
    pulsarbox_client.create_producer("t").send(b"x")
    pulsarbox_restored.assert_messages("t", [b"x"])

def test_two(pulsarbox):
    with pytest.raises(BoxError, match="cannot read "):
        pulsarbox.messages("t")
"""
    for ini in ("", "pulsarbox_storage = disk"):
        runs.run(tests, ini=ini, outcome="2 passed")


@pytest.mark.campaign
def test_boxes_of_a_tests_own(runs: Runs) -> None:
    tests = """
boxes = []

def test_one(pulsarbox_make):
    boxes.append(pulsarbox_make(process=True, disk=True, clock="virtual").start())
    boxes[0].clock.advance(days=1)
    boxes[0].kill()
    boxes[0].start()
    boxes.append(pulsarbox_make().start())

def test_two():
    assert not any(box.is_running for box in boxes)
"""
    runs.run(tests, outcome="2 passed")


@pytest.mark.parametrize(
    ("ini", "why"),
    short(
        [
            ("pulsarbox_storage = tape", "pulsarbox_storage must be memory or disk, not 'tape'"),
            ("pulsarbox_settings = maxMesageSize = 5", "did you mean maxMessageSize?"),
            ("pulsarbox_settings = maxMessageSize", "expected name = value"),
            ("pulsarbox_settings = maxMessageSize = big", "expected a whole number"),
        ],
        1,
    ),
)
def test_ini_options_that_make_no_sense_are_told(runs: Runs, ini: str, why: str) -> None:
    assert why in runs.run("def test_it(pulsarbox): pass", ini=ini, code=1)


def test_without_the_official_client_tests_that_want_it_are_skipped(runs: Runs) -> None:
    (runs.path / "pulsar.py").write_text("raise ImportError('not here')")
    said = runs.run("def test_it(pulsarbox_client): pass", "-p", "no:randomly", outcome="1 skipped")
    assert "pip install pulsar-client" in said


@pytest.mark.campaign
def test_a_run_that_wants_no_box_pays_for_none(runs: Runs) -> None:
    tests = """
import json, sys

def test_it():
    with open("modules.json", "w") as file:
        json.dump([name for name in sys.modules if name.split(".")[0] == "pulsarbox"], file)
"""
    runs.run(tests, outcome="1 passed")
    loaded = json.loads((runs.path / "modules.json").read_text())
    assert sorted(loaded) == ["pulsarbox", "pulsarbox.embed", "pulsarbox.embed.pytest_plugin"]


def test_a_failure_can_be_read(pulsarbox: PulsarBox, pulsarbox_namespace: Namespace) -> None:
    topic = pulsarbox_namespace.topic("orders")
    client = connect(pulsarbox.service_url)
    producer = client.create_producer(topic)
    producer.send(b"a", partition_key="k", properties={"p": "1"})
    producer.send(b"b")
    client.close()
    pulsarbox.assert_messages(topic, [having(b"a", key="k", properties={"p": "1"}), b"b"])
    pulsarbox.assert_messages(topic, ["b", "a"], any_order=True)
    with pytest.raises(AssertionError) as failed:
        pulsarbox.assert_messages(topic, [b"a", b"c", b"d"], within=0)
    assert str(failed.value).splitlines() == [
        f"{topic}: 2 messages, expected 3; no match within 0 s",
        "     0  b'a' key='k' properties={'p': '1'}",
        "!    1  b'b'   expected b'c'",
        "-       b'd'   missing",
    ]
    with pytest.raises(AssertionError, match="the topic does not exist"):
        pulsarbox.assert_messages(pulsarbox_namespace.topic("none"), [b"x"], within=0)


def test_the_messages_of_a_topic(pulsarbox: PulsarBox, pulsarbox_namespace: Namespace) -> None:
    topic, parts = pulsarbox_namespace.topic("many"), pulsarbox_namespace.topic("parts")
    client = connect(pulsarbox.service_url)
    payloads = [b"%d" % number for number in range(2500)]
    send_all(client.create_producer(topic, "me", batching_enabled=True, block_if_queue_full=True), payloads)
    pulsarbox.admin("PUT", f"/admin/v2/persistent/{pulsarbox_namespace}/parts/partitions", 3)
    send_all(client.create_producer(parts), payloads[:30])
    client.create_producer(pulsarbox_namespace.topic("empty"))
    client.close()
    found = pulsarbox.messages(topic)
    assert [each.payload for each in found] == payloads
    assert (found[5].text(), found[5].json(), found[5].producer, found[5].topic) == ("5", 5, "me", topic)
    assert found[5].publish_time > 1_600_000_000_000
    of_parts = pulsarbox.messages(parts)
    assert sorted(each.payload for each in of_parts) == sorted(payloads[:30])
    assert {each.topic for each in of_parts} == {f"{parts}-partition-{number}" for number in range(3)}
    assert pulsarbox.messages(pulsarbox_namespace.topic("empty")) == []
    with pytest.raises(BoxError, match="cannot read "):
        pulsarbox.messages(pulsarbox_namespace.topic("typo"))
