"""A data directory that nobody serves, answered as a box would: what `pulsarbox top --data-dir` shows of a dead box."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pulsarbox.client.web import Reply
from pulsarbox.tui.feed import VIEWS as PATH
from pulsarbox.tui.feed import Exchange, Feed, Query
from pulsarbox.tui.lists import chosen, language_of
from pulsarbox.tui.places import now_ms
from pulsarbox.tui.views import VIEWS

if TYPE_CHECKING:
    from pulsarbox.storage.inspection.dead_box import DeadBox

_LIVE = "no box runs on this directory: this is known only while one does"


def offline(path: Path) -> Feed:
    """Raises PersistenceError where the directory cannot be read."""
    from pulsarbox.storage.inspection.dead_box import dead_box

    return Feed(answers_of(dead_box(path)), f"{path} (no box runs)")


def answers_of(found: "DeadBox") -> Exchange:
    """What was read once, with the filter, the order and the part that is asked for."""

    def exchange(method: str, target: str, body: bytes | None) -> Reply:
        parts = urlsplit(target)
        if method != "GET":
            return _reply({"reason": "no box runs on this directory: nothing can be changed"}, 409)
        view = parts.path.rpartition("/")[2]
        if not parts.path.startswith(PATH) or (view not in found.views and view != "overview"):
            return _reply({"reason": _LIVE}, 404)
        return _view(found, view, dict(parse_qsl(parts.query)))

    return exchange


def _view(found: "DeadBox", view: str, asked: Mapping[str, str]) -> Reply:
    rows = found.views.get(view, [])
    text = asked.get("filter", "")
    try:
        passes = language_of(VIEWS[view]).parse(text, now_ms()) if text else lambda row: True
    except ValueError as error:
        return _reply({"reason": f"filter: {error}"}, 400)
    offset, limit = int(asked.get("offset", 0)), int(asked.get("limit", 60))
    query = Query(view, asked.get("sort"), asked.get("order", "desc") == "desc", offset, limit)
    snapshot = chosen(query, rows, passes)
    return _reply(
        {
            "view": view,
            "now": found.now,
            "total": snapshot.total,
            "matching": snapshot.matching,
            "offset": offset,
            "rows": [row | row.real for row in snapshot.rows],
            "totals": found.storage if view == "storage" else found.totals,
            "series": {},
            "readOnly": True,
        }
    )


def _reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, {}, json.dumps(value).encode())
