"""Compaction on demand: start, status, and, beyond Pulsar, cancellation."""

from typing import Any

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, parts_of, persistent, stored_topic
from pulsarbox.server.http.framework.routes import HttpRoute, Permission

AT_ONCE = 20
"""Partitions processed per turn."""


def compact(call: HttpRequest) -> DeferredAnswer:
    """Compact a topic, or each partition of one. A compaction already in progress is a conflict."""
    topics = [persistent(find_topic(call, part, call.now), "Compaction") for part in parts_of(call)]
    running: list[Conflict] = []

    def start(topic: PersistentTopic, now: Now) -> None:
        try:
            topic.compaction.start(now)
        except Conflict as conflict:
            running.append(conflict)

    def finish(now: Now, later: DeferredAnswer) -> None:
        if running:
            later.failed(running[0])
        else:
            later.complete(DONE)

    return in_turns(call, topics, start, finish, AT_ONCE)


def compaction_status(call: HttpRequest) -> HttpResponse:
    """Return the status of a topic's compaction, with its ``progress`` while it runs, beyond Pulsar."""
    topic = stored_topic(call, "Compaction")
    run = topic.compaction.run
    if run is not None:
        return answer({"status": "RUNNING", "lastError": "", "progress": run.progress._asdict()})
    record = topic.compaction.record
    if record is not None and record.error:
        return answer({"status": "ERROR", "lastError": record.error})
    was_run = record is not None or topic.compaction.view is not None
    return answer({"status": "SUCCESS" if was_run else "NOT_RUN", "lastError": ""})


def cancel(call: HttpRequest) -> HttpResponse:
    """Cancel the compaction of a topic: its compacted view is unchanged."""
    stored_topic(call, "Compaction").compaction.cancel(call.now)
    return DONE


def compaction_stats(topic: PersistentTopic) -> dict[str, Any]:
    """Return the compaction statistics of a topic since startup, as in Pulsar."""
    record = topic.compaction.record
    return {
        "lastCompactionRemovedEventCount": record.last_removed if record else 0,
        "lastCompactionSucceedTimestamp": record.succeeded_at if record else 0,
        "lastCompactionFailedTimestamp": record.failed_at if record else 0,
        "lastCompactionDurationTimeInMills": record.last_duration if record else 0,
    }


_TOPIC = "{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("PUT", f"/admin/v2/{_TOPIC}/compaction", Permission.TENANT_ADMIN, compact),
    HttpRoute("GET", f"/admin/v2/{_TOPIC}/compaction", Permission.TENANT_ADMIN, compaction_status),
    HttpRoute("DELETE", f"/pulsarbox/v1/compaction/{_TOPIC}", Permission.TENANT_ADMIN, cancel),
)
