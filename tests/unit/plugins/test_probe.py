"""Ten faulty plugins, and the result of probing each."""

from pathlib import Path

import pytest

from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.registry import PluginEntry, find
from tests.unit.plugins import bad


def written(directory: Path, source: str) -> PluginEntry:
    path = directory / "it.py"
    path.write_text(source)
    (found,) = (each for each in find(directory) if each.source == str(path))
    return found


@pytest.mark.parametrize(
    ("source", "usable", "says"),
    [
        (bad.MISSING, False, "ModuleNotFoundError: No module named 'a_module_that_nobody_has'"),
        (bad.ENDS, False, "SystemExit: 3"),
        (bad.OLD, False, "it was written for version 0 of the hashing contract, but this is version 1"),
        (bad.RANGE, True, "range: hash32(b'') returned -1, expected a number from 0 to 2147483647"),
        (bad.ENDLESS, False, "exceeded 1 seconds of CPU time"),
        (bad.MEMORY, True, "range: MemoryError"),
        (bad.BOMB, True, "sizes: decompress returned 1000000 bytes for a size of 0"),
        (bad.LIES, True, "round trip: decompress does not restore 1 bytes"),
        (bad.THREADS, True, "threads: hash32 returns different results in concurrent threads"),
        (bad.CHANGES, True, "repeatable: hash32("),
    ],
    ids=["missing", "ends", "old", "range", "endless", "memory", "bomb", "lies", "threads", "changes"],
)
def test_a_bad_plugin(tmp_path: Path, source: str, usable: bool, says: str) -> None:
    found = written(tmp_path, source)
    seconds = 1 if source == bad.ENDLESS else 20
    report = probe(found, seconds)
    assert report.usable is usable
    assert any(problem.startswith(says) for problem in report.problems), report


def test_a_good_plugin(tmp_path: Path) -> None:
    source = "from zlib import crc32\n" + bad.HASH.format("print('talk'); return crc32(key) & 0x7FFFFFFF")
    assert probe(written(tmp_path, source))[:3] == (True, [], "")


def test_a_plugin_that_is_another_one_in_each_process(tmp_path: Path) -> None:
    report = probe(written(tmp_path, bad.HASH.format("return hash(key) & 0x7FFFFFFF")))
    assert report.usable
    assert [problem.partition(":")[0] for problem in report.problems] == ["processes"]
