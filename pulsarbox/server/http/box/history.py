"""The recorded history: its time span, and the contents of live views at a past time. Below ``/pulsarbox/v1``."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from pulsarbox.errors import BadRequest, NotFound
from pulsarbox.server.http.framework.filter_parameters import Wanted, moment_of, number_of, wanted_of
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.live import overview
from pulsarbox.server.live.asking import LIMIT, LIMIT_MAX, OFFSET_MAX, scope_of
from pulsarbox.server.live.choosing import Order, ranked
from pulsarbox.server.live.table import VIEWS
from pulsarbox.server.live.view import Row, ViewScope
from pulsarbox.storage.recording.history_files import FOLDER, History, rows_of
from pulsarbox.storage.recording.history_series import overview_at

FRAMES: Final = 1000
FRAMES_MAX: Final = 10_000
_SEARCHED: Final = ("topic", "subscription", "subject")
_TOPIC: Final = ("topic", "subject")

T = TypeVar("T")


def history(call: HttpRequest) -> DeferredAnswer:
    """Return ``{"from", "to", "step", "bytes", "frames"}``: times in ms since 1970, ``from`` and ``to`` null if empty.

    ``frames`` are those from ``from`` to ``to`` of the query, at most ``limit``, evenly selected.
    """
    begin, end = moment_of(call, "from"), moment_of(call, "to") or 1 << 62
    limit = number_of(call, "limit", FRAMES, 1, FRAMES_MAX)
    folder, step = _folder(call), call.settings.historyIntervalSeconds * 1000

    def look() -> dict[str, Any]:
        found = History(folder)
        first, last, size = found.extent()
        frames = found.times(begin, end, limit)
        return {"from": first or None, "to": last or None, "step": step, "bytes": size, "frames": frames}

    return _beside(call, look)


def _folder(call: HttpRequest) -> Path:
    broker = call.broker
    if broker.host.folder is None or not broker.settings.historyMaxMbytes:
        raise NotFound("No history is recorded: the box runs in memory, or historyMaxMbytes is 0")
    return Path(broker.host.folder) / FOLDER


def _beside(call: HttpRequest, look: Callable[[], dict[str, Any]]) -> DeferredAnswer:
    later = DeferredAnswer()

    def told(found: dict[str, Any], error: Exception | None) -> None:
        if error is not None:
            later.failed(error)
        else:
            later.complete(answer(found))

    call.broker.host.run_in_thread("history", look, told)
    return later


def recorded(call: HttpRequest) -> DeferredAnswer:
    """Return a live view as of time ``at``: the recorded rows of the last frame at or before it.

    Raises NotFound if nothing was recorded, BadRequest.
    """
    at, name, scope = moment_of(call, "at"), call.path["view"], scope_of(call.query)
    folder = _folder(call)
    around = {"view": name, "complete": True, "recorded": True, "readOnly": True, "virtualClock": None}
    if name == overview.NAME:
        if scope.prefix:
            raise NotFound("The overview is not recorded per tenant")
        return _beside(call, lambda: around | _overview(History(folder), at))
    view = VIEWS.get(name)
    if view is None:
        raise NotFound(f"Unknown view {name!r}")
    if call.query.get("order", "") not in ("", "asc", "desc"):
        raise BadRequest("order must be asc or desc")
    wanted = wanted_of(call, list(view.columns), _SEARCHED)
    sort = call.query.get("sort") or view.sort
    rank = ranked(Order(lambda row: row.get(sort), call.query.get("order") != "asc"))
    offset, limit = number_of(call, "offset", 0, 0, OFFSET_MAX), number_of(call, "limit", LIMIT, 1, LIMIT_MAX)
    columns = [column.strip() for column in call.query.get("columns", "").split(",") if column.strip()]

    def look() -> dict[str, Any]:
        time, total, rows = _rows(History(folder), at, name)
        some = sorted(_wanted(rows, wanted, scope), key=rank, reverse=True)
        shown = some[offset : offset + limit]
        if columns:
            shown = [{column: row.get(column) for column in columns} for row in shown]
        told = {"now": time, "sampled": time, "offset": offset, "rows": shown, "kept": len(rows)}
        return around | told | {"total": total, "matching": len(some)}

    return _beside(call, look)


def _wanted(rows: list[Row], wanted: Wanted, scope: ViewScope) -> list[Row]:
    return [row for row in rows if _is_within(row, scope) and wanted(row)]


def _is_within(row: Row, scope: ViewScope) -> bool:
    if not scope.prefix:
        return True
    topic = next((value for name in _TOPIC if isinstance(value := row.get(name), str)), "")
    return topic.partition("://")[2].startswith(scope.prefix)


def _rows(found: History, at: int, name: str) -> tuple[int, int, list[Row]]:
    frame = found.at(at)
    if frame is None:
        raise NotFound(_nothing(found, at))
    told = rows_of(frame, name)
    if told is None:
        raise NotFound(f"The view {name!r} is not recorded")
    return frame.time, told[0], told[1]


def _overview(found: History, at: int) -> dict[str, Any]:
    told = overview_at(found, at)
    if told is None:
        raise NotFound(_nothing(found, at))
    nothing = {"total": 0, "matching": 0, "offset": 0, "rows": []}
    return nothing | {
        "now": told.time, "sampled": told.time, "totals": told.totals, "series": told.series, "seriesStep": told.step,
    }  # fmt: skip


def _nothing(found: History, at: int) -> str:
    first, last, _ = found.extent()
    if not first:
        return "Nothing is recorded yet"
    return f"Nothing is recorded for {_words(at)}: the history goes from {_words(first)} to {_words(last)}"


def _words(time: int) -> str:
    return datetime.fromtimestamp(min(time, 253_402_300_799_999) / 1000, UTC).isoformat(sep=" ", timespec="seconds")


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/history", Permission.WATCHER, history),)
