"""The simulated boxes behind the views: each shows one state of a box, or one kind of trouble."""

import json
from threading import Event
from typing import Any, Final
from urllib.parse import urlsplit

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.stats.blocked_reason_text import TEXTS
from pulsarbox.client.transport.web import Reply
from pulsarbox.storage.inspection.dead_box import UNKNOWN
from pulsarbox.tui.actions.diagnosis import SIZE_QUOTA
from pulsarbox.tui.widgets.tour_guide import STEPS
from tests.unit.storage.ensemble.fake import LOST, SINCE, member, status
from tests.unit.tui.fake import (
    GROUP,
    NOW,
    PLUGIN,
    FakeBox,
    client,
    dead_letters,
    event,
    job,
    quota,
    subscription,
    topic,
)
from tests.unit.tui.screens.messages.test_message_viewer import with_payload
from tests.unit.tui.screens.test_directories import box_of

ORDER: Final = {
    "id": 7,
    "customer": {"name": "Ada", "tags": ["vip", "new"], "address": None},
    "lines": [{"article": f"A-{at}", "count": at, "price": 12.5, "sent": at % 2 == 0} for at in range(9)],
    "note": "Please ring twice. " * 12,
}
LONG: Final = "a-tenant-with-a-long-name/department-of-incoming-goods/orders-from-all-countries-and-all-shops-v2"
WIDE_SIGNS: Final = "店舗/注文/注文の処理と配送の状況"
JOBS: Final = "/pulsarbox/v1/jobs"
_BASE: Final = "/pulsarbox/v1"


