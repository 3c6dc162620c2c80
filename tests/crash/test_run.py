"""A short campaign of kills. The long one is `make crash N=25`."""

from pathlib import Path

import pytest

from tests.crash import directories
from tests.crash.run import crash
from tests.e2e.conftest import START_CMD

GENTLE = 50
"""Messages per second of each publisher, a third of those of `make crash`: what is checked is the same."""
SEED_OF_DIRECTORIES = 9
"""Two rounds with different directories; the box is killed at the moment of each fault."""


@pytest.mark.timeout(700)  # the Go worker may have to be built
def test_nothing_receipted_is_lost_when_the_box_is_killed(tmp_path: Path) -> None:
    run = crash(tmp_path, kills=2, seed=7, start_cmd=START_CMD, rate=GENTLE)
    assert run.verdict.violations == []
    assert run.kills == 3  # including the one before the audit
    assert run.verdict.counts["receipted"] > 0
    assert run.verdict.counts["delayed"] > 0


@pytest.mark.campaign
@pytest.mark.timeout(700)
def test_with_deduplication_each_message_is_stored_once(tmp_path: Path) -> None:
    run = crash(tmp_path, kills=1, seed=7, start_cmd=START_CMD, rate=GENTLE, dedup=True)
    assert run.verdict.violations == []
    assert run.verdict.counts["stored exactly once"] > 0
    assert run.verdict.counts["resumed"] > 0


@pytest.mark.timeout(700)
def test_copies_are_restored_when_directories_break_under_load(tmp_path: Path) -> None:
    """Entries with copies in both directories, which are removed in turn, survive only if they are repaired."""
    faults = directories.is_removed, directories.is_removed
    run = directories.crash(tmp_path, 2, SEED_OF_DIRECTORIES, rate=GENTLE, mount=False, first=faults)
    assert run.verdict.violations == []
    assert run.faults == {"is removed": 2}
    assert run.copied_bytes > 0
    assert run.verdict.counts["receipted"] > 0
