"""A simulated box with a table of responses: live views, rows chosen by tests, and switchable faults."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pulsarbox.client.transport.web import Reply, Unanswered
from pulsarbox.expressions import Language
from pulsarbox.server.recording.history_recorder import RECORDED
from pulsarbox.tui.feed import Feed

NOW = 1_795_300_000_000
Answer = Callable[[Mapping[str, str], Any], Any]


def subscription(number: int, **more: Any) -> dict[str, Any]:
    """A subscription row of the view."""
    backlog = more.pop("backlog", 1000 - number)
    return {
        "topic": f"persistent://public/default/orders-{number}",
        "subscription": "billing",
        "type": "Shared",
        "backlog": backlog,
        "change": 12.5,
        "inRate": 100.0,
        "outRate": 87.5,
        "unacked": 30,
        "oldest": 75.0,
        "consumers": 2,
        "trend": [backlog - at * 10 for at in range(20, 0, -1)],
        "cause": "throttled",
        "causeText": "the dispatch rate is used up",
        "drain": None,
        "delayed": 0,
        **more,
    }


def topic(number: int, **more: Any) -> dict[str, Any]:
    """A topic row of the view."""
    return {
        "topic": f"persistent://public/default/orders-{number}",
        "publishRate": 100.0,
        "deliverRate": 87.5,
        "publishBytes": 102400.0,
        "backlog": 1000 - number,
        "size": 5_000_000,
        "producers": 2,
        "subscriptions": 1,
        "oldest": 75.0,
        "trend": [12.5, 25.0, 50.0, 100.0],
        "quota": 0.85,
        **more,
    }


def quota(number: int, **more: Any) -> dict[str, Any]:
    """A quota row of the view."""
    return {
        "scope": "topic",
        "subject": f"persistent://public/default/orders-{number}",
        "policy": "publish-rate",
        "used": 950.0,
        "limit": 1000.0,
        "unit": "messages/s",
        "share": 0.95,
        "level": "namespace",
        "held": 12_400,
        "holding": True,
        "change": {
            "of": "topic",
            "method": "POST",
            "path": f"/admin/v2/persistent/public/default/orders-{number}/publishRate",
            "query": {},
            "body": {"publishThrottlingRateInMsg": 1000, "publishThrottlingRateInByte": -1},
            "field": "publishThrottlingRateInMsg",
            "command": f"pulsarbox topic policy persistent://public/default/orders-{number} publish-rate 1000/s",
            "setting": None,
        },
        **more,
    }


def dead_letters(number: int, **more: Any) -> dict[str, Any]:
    """A dead letter row of the view."""
    return {
        "topic": f"persistent://public/default/orders-{number}-billing-DLQ",
        "origin": f"persistent://public/default/orders-{number}",
        "left": 17,
        "messages": 20,
        "size": 4096,
        "subscriptions": 0,
        "keptBy": None,
        "lost": True,
        "first": NOW - 86_400_000,
        "last": NOW - 60_000,
        "rate": 0.4,
        **more,
    }


def client(number: int, **more: Any) -> dict[str, Any]:
    """A client row of the view."""
    return {
        "id": f"{number}-c0",
        "connection": str(number),
        "address": f"127.0.0.1:{40000 + number}",
        "role": "",
        "version": "Pulsar-CPP-v3.7.1",
        "kind": "consumer",
        "topic": "persistent://public/default/orders-0",
        "subscription": "billing",
        "name": f"c{number}",
        "rate": 43.0,
        "bytes": 44_000.0,
        "unacked": 15,
        "permits": 985,
        "since": NOW - 3_600_000,
        **more,
    }


TOTALS = {
    "publishRate": 12_345.6,
    "deliverRate": 12_000.0,
    "publishBytes": 12_641_894.0,
    "deliverBytes": 12_000_000.0,
    "backlog": 1_234_567,
    "unacked": 300,
    "topics": 12,
    "subscriptions": 40,
    "producers": 8,
    "consumers": 12,
    "connections": 14,
    "p50": 1.2,
    "p99": 8.4,
    "memory": 54_000_000,
    "diskUsed": 2_000_000_000,
    "diskFree": 80_000_000_000,
    "throttled": 2,
    "deadLetters": 17,
    "uptime": 273_000_000,
    "version": "0.12.0",
    "clusterName": "standalone",
}
STORE = {
    "commits": 12_345,
    "commitsFailed": 0,
    "groupEntries": 41.5,
    "groupBytes": 42_000.0,
    "commitMs": 2.1,
    "commitP50": 1.9,
    "commitP99": 8.4,
    "receiptP50": 1.2,
    "receiptP99": 8.4,
    "checkpointLag": 1_200_000,
    "refusal": None,
    "volumes": 4,
    "volumeBytes": 4 << 26,
    "liveBytes": 60_000_000,
    "meta": {"mapSize": 1 << 36, "fileSize": 1 << 20, "freePages": 3, "readers": 1, "diskUsed": 1 << 20},
    "diskFree": 80_000_000_000,
    "diskTotal": 270_000_000_000,
    "reserveHeld": True,
    "unpackedHits": 1_200,
    "unpackedMisses": 34,
    "unpackedBytes": 9_000_000,
}
"""Totals of the storage view."""


def message(number: int, **more: Any) -> dict[str, Any]:
    """A message row of the browser."""
    payload = json.dumps({"id": number, "customer": number % 7, "amount": 12.5}).encode()
    return {
        "id": f"12:{number}",
        "publishTime": NOW - 60_000 + number * 100,
        "eventTime": None,
        "deliverAt": None,
        "key": f"customer-{number % 7}",
        "properties": {"source": "shop", "EXCEPTION": "timeout after 30 s"},
        "size": len(payload),
        "producer": "standalone-0-1",
        "sequenceId": number,
        "schemaVersion": None,
        "codec": "",
        "encrypted": False,
        "payload": base64.b64encode(payload).decode(),
        "truncated": False,
        "decoded": None,
        **more,
    }


def browsed(messages: list[dict[str, Any]]) -> Answer:
    """Pages over messages in both directions."""

    def answered(query: Mapping[str, str], body: Any) -> Any:
        forward, start, limit = query["direction"] == "forward", query["from"], int(query["limit"])
        if query.get("filter", "").startswith("key == "):
            return _of_key(messages, query)
        last = len(messages)
        if start == "unacknowledged":
            start = next((each["id"] for each in messages if each.get("state") == "waiting"), f"12:{last}")
        begin = 0 if start == "earliest" else last if start == "latest" else int(start.rpartition(":")[2])
        if start not in ("earliest", "latest") and begin > last:
            begin = next(at for at, each in enumerate(messages) if each["id"] == start)
        end = min(begin + limit, last) if forward else begin + (start not in ("earliest", "latest"))
        begin = begin if forward else max(end - limit, 0)
        most, first = int(query.get("maxPayload", 4096)), int(query.get("payloadFrom", 0))
        return {
            "messages": [_cut(each, most, first) for each in messages[begin:end]],
            "previous": f"12:{begin - 1}" if begin else None,
            "next": f"12:{end}",
            "ended": end == last if forward else not begin,
            "lookedAt": end - begin,
        }

    return answered


def _of_key(messages: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Both neighbors with a key, one per page, so that a search goes on."""
    at = next(at for at, each in enumerate(messages) if each["id"] == query["from"])
    step = 1 if query["direction"] == "forward" else -1
    found = [messages[at]] if f"key == {json.dumps(messages[at]['key'])}" == query["filter"] else []
    on = messages[at + step]["id"] if 0 <= at + step < len(messages) else None
    return {"messages": found, "next": on, "previous": on, "ended": on is None, "lookedAt": 1}


