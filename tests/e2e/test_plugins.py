"""Plugins in a box of its own: used, ended where they do not come back, and missed."""

import json
import urllib.request
from pathlib import Path

import pulsar
import pytest

from tests.e2e.clients import EARLIEST, PATIENCE_SECONDS, connect, take
from tests.e2e.commands import run
from tests.tools.box import Box

LAST = """
class Plugin:
    kind = "routing"
    name = "last"
    api = 1
    def choose(self, ready):
        while ready[-1].name == "loops":
            pass
        return ready[-1]
"""
SLOTS = """
import zlib
class Plugin:
    kind = "hashing"
    name = "slots"
    api = 1
    def hash32(self, key):
        return zlib.crc32(key) & 0x7FFFFFFF
"""


@pytest.fixture
def folder(own_box: Box) -> Path:
    """Where the box looks for plugins."""
    folder = own_box.data.parent / "mine"
    folder.mkdir()
    return folder


def configured(box: Box, **settings: str) -> None:
    lines = "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    (box.data.parent / "pulsarbox.toml").write_text(f'[plugins]\npluginsDirectory = "mine"\n{lines}')


def used(box: Box) -> dict[str, dict[str, object]]:
    with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/plugins") as answer:
        return {each["name"]: each for each in json.load(answer)}


def test_a_plugin_that_does_not_come_back_is_ended_and_the_box_goes_on(own_box: Box, folder: Path) -> None:
    (folder / "last.py").write_text(LAST)
    own_box.data.parent.joinpath("pulsarbox.toml").write_text(
        '[plugins]\npluginsDirectory = "mine"\n[dispatcher]\nsharedConsumerSelection = "last"\n'
    )
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe("t", "s", pulsar.ConsumerType.Shared, consumer_name="loops", initial_position=EARLIEST)
    run("produce", "t", "x", "-n", "3", "--no-batch", "--url", own_box.url)
    assert take(consumer, 3) == [b"x"] * 3
    client.close()
    assert "it had not come back after 0.5 seconds and was ended" in str(used(own_box)["last"]["lastError"])
    assert own_box.stop() == 0
    assert "PluginEndless" in own_box.log.read_text()


def test_a_hash_that_is_missed_refuses_the_start_by_its_name_and_the_topics(own_box: Box, folder: Path) -> None:
    (folder / "slots.py").write_text(SLOTS)
    configured(own_box, keySharedHashing="slots")
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe("t", "s", pulsar.ConsumerType.KeyShared, initial_position=EARLIEST)
    run("produce", "t", "x", "-k", "a", "--url", own_box.url)
    assert take(consumer, 1) == [b"x"]
    assert used(own_box)["slots"]["subscriptions"] == [{"topic": "persistent://public/default/t", "subscription": "s"}]
    client.close()
    own_box.stop()
    (folder / "slots.py").unlink()
    own_box.spawn()
    assert own_box.process is not None
    assert own_box.process.wait(PATIENCE_SECONDS) == 1
    said = own_box.log.read_text()
    assert "the hashing plugin 'slots' cannot be used: there is no plugin 'slots' for hashing" in said
    assert "Key_Shared subscriptions go by it: persistent://public/default/t (s)" in said


def test_a_plugin_is_shown_disabled_and_enabled_again(own_box: Box, folder: Path) -> None:
    (folder / "last.py").write_text(LAST)
    (folder / "slots.py").write_text(SLOTS)
    configured(own_box, keySharedHashing="slots")
    own_box.start()
    client = connect(own_box.url)
    client.subscribe("t", "s", pulsar.ConsumerType.KeyShared)
    where = ["--admin-url", own_box.web_url, "--plugins-dir", str(folder)]
    (shown,) = json.loads(run("plugins", "info", "slots", *where, "-o", "json").stdout)
    assert (shown["state"], shown["source"]) == ("in use", str(folder / "slots.py"))
    refused = run("plugins", "disable", "slots", *where, code=4)
    assert b"Key_Shared subscriptions go by 'slots': persistent://public/default/t (s)" in refused.stderr
    run("plugins", "disable", "last", *where)
    assert used(own_box)["last"]["state"] == "disabled"
    run("plugins", "enable", "last", *where)
    assert "last" not in used(own_box)
    run("plugins", "disable", "nobody", *where, code=3)
    client.close()