def busy() -> FakeBox:
    """A box with rows of all kinds on every screen."""
    box = FakeBox()
    types = ("Key_Shared", "Shared", "Exclusive", "Failover")
    causes = (Reason.THROTTLED, Reason.NO_CONSUMER, Reason.UNACKED_LIMIT, Reason.END_OF_LOG)
    box.rows["subscriptions"] = [
        subscription(
            number,
            type=types[number % 4],
            cause=causes[number % 4],
            causeText=TEXTS[causes[number % 4]],
            subscription=("billing", "shipping", "audit", "per-customer")[number % 4],
            consumers=number % 3,
            change=12.5 if number % 4 else -11.0,
            drain=None if number % 4 else 90.0,
            delayed=number % 5 * 100,
        )
        for number in range(40)
    ]
    box.rows["topics"] = [
        topic(at, backlog=40 * (40 - at) ** 2, quota=(None, 0.2, 0.85, 1.2)[at % 4]) for at in range(40)
    ]
    kinds = ("producer", "consumer", "reader")
    box.rows["clients"] = [client(at, kind=kinds[at % 3], role="" if at % 2 else "shop-admin") for at in range(12)]
    box.rows["quotas"] = [
        quota(0),
        quota(
            1,
            policy="dispatch-rate",
            scope="subscription",
            subject=f"{_name(1)} shipping",
            topic=_name(1),
            subscription="shipping",
            share=1.0,
            used=1000.0,
            change=_changed("subscription-dispatch-rate", "dispatchThrottlingRateInMsg"),
        ),
        quota(2, policy=SIZE_QUOTA, unit="bytes", used=1.7e9, limit=2e9, share=0.85, held=0, holding=False),
        quota(3, policy="max-consumers", unit="", used=12.0, limit=100.0, share=0.12, held=0, holding=False),
    ]
    box.rows["plugins"] = [PLUGIN, PLUGIN | {"kind": "hashing", "name": "xx64", "lastError": "", "errors": 0}]
    kept = dead_letters(1, subscriptions=1, keptBy="dead-letters", lost=False, left=3_402)
    box.rows["deadletters"] = [dead_letters(0), kept, dead_letters(2, left=0, rate=0.0)]
    other = GROUP | {"fingerprint": "aaaaaaaaaaaa", "shape": "text", "count": 30}
    refused = GROUP | {"fingerprint": "bbbbbbbbbbbb", "reason": "ValueError: '#' is no address", "count": 20}
    _groups_of(box, [GROUP, other, refused])
    severities = ("info", "warning", "error")
    box.events = [event(at, severity=severities[at % 3], count=1 + at % 4) for at in range(1, 31)]
    states = ("running", "paused", "done", "failed", "cancelled")
    box.answers["GET", JOBS] = [
        job(9 - at, state=state, error="the target topic is terminated" if state == "failed" else "")
        for at, state in enumerate(states)
    ]
    box.answers["POST", JOBS] = {"id": 9}
    box.answers["GET", f"{JOBS}/9"] = job(9, state="done", dryRun=True, done=12, skipped=5)
    box.answers["GET", f"{_BASE}/ensemble"] = {"several": False, "members": []}
    known = ("acknowledged", "inFlight", "delayed", "waiting")
    for at, each in enumerate(box.messages):
        each |= {"state": known[at * len(known) // len(box.messages)], "redeliveries": at % 3}
    box.messages += [with_payload(len(box.messages) + at, payload) for at, payload in enumerate(_PAYLOADS)]
    return box


_PAYLOADS: Final = (b"plain text\nin two lines", bytes(range(256)), b"", json.dumps(ORDER).encode())


def tour() -> FakeBox:
    """A box with the rows that the steps of the tour describe."""
    box = busy()
    (subject,) = (step.row["subject"] for step in STEPS if "subject" in step.row)
    command = f"pulsarbox topic policy {subject} publish-rate 25/s"
    change = quota(9)["change"] | {"command": command}
    box.rows["quotas"].append(quota(9, subject=subject, share=0.99, used=25.0, limit=25.0, change=change))
    return box


def empty() -> FakeBox:
    """A box in memory, right after its start."""
    box = FakeBox()
    for rows in box.rows.values():
        rows.clear()
    box.answers[("GET", JOBS)] = []
    box.answers["GET", f"{_BASE}/ensemble"] = {"several": False, "members": []}
    box.answers["GET", f"{_BASE}/history"] = {"from": None, "to": None, "step": 10_000}
    box.store = dict.fromkeys(("commits", "commitsFailed", "checkpointLag", "groupEntries", "groupBytes"), 0)
    box.events.clear()
    box.messages.clear()
    box.totals = dict.fromkeys(box.totals, 0) | {"p50": None, "p99": None, "memory": 54_000_000, "uptime": 9_000}
    box.totals |= {"version": "0.12.0", "clusterName": "standalone", "diskFree": 80_000_000_000}
    box.answers["GET", f"{_BASE}/top/overview"] = {"now": NOW, "totals": box.totals, "series": {}}
    return box


def crowded() -> FakeBox:
    """A box with long names, wide characters, control characters and huge numbers."""
    box = busy()
    names = (LONG, WIDE_SIGNS, "public/default/\x1b[31mred\u202e", "public/default/[/]")
    for at, name in enumerate(names):
        full = {"topic": f"persistent://{name}"}
        backlog = 10 ** (12 - 3 * at)
        much = {"backlog": backlog, "oldest": 86_400.0 * 400}
        box.rows["subscriptions"][at] |= {**full, **much, "subscription": name.rpartition("/")[2], "change": -9e8}
        box.rows["subscriptions"][at]["trend"] = [backlog] * 20
        box.rows["topics"][at] |= {**full, **much, "size": 1 << 50, "publishRate": 9.9e8}
        box.rows["clients"][at] |= {**full, "name": name, "role": name, "address": "[2001:db8::ff00:42:8329]:65535"}
    for at, name in enumerate(names[:3]):
        box.rows["quotas"][at] |= {"subject": f"persistent://{name}"}
        box.rows["deadletters"][at] |= {"topic": f"persistent://{name}-DLQ", "origin": f"persistent://{name}"}
        box.rows["pipelines"][at] |= {"pipeline": name.rpartition("/")[2], "lastError": name * 3}
        box.events[-1 - at] |= {"subject": f"persistent://{name}", "text": f"the limit of {name} is reached " * 3}
        box.answers["GET", JOBS][at] |= {"topic": f"persistent://{name}", "error": name}
    box.rows["plugins"] = [
        PLUGIN | {"name": name.rpartition("/")[2], "source": name, "lastError": name} for name in names
    ]
    box.totals |= {"backlog": 10**12, "publishRate": 9.9e8, "publishBytes": 9.9e11, "memory": 1 << 40, "p99": 91_000.0}
    return box


def directories() -> FakeBox:
    """A box with three data directories, one of them lost."""
    box = box_of(LOST, 8)
    box.totals["lackingCopies"] = 1204
    return box


def many_directories() -> FakeBox:
    """A box with a directory in each state."""
    states = ("active", "joining", "leaving", "full", "late", "fenced", "lost", "removed")
    return box_of(status(*(member(f"/srv/{at}/box", state=state, since=SINCE) for at, state in enumerate(states))))


class FilesBox(FakeBox):
    """The files of a stopped box, which lack some values and screens."""

    def exchange(self, method: str, target: str, body: bytes | None) -> Reply:
        """See FakeBox."""
        if any(f"/top/{view}?" in target for view in ("clients", "quotas", "plugins", "pipelines")):
            name = urlsplit(target).path.rpartition("/")[2]
            reason = f"{name} require a running box: start it with `pulsarbox start`"
            return Reply(503, {}, json.dumps({"reason": reason}).encode())
        return super().exchange(method, target, body)


def files() -> FakeBox:
    """The files of a stopped box."""
    box = FilesBox()
    box.read_only = True
    box.feed.label = "/srv/box (no box is running)"
    unknown = ("oldest", "type", "cause", "causeText", "inRate", "outRate", "change")
    row = subscription(0, trend=[], **dict.fromkeys(unknown))
    box.answers["GET", f"{_BASE}/top/subscriptions"] = {
        **_page_of(row),
        "unknown": UNKNOWN["subscriptions"],
    }
    return box


def _page_of(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"total": len(rows), "matching": len(rows), "rows": list(rows), "now": NOW, "readOnly": True}


class HeldBox(FakeBox):
    """A box that no longer answers once it is held, as on a slow link."""

    is_held = False

    def exchange(self, method: str, target: str, body: bytes | None) -> Reply:
        """See FakeBox."""
        if self.is_held:
            Event().wait(600)  # in a daemon thread
        return super().exchange(method, target, body)


def _changed(policy: str, field: str) -> dict[str, Any]:
    """Return how a rate in messages per second of the second topic is changed."""
    return {
        "of": "topic",
        "method": "POST",
        "path": f"/admin/v2/persistent/public/default/orders-1/{policy}",
        "query": {},
        "body": {field: 1000},
        "field": field,
        "command": f"pulsarbox topic policy {_name(1)} {policy} 1000/s",
        "setting": None,
    }


def _groups_of(box: FakeBox, groups: list[dict[str, Any]]) -> None:
    box.answers["GET", f"{_BASE}/dlq/public/default/orders-0-billing-DLQ/groups"]["groups"] = groups


def _name(number: int) -> str:
    return f"persistent://public/default/orders-{number}"
