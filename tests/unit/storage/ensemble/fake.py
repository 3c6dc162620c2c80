"""A simulated ensemble: a status that tests set, and a record of the operations called."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pulsarbox.storage.ensemble.status import (
    EnsembleStatus,
    Fragment,
    MemberEvent,
    MemberStatus,
    RepairStatus,
    ScrubStatus,
    SegmentStatus,
)

SINCE = 1_795_300_000_000


def member(name: str, **more: Any) -> MemberStatus:
    """A healthy member, except for the given fields."""
    healthy = MemberStatus(
        name=name,
        member_id=f"id-{name}",
        state="active",
        why="",
        since=SINCE,
        device=ord(name[-1]),
        shares_device_with=(),
        bytes_used=1 << 20,
        bytes_free=10 << 30,
        ledgers=3,
        entries=3000,
        commits=50,
        commit_errors=0,
        read_errors=0,
        queue=0,
        oldest_write_seconds=0.0,
        scrub=ScrubStatus(0, 0, 0, SINCE - 2000, SINCE - 1000),
    )
    return healthy._replace(**more)


def status(*members: MemberStatus, fragments: Sequence[Fragment] = (), **more: Any) -> EnsembleStatus:
    """A status with these members, by default three healthy ones."""
    members = members or tuple(map(member, ("/disk1", "/disk2", "/disk3")))
    entries = sum(each.end - each.first for each in fragments)
    healthy = EnsembleStatus(
        generation=1,
        segment=SegmentStatus(4, 1200, tuple(each.name for each in members if each.state == "active")[:2]),
        members=members,
        under_replicated=tuple(fragments),
        under_replicated_count=len(fragments),
        audited=SINCE,
        repair=RepairStatus(0, len(fragments), entries, ""),
    )
    return healthy._replace(**more)


LOST = status(
    member("/disk1"),
    member("/disk2", state="lost", why="input/output error", bytes_free=0),
    member("/disk3"),
    fragments=[Fragment(7, 0, 1000, ("/disk1",), 2), Fragment(9, 10, 214, ("/disk3",), 2)],
    generation=2,
)
"""One of three directories is lost."""


class FakeEnsemble:
    """An ensemble without directories."""

    def __init__(self, now: EnsembleStatus | None = None) -> None:
        self.now = now or status()
        self.called: list[tuple[str, ...]] = []
        self.refusal: Exception | None = None
        self.open: set[int] = set()
        self.held: dict[str, list[int]] = {each.name: [7, 8, 9] for each in self.now.members if each.state != "lost"}
        self.on_change: Callable[[MemberEvent], None] = print

    def status(self) -> EnsembleStatus:
        return self.now

    def add(self, path: str) -> None:
        self._call("add", path)

    def remove(self, name: str, *, force: bool = False) -> None:
        self._call("remove", name, *(["force"] if force else []))

    def replace(self, old: str, new: str, *, force: bool = False) -> None:
        self._call("replace", old, new, *(["force"] if force else []))

    def scrub(self, name: str) -> None:
        self._call("scrub", name)

    def ledgers_of_members(self) -> Mapping[str, Sequence[int]]:
        return self.held

    def is_open(self, ledger_id: int) -> bool:
        return ledger_id in self.open

    def _call(self, *words: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.called.append(words)