def _cut(message: dict[str, Any], most: int, first: int = 0) -> dict[str, Any]:
    payload = base64.b64decode(message["payload"] or "")
    if not first and len(payload) <= most:
        return message
    part = base64.b64encode(payload[first : first + most]).decode()
    return {**message, "payload": part, "truncated": len(payload) > first + most}


def job(number: int, **more: Any) -> dict[str, Any]:
    """A job row of the view."""
    return {
        "id": number,
        "kind": "dlq-replay",
        "state": "running",
        "topic": "persistent://public/default/orders-0-billing-DLQ",
        "subscription": "",
        "target": None,
        "filter": "",
        "edit": None,
        "rate": 100.0,
        "dryRun": False,
        "total": 400,
        "seen": 100,
        "done": 80,
        "skipped": 20,
        "failed": 0,
        "returned": 1,
        "reasons": {},
        "targets": {"persistent://public/default/orders-0": 80},
        "started": NOW - 30_000,
        "ended": 0,
        "by": "operator",
        "error": "",
        **more,
    }


def event(number: int, **more: Any) -> dict[str, Any]:
    """An event row of the view."""
    return {
        "sequence": number,
        "time": NOW - 100_000 + number * 1000,
        "severity": "warning",
        "kind": "quota-reached",
        "subject": "persistent://public/default/orders-0",
        "text": f"the backlog quota is reached: {number}",
        "count": 1,
        "fields": {"limit": 2_000_000},
        **more,
    }


