"""The progress of jobs."""

import pytest

from pulsarbox.tui.screens.jobs import _share
from tests.unit.tui.fake import job


def test_a_job_that_is_done_is_done_whatever_it_counted() -> None:
    assert _share(job(1, state="done", seen=3, total=9)) == 1.0
    assert _share(job(1, seen=3, total=9)) == pytest.approx(1 / 3)
    assert _share(job(1, total=0)) is None
