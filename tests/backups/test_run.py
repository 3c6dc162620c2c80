"""A short campaign. The long one is `make backups N=25`."""

from pathlib import Path

import pytest

from tests.backups.run import campaign


@pytest.mark.timeout(600)
def test_each_backup_of_a_box_under_load_is_one_instant(tmp_path: Path) -> None:
    run = campaign(tmp_path, backups=2)
    assert run.violations == []
    assert run.backups == 3
    assert run.counts["transactions"] > 0
    assert run.counts["deleted"] > 1
    assert run.counts["reusedBytes"] > 0
