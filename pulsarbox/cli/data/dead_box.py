"""Dashboard queries for a stopped box: live views, events and history, answered from its files."""

import json
import shlex
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pulsarbox.cli.common.time_arguments import moment
from pulsarbox.client.transport.web import Reply
from pulsarbox.expressions import Language, inside
from pulsarbox.storage.inspection.dead_box import UNKNOWN, DeadBox, dead_box
from pulsarbox.storage.recording.event_files import FOLDER as EVENTS
from pulsarbox.storage.recording.event_files import newest_first, oldest_first
from pulsarbox.storage.recording.history_files import FOLDER as HISTORY
from pulsarbox.storage.recording.history_files import History, rows_of
from pulsarbox.storage.recording.history_series import overview_at

Row = dict[str, Any]
Exchange = Callable[[str, str, bytes | None], Reply]

_BASE: Final = "/pulsarbox/v1/"
_SORTS: Final = {"topics": "backlog", "subscriptions": "backlog", "deadletters": "messages", "storage": "lastPosition"}
_SEARCHED: Final = ("topic", "subscription", "name", "kind", "subject", "text")
_LIMIT: Final = 60
_NUMBER_MAX: Final = 2**63 - 1


def dead_exchange(path: Path) -> Exchange:
    """Return a function that answers requests about the stopped box of a data directory, which is read once.

    Raises PersistenceError if a box runs on it, or it cannot be read.
    """
    box = dead_box(path)
    return lambda method, target, body: answered(box, method, target)


