"""Jobs that publish rows in parts: splitting, recorded progress, and permission to resume."""

import errno
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.pipelines.shipped import one_off_session, publish_job, publishing
from pulsarbox.spark.pipelines.shipped.publish_job import PARTITION_BITS, JobError, PublishJob, RowSpan, spans
from pulsarbox.spark.pipelines.stalled_tasks import StalledTasks

ASKED = {"from": "a.csv"}


@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 12))
def test_every_row_is_in_one_part(counts: list[int], size: int) -> None:
    found = spans(enumerate(counts), size)
    rows = [(partition << PARTITION_BITS) + row for partition, count in enumerate(counts) for row in range(count)]
    cut = [[row for row in rows if span.first <= row < span.end] for span in found]
    assert [row for part in cut for row in part] == rows
    assert [len(part) for part in cut] == [span.rows for span in found]
    assert all(span.rows == size for span in found[:-1])


def test_a_job_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    with PublishJob(tmp_path / "j", "j", ASKED) as job:
        job.progress.spans = spans([(0, 5)], 2)
        job.save()
        seen = []
        for number, _ in job.parts():
            seen.append(number)
            if number == 1:  # killed while publishing this part
                break
    with PublishJob(tmp_path / "j", "j", ASKED) as job:
        token = job.progress.token
        assert (job.progress.published, job.progress.rows_published, job.progress.rows) == (1, 2, 5)
        assert [(number, span) for number, span in job.parts()] == [(1, RowSpan(2, 4, 2)), (2, RowSpan(4, 5, 1))]
    with PublishJob(tmp_path / "j", "j", ASKED) as job:
        assert (job.progress.published, job.progress.token) == (3, token)
        job.end(lambda path: None)
        assert list(job.parts()) == []


def test_a_job_is_what_its_rows_were_put_aside_for(tmp_path: Path) -> None:
    PublishJob(tmp_path, "j", ASKED | {"from": "no-such.csv"}).close()
    with PublishJob(tmp_path, "j", ASKED) as job:  # a wrong name may be corrected
        job.progress.spans = []
        job.save()
    for asked, before in (({"from": "b.csv"}, "from 'a.csv'"), (ASKED | {"rate": "1"}, "no rate")):
        with pytest.raises(JobError, match=f"was started with {before}.*--job"):
            PublishJob(tmp_path, "j", asked)
    PublishJob(tmp_path, "j", ASKED).close()


def test_nobody_works_on_a_job_that_is_at_work(tmp_path: Path) -> None:
    with PublishJob(tmp_path, "j", ASKED), pytest.raises(JobError, match="is already running"):
        PublishJob(tmp_path, "j", ASKED)


def test_one_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{")
    with pytest.raises(JobError, match="cannot be read"):
        PublishJob(tmp_path, "j", ASKED)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JobError, match=r"cannot be used: .*--state"):
        PublishJob(tmp_path / "file" / "j", "j", ASKED)


def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(publish_job, "put", full)
    with pytest.raises(PulsarBoxError, match=r"job.json cannot be written: No space left on device; fix that"):
        PublishJob(tmp_path, "j", ASKED)


def test_what_somebody_was_killed_over_goes_when_the_job_is_asked_for_again(tmp_path: Path) -> None:
    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    with PublishJob(tmp_path, "j", ASKED) as job:
        job.rows_at.mkdir()
        with pytest.raises(KeyboardInterrupt):
            job.end(killed)
    with PublishJob(tmp_path, "j", ASKED) as job:
        assert job.progress.ended
        job.end(publishing.remove)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["job.json", "job.lock"]


class Tracker:
    """Substitute for Spark's status tracker: the number of tasks in a stage, and of completed tasks."""

    def __init__(self, *stages: tuple[int, int] | None) -> None:
        self._stages = stages

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 - Spark's name
        return list(range(len(self._stages)))

    def getStageInfo(self, number: int) -> Any:  # noqa: N802 - Spark's name
        found = self._stages[number]
        if found is None:
            return None
        return SimpleNamespace(numTasks=found[0], numCompletedTasks=found[1], numActiveTasks=int(found[1] > 0))


def test_how_a_long_job_goes_is_said_now_and_then() -> None:
    at_work: Any = Tracker((40, 12), None, (2, 0))
    waiting: Any = Tracker()
    assert one_off_session.tasks_of(at_work) == (12, 42)
    assert one_off_session.tasks_of(waiting) == (0, 0)
    said: list[str] = []
    twice = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if len(said) == 2:
            twice.set()

    with one_off_session.telling(at_work, say, "local[2]", seconds=0.001):
        assert twice.wait(60)
    assert set(said) == {"Spark is working: 12 of 42 tasks done"}
    assert not [each for each in threading.enumerate() if each.name == "pulsarbox tells"]


def test_a_drawn_bar_replaces_the_lines() -> None:
    at_work: Any = Tracker((40, 12), None, (2, 0))
    drawn: list[tuple[int, int]] = []
    said: list[str] = []
    twice = threading.Event()

    def draw(done: int, total: int) -> bool:
        drawn.append((done, total))
        if len(drawn) == 2:
            twice.set()
        return True

    with one_off_session.telling(at_work, said.append, "local[2]", seconds=0.001, draw=draw):
        assert twice.wait(60)
    assert set(drawn) == {(12, 42)} and not said


def test_tasks_that_nobody_works_on_are_told_of() -> None:
    looking = StalledTasks(Tracker((3, 0), None), "spark://h:7077")  # type: ignore[arg-type]
    said = [looking.message_at(float(second)) for second in range(90)]
    told = {second: text for second, text in enumerate(said) if text}
    assert list(told) == [8, 68]
    assert told[8].startswith("Spark's tasks have been waiting for 8 s: spark://h:7077 has no worker")
    assert "sbin/start-worker.sh" in told[8]
    for busy in (Tracker(), Tracker((3, 0), (4, 1))):
        looking = StalledTasks(busy, "spark://h:7077")  # type: ignore[arg-type]
        assert not any(looking.message_at(float(second)) for second in range(90))
