"""Which entries one task of Spark reads: segments into partitions of about as many bytes. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from pulsarbox.spark.topic_segments import Segment

SMALL: Final = 4 << 20
"""A read of less is not worth a second task, unless ``minPartitions`` asks for it."""
SPREAD: Final = 8
"""A read of more is done by so many tasks, also where fewer would keep below ``maxBytesPerPartition``."""
PIECE_MIN: Final = 64 << 10
"""A segment is not cut smaller only so that what stands in one volume is read by one task."""

Partition = tuple[Segment, ...]


def partitions(segments: Iterable[Segment], at_least: int, bytes_max: int, *, in_place: bool = True) -> list[Partition]:
    """The segments cut and put together: every entry once, what stands in one volume together, topics in order.

    At least ``at_least`` partitions, as far as there are as many entries; each with about ``bytes_max`` bytes at most.
    Where they are not read ``in_place``, it does not matter where they stand, and each piece of a topic has its cost.
    """
    found = [segment if in_place else segment._replace(volumes=()) for segment in segments]
    total = sum(segment.bytes for segment in found)
    count = _count(total, at_least, bytes_max)
    size = max(1, -(-total // count))
    pieces = _by_volume([piece for segment in found for piece in segment.parts(_piece(segment, size, count))])
    packed = _packed(pieces, total, count, bytes_max)
    while len(packed) < at_least and _split_one(packed):
        pass
    return [tuple(_joined(each)) for each in packed]


def _count(total: int, at_least: int, bytes_max: int) -> int:
    """How many partitions there are to be. More than SPREAD are a multiple of it: so two, four or eight tasks at a time
    end together."""
    if total <= 0:
        return 1
    room = max(1, bytes_max - (bytes_max >> 8))  # pieces are not all alike
    count = max(-(-total // room), min(SPREAD, -(-total // SMALL)))
    if count > SPREAD:
        count = -(-count // SPREAD) * SPREAD
    return max(count, at_least)


def _piece(segment: Segment, size: int, count: int) -> int:
    """How large its pieces are. Of what stands beside other topics a task reads the same share of each, where that does
    not make them too small: so it reads a stretch of a volume, not everywhere a little."""
    return min(size, max(-(-segment.bytes // count), PIECE_MIN)) if segment.volumes else size


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


def _packed(pieces: Iterable[Segment], total: int, count: int, bytes_max: int) -> list[list[Segment]]:
    """Each piece to where its middle is. Filled up one by one, they would drift: then each would begin with what is
    left of a stretch and end within another, and go through both for half of what is there."""
    packed: list[list[Segment]] = []
    place, room, done = -1, 0, 0
    for piece in pieces:
        its_place = (2 * done + piece.bytes) * count // (2 * total) if total else 0
        if its_place != place or piece.bytes > room:
            packed.append([])
            place, room = its_place, bytes_max
        packed[-1].append(piece)
        room -= piece.bytes
        done += piece.bytes
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
