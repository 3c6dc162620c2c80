"""The data directories of a box as text, from the document of ``GET /pulsarbox/v1/ensemble``."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pulsarbox.cli.common.terminal_text import counted, megabytes

Row = dict[str, Any]
Document = Mapping[str, Any]

_ORDER: Final = ("active", "joining", "leaving", "full", "late", "fenced", "lost", "removed")
_DAY_MS: Final = 86_400_000


def summary(document: Document) -> str:
    """Return one line: how many directories are in which state, why, and the copies that are missing."""
    members = document["members"]
    counts = Counter(each["state"] for each in members)
    states = ", ".join(_of_state(state, counts[state], members, document) for state in sorted(counts, key=_place))
    return f"{counted(len(members), 'data directory', 'data directories')}: {states}{missing_copies(document)}"


def _of_state(state: str, count: int, members: list[Row], document: Document) -> str:
    named = [_with_reason(each, document) for each in members if each["state"] == state]
    return f"{count} {state}" + ("" if state == "active" else f" ({'; '.join(named)})")


def _with_reason(member: Row, document: Document) -> str:
    reason = f": {member['why']}" if member["why"] else ""
    return f"{member['name']}{reason} since {instant(member['since'], document['now'])}"


def missing_copies(document: Document) -> str:
    """Return how many entries lack copies, and the progress of their repair; empty if none does."""
    found = document["underReplicated"]
    if not found["fragments"]:
        return ""
    gone = f", {found['withoutCopy']:,} of them have no copy left" if found["withoutCopy"] else ""
    verb = "lacks" if found["entries"] == 1 else "lack"
    entries = counted(found["entries"], "entry", "entries")
    return f"; {entries} {verb} a copy{gone}, repair {found['restoredPercent']} %"


def instant(millis: int, now: int) -> str:
    """Return a time in UTC, without the day if it is the same day as ``now``."""
    at = datetime.fromtimestamp(millis / 1000, UTC)
    form = "%H:%M UTC" if millis // _DAY_MS == now // _DAY_MS else "%Y-%m-%d %H:%M UTC"
    return at.strftime(form)


def _place(state: str) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)


def member_row(member: Row) -> Row:
    """Return a member as a row of ``pulsarbox storage members``."""
    row = {("directory" if name == "name" else name): value for name, value in member.items()}
    sizes = {name: member.get(field) for name, field in (("used", "bytesUsed"), ("free", "bytesFree"))}
    errors = member.get("commitErrors", 0) + member.get("readErrors", 0)
    damaged = (member.get("scrub") or {}).get("found", 0)
    return (
        row
        | {name: None if size is None else megabytes(size) for name, size in sizes.items()}
        | {"errors": errors, "damaged": damaged}
    )
