"""One-off Spark sessions, with errors as one line."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.options import READ, OptionError, parse
from pulsarbox.spark.pipelines.declaration import PATTERN, PipelineError
from pulsarbox.spark.pipelines.failure_causes import innermost_exception
from pulsarbox.spark.pipelines.run_options import RunOptions
from pulsarbox.spark.pipelines.session import session, stop
from pulsarbox.spark.pipelines.spark_log import LOG
from pulsarbox.spark.pipelines.stalled_tasks import StalledTasks
from pulsarbox.spark.source.topic_selection import topics

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

TELL_SECONDS: Final = 10.0
DRAW_SECONDS: Final = 0.5
JOB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")


class SparkFailedError(PulsarBoxError):
    """Spark failed; the message says why."""


@contextmanager
def spark_of(
    running: RunOptions,
    name: str,
    say: Callable[[str], None],
    *,
    fast: bool = False,
    draw: Callable[[int, int], bool] = lambda _done, _total: False,
) -> "Iterator[SparkSession]":
    """Provide a session that is stopped on exit; ``say`` and ``draw`` receive progress, see ``telling``.

    Raises SparkFailedError for Spark's errors.
    """
    say(f"starting Spark ({running.master})")
    spark = session(running.master, f"pulsarbox {name}", running.settings, fast, running.directory / name / LOG)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with telling(spark.sparkContext.statusTracker(), say, running.master, draw=draw):
            yield spark
    except (PySparkException, Py4JError, OptionError) as error:
        raise SparkFailedError(innermost_exception(str(error), "")) from error
    finally:
        stop(spark)


@contextmanager
def telling(
    tracker: "StatusTracker",
    say: Callable[[str], None],
    master: str,
    seconds: float = TELL_SECONDS,
    draw: Callable[[int, int], bool] = lambda _done, _total: False,
) -> Iterator[None]:
    """Report the completed Spark tasks and all tasks of the active stages within the context, and stalled tasks.

    ``draw`` receives the numbers every DRAW_SECONDS. While it returns False, as it shows nothing, ``say`` receives a
    line every ``seconds``.
    """
    over = threading.Event()
    idle = StalledTasks(tracker, master)

    def tell() -> None:
        at = time.monotonic() + seconds
        while not over.wait(min(seconds, DRAW_SECONDS)):
            now = time.monotonic()
            with suppress(Exception):  # Spark may be ending
                if text := idle.message_at(now):
                    say(text)
                done, tasks = tasks_of(tracker)
                if tasks and not draw(done, tasks) and now >= at:
                    say(f"Spark is working: {done:,} of {tasks:,} tasks done")
            at = at if now < at else now + seconds

    thread = threading.Thread(target=tell, name="pulsarbox tells", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def tasks_of(tracker: "StatusTracker") -> tuple[int, int]:
    """Return the completed tasks and all tasks of the active stages."""
    stages = [found for each in tracker.getActiveStageIds() if (found := tracker.getStageInfo(each)) is not None]
    return sum(each.numCompletedTasks for each in stages), sum(each.numTasks for each in stages)


def selected(topics: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Return topics, or one ``regex:PATTERN``, as options of the format. Raises PipelineError, InvalidTopicName."""
    if not topics:
        raise PipelineError("name a topic, or a pattern: 'regex:public/default/orders-.*'")
    if len(topics) == 1 and topics[0].startswith(PATTERN):
        return {"topicsPattern": topics[0].removeprefix(PATTERN)}
    if any(each.startswith(PATTERN) for each in topics):
        raise PipelineError("expected one pattern or topics, not both")
    return {"topics": ",".join(str(parse_topic(each)) for each in topics)}


def topics_of(box: Mapping[str, str], select: Mapping[str, str]) -> list[str]:
    """Return the topics that ``select`` means, each partition separately.

    Raises NoTopicError, OptionError and the broker's errors.
    """
    options = parse({**box, **select}, READ)
    with Service(reach(options)) as service:
        return topics(service, options)


def namespace_of(select: Mapping[str, str]) -> str:
    """Return the namespace of the first topic, or of the pattern."""
    if "topics" in select:
        return parse_topic(select["topics"].partition(",")[0]).namespace
    pattern = select["topicsPattern"].removeprefix("persistent://")
    return "/".join(pattern.split("/")[:2]) if pattern.count("/") > 1 else "public/default"


def job_named(name: str) -> str:
    """Return a valid job name. Raises PipelineError for others."""
    if not JOB.fullmatch(name):
        raise PipelineError(f"--job {name!r}: use letters, digits, - _ and . (at most 80), such as orders-2026-11-22")
    return name
