"""The disk model, on small hand-made recordings, and the parser of the recorder's log."""

import random
from itertools import count, pairwise

import pytest

from tests.powercut.disk import APPLIED, DROPPED, MIXED, SECTOR, Disk, Tree
from tests.powercut.record import Event, Op, RecorderError, parse

ROOT, FOLDER, FILE, OTHER, SECOND = 1, 2, 3, 4, 5
SEEDS = 300


class Scene:
    """A disk with a file ``a`` in the folder ``f``; names are durable unless stated otherwise."""

    def __init__(self, content: bytes = b"") -> None:
        self.disk = Disk()
        self._syncs = count(1)
        self.add(Event(Op.MKDIR, ROOT), Event(Op.MKDIR, FOLDER, path="f"), Event(Op.CREATE, FILE, path="f/a"))
        self.sync(ROOT, directory=True)
        self.sync(FOLDER, directory=True)
        if content:
            self.write(0, content)
            self.sync(FILE)

    def add(self, *events: Event) -> None:
        for event in events:
            self.disk.apply(event)

    def write(self, at: int, data: bytes, inode: int = FILE) -> None:
        self.add(Event(Op.WRITE, inode, at, data))

    def sync(self, inode: int, *, directory: bool = False) -> None:
        number = next(self._syncs)
        self.add(Event(Op.SYNC_BEGIN, inode, number, directory=directory))
        self.add(Event(Op.SYNC_END, inode, number, directory=directory))

    def image(self, kind: str, seed: int = 0) -> Tree:
        return self.disk.image(kind, random.Random(seed))

    def files(self, kind: str = MIXED, path: str = "f/a") -> set[bytes | None]:
        """Return the possible contents of the file; ``-`` if it may have no name."""
        return {self.image(kind, seed).get(path, b"-") for seed in range(SEEDS)}


def test_what_is_synced_stands() -> None:
    scene = Scene(b"one")
    assert scene.disk.all_durable
    assert {*scene.files(), *scene.files(DROPPED), *scene.files(APPLIED)} == {b"one"}


def test_what_is_pending_may_stand_or_not() -> None:
    scene = Scene(b"one")
    scene.write(0, b"two")
    assert not scene.disk.all_durable
    assert scene.files(DROPPED) == {b"one"}
    assert scene.files(APPLIED) == {b"two"}
    assert scene.files() == {b"one", b"two"}


def test_pending_writes_stand_in_any_combination() -> None:
    scene = Scene(b"....")
    for i in range(4):
        scene.write(i, b"x")
    assert len(scene.files()) == 16


def test_a_write_is_torn_at_sectors_only() -> None:
    scene = Scene(b"." * 3 * SECTOR)
    scene.write(100, b"x" * 2 * SECTOR)  # parts of three sectors
    found = scene.files()
    borders = (0, 100, SECTOR, 2 * SECTOR, 2 * SECTOR + 100, 3 * SECTOR)
    for one in found:
        assert one is not None
        assert all(len(set(one[begin:end])) == 1 for begin, end in pairwise(borders))
        assert one[:100] == one[-1:] * 100 == b"." * 100
    assert len(found) == 8


def test_a_file_grows_to_what_stands_or_ahead_of_it_with_zeros() -> None:
    scene = Scene(b"one")
    scene.write(3, b"two")
    assert scene.files() == {b"one", b"onetwo", b"one\0\0\0"}


def test_a_write_beyond_the_end_leaves_a_hole() -> None:
    scene = Scene()
    scene.write(4, b"x")
    assert scene.files(APPLIED) == {b"\0\0\0\0x"}


def test_a_sync_covers_what_was_pending_when_it_began() -> None:
    scene = Scene(b"..")
    scene.write(0, b"x")
    scene.add(Event(Op.SYNC_BEGIN, FILE, 99))
    scene.write(1, b"y")
    assert scene.files(DROPPED) == {b".."}
    scene.add(Event(Op.SYNC_END, FILE, 99))
    assert scene.files() == {b"x.", b"xy"}


def test_a_durable_write_stands_alone() -> None:
    scene = Scene(b"...")
    scene.write(0, b"x")
    scene.write(2, b"z")
    assert scene.files(DROPPED) == {b"..."}
    scene.add(Event(Op.DURABLE, FILE))
    assert scene.files() == {b"..z", b"x.z"}


