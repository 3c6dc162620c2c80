"""Which entries one task of Spark reads: segments into partitions of about as many bytes. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from pulsarbox.spark.segments import Segment

SMALL: Final = 4 << 20
"""A read of less is not worth a second task, unless ``minPartitions`` asks for it."""
SPREAD: Final = 8
"""A read of more is done by so many tasks, also where fewer would keep below ``maxBytesPerPartition``."""
PIECE_MIN: Final = 256 << 10
"""A segment is not cut smaller only so that what stands in one volume is read by one task."""

Partition = tuple[Segment, ...]


def partitions(segments: Iterable[Segment], at_least: int, bytes_max: int) -> list[Partition]:
    """The segments cut and put together: every entry once, what stands in one volume together, topics in order.

    At least ``at_least`` partitions, as far as there are as many entries; each with about ``bytes_max`` bytes at most.
    """
    found = list(segments)
    total = sum(segment.bytes for segment in found)
    size = min(bytes_max, max(SMALL, -(-total // SPREAD)))
    if at_least > 1:
        size = min(size, max(1, total // at_least))
    pieces = _by_volume([piece for segment in found for piece in segment.parts(_piece(segment, size))])
    packed = _packed(pieces, size)
    while len(packed) < at_least and _split_one(packed):
        pass
    return [tuple(each) for each in packed]


def _piece(segment: Segment, size: int) -> int:
    """How large its pieces are: each of one volume, where that does not make them too small."""
    by_volume = -(-segment.bytes // max(1, len(segment.volumes)))
    return min(size, max(by_volume, PIECE_MIN))


def _by_volume(pieces: Sequence[Segment]) -> list[Segment]:
    """In the order in which they stand on the disk, as far as that is known; those of one ledger stay in theirs.

    Where many topics stand in the same volumes, a task so reads some volumes of all topics, not all volumes of some.
    """
    order = {name: number for number, name in enumerate(sorted({name for each in pieces for name in each.volumes}))}
    counts: dict[tuple[str, int], int] = {}
    for each in pieces:
        counts[each.topic, each.ledger] = counts.get((each.topic, each.ledger), 0) + 1
    ranked: list[tuple[int, Segment]] = []
    seen: dict[tuple[str, int], tuple[int, int]] = {}
    for each in pieces:
        number, rank = seen.get((each.topic, each.ledger), (0, 0))
        if each.volumes:
            likely = each.volumes[number * len(each.volumes) // counts[each.topic, each.ledger]]
            rank = max(rank, order[likely])
        seen[each.topic, each.ledger] = number + 1, rank
        ranked.append((rank, each))
    ranked.sort(key=lambda one: one[0])
    return [each for _, each in ranked]


def _packed(pieces: Iterable[Segment], size: int) -> list[list[Segment]]:
    packed: list[list[Segment]] = []
    room = 0
    for piece in pieces:
        if not packed or piece.bytes > room:
            packed.append([])
            room = size
        packed[-1].append(piece)
        room -= piece.bytes
    return packed


def _split_one(packed: list[list[Segment]]) -> bool:
    """Make two of the largest partition that can be; whether there was one."""
    for at in sorted(range(len(packed)), key=lambda at: -sum(each.bytes for each in packed[at])):
        found = packed[at]
        if len(found) == 1:
            found = list(found[0].parts(max(1, -(-found[0].bytes // 2))))
        if len(found) > 1:
            half = len(found) // 2
            packed[at : at + 1] = [found[:half], found[half:]]
            return True
    return False
