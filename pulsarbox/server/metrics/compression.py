"""Metrics of compression on disk, summed over topics by codec."""

from collections.abc import Iterable, Iterator

from pulsarbox.server.metrics.exposition import Metric, Rows, labels
from pulsarbox.storage.compression.decompressed_cache import UnpackedUse
from pulsarbox.storage.compression.topic_usage import CompressedTopic

COMPRESSION = (
    Metric(
        "pulsarbox_compressed_entries", "Entries in packed volumes that were to be compressed", lambda sums: sums[0]
    ),
    Metric("pulsarbox_compressed_bytes", "Bytes of their bodies as they came", lambda sums: sums[1]),
    Metric("pulsarbox_compressed_stored_bytes", "And as they stand on the disk", lambda sums: sums[2]),
    Metric("pulsarbox_compression_dictionaries", "Dictionaries that these entries need", lambda sums: sums[3]),
)


UNPACKED = (
    Metric(
        "pulsarbox_unpacked_hits_total", "Compressed entries read that were in memory", lambda use: use.hits, "counter"
    ),
    Metric("pulsarbox_unpacked_misses_total", "And those that were unpacked", lambda use: use.misses, "counter"),
    Metric("pulsarbox_unpacked_bytes", "Memory that unpacked entries take", lambda use: use.bytes),
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
