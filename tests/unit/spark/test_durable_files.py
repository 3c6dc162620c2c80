"""Files are durable before anything depends on them, as after a power cut."""

import os
from pathlib import Path

import pytest

from pulsarbox.spark import durable_files


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The synced files, in order, by their names at that time."""
    found: list[Path] = []
    fsync = os.fsync

    def noted(number: int) -> None:
        fsync(number)
        found.append(Path(f"/proc/self/fd/{number}").readlink())

    monkeypatch.setattr(os, "fsync", noted)
    return found


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, synced: list[Path]) -> None:
    durable_files.put(tmp_path / "a", "one")
    durable_files.put(tmp_path / "a", "two")
    assert (tmp_path / "a").read_text() == "two"
    assert synced == [tmp_path / "a.new", tmp_path] * 2
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]


def test_folders_are_durable_in_those_above(tmp_path: Path, synced: list[Path]) -> None:
    durable_files.make_folder(tmp_path / "a" / "b")
    durable_files.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced == [tmp_path, tmp_path / "a"]


def checkpoint(place: Path) -> Path:
    (place / "offsets").mkdir(parents=True)
    for name in ("metadata", "offsets/0", "offsets/7"):
        (place / name).touch()
    return place


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_what_an_epoch_is_is_put_on_the_disk(tmp_path: Path, synced: list[Path], form: str) -> None:
    place = checkpoint(tmp_path / "c")
    durable_files.make_durable(form.format(place), 7)
    assert synced == [place / "offsets" / "7", place / "offsets"]


def test_with_the_first_epoch_so_is_which_query_it_is(tmp_path: Path, synced: list[Path]) -> None:
    place = checkpoint(tmp_path / "c")
    durable_files.make_durable(str(place), 0)
    assert synced[:3] == [place / "offsets" / "0", place / "offsets", place / "metadata"]
    assert synced[3:] == [place, *place.parents]


def test_what_is_not_here_is_not_looked_for(tmp_path: Path, synced: list[Path]) -> None:
    for where in ("", str(tmp_path / "not yet"), "s3a://bucket/checkpoint", str(checkpoint(tmp_path / "c"))):
        durable_files.make_durable(where, 5)
    assert synced == []
