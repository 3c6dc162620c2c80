"""``pulsarbox.storage.lmdb.page_cache``."""

import os
from pathlib import Path

import pytest

from pulsarbox.storage.lmdb.page_cache import STEP, PageCacheWindow


def test_the_newest_part_stays_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *about: given.append(about))
    window = PageCacheWindow(2 * STEP)
    one, two = tmp_path / "one", tmp_path / "two"
    for file in (one, two):
        file.touch()
    for i in range(4):
        window.written(one, i * STEP)
    assert given == [(0, STEP, os.POSIX_FADV_DONTNEED)]
    window.written(one, 3 * STEP + STEP // 2)
    assert len(given) == 1
    window.written(two, STEP)
    window.written(two, 2 * STEP)
    assert [first for first, _, _ in given] == [0, STEP]


@pytest.mark.parametrize("limit", [0, STEP])
def test_without_a_limit_or_without_the_file_nothing_happens(tmp_path: Path, limit: int) -> None:
    window = PageCacheWindow(limit)
    for i in range(10):
        window.written(tmp_path / "gone", i * STEP)
