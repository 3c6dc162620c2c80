"""A short run, and proof that a disk that lies is noticed. `make powercut N=500` is the long one."""

from pathlib import Path

import pytest

from tests.powercut.images import MUTANTS
from tests.powercut.record import RecorderError, compile_recorder
from tests.powercut.recording import CORE, ENGINE
from tests.powercut.run import powercut

IMAGES = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    try:
        compile_recorder(tmp_path)
    except RecorderError as error:
        if "no C compiler" in str(error):
            pytest.skip(str(error))
        raise
    return tmp_path


@pytest.mark.parametrize("level", [ENGINE, CORE])
def test_what_was_acknowledged_survives_a_power_cut(folder: Path, level: str) -> None:
    run = powercut(folder, IMAGES, seed=7, levels=[level])
    assert [finding.verdict for finding in run.findings] == []
    assert run.counts["images"] == IMAGES
    assert run.counts["boundaries opened"] > 0
    assert run.counts["DURABLE"] > 0


@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_a_disk_that_lies_is_noticed(folder: Path, mutant: str) -> None:
    run = powercut(folder, IMAGES, seed=7, mutant=mutant, levels=[ENGINE])
    assert run.findings
    assert all(finding.kept.is_dir() for finding in run.findings)


def test_a_client_notices_what_is_gone(folder: Path) -> None:
    run = powercut(folder, IMAGES, seed=7, mutant="meta-sync-lost", levels=[CORE])
    assert any("was receipted and is gone" in finding.verdict for finding in run.findings)
