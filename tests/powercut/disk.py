"""A disk model: durable and pending recorded changes, and possible contents after a power cut.

A file has durable bytes and the changes pending since its last sync. The end of a sync makes durable the changes that
were pending at its start. An O_DSYNC write is durable when it returns, but nothing else is. Names belong to
directories: a name change is durable once its directory is synced; for a rename, either of the two directories. A
synced file may still have no durable name.

After a cut, each pending write is lost, complete, or torn: any subset of its sectors is present. Sizes follow the
writes, or exceed them with zeros. A prefix of the pending name changes is present, as on a file system that journals
its metadata in order.

Every folder below the root is a disk of its own: all lose power at the same moment, but each has its own cache. In a
mixed image of several disks, one may have lost all that is pending, while another has completed it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.powercut.record import Event, Op

SECTOR: Final = 512
NEVER_SYNCED: Final = ("LOCK",)
"""Files whose contents no later life reads."""

DROPPED: Final = "dropped"
APPLIED: Final = "applied"
MIXED: Final = "mixed"


class Change(NamedTuple):
    """A pending change of a file: bytes at an offset, or a new size without bytes."""

    at: int
    data: bytes
    size: int = -1
    grows_only: bool = False


@dataclass(eq=False)
class File:
    """One inode."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)


@dataclass(eq=False)
class Directory:
    """One inode, with its current names and its durable names."""

    names: dict[str, File | Directory] = field(default_factory=dict)
    durable: dict[str, File | Directory] = field(default_factory=dict)


Node = File | Directory
Names = dict[Directory, dict[str, Node]]


class NameChange(NamedTuple):
    """Change of ``name`` in ``folder`` to ``node``, or its removal if None.

    For a rename, ``source`` has lost ``source_name``.
    """

    folder: Directory
    name: str
    node: Node | None
    source: Directory | None = None
    source_name: str = ""


Tree = dict[str, bytes | None]
"""An image: bytes by path, None for a directory; folders before their contents."""


class Style(NamedTuple):
    """Probabilities that shape a mixed image."""

    gone: float
    torn: float
    zeros: bool
    names: float


class Disk:
    """All files below a root, updated event by event."""

    def __init__(self) -> None:
        self.root = Directory()
        self._disks: dict[Directory, str] = {}
        """The name of the disk that each directory is on."""
        self.name_changes: list[NameChange] = []
        self._nodes: dict[int, Node] = {}
        self._syncs: dict[int, list[Change]] = {}

    @classmethod
    def holding(cls, tree: Tree, inodes: dict[str, int]) -> Disk:
        """Return a disk with the contents of an image, all of it durable, under these inode numbers."""
        disk = cls()
        for path, data in tree.items():
            node = disk._nodes[inodes[path]] = Directory() if data is None else File(bytearray(data))
            disk._note_disk(path, node)
            folder, name = disk._find(path)
            folder.names[name] = folder.durable[name] = node
        return disk

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        op = event.op
        if op == Op.WRITE:
            self._change(event, Change(event.at, event.data))
        elif op == Op.TRUNCATE:
            self._change(event, Change(0, b"", event.at))
        elif op == Op.ALLOCATE:
            self._change(event, Change(0, b"", event.at, grows_only=True))
        elif op == Op.SYNC_BEGIN:
            self._sync_begins(event)
        elif op == Op.SYNC_END:
            self._sync_ends(event)
        elif op == Op.DURABLE:
            self._is_durable(self._file(event))
        elif op in (Op.CREATE, Op.MKDIR):
            self._new(event)
        elif op == Op.RENAME:
            source, source_name = self._find(event.path)
            folder, name = self._find(event.other)
            node = source.names.pop(source_name)
            folder.names[name] = node
            self.name_changes.append(NameChange(folder, name, node, source, source_name))
        elif op in (Op.UNLINK, Op.RMDIR):
            folder, name = self._find(event.path)
            del folder.names[name]
            self.name_changes.append(NameChange(folder, name, None))

    @property
    def all_durable(self) -> bool:
        """Return whether no change of a file with a current or durable name is pending."""
        return not self.name_changes and not any(file.pending for file in _files(self.root.names))

    def image(self, kind: str, dice: random.Random) -> Tree:
        """Return a possible image after a cut: all pending changes dropped, applied, or mixed at random."""
        disks = sorted({*self.root.names, *self.root.durable})
        styles = {disk: _style(_kind_of(kind, len(disks), dice), dice) for disk in disks}
        names: Names = {}
        for disk, style in styles.items():
            changes = [change for change in self.name_changes if self._disk_of(change) == disk]
            count = len(changes)
            happened = count if style.names >= 1 else int(style.names * (count + 1))
            for change in changes[:happened]:
                _rename(names, change)
        return dict(self._trees(names, styles, dice))

    def _disk_of(self, change: NameChange) -> str:
        return change.name if change.folder is self.root else self._disks[change.folder]

    def _note_disk(self, path: str, node: Node) -> None:
        if isinstance(node, Directory):
            self._disks[node] = path.partition("/")[0]

    def _trees(self, names: Names, styles: dict[str, Style], dice: random.Random) -> Iterator[tuple[str, bytes | None]]:
        entries = names.get(self.root, self.root.durable)
        for name in sorted(entries):
            node = entries[name]
            assert isinstance(node, Directory), f"{name} is a file beside the disks"
            yield name, None
            yield from self._tree(name + "/", node, names, styles[name], dice)

    def _tree(
        self, prefix: str, folder: Directory, names: Names, style: Style, dice: random.Random
    ) -> Iterator[tuple[str, bytes | None]]:
        entries = names.get(folder, folder.durable)
        for name in sorted(entries):
            node = entries[name]
            path = prefix + name
            if isinstance(node, Directory):
                yield path, None
                yield from self._tree(path + "/", node, names, style, dice)
            else:
                yield path, _content(node, style, dice)

    def _change(self, event: Event, change: Change) -> None:
        self._file(event).pending.append(change)

    def _sync_begins(self, event: Event) -> None:
        if not event.directory:
            self._syncs[event.at] = list(self._file(event).pending)

    def _sync_ends(self, event: Event) -> None:
        if event.directory:
            folder = self._nodes[event.inode]
            pending, self.name_changes = self.name_changes, []
            for renamed in pending:
                if folder in (renamed.folder, renamed.source):
                    _make_durable(renamed)
                else:
                    self.name_changes.append(renamed)
            return
        file = self._file(event)
        begun = {id(change) for change in self._syncs.pop(event.at)}
        for change in file.pending:
            if id(change) in begun:
                _write(file.durable, change)
        file.pending = [change for change in file.pending if id(change) not in begun]

    def _is_durable(self, file: File) -> None:
        """Apply the newest write to the durable bytes and to overlapping pending writes: the page cache merges them."""
        newest = file.pending.pop()
        _write(file.durable, newest)
        end = newest.at + len(newest.data)
        for i, change in enumerate(file.pending):
            begin, stop = max(change.at, newest.at), min(change.at + len(change.data), end)
            if begin < stop:
                data = bytearray(change.data)
                data[begin - change.at : stop - change.at] = newest.data[begin - newest.at : stop - newest.at]
                file.pending[i] = change._replace(data=bytes(data))

    def _new(self, event: Event) -> None:
        node: Node = Directory() if event.op == Op.MKDIR else File()
        if not event.path:
            self._nodes[event.inode] = self.root  # a child process of the recorded one reports the root again
            return
        self._nodes[event.inode] = node
        self._note_disk(event.path, node)
        folder, name = self._find(event.path)
        folder.names[name] = node
        self.name_changes.append(NameChange(folder, name, node))

    def _file(self, event: Event) -> File:
        node = self._nodes[event.inode]
        assert isinstance(node, File)
        return node

    def _find(self, path: str) -> tuple[Directory, str]:
        folder = self.root
        *parts, name = path.split("/")
        for part in parts:
            node = folder.names[part]
            assert isinstance(node, Directory)
            folder = node
        return folder, name


