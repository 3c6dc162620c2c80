"""Plugins in a running box: probed once, used, stopped when they hang, and missing."""

import json
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pulsar
import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from tests.e2e.clients import EARLIEST, PATIENCE_SECONDS, connect, receive, take
from tests.tools.box import BoxProcess, admin

# Each probe appends a line. The key selects the failure.
KEYS = """
import os, zlib
from pathlib import Path
if "PULSARBOX_PROBE" in os.environ:
    with (Path(__file__).parent / "looks").open("a") as looks:
        looks.write("x")
kept = []
class Plugin:
    kind = "hashing"
    name = "keys"
    api = 1
    def hash32(self, key):
        if key == b"range":
            return -1
        if key == b"exits":
            raise SystemExit(3)
        if key == b"memory":
            kept.append(bytearray(1 << 60))
        if key == b"filling":
            filled = []
            while True:
                filled.append(bytes(1 << 20))
        return zlib.crc32(key) & 0x7FFFFFFF
"""
LAST = """
import os
class Plugin:
    kind = "routing"
    name = "last"
    api = 1
    calls = 0
    def choose(self, ready):
        self.calls += 1
        while self.calls == 1 and "PULSARBOX_PROBE" not in os.environ:
            pass
        return ready[-1]
"""
SLOW = """
import os, time
from pathlib import Path
while "PULSARBOX_PROBE" in os.environ and not (Path(__file__).parent / "go").exists():
    time.sleep(0.01)
class Plugin:
    kind = "routing"
    name = "slow"
    api = 1
    def divide(self):
        made = Plugin()
        made.here = []
        return made
    def add(self, consumer): self.here.append(consumer)
    def remove(self, consumer): self.here.remove(consumer)
    def select(self, slot): return self.here[0]
"""
KEY_SHARED = pulsar.ConsumerType.KeyShared


@pytest.fixture
def folder(own_box: BoxProcess) -> Path:
    """Return the box's plugin folder."""
    folder = own_box.data.parent / "mine"
    folder.mkdir()
    for name, text in (("keys", KEYS), ("last", LAST), ("slow", SLOW)):
        (folder / f"{name}.py").write_text(text)
    return folder


def configured(box: BoxProcess, text: str = "") -> None:
    (box.data.parent / "pulsarbox.toml").write_text(f'[plugins]\npluginsDirectory = "mine"\n{text}')


def used(box: BoxProcess) -> dict[str, dict[str, Any]]:
    with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/plugins") as answer:
        return {each["name"]: each for each in json.load(answer)}


def plugins(box: BoxProcess, folder: Path, *words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["plugins", *words, "--admin-url", box.web_url, "--plugins-dir", str(folder)])
    assert done.exit_code == code, done.output
    return done


def send(client: Any, topic: str, *keys: str) -> None:
    producer = client.create_producer(topic)
    for key in keys:
        producer.send(key.encode(), partition_key=key)


def test_whatever_a_plugin_does_at_run_time_the_box_goes_on(own_box: BoxProcess, folder: Path) -> None:
    configured(own_box, 'keySharedHashing = "keys"\n[dispatcher]\nsharedConsumerSelection = "last"\n')
    own_box.start()
    client = connect(own_box.url)
    by_key = client.subscribe("t", "keys", KEY_SHARED, initial_position=EARLIEST)
    in_turn = client.subscribe("t", "last", pulsar.ConsumerType.Shared, initial_position=EARLIEST)
    keys = ["good", "range", "exits", "memory", "filling"]
    send(client, "t", *keys)
    assert sorted(take(by_key, 5)) == sorted(key.encode() for key in keys)
    assert take(in_turn, 1) == [b"good"]
    shown = used(own_box)
    assert (shown["keys"]["errors"], shown["keys"]["state"]) == (4, "in use")
    assert shown["last"]["errors"] == 1
    client.close()
    assert own_box.stop() == 0
    said = own_box.log.read_text()
    for reason in (
        "hash32 returned -1",
        "PluginEndless: the call did not return within 0.5 seconds and was terminated",
    ):
        assert reason in said


def test_a_hash_that_is_missed_refuses_the_start_by_its_name_and_the_topics(own_box: BoxProcess, folder: Path) -> None:
    configured(own_box, 'keySharedHashing = "keys"\n')
    for _ in range(2):
        own_box.start()
        client = connect(own_box.url)
        consumer = client.subscribe("t", "s", KEY_SHARED)
        send(client, "t", "a")
        assert take(consumer, 1) == [b"a"]
        (shown,) = json.loads(plugins(own_box, folder, "info", "keys", "-o", "json").stdout)
        assert (shown["state"], shown["source"]) == ("in use", str(folder / "keys.py"))
        assert shown["subscriptions"] == [{"topic": "persistent://public/default/t", "subscription": "s"}]
        assert (folder / "looks").read_text() == "xx"  # in two processes, and not again at the second start
        refused = plugins(own_box, folder, "disable", "keys", code=4)
        assert "Key_Shared subscriptions use 'keys': persistent://public/default/t (s)" in refused.stderr
        plugins(own_box, folder, "disable", "last")
        assert used(own_box)["last"]["state"] == "disabled"
        plugins(own_box, folder, "enable", "last")
        assert "last" not in used(own_box)
        plugins(own_box, folder, "disable", "nobody", code=3)
        built_in = plugins(own_box, folder, "disable", "murmur3", code=2)
        assert "'murmur3' is built in: only plugins can be enabled and disabled" in built_in.stderr
        client.close()
        own_box.stop()
    (folder / "keys.py").unlink()
    own_box.spawn()
    assert own_box.process is not None
    assert own_box.process.wait(PATIENCE_SECONDS) == 1
    said = own_box.log.read_text()
    assert "the hashing plugin 'keys' cannot be used: unknown hashing plugin 'keys'" in said
    assert "Key_Shared subscriptions use it: persistent://public/default/t (s)" in said


def test_who_needs_a_plugin_waits_for_it_and_nobody_else_does(own_box: BoxProcess, folder: Path) -> None:
    configured(own_box)
    own_box.start()
    client = connect(own_box.url)
    there = threading.Event()
    found: list[Any] = []
    path = "persistent/public/default/t"
    for each in (path, f"{path}/subscription/s"):
        admin(own_box.web_url, "PUT", each)
    admin(own_box.web_url, "PUT", f"{path}/subscription/s/properties", '{"keySharedSelector": "slow"}')

    def subscribe() -> None:
        found.append(client.subscribe("t", "s", KEY_SHARED))
        there.set()

    threading.Thread(target=subscribe, daemon=True).start()
    other = client.subscribe("t", "other", KEY_SHARED, initial_position=EARLIEST)
    send(client, "t", "a")
    assert receive(other).data() == b"a"
    assert not there.is_set()
    (folder / "go").touch()
    assert there.wait(PATIENCE_SECONDS)
    assert take(found[0], 1) == [b"a"]
    assert used(own_box)["slow"]["errors"] == 0
    client.close()
