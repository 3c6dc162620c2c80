"""Windows of a rollup in Spark's state store: one value per topic, and one timer while it has open windows."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import Row

from pulsarbox.spark.pipelines.shipped.rollup_windows import Rolling, TaskCounts, TopicWindows

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

_STATE: Final = "windows"
_ROW: Final = Row("row")


class Added(StatefulProcessor):
    """Windows of a topic, in a worker: adds up the counts of the tasks, and outputs rows as JSON."""

    def __init__(self, how: Rolling) -> None:
        self._how = how

    def init(self, handle: "StatefulProcessorHandle") -> None:
        """See Spark's StatefulProcessor, as for the other methods."""
        self._handle = handle
        self._kept = handle.getValueState(_STATE, "kept binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: "TimerValues") -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Add the counts of a micro-batch."""
        windows, timer = self._load(key[0])
        given = [(row["part"], row["at"]) for row in rows]
        parts = (TaskCounts.of_json(json.loads(part)) for part, _ in given)
        found = windows.count(parts, max(at for _, at in given))
        self._store(windows, timer)
        return _rows(found)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: "TimerValues",  # noqa: N803 - Spark's name
        expiredTimerInfo: "ExpiredTimerInfo",  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        """Close the windows of an idle topic."""
        windows, _ = self._load(key[0])
        found = windows.expire(timerValues.getCurrentWatermarkInMs())
        self._store(windows, None)
        return _rows(found)

    def close(self) -> None:
        """Do nothing: no resources to close."""

    def _load(self, topic: str) -> tuple[TopicWindows, int | None]:
        """Return the windows, and the time of their timer."""
        found = self._kept.get()
        if not found or found[0] is None:
            return TopicWindows(self._how, topic), None
        timer, windows = json.loads(bytes(found[0]))
        return TopicWindows.of_json(self._how, topic, windows), timer

    def _store(self, windows: TopicWindows, before: int | None) -> None:
        """Store the windows, and replace their timer."""
        at = windows.expires_at
        if before is not None and before != at:
            self._handle.deleteTimer(before)
        if at is not None and before != at:
            self._handle.registerTimer(at)
        self._kept.update((json.dumps([at, windows.as_json()]).encode(),))


def _rows(found: Iterable[dict[str, Any]]) -> Iterator[Row]:
    return iter([_ROW(json.dumps(each)) for each in found])
