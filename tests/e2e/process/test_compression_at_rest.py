"""Compression at rest with the official client: each level, on disk, over a restart, and without its codec."""

import json
import random
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import EARLIEST, connect, send_all, take, until
from tests.e2e.commands import run

DEFLATE = """
import zlib

class Plugin:
    kind = "compression"
    name = "deflate"
    api = 1
    wire_id = None
    rest_tag = b"defl"

    def open(self):
        return self

    def trained(self, dictionary):
        return None

    def train(self, samples, size):
        return None

    def compress(self, data):
        return zlib.compress(data, 1, wbits=-15)

    def decompress(self, data, size):
        unpacked = zlib.decompressobj(-15).decompress(data, max(1, size))
        if len(unpacked) != size:
            raise ValueError("it has another size")
        return unpacked
"""
NAMESPACE = "/pulsarbox/v1/policies/public/default/compressionAtRest"
SMALL: dict[str, Any] = {
    "journalVolumeSizeMbytes": 1,
    "journalCheckpointMbytes": 1,
    "journalMaxBatchMbytes": 1,
    "maxMessageSize": 200_000,
}


def view(box: PulsarBox) -> dict[str, Any]:
    """Return the rows of the box's own view, by the last part of the topic names."""
    return {row["topic"].rpartition("/")[2]: row for row in box.admin("GET", "/pulsarbox/v1/compression")}


def orders(count: int) -> list[bytes]:
    dice = random.Random(3)
    return [
        json.dumps({"order": at, "customer": f"c-{dice.randrange(10**6)}", "article": dice.choice(("tea", "salt")),
                    "price": dice.randrange(10**4), "remark": "the usual, to the usual address"}).encode()
        for at in range(count)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def levels() -> Iterator[PulsarBox]:
    with PulsarBox() as box:
        yield box


@pytest.mark.parametrize("level", ["topic", "namespace", "broker"])
def test_each_level_compresses(levels: PulsarBox, level: str) -> None:
    client = connect(levels.service_url)
    bodies = [body * 3 for body in orders(50)]
    send_all(client.create_producer(level, batching_enabled=False), bodies)
    path, body = f"/pulsarbox/v1/policies/persistent/public/default/{level}/compressionAtRest", "zlib"
    if level == "namespace":
        path = NAMESPACE
    if level == "broker":
        levels.admin("POST", "/admin/v2/brokers/configuration/compressionAtRest/zlib")
    else:
        levels.admin("POST", path, body)
        assert levels.admin("GET", path) == "zlib"
    until(lambda: view(levels).get(level, {}).get("codec") == "zlib")
    consumer = client.subscribe(level, "s", initial_position=EARLIEST)
    assert take(consumer, 50) == bodies
    if level == "broker":
        levels.admin("DELETE", "/admin/v2/brokers/configuration/compressionAtRest")
    else:
        levels.admin("DELETE", path)
        assert levels.admin("GET", path) is None
    client.close()


def test_what_is_sealed_is_compressed_and_read_as_it_came(tmp_path: Path) -> None:
    bodies = orders(8_000)
    options: dict[str, Any] = {**SMALL, "compressionAtRest": "zstd", "compressionAtRestCpuPercent": 100}
    with PulsarBox(data_dir=tmp_path / "data", **options) as box:
        client = connect(box.service_url)
        client.subscribe("orders", "s", initial_position=EARLIEST)
        producer = client.create_producer("orders", batching_enabled=False)
        for start in range(0, len(bodies), 500):
            send_all(producer, bodies[start : start + 500])
        until(lambda: view(box).get("orders", {}).get("ratio", 0) > 1.8)
        row = view(box)["orders"]
        assert row["codec"] == row["wanted"] == "zstd"
        assert row["dictionaries"]
        client.close()
    checked = run("storage", "check", str(tmp_path / "data"))
    assert b"no damage" in checked.stdout, checked.stdout
    stat = run("storage", "stat", str(tmp_path / "data"), "-o", "json")
    (topic,) = [each for each in json.loads(stat.stdout)["topics"] if each["name"].endswith("/orders")]
    assert topic["compressed"][0]["codec"] == "zstd"
    assert topic["compressed"][0]["ratio"] > 1.8
    dump = ("storage", "dump", str(tmp_path / "data"), "--volume", "packed/00000001", "--limit", "1", "--body")
    (line,) = run(*dump).stdout.splitlines()
    assert json.loads(line)["compressed"]["codec"] == "zstd"
    assert json.loads(json.loads(line)["text"])["remark"] == "the usual, to the usual address"
    with PulsarBox(data_dir=tmp_path / "data", **SMALL) as box:
        client = connect(box.service_url)
        once, again = (client.subscribe("orders", name, initial_position=EARLIEST) for name in ("s", "again"))
        assert take(once, len(bodies)) == bodies
        unpacked = box.admin("GET", "/pulsarbox/v1/top/storage")["totals"]["unpackedMisses"]
        assert unpacked > 1000
        assert take(again, len(bodies)) == bodies
        totals = box.admin("GET", "/pulsarbox/v1/top/storage")["totals"]
        assert totals["unpackedMisses"] == unpacked  # the cache has room for everything
        assert totals["unpackedHits"] > 1000
        with urllib.request.urlopen(f"{box.admin_url}/metrics") as answer:
            assert f'pulsarbox_unpacked_misses_total{{cluster="standalone"}} {unpacked}' in answer.read().decode()
        client.close()


def test_a_box_does_not_start_without_a_codec_that_its_entries_need(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "deflate.py").write_text(DEFLATE)
    data = tmp_path / "data"
    directory: dict[str, Any] = {"pluginsDirectory": str(plugins)}
    with PulsarBox(data_dir=data, **SMALL, **directory, compressionAtRest="deflate") as box:
        client = connect(box.service_url)
        client.subscribe("kept", "s", initial_position=EARLIEST)
        bodies = [body * 60 for body in orders(450)]
        send_all(client.create_producer("kept", batching_enabled=False), bodies)
        until(lambda: view(box).get("kept", {}).get("codec") == "deflate")
        client.close()
    with pytest.raises(Exception, match=r"cannot use the codec 'deflate'.*persistent://public/default/kept"):
        PulsarBox(data_dir=data, **SMALL).start()
    asked = run("plugins", "doctor", "--data-dir", str(data), code=1)
    assert b"persistent://public/default/kept" in asked.stdout
    with PulsarBox(data_dir=data, **SMALL, **directory) as box:
        client = connect(box.service_url)
        assert take(client.subscribe("kept", "s", initial_position=EARLIEST), len(bodies)) == bodies
        client.close()


def test_a_codec_that_nobody_has_is_refused(levels: PulsarBox) -> None:
    with pytest.raises(Exception, match="unknown compression plugin 'zstdd'"):
        levels.admin("POST", NAMESPACE, "zstdd")
