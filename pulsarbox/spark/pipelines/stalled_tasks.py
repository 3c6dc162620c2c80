"""Detection of stalled tasks: if a cluster's workers are gone or full, tasks wait, and Spark reports it only in its
log. Does not import pyspark."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import StatusTracker

SAY_SECONDS: Final = 8.0
AGAIN_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 2.0


class StalledTasks:
    """Periodic check whether tasks wait while none is running."""

    def __init__(self, tracker: "StatusTracker", master: str) -> None:
        self._tracker = tracker
        self._master = master
        self._since: float | None = None
        self._message_due = 0.0
        self._next = 0.0

    def message_at(self, now: float) -> str:
        """Return the message to print at a monotonic time; empty if none. Repeated each minute while tasks wait."""
        if now < self._next:
            return ""
        self._next = now + LOOK_SECONDS
        if not _waits(self._tracker):
            self._since = None
            return ""
        if self._since is None:
            self._since, self._message_due = now, now + SAY_SECONDS
        if now < self._message_due:
            return ""
        self._message_due = now + AGAIN_SECONDS
        return (
            f"Spark's tasks have been waiting for {now - self._since:.0f} s: {self._master} has no worker, or none "
            "with enough memory and a free core. Start one (Spark's sbin/start-worker.sh), or request less (--conf "
            "spark.executor.memory=512m); Ctrl-C ends the run"
        )


def _waits(tracker: "StatusTracker") -> bool:
    stages = [found for each in tracker.getActiveStageIds() if (found := tracker.getStageInfo(each)) is not None]
    return bool(stages) and not any(each.numActiveTasks for each in stages)