def pipeline(number: int, **more: Any) -> dict[str, Any]:
    """A pipeline row of the view."""
    return {
        "pipeline": "totals",
        "query": f"by_place_{number}",
        "state": "running",
        "inputs": ["persistent://public/default/orders-0", "persistent://public/default/orders-1"],
        "output": "persistent://public/default/totals",
        "lag": 1200 - number,
        "rows": 1_200_000,
        "rowsPerSecond": 845.5,
        "batch": 1812,
        "lastBatchMs": 640,
        "stages": {"addBatch": 500, "commitOffsets": 40},
        "watermark": NOW - 60_000,
        "stateRows": 1000,
        "stateBytes": 1 << 20,
        "deadLetters": 0,
        "lastError": None,
        "master": "local[2]",
        "host": "worker-1",
        "pid": 4711,
        "startedAt": NOW - 7_200_000,
        "ui": "http://worker-1:4040",
        "reportedAt": NOW - 1_000,
        "by": "spark",
        **more,
    }


PLUGIN = {
    "kind": "routing",
    "name": "zones",
    "source": "pulsarbox-zones 1.2",
    "state": "in use",
    "calls": 123_456,
    "errors": 2,
    "p50Nanos": 840,
    "p99Nanos": 2300,
    "lastError": "KeyError: 'zone'",
    "subscriptions": 1,
}
GROUP = {
    "fingerprint": "0123456789ab",
    "reason": "timeout after # s",
    "origin": "persistent://public/default/orders-0",
    "subscription": "billing",
    "shape": "{amount, customer, id}",
    "count": 12,
    "first": NOW - 86_400_000,
    "last": NOW - 60_000,
    "sample": "12:3",
}
CURSOR_MAP = {
    "topic": "persistent://public/default/orders-0",
    "subscription": "billing",
    "markDelete": "12:40",
    "lastConfirmed": "12:99",
    "backlog": 57,
    "entries": 100,
    "ledgers": [{"ledger": 12, "first": 0, "last": 99, "size": 10_000, "open": True}],
    "ledgersTotal": 1,
    "buckets": [
        {
            "first": f"12:{at}",
            "last": f"12:{at}",
            "entries": 1,
            "acknowledged": int(at <= 40 or at in (50, 51)),
            "inFlight": int(60 <= at < 70),
            "delayed": int(at >= 95),
        }
        for at in range(100)
    ],
    "ranges": [[12, 50, 51]],
}
KEY_MAP = {
    "slots": 65536,
    "consumers": [
        {"name": "c0", "address": "127.0.0.1:40000", "ranges": [[0, 32767]], "unacked": 3},
        {"name": "c1", "address": "127.0.0.1:40001", "ranges": [[32768, 65535]], "unacked": 0},
    ],
    "consumersTotal": 2,
    "busiest": [{"slot": 77, "key": "customer-7", "waiting": 0, "unacked": 3, "owner": "c0", "holder": "c0"}],
    "stuck": [
        {
            "slot": 4711,
            "key": "customer-9",
            "waiting": 37,
            "unacked": 1,
            "owner": "c0",
            "holder": "c0",
            "draining": False,
            "behind": "12:61",
            "since": NOW - 600_000,
        }
    ],
    "draining": [{"slot": 12, "consumer": "c0", "unacked": 1, "blocked": 2}],
}


