"""The local data directories in use: what is recorded is written to each of them, so that the loss of one loses none.

A box with one data directory has one place.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pulsarbox.storage.ensemble.member import IN_USE
from pulsarbox.storage.ensemble.status import MemberStatus


def local_in_use(members: Iterable[MemberStatus]) -> list[Path]:
    """Return the directories of this machine that are written or read."""
    return [Path(each.name) for each in members if each.state in IN_USE and each.name.startswith("/")]


class RecordingPlaces:
    """The places, those first that have been in use for longest. All methods are called in the loop."""

    def __init__(self, home: Path, moved: Callable[[Path], None]) -> None:
        """``moved`` is called with the first place whenever that changes: reads look there."""
        self.paths = [home]
        self._moved = moved
        self._followers: list[Callable[[Sequence[Path]], None]] = []

    def join(self, follower: Callable[[Sequence[Path]], None]) -> None:
        """Call a function with the places now, and whenever they change."""
        self._followers.append(follower)
        follower(self.paths)

    def follow(self, members: Iterable[MemberStatus]) -> None:
        """Note the present directories; without any in use, the places stay."""
        used = local_in_use(members) or self.paths
        paths = [*(each for each in self.paths if each in used), *(each for each in used if each not in self.paths)]
        if paths == self.paths:
            return
        before, self.paths = self.paths[0], paths
        for follower in self._followers:
            follower(paths)
        if paths[0] != before:
            self._moved(paths[0])
