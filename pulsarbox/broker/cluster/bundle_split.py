"""Split points of a bundle, a hash range ``0x<lower>_0x<upper>`` of a namespace.

Source: https://pulsar.apache.org/docs/4.2.x/administration-load-balance/ (split algorithms).
"""

from collections.abc import Iterable, Sequence

from pulsarbox.errors import PreconditionFailed


def range_of(bundle: str) -> tuple[int, int]:
    """Return the lower and upper boundary of a bundle."""
    lower, _, upper = bundle.partition("_")
    return int(lower, 16), int(upper, 16)


def middle(bundle: str) -> list[int]:
    """Return the point that divides the range equally."""
    lower, upper = range_of(bundle)
    return [lower + (upper - lower) // 2]


def median(hashes: Iterable[int]) -> list[int]:
    """Return the point that divides topics equally, given their hashes; none for fewer than two topics."""
    found = sorted(hashes)
    if len(found) <= 1:
        return []
    start, end = found[len(found) // 2 - 1], found[len(found) // 2]
    return [start + (end - start) // 2]


def inside(bundle: str, positions: Iterable[int]) -> list[int]:
    """Return the positions within the range of a bundle, sorted and without duplicates."""
    lower, upper = range_of(bundle)
    return sorted({position for position in positions if lower < position < upper})


def split(boundaries: Sequence[str], bundle: str, points: Sequence[int]) -> list[str]:
    """Return the boundaries of a namespace with a bundle split at sorted points.

    Raises PreconditionFailed if a point is not within the bundle.
    """
    if inside(bundle, points) != list(points):
        raise PreconditionFailed(f"Split bundle failed due to invalid request: {bundle} is too small to be split there")
    place = boundaries.index(bundle.partition("_")[0]) + 1
    return [*boundaries[:place], *(f"0x{point:08x}" for point in points), *boundaries[place:]]
