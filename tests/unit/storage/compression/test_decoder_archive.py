"""Stored compressed data stays readable in this version, and in all later ones.

``data/compressed.json`` has the output of each codec, with and without a dictionary; ``data/format-3.tar.gz`` is a
complete data directory. Neither file is ever rewritten: additions get separate files.
"""

import base64
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.plugins.compression.rest import TAGS, RestCodecs
from pulsarbox.storage.compression.decoder import Dictionary, RestUnpacker
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.format import READABLE_FORMATS
from pulsarbox.storage.inspection.box import Box
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import DecompressionError
from tests.unit.storage.packing.test_volume_packer_compression import telemetry

DATA = Path(__file__).parents[3] / "data"
ROWS: list[dict[str, Any]] = json.loads((DATA / "compressed.json").read_text())


class Stored:
    """StoredCodecs with one dictionary."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    def name_of(self, tag: bytes) -> str:
        return ""

    def dictionary(self, number: int) -> Dictionary | None:
        return Dictionary(number, self._row["tag"].encode(), 1, 1000, base64.b64decode(self._row["dictionary"]))


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['tag'].strip()}{'-dictionary' if row['dictionary'] else ''}"
)
def test_what_a_tag_stands_for_stays(row: dict[str, Any]) -> None:
    unpacker = RestUnpacker(RestCodecs(), Stored(row))
    packed, body = base64.b64decode(row["packed"]), base64.b64decode(row["body"])
    dictionary = 7 if row["dictionary"] else 0
    tag = row["tag"].encode()
    assert unpacker.unpack(tag, dictionary, [packed], [len(body)]) == [body]
    assert unpacker.unpack(tag, dictionary, [packed] * 40, [len(body)] * 40) == [body] * 40
    for size in (0, len(body) - 1, len(body) + 1, 1 << 28, 1 << 31):
        with pytest.raises(DecompressionError):
            unpacker.unpack(tag, dictionary, [packed], [size])
    with pytest.raises(DecompressionError):
        unpacker.unpack(tag, dictionary, [packed[:-3]], [len(body)])


def test_every_tag_is_in_the_list() -> None:
    assert {row["tag"].encode() for row in ROWS} == set(TAGS.values())
    assert TAGS == {"lz4": b"lz4 ", "zlib": b"zlib", "zstd": b"zstd", "snappy": b"snap"}


@pytest.mark.parametrize("number", READABLE_FORMATS)
def test_a_whole_directory_is_read(tmp_path: Path, number: int) -> None:
    with tarfile.open(DATA / "format-3.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    instance = tmp_path / "format-3" / "INSTANCE"
    instance.write_text(instance.read_text().replace('"format": 3', f'"format": {number}'))
    assert Box(tmp_path / "format-3").identity.format == number
    assert not check(tmp_path / "format-3").damaged
    engine = LmdbEngine(tmp_path / "format-3", volume_size=1 << 17)
    engine.recover()
    for number in (1, 2, 3, 4):
        entries = engine.read(ReadRequest(1, number * 10, 0, 119, 1 << 20))
        assert [entry.body for entry in entries] == [body * 2 for body in telemetry(120, number)]
    with engine._volumes.metas.using(0) as meta:
        assert set(meta.needs()) == {(b"zstd", 1), (b"lz4 ", 0), (b"zlib", 0), (b"snap", 0)}
    engine.close()