def _kind_of(kind: str, disks: int, dice: random.Random) -> str:
    """Return the kind of image of one disk."""
    return dice.choice((DROPPED, APPLIED, MIXED)) if kind == MIXED and disks > 1 else kind


def _style(kind: str, dice: random.Random) -> Style:
    return {DROPPED: Style(1, 0, False, 0), APPLIED: Style(0, 0, False, 1)}.get(kind) or Style(
        dice.choice((0.05, 0.3, 0.7, 0.95)), dice.choice((0, 0.3, 1)), dice.random() < 0.5, dice.random()
    )


def write_tree(tree: Tree, folder: Path) -> None:
    """Write an image into an empty folder."""
    for path, data in tree.items():
        if data is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(data)


def _files(names: dict[str, Node]) -> Iterator[File]:
    for name, node in names.items():
        if isinstance(node, Directory):
            yield from _files(node.names)
        elif name not in NEVER_SYNCED:
            yield node


def _rename(names: Names, change: NameChange) -> None:
    """Apply a name change to a copy of the durable names."""
    if change.source is not None:
        names.setdefault(change.source, dict(change.source.durable)).pop(change.source_name, None)
    entries = names.setdefault(change.folder, dict(change.folder.durable))
    if change.node is None:
        entries.pop(change.name, None)
    else:
        entries[change.name] = change.node


def _make_durable(change: NameChange) -> None:
    if change.source is not None:
        change.source.durable.pop(change.source_name, None)
    if change.node is None:
        change.folder.durable.pop(change.name, None)
    else:
        change.folder.durable[change.name] = change.node


def _write(content: bytearray, change: Change) -> None:
    if change.size >= 0:
        if change.size > len(content):
            content.extend(bytes(change.size - len(content)))
        elif not change.grows_only:
            del content[change.size :]
        return
    if change.at > len(content):
        content.extend(bytes(change.at - len(content)))
    content[change.at : change.at + len(change.data)] = change.data


def _content(file: File, style: Style, dice: random.Random) -> bytes:
    if not file.pending or style.gone >= 1:
        return bytes(file.durable)
    content = bytearray(file.durable)
    for change in file.pending:
        if style.gone <= 0:
            _write(content, change)
        elif dice.random() < style.torn:
            _tear(content, change, style, dice)
        elif dice.random() >= style.gone:
            _write(content, change)
        elif style.zeros:
            _write(content, Change(0, b"", change.at + len(change.data), grows_only=True))
    return bytes(content)


def _tear(content: bytearray, change: Change, style: Style, dice: random.Random) -> None:
    """Apply some sectors of a write. A size change is applied whole or not at all."""
    if change.size >= 0:
        if dice.random() >= style.gone:
            _write(content, change)
        return
    if style.zeros:
        _write(content, Change(0, b"", change.at + len(change.data), grows_only=True))
    at, end = change.at, change.at + len(change.data)
    while at < end:
        stop = min(end, (at // SECTOR + 1) * SECTOR)
        if dice.random() < 0.5:
            _write(content, Change(at, change.data[at - change.at : stop - change.at]))
        at = stop
