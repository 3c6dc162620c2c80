"""Jobs of the box that redeliver or drop dead letters. Not part of Pulsar's API.

Permission depends on the topics of a job: to consume from its topic with the subscription, and to produce to its
target. If messages return to their topics of origin, each topic is checked when a message is about to be published
there.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pulsarbox.broker.replay.runner  # noqa: F401  # imported early, so that the first job does not import it in a turn of the loop
from pulsarbox.broker.replay.grouping import LIMIT, LIMIT_MAX, Grouping
from pulsarbox.broker.replay.job import Job, read_spec
from pulsarbox.broker.replay.job_registry import JobRegistry
from pulsarbox.broker.replay.message_filter import parse_filter
from pulsarbox.broker.security.authorization import CONSUME
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NotFound, PulsarBoxError
from pulsarbox.names import PERSISTENT
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, persistent, require_namespace
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def create(call: HttpRequest) -> HttpResponse:
    """Create a job and return its state. It continues independently of the client, and across restarts."""
    spec = read_spec(call.json(), call.principal, call.now)
    require_namespace(call, spec.topic)
    return answer(call.broker.jobs.create(spec, call.now).as_json())


def rows(call: HttpRequest) -> list[dict[str, Any]]:
    """Return the jobs visible to the client, newest first: the rows of a table of jobs."""
    return [job.as_json() for job in call.broker.jobs.all() if _is_visible(call, job)]


def _is_visible(call: HttpRequest, job: Job) -> bool:
    authorization = call.broker.authorization
    try:
        authorization.require_on_topic(call.principal, job.spec.topic, (CONSUME,), job.spec.subscription)
    except PulsarBoxError:
        return False
    return True


def listing(call: HttpRequest) -> HttpResponse:
    """Return all visible jobs."""
    return answer(rows(call))


def get(call: HttpRequest) -> HttpResponse:
    """Return one job."""
    return answer(call.broker.jobs.get(call.number("id")).as_json())


def _acting(act: Callable[[JobRegistry, Job, Now], None]) -> Callable[[HttpRequest], HttpResponse]:
    def handler(call: HttpRequest) -> HttpResponse:
        jobs = call.broker.jobs
        job = jobs.get(call.number("id"))
        act(jobs, job, call.now)
        return answer(job.as_json())

    return handler


def groups(call: HttpRequest) -> DeferredAnswer:
    """Return groups of similar dead letters of a topic, largest first.

    ``subscription``: only messages that it has not acknowledged. ``limit``: the maximum number of newest entries to
    read. ``filter``: only matching messages.
    """
    name, limit = call.topic(PERSISTENT), _limit(call)
    wanted = parse_filter(call.query.get("filter", ""), call.now.wall)
    require_namespace(call, name)
    parts = call.broker.jobs.parts_of(name)
    topics = [persistent(find_topic(call, part, call.now), "Grouping") for part in parts]
    subscription = call.query.get("subscription", "")
    if subscription and not any(subscription in topic.subscriptions for topic in topics):
        raise NotFound(f"Subscription {subscription} not found for topic {name}")
    later = DeferredAnswer()
    told = partial(_told, later, str(name))
    call.broker.jobs.group(topics, subscription, limit, wanted, told).begin(call.now)
    return later


def _told(later: DeferredAnswer, name: str, found: Grouping, now: Now) -> None:
    ordered = sorted(found.groups.values(), key=lambda each: (-each.count, each.of.digest))
    later.complete(
        answer(
            {
                "topic": name,
                "entries": found.entries,
                "of": found.of,
                "bounded": found.entries < found.of,
                "groups": [each.as_json() for each in ordered],
            }
        )
    )


def _limit(call: HttpRequest) -> int:
    text = call.query.get("limit", str(LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= LIMIT_MAX):
        raise BadRequest(f"limit must be a number of entries from 1 to {LIMIT_MAX}, not {text[:40]!r}")
    return int(text)


_JOB: Final = "/pulsarbox/v1/jobs/{id}"

ROUTES = (
    HttpRoute("POST", "/pulsarbox/v1/jobs", Permission.JOB, create),
    HttpRoute("GET", "/pulsarbox/v1/jobs", Permission.NAMED, listing),
    HttpRoute("GET", _JOB, Permission.JOB, get),
    HttpRoute("POST", f"{_JOB}/pause", Permission.JOB, _acting(JobRegistry.pause)),
    HttpRoute("POST", f"{_JOB}/resume", Permission.JOB, _acting(JobRegistry.resume)),
    HttpRoute("POST", f"{_JOB}/cancel", Permission.JOB, _acting(JobRegistry.cancel)),
    HttpRoute("GET", "/pulsarbox/v1/dlq/{tenant}/{namespace}/{topic}/groups", Permission.TOPIC_CONSUMER, groups),
)
