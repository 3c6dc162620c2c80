"""Racks of bookies."""

import pytest

from pulsarbox.errors import PreconditionFailed
from tests.unit.broker.playbook import Box


def test_a_bookie_is_in_one_group() -> None:
    racks = Box().broker.clusters.racks
    assert racks.groups() == {} and racks.get("b1") is None
    racks.put("g", "b2", {"rack": "/r2"})
    racks.put("g", "b1", {"rack": "/r1"})
    racks.put("f", "b2", {"rack": "/r3"})
    assert racks.groups() == {"f": {"b2": {"rack": "/r3"}}, "g": {"b1": {"rack": "/r1"}}}
    assert racks.get("b2") == {"rack": "/r3"}
    assert racks.delete("b1") and not racks.delete("b1")
    assert racks.groups() == {"f": {"b2": {"rack": "/r3"}}}


def test_racks_are_limited_and_survive_a_restart() -> None:
    box = Box()
    box.broker.clusters.racks.put("g", "b1", {"rack": "/r1"})
    with pytest.raises(PreconditionFailed, match="too large"):
        box.broker.clusters.racks.put("g", "b2", {"hostname": "x" * 70_000})
    box.advance(0)
    assert box.restart().broker.clusters.racks.groups() == {"g": {"b1": {"rack": "/r1"}}}
