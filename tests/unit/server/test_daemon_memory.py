"""The garbage collector stops the loop for a few thousand objects at a time, regardless of the number created."""

import subprocess
import sys
from typing import Final

MOST: Final = 6_500
"""Objects visited by one collection, except in the third generation, which waits for many millions."""
CODE: Final = """
import gc
from pulsarbox.server.daemon import settle_memory
before = [[] for _ in range(20_000)]
gc.disable()
settle_memory()
looked, collections = [], [each["collections"] for each in gc.get_stats()]
def told(phase, info):
    if phase == "start":
        young = range(info["generation"] + 1)
        looked.append(sum(len(gc.get_objects(generation)) for generation in young))
gc.callbacks.append(told)
kept = [[] for _ in range(100_000)]
gc.callbacks.clear()
made = [each["collections"] - had for each, had in zip(gc.get_stats(), collections)]
print(gc.get_freeze_count() > 20_000, gc.isenabled(), max(looked), *made)
"""


def test_stops_are_short() -> None:
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True, text=True).stdout.split()
    assert found[:2] == ["True", "True"]
    most, young, middle, old = map(int, found[2:])
    assert most <= MOST
    assert young > 0
    assert middle > 0
    assert old == 0