def recorded(query: Mapping[str, str], body: Any) -> Any:
    """The times that the box has recorded in the last day: one every ten seconds, up to the limit."""
    told: dict[str, Any] = {"from": NOW - 86_400_000, "to": NOW, "step": 10_000, "bytes": 1_000_000}
    if "limit" in query:
        begin, end, limit = int(query["from"]), int(query["to"]), int(query["limit"])
        step = max((end - begin) // limit // 10_000, 1) * 10_000
        told["frames"] = list(range(begin + step, end, step))[:limit]
    return told


def as_of(row: Mapping[str, Any], at: int) -> dict[str, Any]:
    """The row of a subscription at an earlier time: its rates vary, and its backlog has grown since."""
    seconds = (NOW - at) / 1000
    then: dict[str, Callable[[float], float]] = {
        "inRate": lambda rate: rate * (1 + 0.2 * math.sin(seconds / 60)),
        "outRate": lambda rate: rate * (1 + 0.1 * math.sin(seconds / 45)),
        "backlog": lambda backlog: max(backlog - round(min(seconds, 600) * backlog / 2000), 0),
    }
    return {**row, **{name: change(row[name]) for name, change in then.items() if row.get(name) is not None}}


class FakeBox:
    """Simulated box with responses by path. ``asked`` records the requests; ``gone`` and ``refused`` configure
    faults."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {
            "overview": [],
            "subscriptions": [subscription(number) for number in range(40)],
            "topics": [topic(number) for number in range(40)],
            "quotas": [quota(number) for number in range(5)],
            "deadletters": [dead_letters(number) for number in range(3)],
            "clients": [client(number) for number in range(6)],
            "plugins": [dict(PLUGIN)],
            "pipelines": [
                pipeline(0),
                pipeline(1, output="parquet:/data/orders"),
                pipeline(
                    2,
                    pipeline="mailer",
                    query="send",
                    state="failed",
                    deadLetters=3,
                    lastError="ValueError: 'mail-7' is no address\n  in send of mailer.py, line 12",
                ),
            ],
            "storage": [
                {
                    "name": f"volumes/0000000{at}",
                    "state": "sealed" if at < 3 else "current",
                    "diskUsed": 67_108_864,
                    "liveBytes": 10_000_000 * at,
                    "liveShare": 0.15 * at,
                    "liveEntries": 40_000,
                    "freePages": None if at < 3 else 118,
                    "readers": None if at < 3 else 2,
                    "firstPosition": 12_000 * at,
                    "lastPosition": 12_000 * at + 11_999,
                }
                for at in range(4)
            ],
        }
        self.totals: dict[str, Any] = dict(TOTALS)
        self.store: dict[str, Any] = dict(STORE)
        self.asked: list[tuple[str, str, Any]] = []
        base = "/pulsarbox/v1"
        self.messages = [message(number) for number in range(250)]
        self.answers: dict[tuple[str, str], Any] = {
            ("GET", f"{base}/jobs"): [job(2), job(1, state="done", seen=400, done=400)],
            ("GET", f"{base}/events"): self._events,
            ("GET", f"{base}/history"): recorded,
            ("GET", f"{base}/dlq/public/default/orders-0-billing-DLQ/groups"): {
                "groups": [dict(GROUP)],
                "looked": 17,
                "total": 17,
            },
            ("GET", f"{base}/maps/cursor/public/default/orders-0/billing"): CURSOR_MAP,
            ("GET", f"{base}/maps/keys/public/default/orders-0/billing"): KEY_MAP,
            ("GET", f"{base}/browse/public/default/orders-0"): browsed(self.messages),
            ("GET", f"{base}/browse/public/default/orders-0-billing-DLQ"): browsed(self.messages),
        }
        self.events = [event(number) for number in range(1, 31)]
        self.gone = ""
        self.refused: tuple[int, str] | None = None
        self.read_only = False
        self.virtual_clock: int | None = None
        self.feed = Feed(self.exchange, "http://box:8080")

    def exchange(self, method: str, target: str, body: bytes | None) -> Reply:
        """See pulsarbox.tui.feed.Exchange."""
        value = None if body is None else json.loads(body)
        self.asked.append((method, target, value))
        if self.gone:
            raise Unanswered(self.gone)
        if self.refused is not None:
            return _reply({"reason": self.refused[1]}, self.refused[0])
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        given = self.answers.get((method, parts.path))
        if given is not None:
            return _reply(given(query, value) if callable(given) else given)
        if method == "GET" and parts.path.startswith("/pulsarbox/v1/top/"):
            return self._view(parts.path.rpartition("/")[2], query)
        if method != "GET":
            return Reply(204, {}, b"")
        return _reply({"reason": f"there is no {unquote(parts.path)}"}, 404)

    def totals_at(self, time: int) -> Mapping[str, Any]:
        """The totals at a time in ms since 1970. Called in the threads of several requests at once."""
        return self.totals

    def _view(self, name: str, query: Mapping[str, str]) -> Reply:
        if query.get("at") and name not in ("overview", *RECORDED):
            return _reply({"reason": f"The view {name!r} is not recorded"}, 404)
        rows = self.rows.get(name)
        if rows is None:
            return _reply({"reason": f"there is no view {name}"}, 404)
        at = int(query.get("at") or NOW)
        if name == "subscriptions" and at < NOW:
            rows = [as_of(row, at) for row in rows]
        passing = rows
        if query.get("filter"):
            try:
                wanted = LANGUAGE.parse(query["filter"], NOW)
            except ValueError as error:
                return _reply({"reason": str(error)}, 400)
            passing = [row for row in rows if wanted(row)]
        sort = query.get("sort")
        if sort:
            passing = sorted(
                passing,
                key=lambda row: (isinstance(row.get(sort), str), row.get(sort) or 0),
                reverse=query.get("order") == "desc",
            )
        if query.get("columns") and name != "overview":  # only requested columns are returned
            columns = query["columns"].split(",")
            passing = [{column: row.get(column) for column in columns} for row in passing]
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 60))
        document = {
            "view": name,
            "now": at,
            "total": len(rows),
            "matching": len(passing),
            "offset": offset,
            "rows": passing[offset : offset + limit],
            "totals": self.store if name == "storage" else self.totals_at(at),
            "readOnly": self.read_only,
            "sampled": NOW - 400,
            "virtualClock": self.virtual_clock,
        }
        if name == "overview":
            document["series"] = {
                "publishRate": [10_000 + 3_000 * math.sin(at / 9) for at in range(600)],
                "deliverRate": [10_000 + 2_500 * math.sin(at / 9 - 0.4) for at in range(600)],
                "backlog": [1_000_000 + 400 * at for at in range(600)],
                "p99": [5 + 3 * math.sin(at / 31) for at in range(600)],
            }
        return _reply(document)

    def _events(self, query: Mapping[str, str], body: Any) -> Any:
        after = int(query.get("after", 0))
        found = [each for each in self.events if each["sequence"] > after][-int(query["limit"]) :]
        return {"events": found, "next": self.events[-1]["sequence"] if self.events else 0, "first": 1}

    def asked_rows(self) -> str:
        """Return the last request for rows, ignoring those of the status line."""
        return [target for _, target, _ in self.asked if "/top/overview" not in target][-1]

    def changes(self) -> list[tuple[str, str, Any]]:
        """Return the requests for changes."""
        return [each for each in self.asked if each[0] != "GET"]


LANGUAGE = Language(
    lambda name: lambda row: row.get(name),
    lambda name, path: None,
    "columns",
    searched=lambda row: [value for value in row.values() if isinstance(value, str)],
)


def _reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, {"content-type": "application/json"}, json.dumps(value).encode())
