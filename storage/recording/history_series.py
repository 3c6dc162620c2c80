"""The overview at a time in recorded history: totals, and their course until then."""

import json
from itertools import islice
from typing import Any, Final, NamedTuple

from pulsarbox.storage.recording.history_files import History

FRAMES: Final = 60
"""Values of a series, at most."""
SPAN_MS: Final = 600_000
"""Milliseconds that a series covers."""
_NAMES: Final = ("publishRate", "deliverRate", "backlog", "p99")
_STEP_SECONDS: Final = 1.0
"""Seconds between the values of a series that has only one."""


class RecordedOverview(NamedTuple):
    """The last frame at or before a time, and those of the minutes before it."""

    time: int
    """Milliseconds since 1970."""
    totals: dict[str, Any]
    series: dict[str, list[Any]]
    """Values by the name of a total, the newest last."""
    step: float
    """Seconds between two values."""


def overview_at(found: History, at: int) -> RecordedOverview | None:
    """Return the overview at a time (ms since 1970), None if nothing was recorded until then."""
    frames = [frame for frame in islice(found.before(at), FRAMES) if frame.time > at - SPAN_MS]
    last = frames[0] if frames else found.at(at)
    if last is None:
        return None
    frames = frames[::-1] or [last]
    totals = [json.loads(frame.head) for frame in frames]
    step = (last.time - frames[0].time) / 1000 / (len(frames) - 1) if len(frames) > 1 else _STEP_SECONDS
    series = {name: [each.get(name) for each in totals] for name in _NAMES}
    return RecordedOverview(last.time, totals[-1], series, step)
