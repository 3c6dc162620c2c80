"""The data directories of the box, and operations on them. Below ``/pulsarbox/v1/ensemble``."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.config.replica_address import is_replica
from pulsarbox.errors import BadRequest, Conflict, NotFound, PreconditionFailed
from pulsarbox.server.http.framework.filter_parameters import number_of
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import EnsembleStatus, Fragment, MemberStatus
from pulsarbox.storage.ensemble.watch import CopyProgress, WatchedEnsemble, copy_map, lacking

CELLS: Final = 200
CELLS_MAX: Final = 2000
_PATH_MAX: Final = 4096
"""PATH_MAX of Linux."""
_SINGLE: Final = "the box has one data directory: list several in the setting dataDirectories and restart it"


def ensemble(call: HttpRequest) -> DeferredAnswer:
    """Return the data directories with their states, the segment being written, missing copies, and the repair.

    A box with one data directory lists that one, without a state of copies.
    """
    watched, host = call.broker.host.ensemble, call.broker.host
    if watched is None:
        return _in_thread(call, lambda: _single(host.folder, host.store_statistics))
    progress = watched.progress
    return _in_thread(call, lambda: document(watched.status(), progress, time.time_ns() // 1_000_000))


def _single(folder: str | None, statistics: Callable[[], dict[str, Any]] | None) -> dict[str, Any]:
    """Return the document of a box with one data directory or, in memory, none."""
    found = statistics() if statistics is not None else {}
    member = {"name": folder, "state": MemberState.ACTIVE, "why": "", "bytesUsed": found.get("diskUsed")}
    return {"several": False, "members": [] if folder is None else [member | {"bytesFree": found.get("diskFree")}]}


def document(status: EnsembleStatus, progress: CopyProgress, now: int) -> dict[str, Any]:
    """Return a status as JSON. Times are milliseconds since 1970."""
    segment = status.segment
    return {
        "several": True,
        "now": now,
        "generation": status.generation,
        "segment": {"number": segment.number, "firstPosition": segment.first_position, "members": segment.members},
        "members": [member_document(each) for each in status.members],
        "underReplicated": {
            "fragments": status.under_replicated_count,
            "entries": lacking(status) if status.under_replicated_count else 0,
            "withoutCopy": sum(each.end - each.first for each in status.under_replicated if not each.have),
            "since": progress.since,
            "restoredPercent": progress.percent,
        },
        "copiesWanted": status.copies_wanted,
        "audited": status.audited,
        "repair": {
            "bytesDone": status.repair.bytes_done,
            "fragmentsLeft": status.repair.fragments_left,
            "entriesLeft": status.repair.entries_left,
            "lastError": status.repair.last_error,
        },
    }


def member_document(member: MemberStatus) -> dict[str, Any]:
    """Return a member as JSON."""
    scrub = member.scrub
    return {
        "name": member.name,
        "id": member.member_id,
        "state": member.state,
        "why": member.why,
        "since": member.since,
        "device": member.device,
        "sharesDeviceWith": member.shares_device_with,
        "bytesUsed": member.bytes_used,
        "bytesFree": member.bytes_free,
        "ledgers": member.ledgers,
        "entries": member.entries,
        "commits": member.commits,
        "commitErrors": member.commit_errors,
        "readErrors": member.read_errors,
        "queue": member.queue,
        "oldestWriteSeconds": member.oldest_write_seconds,
        "scrub": {
            "doneBytes": scrub.done_bytes,
            "totalBytes": scrub.total_bytes,
            "found": scrub.found,
            "started": scrub.started,
            "finished": scrub.finished,
        },
    }


def under_replicated(call: HttpRequest) -> DeferredAnswer:
    """Return the entries that lack copies, up to 1000 fragments: ``{"total", "fragments"}``.

    Each: ``ledger``, ``first``, ``last``, the ``topic`` if known, the members that ``have`` them, and ``want``, the
    number of copies. ``member``: only those of which it has no copy.
    """
    watched, later, broker = _watched(call), DeferredAnswer(), call.broker
    name = call.query.get("member", "")

    def told(status: EnsembleStatus | None, error: Exception | None) -> None:
        if error is not None or status is None:
            later.failed(error or NotFound("no status"))
            return
        rows = [_fragment(broker, each) for each in status.under_replicated if name not in each.have]
        later.complete(answer({"total": status.under_replicated_count, "fragments": rows}))

    broker.host.run_in_thread("ensemble", watched.status, told)
    return later


def _fragment(broker: Broker, fragment: Fragment) -> dict[str, Any]:
    return {
        "ledger": fragment.ledger_id,
        "first": fragment.first,
        "last": fragment.end - 1,
        "topic": broker.catalog.owner(fragment.ledger_id),
        "have": fragment.have,
        "want": fragment.want,
    }


def cells(call: HttpRequest) -> DeferredAnswer:
    """Return the state of the ledgers in each directory, in up to ``cells`` cells: ``{"firsts", "rows", "ledgers"}``.

    ``rows`` has a string by name, one letter per cell: K all copies are there, W so and more entries are being
    written, C being copied, L lacking here, D no intact copy anywhere, ``.`` in other directories only.
    """
    watched, count = _watched(call), number_of(call, "cells", CELLS, 1, CELLS_MAX)
    control = watched.control
    return _in_thread(
        call, lambda: copy_map(watched.status(), control.ledgers_of_members(), count, control.is_open)._asdict()
    )


# Operations


def add(call: HttpRequest) -> DeferredAnswer:
    """Add the data directory ``{"directory"}``: it is created if missing, or else must be empty or of this box."""
    watched, (path,) = _watched(call), _paths(call, "directory")

    def work() -> None:
        _refuse_member(watched.status(), path)
        watched.control.add(path)

    return _changing(call, watched, work)


def remove(call: HttpRequest) -> DeferredAnswer:
    """Copy the entries of ``directory`` to others, then release it. At least one other directory must be in use.

    ``force=true`` accepts the loss of entries that only a directory which cannot be read has, and too few copies.
    """
    watched, name, force = _watched(call), call.query.get("directory", ""), call.flag("force")

    def work() -> None:
        status = watched.status()
        member = member_named(status, name)
        others = [each for each in status.members if each.state == MemberState.ACTIVE and each is not member]
        if not others:
            raise Conflict(
                f"{name} is the only data directory in use: add another one first (`pulsarbox storage add DIR`)"
            )
        watched.control.remove(name, force=force)

    return _changing(call, watched, work)


def replace(call: HttpRequest) -> DeferredAnswer:
    """Rebuild the entries of the data directory ``old`` in ``new``: ``{"old", "new"}``. They may be the same path.

    ``force=true`` as for ``remove``.
    """
    watched, (old, new), force = _watched(call), _paths(call, "old", "new"), call.flag("force")

    def work() -> None:
        status = watched.status()
        member_named(status, old)
        if new != old:
            _refuse_member(status, new)
        watched.control.replace(old, new, force=force)

    return _changing(call, watched, work)


def scrub(call: HttpRequest) -> DeferredAnswer:
    """Begin to verify all entries of ``{"directory"}`` now; without one, of every directory in use."""
    watched, body = _watched(call), call.json_object() or {}
    name = body.get("directory", "")
    if set(body) - {"directory"} or not isinstance(name, str):
        raise BadRequest('The body may only be {"directory": "/path"}')

    def work() -> None:
        status = watched.status()
        usable = (MemberState.ACTIVE, MemberState.FULL, MemberState.LEAVING)
        names = [each.name for each in status.members if each.state in usable]
        if name and member_named(status, name).name not in names:
            raise Conflict(f"{name} is {member_named(status, name).state}: its entries cannot be read")
        for each in [name] if name else names:
            watched.control.scrub(each)

    return _changing(call, watched, work)


def _watched(call: HttpRequest) -> WatchedEnsemble:
    found = call.broker.host.ensemble
    if found is None:
        raise Conflict(_SINGLE)
    return found


def member_named(status: EnsembleStatus, name: str) -> MemberStatus:
    """Return the member with a name. Raises NotFound with the names that exist."""
    for member in status.members:
        if member.name == name:
            return member
    names = ", ".join(each.name for each in status.members)
    raise NotFound(f"{name!r} is not a data directory of the box; they are {names}")


def _refuse_member(status: EnsembleStatus, path: str) -> None:
    found = next((each for each in status.members if each.name == path), None)
    if found is not None and found.state != MemberState.REMOVED:
        raise Conflict(f"{path} is already a data directory of the box; it is {found.state}")


def _paths(call: HttpRequest, *names: str) -> list[str]:
    """Return the paths in the body. Raises BadRequest, PreconditionFailed."""
    body = call.json_object() or {}
    if set(body) != set(names) or not all(isinstance(each, str) and each for each in body.values()):
        raise BadRequest(f"The body must be a JSON object with the strings {', '.join(names)}, and nothing else")
    for name in names:
        path = body[name]
        if "\0" in path or len(path) > _PATH_MAX:
            raise PreconditionFailed(f"{name}: not a path")
        if name != "old" and not is_replica(path) and not Path(path).is_absolute():
            raise PreconditionFailed(f"{name}: {path!r} is not an absolute path, such as /disk2/pulsarbox")
    return [body[name] for name in names]


def _changing(call: HttpRequest, watched: WatchedEnsemble, work: Callable[[], None]) -> DeferredAnswer:
    """Run an operation, and answer with the new status."""

    def changed() -> dict[str, Any]:
        work()
        return document(watched.status(), watched.progress, time.time_ns() // 1_000_000)

    return _in_thread(call, changed)


def _in_thread(call: HttpRequest, work: Callable[[], Any]) -> DeferredAnswer:
    later = DeferredAnswer()

    def told(found: Any, error: Exception | None) -> None:
        if error is not None:
            later.failed(error)
        else:
            later.complete(answer(found))

    call.broker.host.run_in_thread("ensemble", work, told)
    return later


_BASE: Final = "/pulsarbox/v1/ensemble"

ROUTES = (
    HttpRoute("GET", _BASE, Permission.SUPERUSER, ensemble),
    HttpRoute("GET", f"{_BASE}/under-replicated", Permission.SUPERUSER, under_replicated),
    HttpRoute("GET", f"{_BASE}/map", Permission.SUPERUSER, cells),
    HttpRoute("POST", f"{_BASE}/members", Permission.SUPERUSER, add),
    HttpRoute("DELETE", f"{_BASE}/members", Permission.SUPERUSER, remove),
    HttpRoute("POST", f"{_BASE}/replace", Permission.SUPERUSER, replace),
    HttpRoute("POST", f"{_BASE}/scrub", Permission.SUPERUSER, scrub),
)
