"""Metrics of compression on disk, summed over topics by codec."""

from collections.abc import Iterable, Iterator

from pulsarbox.server.metrics.exposition import Metric, Rows, labels
from pulsarbox.storage.compression.decompressed_cache import UnpackedUse
from pulsarbox.storage.compression.topic_usage import CompressedTopic

COMPRESSION = (
    Metric(
        "pulsarbox_compressed_entries",
        "Entries in packed volumes for which compression was configured",
        lambda sums: sums[0],
    ),
    Metric("pulsarbox_compressed_bytes", "Bytes of these entries before compression", lambda sums: sums[1]),
    Metric("pulsarbox_compressed_stored_bytes", "Bytes of these entries on disk", lambda sums: sums[2]),
    Metric(
        "pulsarbox_compression_dictionaries", "Compression dictionaries required by these entries", lambda sums: sums[3]
    ),
)


UNPACKED = (
    Metric(
        "pulsarbox_unpacked_hits_total",
        "Reads of compressed entries served from memory",
        lambda use: use.hits,
        "counter",
    ),
    Metric(
        "pulsarbox_unpacked_misses_total",
        "Reads of compressed entries that required decompression",
        lambda use: use.misses,
        "counter",
    ),
    Metric("pulsarbox_unpacked_bytes", "Memory used by cached decompressed entries in bytes", lambda use: use.bytes),
)


def unpacked(use: UnpackedUse, cluster: str) -> Iterator[tuple[Metric, Rows]]:
    """Yield the metrics of the cache of decompressed entries, if any were read."""
    if use.misses:
        for metric in UNPACKED:
            yield metric, [(cluster, use)]


def compressed(topics: Iterable[CompressedTopic], cluster: str) -> Iterator[tuple[Metric, Rows]]:
    """Yield the metrics by codec, if any; ``none`` is for entries that were tried and remain uncompressed."""
    found: dict[str, list[int]] = {}
    for each in topics:
        sums = found.setdefault(each.codec, [0, 0, 0, 0])
        for at, number in enumerate((each.entries, each.bytes, each.stored, len(each.dictionaries))):
            sums[at] += number
    rows = [(f"{cluster},{labels(codec=codec)}", sums) for codec, sums in sorted(found.items())]
    if rows:
        for metric in COMPRESSION:
            yield metric, rows
