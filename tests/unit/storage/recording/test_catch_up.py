"""A folder of recordings that lacks some gets them from another one."""

import os
from pathlib import Path

from pulsarbox.storage.recording.catch_up import catch_up


def filled(folder: Path, written: int, **files: int) -> Path:
    """Return a folder with files of these sizes, written at a time."""
    folder.mkdir(exist_ok=True)
    for name, size in files.items():
        (folder / f"{name}.frames").write_bytes(folder.name[0].encode() * size)
        os.utime(folder / f"{name}.frames", (written, written))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name.removesuffix(".frames"): each.read_bytes() for each in folder.iterdir()}


def test_what_is_missing_or_differs_is_copied_from_the_folder_that_was_written_last(tmp_path: Path) -> None:
    own = filled(tmp_path / "own", 1, f0=1, f1=2, f2=6)
    old = filled(tmp_path / "stale", 2, f1=9, f2=9)
    new = filled(tmp_path / "newest", 3, f1=2, f2=4)
    (new / "other.txt").touch()
    catch_up(own, [old, new], ".frames")
    assert contents(own) == {"f0": b"o", "f1": b"oo", "f2": b"nnnn"}
    filled(old, 1, f3=1)
    catch_up(own, [old, new], ".frames")
    assert contents(own)["f3"] == b"s"


def test_nothing_is_copied_into_the_folder_that_was_written_last(tmp_path: Path) -> None:
    own, other = filled(tmp_path / "own", 3, f1=2), filled(tmp_path / "other", 2, f0=1, f1=9)
    catch_up(own, [other], ".frames")
    assert contents(own) == {"f1": b"oo"}


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    other = filled(tmp_path / "other", 1, f1=1)
    catch_up(tmp_path / "own", [tmp_path / "missing", other], ".frames")
    assert contents(tmp_path / "own") == {"f1": b"o"}
    catch_up(tmp_path / "none", [tmp_path / "missing"], ".frames")
    assert not (tmp_path / "none").exists()


def test_an_interrupted_copy_is_removed(tmp_path: Path) -> None:
    own, other = filled(tmp_path / "own", 1), filled(tmp_path / "other", 2, f1=1)
    (own / "f1.frames.copy").write_bytes(b"part")
    catch_up(own, [other], ".frames")
    assert contents(own) == {"f1": b"o"}
