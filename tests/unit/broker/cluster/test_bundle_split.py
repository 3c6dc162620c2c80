"""Split points of bundles."""

import pytest

from pulsarbox.broker.cluster.bundle_split import inside, median, middle, range_of, split
from pulsarbox.errors import PreconditionFailed

BUNDLE = "0x00000010_0x00000020"


def test_points() -> None:
    assert range_of(BUNDLE) == (16, 32)
    assert middle(BUNDLE) == [24]
    assert middle("0x80000000_0xffffffff") == [0xBFFFFFFF]
    assert median([]) == median([5]) == []
    assert median([9, 1, 5]) == [3]
    assert median([1, 9, 5, 6]) == [5]
    assert inside(BUNDLE, [33, 31, 17, 16, 32, 17, -1]) == [17, 31]


def test_boundaries() -> None:
    edges = ["0x00000000", "0x00000010", "0x00000020"]
    expected = ["0x00000000", "0x00000010", "0x00000012", "0x0000001f", "0x00000020"]
    assert split(edges, BUNDLE, [18, 31]) == expected


@pytest.mark.parametrize(("bundle", "points"), [("0x00000010_0x00000011", [16]), (BUNDLE, [32]), (BUNDLE, [20, 18])])
def test_a_point_outside(bundle: str, points: list[int]) -> None:
    edges = [*bundle.split("_"), "0xffffffff"]
    with pytest.raises(PreconditionFailed, match="Split bundle failed due to invalid request"):
        split(edges, bundle, points)
