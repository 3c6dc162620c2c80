"""A store with entries of a missing codec does not open, and names the codec and its users."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.plugins.contracts import Codec
from pulsarbox.plugins.registry import PluginError, built_in, get
from pulsarbox.storage.catalog import owner_key
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.lmdb.engine import LmdbEngine
from tests import forks
from tests.unit.storage.batches import compress_with
from tests.unit.storage.disk_store import LEDGERS, DiskStore
from tests.unit.storage.engine_conformance import checkpoint_at, reclaim_all


class Deflate:
    """A plugin with a custom codec."""

    api = 1
    name = "deflate"
    wire_id = None
    rest_tag: bytes | None = b"defl"

    def open(self) -> Codec:
        return self

    def trained(self, dictionary: bytes) -> None:
        return None

    def train(self, samples: Sequence[bytes], size: int) -> None:
        return None

    def compress(self, data: bytes) -> bytes:
        return zlib.compress(data, wbits=-15)

    def decompress(self, data: bytes, size: int) -> bytes:
        return zlib.decompressobj(-15).decompress(data, max(1, size))


class Liar(Deflate):
    """A codec that does not restore the compressed data."""

    name = "liar"
    rest_tag = b"liar"

    def compress(self, data: bytes) -> bytes:
        return zlib.compress(data[:-1] + b"?", wbits=-15)


class Bomber(Deflate):
    """A codec that decompresses to a thousand times the declared size."""

    name = "bomber"
    rest_tag = b"bomb"

    def decompress(self, data: bytes, size: int) -> bytes:
        return super().decompress(data, size) * 1000


class Raiser(Deflate):
    """A codec that fails intermittently."""

    name = "raiser"
    rest_tag = b"rais"

    def compress(self, data: bytes) -> bytes:
        if data[9] % 2:
            raise ValueError("not this one")
        return super().compress(data)


class Borrower(Deflate):
    """A codec that writes the tag of another codec."""

    name = "borrower"
    rest_tag = b"zstd"


def load(*there: type[Any]) -> Any:
    """Return a plugin lookup with these codecs in addition to the built-in ones."""

    def found(kind: str, name: str) -> Any:
        if name in built_in(kind):
            return get(kind, name)
        for each in there:
            if each.name == name:
                return each()
        raise PluginError(f"there is no plugin {name!r} for {kind}")

    return found


class PluginStore(DiskStore):
    """A data directory with a set of plugins."""

    there: tuple[type[Any], ...] = (Deflate, Liar, Bomber, Raiser, Borrower)

    def make(self) -> LmdbEngine:
        codecs = RestCodecs(load(*self.there))
        return LmdbEngine(self.path, volume_size=self.volume_size, index_flush_entries=25, codecs=codecs)


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


@pytest.fixture
def plugged(tmp_path: Path) -> PluginStore:
    store = PluginStore(tmp_path / "data")
    store.open()
    store.commit(30)
    rows = {
        owner_key(ledger).encode(): json.dumps(f"persistent://public/default/t-{ledger}").encode() for ledger in LEDGERS
    }
    checkpoint_at(store.now, store.next_position - 1, rows)
    return store


def test_a_plugin_compresses_and_its_entries_come_back(plugged: PluginStore) -> None:
    assert "compressed" in reclaim_all(plugged.now, compress_with("deflate"))
    plugged.check()
    plugged.open()
    plugged.check()
    assert {each.codec for each in plugged.now._reclaimer.compressed} == set()
    reclaim_all(plugged.now)
    assert {each.codec for each in plugged.now._reclaimer.compressed} == {"deflate"}


def test_without_its_codec_a_store_does_not_open_and_says_whose_entries_need_it(plugged: PluginStore) -> None:
    reclaim_all(plugged.now, compress_with("deflate", 3, 5))
    plugged.close()
    plugged.there = ()
    with pytest.raises(PersistenceError) as caught:
        plugged.open()
    said = str(caught.value)
    assert "cannot use the codec 'deflate': there is no plugin 'deflate'" in said
    assert "entries of persistent://public/default/t-3, persistent://public/default/t-5 are compressed with it" in said
    assert "pluginsDirectory" in said
    plugged.engine = None
    report = check(plugged.path)
    assert not report.damaged
    assert any(
        "compressed entries are not verified: cannot use the codec 'deflate'" in each.what for each in report.findings
    )
    # With the codec all entries are readable; dead entries require no codec.
    plugged.there = (Deflate,)
    plugged.open()
    plugged.check()
    plugged.drop(3, 5)
    plugged.close()
    plugged.there = ()
    plugged.open()
    plugged.check()


def test_another_codec_takes_its_place_where_that_is_wanted(plugged: PluginStore) -> None:
    reclaim_all(plugged.now, compress_with("deflate"))
    reclaim_all(plugged.now, compress_with("zlib", generation=2))
    plugged.close()
    plugged.there = ()
    plugged.open()
    plugged.check()


def test_a_codec_that_writes_another_tag_now_is_missing(plugged: PluginStore, monkeypatch: pytest.MonkeyPatch) -> None:
    reclaim_all(plugged.now, compress_with("deflate"))
    plugged.close()
    monkeypatch.setattr(Deflate, "rest_tag", b"newe")
    with pytest.raises(PersistenceError, match="writes the tag b'newe', but the stored data has b'defl'"):
        plugged.open()
    plugged.engine = None


@pytest.mark.parametrize("codec", ["liar", "bomber", "borrower", "nobody"])
def test_what_a_codec_cannot_be_trusted_with_stays_as_it_came(plugged: PluginStore, codec: str) -> None:
    reclaim_all(plugged.now, compress_with(codec))
    with plugged.now._volumes.metas.using(0) as meta:
        assert meta.needs() == {}
    plugged.check()
    assert reclaim_all(plugged.now, compress_with(codec)) == []


def test_a_codec_that_makes_too_much_when_it_is_read_gives_damaged_entries(
    plugged: PluginStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    reclaim_all(plugged.now, compress_with("deflate"))
    plugged.check()
    plugged.close()
    monkeypatch.setattr(Deflate, "decompress", lambda self, data, size: zlib.decompress(data, wbits=-15) * 1000)
    plugged.open()
    with pytest.raises(EntryDamaged, match="its decompressed size is wrong"):
        plugged.now.read(ReadRequest(1, LEDGERS[0], 0, 0, 1))


def test_a_codec_that_fails_is_not_asked_again_in_that_step(plugged: PluginStore) -> None:
    reclaim_all(plugged.now, compress_with("raiser"))
    plugged.check()
    assert reclaim_all(plugged.now, compress_with("raiser")) == []
