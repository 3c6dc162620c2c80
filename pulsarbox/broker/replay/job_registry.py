"""Registry of replay jobs: creates, pauses, resumes and cancels them, and restarts running ones with the box."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.events import INFO, KINDS, WARNING, Events
from pulsarbox.broker.policies.kinds.dead_letter import DEFAULT_SUBSCRIPTION
from pulsarbox.broker.replay.job_claims import JobClaim, JobClaims
from pulsarbox.broker.replay.job_services import JobServices
from pulsarbox.broker.replay.job_states import CANCELLED, ENDED, PAUSED, RUNNING, TRIPPED
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import (
    Conflict,
    NotFound,
    Unprocessable,
)
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName, parse_topic, short_topic
from pulsarbox.storage.catalog import JOBS, job_key, job_state_key

if TYPE_CHECKING:
    from pulsarbox.broker.replay.grouping import Grouping
    from pulsarbox.broker.replay.job import Job, JobPart, Spec
    from pulsarbox.broker.replay.message_filter import Wanted
    from pulsarbox.broker.replay.runner import JobRun

log = logging.getLogger(__name__)

KEPT_MAX: Final = 100
"""Ended jobs that are kept, the newest ones."""
OPEN_MAX: Final = 100
"""Maximum number of jobs that have not ended."""
PARTS_MAX: Final = 1000
"""Partitions per job; all are visited in the turn that creates it."""


class JobRegistry:
    """All jobs of the box. The catalog rows are authoritative."""

    def __init__(self, services: JobServices, events: Events, claims: JobClaims) -> None:
        self._services = services
        self._catalog = services.catalog
        self._commits = services.commits
        self._topics = services.topics
        self._events = events
        self._claims = claims
        self._jobs: dict[int, Job] = {}
        self._runs: dict[int, JobRun] = {}
        """Runs of jobs that have not ended."""

    def start(self, now: Now) -> None:
        """Load all jobs when the box starts, and continue running ones."""
        catalog = self._catalog
        if not any(True for _ in catalog.items(JOBS)):
            return  # avoid imports: server.http.jobs, which creates jobs, imports these modules in a thread
        from pulsarbox.broker.replay.job import job_of

        for key, asked in list(catalog.items(JOBS)):
            number = int(key.rpartition("/")[2], 16)
            row = catalog.get(job_state_key(number))
            assert row is not None, f"job {number} has no state"
            job = self._jobs[number] = job_of(number, json.loads(asked), row)
            if job.state == RUNNING:
                self._run(job, now)

    def rest(self) -> None:
        """Halt all runs before the box stops; the next start continues them."""
        for run in self._runs.values():
            run.end()

    # Requests

    def create(self, spec: Spec, now: Now) -> Job:
        """Create a job and run it. Raises NotFound, Unprocessable, Conflict, NotAllowed."""
        from pulsarbox.broker.replay.job import Job, JobPart

        if sum(job.state not in ENDED for job in self._jobs.values()) >= OPEN_MAX:
            raise Conflict(f"{OPEN_MAX} jobs have not ended, which is the maximum: cancel some")
        names = self.parts_of(spec.topic)
        self._check_target(spec)
        topics = [self._topic(name, now) for name in names]
        spec = spec._replace(subscription=_chosen(spec, topics[0]))
        if not spec.dry_run:
            self._check_free(spec, topics)
        parts, total = [], 0
        for topic in topics:
            subscription = self._subscription(spec, topic, now)
            parts.append(JobPart(str(topic.name), topic.ledger.last_confirmed))
            total += _stored(topic) if subscription is None else subscription.cursor.backlog_messages
        job = Job(self._commits.new_id(), spec, parts, total)
        self._jobs[job.number] = job
        self._commits.put_row(job_key(job.number), job.asked_row)
        self.store_progress(job)
        self._report_state(job, f"starts, {total:,} message{'s' * (total != 1)}", now)
        self._run(job, now)
        return job

    def find(self, number: int) -> Job | None:
        """Return a job, None if it does not exist or is no longer kept."""
        return self._jobs.get(number)

    def get(self, number: int) -> Job:
        """Return a job. Raises NotFound."""
        job = self.find(number)
        if job is None:
            raise NotFound(f"Job {number} not found; only the last {KEPT_MAX} ended jobs are kept")
        return job

    def group(
        self,
        topics: list[PersistentTopic],
        subscription: str,
        limit: int,
        wanted: Wanted | None,
        done: Callable[[Grouping, Now], None],
    ) -> Grouping:
        """Return a grouping of the newest entries of some topics; see ``Grouping``."""
        from pulsarbox.broker.replay.grouping import Grouping

        return Grouping(topics, self._services, subscription, limit, wanted, done)

    def all(self) -> list[Job]:
        """Return all jobs, newest first."""
        return list(reversed(self._jobs.values()))

    def pause(self, job: Job, now: Now) -> None:
        """Pause a job until it is resumed, even across restarts. Raise Conflict if it is not running."""
        if job.state != RUNNING:
            raise Conflict(f"Job {job.number} is not running: it is {job.state}")
        self._stop(job, PAUSED, "", now)

    def resume(self, job: Job, now: Now) -> None:
        """Resume a paused or tripped job; returned messages of a tripped one are counted anew. Raises Conflict."""
        if job.state not in (PAUSED, TRIPPED):
            raise Conflict(f"Job {job.number} cannot be resumed: it is {job.state}")
        self._check_free(job.spec, [self._topic(self._name(part), now) for part in job.parts if self._is_there(part)])
        if job.state == TRIPPED:
            counts = job.progress.counts
            job.forgiven = counts.returned, counts.done
        job.state, job.error = RUNNING, ""
        self.store_progress(job)
        self._report_state(job, "resumes", now)
        self._run(job, now)

    def cancel(self, job: Job, now: Now) -> None:
        """Cancel a job; messages already moved stay moved. Raise Conflict if it has ended."""
        if job.state in ENDED:
            raise Conflict(f"Job {job.number} has ended: it is {job.state}")
        self._stop(job, CANCELLED, "", now)

    # Callbacks of runs

    def stopped(self, run: JobRun, state: str, why: str, now: Now) -> None:
        """Handle a job that has finished or cannot continue."""
        self._stop(run.job, state, why, now)

    def tripped(self, run: JobRun, why: str, now: Now) -> None:
        """Stop a job whose circuit breaker has tripped."""
        self._stop(run.job, TRIPPED, why, now)

    def store_progress(self, job: Job) -> None:
        """Store the progress of a job in the open batch."""
        if self._jobs.get(job.number) is job:
            self._commits.put_row(job_state_key(job.number), job.row)

    def _stop(self, job: Job, state: str, why: str, now: Now) -> None:
        job.state, job.error = state, why
        if state in ENDED:
            job.ended = now.wall
        run = self._runs.get(job.number)
        if run is not None:
            run.end()
            if state in ENDED:
                del self._runs[job.number]
        self._claims.release(job.number)
        self.store_progress(job)
        self._report_state(job, f"is {state}{f': {why}' if why else ''}", now)
        self._forget_old()

    def _report_state(self, job: Job, what: str, now: Now) -> None:
        """Log a state change and report it as an event; its kind has the state, so that events are not merged."""
        spec = job.spec
        dry = "dry run of a " if spec.dry_run else ""
        text = f"job {job.number}: {dry}{spec.kind.removeprefix('dlq-')} of {short_topic(spec.topic)} {what}"
        severity = WARNING if job.state == PAUSED and job.error else KINDS[f"job-{job.state}"].severity
        log.log(logging.INFO if severity == INFO else logging.WARNING, "%s", text)
        subject = f"{spec.topic} job {job.number}"
        about: dict[str, Any] = {"job": job.number, "topic": str(spec.topic), "state": job.state, "severity": severity}
        self._events.report(f"job-{job.state}", subject, text, now, **about)

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.state in ENDED]
        for job in ended[: max(0, len(ended) - KEPT_MAX)]:
            del self._jobs[job.number]
            for key in (job_key(job.number), job_state_key(job.number)):
                self._commits.put_row(key, None)

    def _run(self, job: Job, now: Now) -> None:
        if job.moves:
            for part in job.parts:
                self._claims.add(part.topic, job.spec.subscription, JobClaim(job.number, job.spec.kind))
        run = self._runs.get(job.number)
        if run is None:
            from pulsarbox.broker.replay.runner import JobRun

            run = self._runs[job.number] = JobRun(self, self._services, job)
        run.begin(now)

    def _check_free(self, spec: Spec, topics: list[PersistentTopic]) -> None:
        """Raise Conflict if another job or a consumer uses the subscription."""
        for topic in topics:
            claim = self._claims.find(str(topic.name), spec.subscription)
            if claim is not None:
                raise Conflict(f"Job {claim.number} is already using subscription {spec.subscription} of {topic.name}")
            subscription = topic.subscriptions.get(spec.subscription)
            if subscription is not None and subscription.consumers:
                raise Conflict(
                    f"Subscription {spec.subscription} of {topic.name} has {len(subscription.consumers)} consumers,"
                    " which would receive the same messages: close them, or choose another subscription"
                )

    # Topics and subscriptions

    def parts_of(self, name: TopicName) -> list[TopicName]:
        """Return the partitions of a topic, or the topic itself. Raises NotFound, Unprocessable."""
        count = self._topics.partitions(name)
        if not count and not self._topics.exists(name):
            raise NotFound(f"Topic {name} not found")
        if count > PARTS_MAX:
            raise Unprocessable(
                f"{name} has {count} partitions, a job takes at most {PARTS_MAX}: start one for each partition"
            )
        return [name.partition(i) for i in range(count)] or [name]

    def _check_target(self, spec: Spec) -> None:
        target = spec.target
        if target is None:
            return
        if target.base == spec.topic.base:
            raise Unprocessable(f"target: {target} is the source topic, choose another")
        if not self._topics.exists(target) and not self._topics.partitions(target):
            raise NotFound(f"Topic {target} not found")

    def _topic(self, name: TopicName, now: Now) -> PersistentTopic:
        topic = self._topics.open(name, now, create=False)
        assert isinstance(topic, PersistentTopic)
        return topic

    def _name(self, part: JobPart) -> TopicName:
        return parse_topic(part.topic)

    def _is_there(self, part: JobPart) -> bool:
        return self._topics.exists(self._name(part))

    def _subscription(self, spec: Spec, topic: PersistentTopic, now: Now) -> Subscription | None:
        """Return the job's subscription, creating it if missing; None if missing in a dry run."""
        found = topic.subscriptions.get(spec.subscription)
        if found is not None or spec.dry_run:
            return found
        topic.admission.check_subscription(len(topic.subscriptions))
        return topic.subscribe(spec.subscription, earliest=True, properties={}, now=now)


def _chosen(spec: Spec, topic: PersistentTopic) -> str:
    """Return the name of the subscription that a job acknowledges on. Raises Unprocessable, NotFound."""
    names = [
        each.name for each in topic.subscriptions.values() if each.durable and each.name != COMPACTION_SUBSCRIPTION
    ]
    if spec.subscription:
        if names and spec.subscription not in names:
            raise NotFound(f"Subscription {spec.subscription} not found for topic {topic.name}")
        return spec.subscription if names or not spec.dry_run else ""
    if len(names) > 1:
        raise Unprocessable(f"subscription: {topic.name} has several, choose one: {', '.join(sorted(names))}")
    if names:
        return names[0]
    return "" if spec.dry_run else DEFAULT_SUBSCRIPTION


def _stored(topic: PersistentTopic) -> int:
    return topic.stored.visible_messages()
