"""Metrics of compression at rest."""

from pulsarbox.server.metrics.compression import compressed, unpacked
from pulsarbox.server.metrics.exposition import text_of
from pulsarbox.storage.compression.decompressed_cache import UnpackedUse, nothing_unpacked
from pulsarbox.storage.compression.topic_usage import CompressedTopic, topics_of
from pulsarbox.storage.compression.volume_usage import Usage

TOPICS = (
    CompressedTopic("persistent://a/b/c", "zstd", 10, 1000, 250, (1, 2), 900),
    CompressedTopic("persistent://a/b/d", "zstd", 5, 500, 250, (3,), 100),
    CompressedTopic("persistent://a/b/d", "none", 1, 50, 50, (), 0),
)


def test_the_sums_of_each_codec() -> None:
    text = b"".join(text_of(compressed(TOPICS, 'cluster="x"'))).decode()
    assert 'pulsarbox_compressed_entries{cluster="x",codec="zstd"} 15' in text
    assert 'pulsarbox_compressed_bytes{cluster="x",codec="zstd"} 1500' in text
    assert 'pulsarbox_compressed_stored_bytes{cluster="x",codec="zstd"} 500' in text
    assert 'pulsarbox_compressed_stored_bytes{cluster="x",codec="none"} 50' in text
    assert 'pulsarbox_compression_dictionaries{cluster="x",codec="zstd"} 3' in text


def test_a_box_that_compresses_nothing_tells_nothing() -> None:
    assert list(compressed((), 'cluster="x"')) == []
    assert list(unpacked(nothing_unpacked(), 'cluster="x"')) == []


def test_what_is_kept_in_memory() -> None:
    text = b"".join(text_of(unpacked(UnpackedUse(3, 2, 1000), 'cluster="x"'))).decode()
    assert 'pulsarbox_unpacked_hits_total{cluster="x"} 3' in text
    assert 'pulsarbox_unpacked_misses_total{cluster="x"} 2' in text
    assert 'pulsarbox_unpacked_bytes{cluster="x"} 1000' in text


def test_ledgers_of_a_topic_come_together_and_what_is_nobodys_is_left_out() -> None:
    given = [
        (1, b"zstd", 1, Usage(b"zstd", 10, 1000, 250)),
        (2, b"zstd", 2, Usage(b"zstd", 5, 500, 100)),
        (2, b"\0\0\0\0", 0, Usage(b"zstd", 1, 40, 40)),
        (9, b"zstd", 1, Usage(b"zstd", 7, 700, 70)),
    ]
    found = topics_of(given, lambda ledger_id: "t" if ledger_id < 9 else "", {b"zstd": "zstd"}, {1: 30, 2: 40})
    assert found == (
        CompressedTopic("t", "none", 1, 40, 40, (), 0),
        CompressedTopic("t", "zstd", 15, 1500, 350, (1, 2), 70),
    )
    assert found[1].document()["ratio"] == 4.286
