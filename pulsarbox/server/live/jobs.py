"""The live view of jobs: what the box was asked to do with dead letters, and how far it is."""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.replay.job import Job
from pulsarbox.clock import Now
from pulsarbox.server.live.view import Column, Scope, View, kept

FIELDS: Final = (
    "id", "kind", "state", "topic", "subscription", "target", "filter", "rate", "dryRun", "total", "seen", "done",
    "skipped", "failed", "returned", "started", "ended", "by", "error",
)  # fmt: skip
"""Those of a job in the API."""


def things(broker: Broker, scope: Scope, now: Now) -> Iterator[Job]:
    """All jobs whose topics are shown; they are a hundred or two."""
    return (job for job in broker.core.jobs.all() if scope.holds(job.spec.topic.namespace))


def _told(name: str) -> Column:
    return kept(lambda job: job.as_json()[name])


def _share(job: Job) -> Any:
    return job.progress.counts.seen / job.total if job.total else None


COLUMNS: Final = {name: _told(name) for name in FIELDS} | {"share": kept(_share)}

JOBS: Final = View("jobs", COLUMNS, things, sort="id", searched=lambda job: (str(job.spec.topic), job.state, job.error))