def answered(box: DeadBox, method: str, target: str) -> Reply:
    """Answer a request as the box itself would, with 503 for requests that need a running box."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query))
    name = parts.path.removeprefix(_BASE)
    try:
        if method != "GET" or not parts.path.startswith(_BASE):
            raise _Refused(503, f"no box is running on {box.path}: {_remedy(box)}")
        if name == "events":
            return _reply(200, _events(box, query))
        if name == "history":
            return _reply(200, _history(box, query))
        if name.startswith("top/"):
            return _reply(200, _view(box, name.removeprefix("top/"), query))
        raise _Refused(503, f"no box is running on {box.path}, and its files do not contain this: {_remedy(box)}")
    except _Refused as error:
        return _reply(error.status, {"reason": str(error)})
    except ValueError as error:
        return _reply(400, {"reason": str(error)})


def _remedy(box: DeadBox) -> str:
    return f"start it with `pulsarbox start --detach --data-dir {shlex.quote(str(box.path))}`"


class _Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _reply(status: int, value: Row) -> Reply:
    return Reply(status, {"content-type": "application/json"}, json.dumps(value).encode())


def _view(box: DeadBox, name: str, query: dict[str, str]) -> Row:
    around = {"view": name, "now": box.now, "sampled": box.now, "complete": True, "readOnly": True}
    around |= {"virtualClock": None, "offline": True, "offset": 0}
    if query.get("at"):
        return around | _recorded(box, name, query)
    nothing = {"total": 0, "matching": 0, "rows": []}
    if name == "overview":
        return around | nothing | {"totals": box.totals} | _last_series(box)
    if name not in box.views:
        raise _Refused(503, f"{name} require a running box: {_remedy(box)}")
    totals = {"totals": box.storage} if name == "storage" else {"unknown": UNKNOWN[name]}
    total = box.topics if name == "topics" else len(box.views[name])
    return around | totals | {"total": total} | _chosen(box, box.views[name], _SORTS[name], query)


def _last_series(box: DeadBox) -> Row:
    """Return the series of the last minutes that were recorded, and their end."""
    history = History(box.path / HISTORY)
    told = overview_at(history, history.extent()[1])
    if told is None:
        return {"series": {}, "seriesStep": 1}
    return {"series": told.series, "seriesStep": told.step, "seriesEnd": told.time}


def _recorded(box: DeadBox, name: str, query: dict[str, str]) -> Row:
    history, at = History(box.path / HISTORY), _moment(query["at"], box.now)
    overview = overview_at(history, at) if name == "overview" else None
    if overview is not None:
        around = {
            "now": overview.time,
            "sampled": overview.time,
            "recorded": True,
            "total": 0,
            "matching": 0,
            "rows": [],
        }
        return around | {"totals": overview.totals, "series": overview.series, "seriesStep": overview.step}
    frame = history.at(at)
    if frame is None:
        raise _Refused(404, f"nothing was recorded at {query['at']}")
    around = {"now": frame.time, "sampled": frame.time, "recorded": True}
    found = rows_of(frame, name)
    if found is None:
        raise _Refused(404, f"the view {name!r} is not recorded")
    total, rows = found
    return around | {"total": total, "kept": len(rows)} | _chosen(box, rows, _SORTS.get(name, "topic"), query)


def _chosen(box: DeadBox, rows: list[Row], sort: str, query: dict[str, str]) -> Row:
    """Return the rows selected by a query."""
    wanted = _wanted(query.get("filter", ""), box.now, rows[0].keys() if rows else ())
    found = [row for row in rows if wanted(row)]
    column = query.get("sort") or sort
    found.sort(key=lambda row: _rank(row.get(column)), reverse=query.get("order") != "asc")
    offset, limit = _number(query, "offset", 0), _number(query, "limit", _LIMIT)
    columns = [each for each in query.get("columns", "").split(",") if each]
    some = found[offset : offset + limit]
    if columns:
        some = [{each: row.get(each) for each in columns} for row in some]
    return {"matching": len(found), "offset": offset, "rows": some}


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int | float) else (2, str(value))


def _wanted(text: str, now: int, names: Any) -> Callable[[Row], bool]:
    if not text.strip():
        return lambda row: True
    known = list(names)

    def member(name: str, path: list[str]) -> Callable[[Row], Any] | None:
        return (lambda row: inside(row.get(name), path)) if name in known or not known else None

    def searched(row: Row) -> list[str]:
        return [value for name in _SEARCHED if isinstance(value := row.get(name), str)]

    return Language(lambda name: member(name, []), member, ", ".join(known), searched=searched).parse(text, now)


def _events(box: DeadBox, query: dict[str, str]) -> Row:
    folder, limit = box.path / EVENTS, _number(query, "limit", 100)
    names = ("sequence", "time", "severity", "kind", "subject", "text", "count", "fields")
    wanted, since = _wanted(query.get("filter", ""), box.now, names), _moment(query.get("since", "0"), box.now)

    def passes(row: Row) -> bool:
        return bool(row["time"] >= since) and wanted(row)

    if query.get("after"):
        after = _number(query, "after", 0)
        rows = list(islice(filter(passes, oldest_first(folder, after, _NUMBER_MAX)), limit))
    else:
        rows = list(islice(filter(passes, newest_first(folder, _number(query, "before", _NUMBER_MAX))), limit))[::-1]
    last = next(newest_first(folder, _NUMBER_MAX), None)
    end = rows[-1]["sequence"] if query.get("after") and len(rows) == limit else (last or {"sequence": 0})["sequence"]
    return {"events": rows, "next": end, "first": 0}


def _history(box: DeadBox, query: dict[str, str]) -> Row:
    history = History(box.path / HISTORY)
    first, last, size = history.extent()
    begin, end = _moment(query.get("from", "0"), box.now), _moment(query.get("to", str(_NUMBER_MAX)), box.now)
    frames = history.times(begin, end, _number(query, "limit", 1000))
    return {"from": first or None, "to": last or None, "step": None, "bytes": size, "frames": frames}


def _moment(text: str, now: int) -> int:
    return int(text) if text.isascii() and text.isdigit() else moment(text, now)


def _number(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name}: expected an integer, not {text[:40]!r}")
    return int(text)