def test_a_durable_write_is_not_overwritten_by_an_older_one() -> None:
    scene = Scene(b"...")
    scene.write(0, b"xxx")
    scene.write(1, b"z")
    scene.add(Event(Op.DURABLE, FILE))
    assert scene.files() == {b".z.", b"xzx"}


def test_sizes_are_pending_like_bytes() -> None:
    scene = Scene(b"one")
    scene.add(Event(Op.TRUNCATE, FILE, 1))
    assert scene.files() == {b"one", b"o"}
    scene.sync(FILE)
    scene.add(Event(Op.ALLOCATE, FILE, 3))
    assert scene.files() == {b"o", b"o\0\0"}


def test_a_synced_file_has_no_name_before_its_directory_is_synced() -> None:
    scene = Scene()
    scene.add(Event(Op.CREATE, OTHER, path="f/b"))
    scene.write(0, b"x", OTHER)
    scene.sync(OTHER)
    assert scene.files(path="f/b") == {b"-", b"x"}
    scene.sync(ROOT, directory=True)
    assert scene.files(path="f/b") == {b"-", b"x"}
    scene.sync(FOLDER, directory=True)
    assert scene.files(path="f/b") == {b"x"}


def test_a_rename_happens_or_not_and_never_both_names_are_gone() -> None:
    scene = Scene(b"old")
    scene.add(Event(Op.CREATE, OTHER, path="f/b"), Event(Op.WRITE, OTHER, 0, b"new"))
    scene.sync(OTHER)
    scene.sync(FOLDER, directory=True)
    scene.add(Event(Op.RENAME, path="f/b", other="f/a"))
    seen = {(tree.get("f/a"), tree.get("f/b")) for tree in (scene.image(MIXED, seed) for seed in range(SEEDS))}
    assert seen == {(b"old", b"new"), (b"new", None)}
    scene.sync(FOLDER, directory=True)
    assert scene.files() == {b"new"}
    assert scene.files(path="f/b") == {b"-"}


def test_changes_of_names_happen_in_order() -> None:
    scene = Scene()
    for number, name in enumerate("bcd", 10):
        scene.add(Event(Op.CREATE, number, path=f"f/{name}"))
    seen = {"".join(path[-1] for path in scene.image(MIXED, seed) if len(path) == 3) for seed in range(SEEDS)}
    assert seen == {"a", "ab", "abc", "abcd"}


def test_a_removed_file_may_be_back() -> None:
    scene = Scene(b"one")
    scene.add(Event(Op.UNLINK, path="f/a"))
    assert scene.files() == {b"one", b"-"}
    scene.sync(FOLDER, directory=True)
    assert scene.files() == {b"-"}


def test_an_inode_number_is_used_again() -> None:
    scene = Scene(b"one")
    scene.add(Event(Op.UNLINK, path="f/a"), Event(Op.CREATE, FILE, path="f/b"))
    scene.sync(FOLDER, directory=True)
    assert scene.image(DROPPED) == {"f": None, "f/b": b""}


def test_a_log_with_something_unseen_is_no_good() -> None:
    header = bytes([12]) + bytes(31)
    with pytest.raises(RecorderError, match="leaves no record"):
        list(parse(header))


def test_each_disk_has_its_own_cache() -> None:
    scene = Scene(b"one")
    scene.add(Event(Op.MKDIR, SECOND, path="g"), Event(Op.CREATE, OTHER, path="g/a"))
    scene.sync(ROOT, directory=True)
    scene.sync(SECOND, directory=True)
    scene.write(0, b"two")
    scene.write(0, b"two", OTHER)
    images = [scene.image(MIXED, seed) for seed in range(SEEDS)]
    assert {(image["f/a"], image["g/a"]) for image in images} >= {(b"one", b"two"), (b"two", b""), (b"two", b"two")}


def test_name_changes_of_each_disk_are_kept_in_order() -> None:
    scene = Scene()
    scene.add(Event(Op.MKDIR, SECOND, path="g"))
    scene.sync(ROOT, directory=True)
    scene.add(Event(Op.CREATE, OTHER, path="g/a"), Event(Op.CREATE, OTHER + 2, path="f/b"))
    images = [scene.image(MIXED, seed) for seed in range(SEEDS)]
    assert {("g/a" in image, "f/b" in image) for image in images} == {
        (False, False), (False, True), (True, False), (True, True)
    }  # fmt: skip
