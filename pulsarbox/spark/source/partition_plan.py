"""Partition plans: segments combined into Spark partitions of similar size. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from pulsarbox.spark.topic_segments import TopicSegment

SMALL: Final = 4 << 20
"""Bytes below which a second task is not worthwhile, unless ``minPartitions`` requires it."""
PIECE_MIN: Final = 64 << 10
"""Minimum bytes of a piece when a segment is cut to group the contents of a volume in one task."""

Partition = tuple[TopicSegment, ...]


def partitions(
    segments: Iterable[TopicSegment], at_least: int, bytes_max: int, parallelism: int, *, in_place: bool = True
) -> list[Partition]:
    """Split and combine segments: each entry once, grouped by volume, topics in order.

    At least ``at_least`` partitions, given enough entries, of about ``bytes_max`` bytes at most; ``parallelism`` of
    them if the read is not small, even if fewer would do. Unless read ``in_place``, volumes are ignored, since each
    piece of a topic has a cost.
    """
    found = [segment if in_place else segment._replace(volumes=()) for segment in segments]
    total = sum(segment.bytes for segment in found)
    count = _count(total, at_least, bytes_max, parallelism)
    size = max(1, -(-total // count))
    pieces = _by_volume([piece for segment in found for piece in segment.parts(_piece(segment, size, count))])
    packed = _packed(pieces, total, count, bytes_max)
    while len(packed) < at_least and _split_one(packed):
        pass
    return [tuple(_joined(each)) for each in packed]


def _count(total: int, at_least: int, bytes_max: int, parallelism: int) -> int:
    """Return the number of partitions.

    Above ``parallelism`` it is a multiple of it, so that parallel tasks finish together.
    """
    if total <= 0:
        return 1
    room = max(1, bytes_max - (bytes_max >> 8))  # pieces differ in size
    count = max(-(-total // room), min(parallelism, -(-total // SMALL)))
    if count > parallelism:
        count = -(-count // parallelism) * parallelism
    return max(count, at_least)


def _piece(segment: TopicSegment, size: int, count: int) -> int:
    """Return the piece size of a segment. If it shares volumes with other topics, each task gets an equal share of it,
    unless too small: so a task reads a contiguous stretch of a volume."""
    return min(size, max(-(-segment.bytes // count), PIECE_MIN)) if segment.volumes else size


def _by_volume(pieces: Sequence[TopicSegment]) -> list[TopicSegment]:
    """Sort pieces by disk order, as far as known, keeping the order within a ledger.

    If many topics share volumes, a task then reads part of all topics rather than all of some.
    """
    order = {
        name: float(number) for number, name in enumerate(sorted({name for each in pieces for name in each.volumes}))
    }
    counts: dict[tuple[str, int], int] = {}
    for each in pieces:
        counts[each.topic, each.ledger] = counts.get((each.topic, each.ledger), 0) + 1
    ranked: list[tuple[float, TopicSegment]] = []
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


def _packed(pieces: Iterable[TopicSegment], total: int, count: int, bytes_max: int) -> list[list[TopicSegment]]:
    """Assign each piece to the partition of its midpoint. Filling partitions one by one would make them drift off the
    disk stretches, so that each partition reads parts of two."""
    packed: list[list[TopicSegment]] = []
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


def _joined(pieces: Iterable[TopicSegment]) -> list[TopicSegment]:
    """Merge consecutive pieces of a ledger."""
    found: list[TopicSegment] = []
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


def _split_one(packed: list[list[TopicSegment]]) -> bool:
    """Split the largest partition that can be split; return whether there was one."""
    for at in sorted(range(len(packed)), key=lambda at: -sum(each.bytes for each in packed[at])):
        found = packed[at]
        if len(found) == 1:
            found = list(found[0].parts(max(1, -(-found[0].bytes // 2))))
        if len(found) > 1:
            half = len(found) // 2
            packed[at : at + 1] = [found[:half], found[half:]]
            return True
    return False
