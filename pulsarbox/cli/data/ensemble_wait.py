"""Waiting for operations on data directories, with their progress on stderr."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.common.progress import LiveLine, barred
from pulsarbox.cli.common.terminal_text import counted, megabytes

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

Document = Mapping[str, Any]

POLL_SECONDS: Final = 0.5
_ENDED: Final = frozenset({"lost", "full", "late"})
"""States that end the joining of a directory without success."""


def member_of(document: Document, name: str) -> dict[str, Any] | None:
    """Return a member of the box, None if it is not one, or no longer."""
    found = next((each for each in document["members"] if each["name"] == name), None)
    return None if found is None or found["state"] == "removed" else found


class Waiting(NamedTuple):
    """The options --wait and --wait-timeout."""

    wanted: bool
    seconds: float | None = None
    """None: as long as it takes."""


def wait(
    admin: "Admin",
    is_done: Callable[[Document], bool],
    progress: Callable[[Document], str],
    seconds: float | None = None,
) -> Document:
    """Query the box until the operation is done. Ctrl-C ends only the wait. Returns the last status.

    Raises Failed after ``seconds``.
    """
    line, end = LiveLine(), float("inf") if seconds is None else time.monotonic() + seconds
    try:
        while True:
            document: Document = admin.own("/ensemble")
            if is_done(document):
                return document
            if time.monotonic() >= end:
                raise Failed(f"not done after {seconds:g} s, the box continues: {progress(document)}")
            line.draw(partial(progress, document))
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        line.notify("stopped waiting; the box continues (`pulsarbox storage members` shows the state)")
        raise
    finally:
        line.clear()


def repaired(document: Document) -> bool:
    """Return whether every entry has its copies."""
    return not document["underReplicated"]["fragments"]


def repairing(document: Document) -> str:
    """Return the progress of the repair."""
    found = document["underReplicated"]
    done = megabytes(document["repair"]["bytesDone"])
    error = f"; last error: {document['repair']['lastError']}" if document["repair"]["lastError"] else ""
    left = f"restored, {counted(found['entries'], 'entry', 'entries')} left, {done} copied{error}"
    return barred("copying", found["restoredPercent"] / 100, left)


def audited_after(before: Document) -> Callable[[Document], bool]:
    """Return whether the box has looked for missing copies since a status."""
    return lambda document: bool(document["audited"] > before["audited"])


def joined(name: str) -> Callable[[Document], bool]:
    """Return a function that tells whether a directory is in use. It raises Failed if it cannot be used."""

    def is_done(document: Document) -> bool:
        member = member_of(document, name)
        if member is None or member["state"] in _ENDED:
            reason = "it was removed" if member is None else f"{member['state']}: {member['why']}"
            raise Failed(f"{name} is not in use: {reason}")
        return bool(member["state"] == "active")

    return is_done


def state_of(name: str) -> Callable[[Document], str]:
    """Return a function that describes a directory and the repair."""

    def told(document: Document) -> str:
        member = member_of(document, name)
        rest = "" if repaired(document) else f"; {repairing(document)}"
        return f"{name} {'removed' if member is None else member['state']}{rest}"

    return told


def scrubbed(names: list[str], before: Document) -> Callable[[Document], bool]:
    """Return a function that tells whether all of these directories were verified since a status."""
    ends = {each["name"]: each["scrub"]["finished"] for each in before["members"]}

    def is_done(document: Document) -> bool:
        members = [member_of(document, name) for name in names]
        return all(each is None or each["scrub"]["finished"] > ends.get(each["name"], 0) for each in members)

    return is_done


def scrubbing(names: list[str]) -> Callable[[Document], str]:
    """Return a function that describes the progress of the scrubs."""

    def told(document: Document) -> str:
        scrubs = [each["scrub"] for each in document["members"] if each["name"] in names]
        done, total = (sum(each[field] for each in scrubs) for field in ("doneBytes", "totalBytes"))
        return barred("verifying", done / total if total else 0, f"{megabytes(done)} of {megabytes(total)}")

    return told
