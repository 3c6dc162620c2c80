"""The live view of jobs: operations on dead letters, and their progress."""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.replay.job import Job
from pulsarbox.clock import Now
from pulsarbox.server.live.view import LiveView, ViewColumn, ViewScope, kept

FIELDS: Final = (
    "id", "kind", "state", "topic", "subscription", "target", "filter", "rate", "dryRun", "total", "seen", "done",
    "skipped", "failed", "returned", "started", "ended", "by", "error",
)  # fmt: skip
"""The fields of a job in the API."""


def things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[Job]:
    """Return all jobs whose topics are in scope; there are at most a few hundred."""
    return (job for job in broker.jobs.all() if scope.holds(job.spec.topic.namespace))


def _told(name: str) -> ViewColumn:
    return kept(lambda job: job.as_json()[name])


def _share(job: Job) -> Any:
    return job.progress.counts.seen / job.total if job.total else None


COLUMNS: Final = {name: _told(name) for name in FIELDS} | {"share": kept(_share)}

JOBS: Final = LiveView(
    "jobs", COLUMNS, things, sort="id", searched=lambda job: (str(job.spec.topic), job.state, job.error)
)
