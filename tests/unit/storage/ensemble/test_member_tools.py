"""Offline tools on one of several data directories of a box: entries and batches that it lacks are no damage."""

from pathlib import Path

import pytest

from pulsarbox.spark.access.extractor import NotInPlace
from pulsarbox.spark.access.mapped_reader import MappedStore
from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.inspection.dump import records_of
from pulsarbox.storage.inspection.findings import DAMAGE
from pulsarbox.storage.inspection.statistics import statistics
from tests import forks
from tests.unit.storage.directories import ledger_row
from tests.unit.storage.ensemble.member_conformance import BoxLog, membership, reclaim_all


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with gaps, copies, holes in its ledgers, and an end that was erased."""
    path = tmp_path / "one"
    member = LmdbMember(path, volume_size=1 << 15, index_flush_entries=9)
    member.open()
    member.write_membership(membership("box"))
    log = BoxLog()
    for each in range(40):
        batch = log.add(3, 1)
        if each % 6:
            member.commit(batch)
    rows = {f"topic/persistent://public/default/{name}": f'{{"id": {number}}}' for name, number in (("a", 7), ("b", 8))}
    rows |= {f"ledger/{topic:016x}/{ledger:016x}": _row() for topic, ledger in ((7, 1), (8, 2))}
    member.checkpoint(Checkpoint(45, {key.encode(): value.encode() for key, value in rows.items()}, ()))
    member.adopt(log.pieces(1, [*range(3), *range(36, 39)]) + log.pieces(2, [0]))
    member.forget(1, 50, 52)
    reclaim_all(member)
    member.commit(log.add(1))
    member.commit(log.add(1))
    member.erase_from(len(log.batches))
    member.close()
    return path


def _row() -> str:
    import json

    return json.dumps(ledger_row(120, 5))


def test_a_check_finds_no_damage(directory: Path) -> None:
    assert [each for each in check(directory).findings if each.severity == DAMAGE] == []


def test_what_is_damaged_is_found(directory: Path) -> None:
    file = sorted((directory / "volumes").iterdir())[-1] / "data.mdb"
    file.write_bytes(file.read_bytes()[:9000])
    assert [each for each in check(directory).findings if each.severity == DAMAGE]


def test_records_and_statistics_are_shown(directory: Path) -> None:
    assert statistics(directory, 10)["lag"]["batches"] == 0
    complaints: list[str] = []
    entries = [each for each in records_of(directory, {}, complaints.append) if each.get("kind") == "entry"]
    assert len({each["position"] for each in entries}) > 30
    assert complaints == []


def test_spark_does_not_read_one_directory_in_place(directory: Path) -> None:
    with pytest.raises(NotInPlace, match="each has only some of the entries"):
        MappedStore(directory, "box")
