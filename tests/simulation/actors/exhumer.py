"""An operator that starts, pauses, resumes and cancels dead letter jobs, and their permitted effects.

The jobs replay to topics without clients. The log determines the result: each replayed message is acknowledged with its
replay. No message is replayed more often than it became a dead letter, and the job counters are exact.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from pulsarbox.broker.replay.job import Job, read_spec
from pulsarbox.broker.replay.job_registry import JobRegistry
from pulsarbox.broker.replay.job_states import PAUSED, RUNNING
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from tests.simulation.model.history import Violation
from tests.simulation.model.letters import RISEN_SUFFIX, grave_of

if TYPE_CHECKING:
    from tests.simulation.box import SimulatedBox
    from tests.simulation.model.model import Model

AGAIN_SECONDS = 0.15
NAME = "exhumer"
STEP_ENTRIES = 2
"""Entries per job step, small enough that a job over a few dozen entries needs several steps."""


class Exhumer:
    """The dead letter job operator, with its own random generator."""

    def __init__(self, box: SimulatedBox, model: Model, topics: tuple[str, ...], seed: int) -> None:
        self._box = box
        self._model = model
        self._graves = sorted({grave_of(topic) for topic in topics})
        self._random = Random(f"{seed} exhumer")
        self.stopped = False
        self.done = {"job": 0, "job paused": 0, "job cancelled": 0}

    def start(self) -> None:
        """Schedule the first action."""
        self._act()

    def _act(self) -> None:
        box, random = self._box, self._random
        if self.stopped:
            return
        box.world.after(random.expovariate(1 / AGAIN_SECONDS), self._act)
        self.look()
        if not box.running:
            return
        self._do(box.broker.jobs, random.choice(self._graves), random)
        box.turn()

    def _do(self, jobs: JobRegistry, grave: str, random: Random) -> None:
        now, dice = self._box.world.now, random.random()
        for run in jobs._runs.values():
            run.read_entries, run.turn_entries = 5, STEP_ENTRIES
        job = next(
            (each for each in jobs.all() if str(each.spec.topic) == grave and each.state in (RUNNING, PAUSED)), None
        )
        try:
            if job is None:
                wanted = f"seq >= {random.choice((0, 3, 10, 30))} or seq < {random.choice((0, 2))}"
                self._begin(jobs, grave, filter=wanted, rate=random.choice((0, 5, 20)))
            elif job.state == PAUSED:
                jobs.resume(job, now)
            elif dice < 0.2:
                jobs.pause(job, now)
                self.done["job paused"] += 1
            elif dice < 0.3:
                jobs.cancel(job, now)
                self.done["job cancelled"] += 1
        except PulsarBoxError as error:
            self._box.world.note("no job of", grave, str(error))

    def _begin(self, jobs: JobRegistry, grave: str, **asked: object) -> Job | None:
        box = self._box
        target = parse_topic(grave + RISEN_SUFFIX)
        if not box.broker.topics.exists(parse_topic(grave)):
            return None
        if not box.broker.topics.exists(target):
            box.broker.topics.create(target, box.world.now)
        topic = box.broker.topics.find(parse_topic(grave), box.world.now)
        assert isinstance(topic, PersistentTopic)
        if NAME not in topic.subscriptions:  # the other subscription retains all for the check
            topic.subscribe(NAME, earliest=True, properties={}, now=box.world.now)
        value = {"kind": "dlq-replay", "topic": grave, "subscription": NAME, "target": str(target), "maxReturned": 0}
        value["maxReturnedShare"] = 0
        job = jobs.create(read_spec(value | asked, None, box.world.now), box.world.now)
        box.world.note("job", job.number, "of", grave, asked)
        self.done["job"] += 1
        return job

    def calm_down(self) -> None:
        """Stop starting jobs."""
        self.stopped = True

    def counts(self) -> dict[str, int]:
        """Return the number of jobs, pauses, cancellations and replayed messages."""
        return self.done | {"risen": sum(map(len, self._model.letters.risen.values()))}

    # Checks

    def look(self) -> None:
        """Check that each replayed message in the log was a dead letter and was replayed at most once."""
        letters = self._model.letters
        for grave in self._graves:
            died = Counter(key for keys in letters.graves.get(grave, {}).values() for key in keys)
            risen = Counter(letters.risen.get(grave + RISEN_SUFFIX, []))
            self._check(risen <= died, "twice, or from nowhere:", sorted(risen - died)[:3])

    def judge(self) -> None:
        """Run a last job, and check that every dead letter is replayed exactly once and counted correctly."""
        box, world, letters = self._box, self._box.world, self._model.letters
        jobs = box.broker.jobs
        for job in jobs.all():
            if job.state in (RUNNING, PAUSED):
                jobs.cancel(job, world.now)
        box.turn()
        world.run(until=world.monotonic + 5)
        for grave in self._graves:
            last = self._begin(jobs, grave, rate=0)
            if last is None:
                continue
            box.turn()
            world.run(until=world.monotonic + 20)
            self._check(last.state == "done", "liveness: the last job of", grave, "is", last.state, last.error)
            died = Counter(key for keys in letters.graves.get(grave, {}).values() for key in keys)
            risen = Counter(letters.risen.get(grave + RISEN_SUFFIX, []))
            reasons = last.progress.counts.reasons
            self._check(risen == died, "not all that died is back in", grave, died - risen, risen - died, reasons)
            counted = sum(job.progress.counts.done for job in jobs.all() if str(job.spec.topic) == grave)
            if len(jobs.all()) < 100:
                self._check(counted == risen.total(), "jobs of", grave, "have counted", counted, "not", risen.total())

    def _check(self, holds: bool, *what: object) -> None:
        if not holds:
            raise Violation("risen", " ".join(map(str, what)))
