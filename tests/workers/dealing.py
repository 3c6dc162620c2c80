"""Distribution of tests to processes: long-running tests start first, so that none remains for the end.

The table is generated from the times of a run: ``make test ARGS=--junitxml=.make/times.xml``, then ``python -m
tests.workers.dealing .make/times.xml``. An outdated row only costs time.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar
from xml.etree import ElementTree as ET

TABLE: Final = Path(__file__).with_name("dealing.tsv")
DEAR_SECONDS: Final = 3.0
SPARK: Final = "tests.e2e.spark"
OWN_JVM: Final = f"{SPARK}.test_pipelines"
"""Runs commands, each with its own JVM."""

Item = TypeVar("Item")


def group_of(module: str) -> str:
    """Return the group that one process runs: a file, or all files of the Spark folder that share a JVM."""
    return SPARK if module.startswith(f"{SPARK}.") and module != OWN_JVM else module


def dealt(
    items: Sequence[Item], workers: int, group: Callable[[Item], str], seconds: Mapping[str, float]
) -> list[Item]:
    """Order the items so that each worker gets an equal part of the list (``tests/workers/plugin.py``).

    Each part begins with the groups in ``seconds``, the longest first, balanced over the parts. Short tests follow; an
    idle worker steals from the end of another's part.
    """
    groups = defaultdict(list)
    for item in items:
        groups[group(item)].append(item)
    parts: list[list[Item]] = [[] for _ in range(workers)]
    weights = [0.0] * workers
    for name in sorted(groups.keys() & seconds.keys(), key=lambda name: (-seconds[name], name)):
        lightest = weights.index(min(weights))
        parts[lightest] += groups.pop(name)
        weights[lightest] += seconds[name]
    cheap = [item for each in groups.values() for item in each]
    found: list[Item] = []
    for number, part in enumerate(parts):
        end = len(items) * (number + 1) // workers
        more = max(end - len(found) - len(part), 0)
        found += [*part, *cheap[:more]]
        del cheap[:more]
    return found + cheap


def read() -> dict[str, float]:
    """Read the seconds by group."""
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines()[1:])
    return {name: float(seconds) for name, seconds in rows}


def taken(report: Path) -> dict[str, float]:
    """Return the seconds of the expensive groups in a JUnit report."""
    found: defaultdict[str, float] = defaultdict(float)
    for case in ET.parse(report).iter("testcase"):
        words = case.attrib["classname"].split(".")
        module = ".".join(word for word in words if word.islower())  # without the class name
        found[group_of(module)] += float(case.attrib["time"])
    longest = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return {name: seconds for name, seconds in longest if seconds >= DEAR_SECONDS}


def main(report: Path) -> None:
    """Write the table."""
    rows = [f"{name}\t{seconds:.0f}\n" for name, seconds in taken(report).items()]
    TABLE.write_text("tests\tseconds\n" + "".join(rows), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
