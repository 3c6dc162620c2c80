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


def partitions(segments: Iterable[Segment], at_least: int, bytes_max: int, *, in_place: bool = True) -> list[Partition]:
    """The segments cut and put together: every entry once, what stands in one volume together, topics in order.

    At least ``at_least`` partitions, as far as there are as many entries; each with about ``bytes_max`` bytes at most.
    Where they are not read ``in_place``, it does not matter where they stand, and each piece of a topic has its cost.
    """
    found = [segment if in_place else segment._replace(volumes=()) for segment in segments]
    total = sum(segment.bytes for segment in found)
    size = min(bytes_max, max(SMALL, -(-total // SPREAD)))
    if at_least > 1:
        size = min(size, max(1, total // at_least))
    share = min(1.0, size / total) if total else 1.0
    pieces = _by_volume([piece for segment in found for piece in segment.parts(_piece(segment, size, share))])
    packed = _packed(pieces, size)
    while len(packed) < at_least and _split_one(packed):
        pass
    return [tuple(_joined(each)) for each in packed]


def _piece(segment: Segment, size: int, share: float) -> int:
    """How large its pieces are. Of what stands beside other topics a task reads the same share of each, where that does
    not make them too small: so it reads a stretch of a volume, not everywhere a little."""
    return min(size, max(int(segment.bytes * share), PIECE_MIN)) if segment.volumes else size


def _by_volume(pieces: Sequence[Segment]) -> list[Segment]:
    """In the order in which they stand on the disk, as far as that is known; those of one ledger stay in theirs.

    Where many topics stand in the same volumes, a task so reads a part of all topics, not all of some.
    """
    order = {
        name: float(number) for number, name in enumerate(sorted({name for each in pieces for name in each.volumes}))
    }
    counts: dict[tuple[str, int], int] = {}
    for each in pieces:
        counts[each.topic, each.ledger] = counts.get((each.topic, each.ledger), 0) + 1
    ranked: list[tuple[float, Segment]] = []
    seen: dict[tuple[str, int], tuple[int, float]] = {}
    for each in pieces:
        number, rank = seen.get((each.topic, each.ledger), (0, 0.0))
        if each.volumes:
            likely, behind = divmod(number * len(each.volumes) / counts[each.topic, each.ledger], 1)
            rank = max(rank, order[each.volumes[int(likely)]] + behind)
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


def _joined(pieces: Iterable[Segment]) -> list[Segment]:
    """The same, with those that follow each other in a ledger as one."""
    found: list[Segment] = []
    at: dict[tuple[str, int], int] = {}
    for each in pieces:
        place = at.get((each.topic, each.ledger))
        if place is not None and each.end is None and found[place].last + 1 == each.first:
            before = found[place]
            found[place] = before._replace(
                last=each.last,
                messages=before.messages + each.messages,
                bytes=before.bytes + each.bytes,
                hidden=before.hidden + each.hidden,
                to_batch=each.to_batch,
            )
        else:
            at[each.topic, each.ledger] = len(found)
            found.append(each)
    return found


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
