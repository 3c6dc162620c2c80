"""Settings of the [recording] table: stored events and history."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class RecordingSettings:
    """The [recording] part of ``Settings``."""

    eventsMaxMbytes: int = setting(
        8,
        "Own setting. Space for events (`pulsarbox events`) in the data directory, where they survive restarts; the "
        "oldest are removed first. 0: events are not stored, and only the newest are available, from memory.",
        table="recording",
        unit="MiB",
        minimum=0,
        maximum=1024,
    )
    historyMaxMbytes: int = setting(
        64,
        "Own setting. Space for the history in the data directory: recorded live views, which `at=` shows at a "
        "past time. The oldest part is removed first. 0: nothing is recorded.",
        table="recording",
        unit="MiB",
        minimum=0,
        maximum=65_536,
    )
    historyMaxDays: int = setting(
        7,
        "Own setting. Maximum age of the history. Records older than six hours are thinned out to one a minute, older "
        "than two days to one in ten minutes.",
        table="recording",
        unit="days",
        minimum=1,
        maximum=3650,
    )
    historyIntervalSeconds: int = setting(
        10,
        "Own setting. Interval at which live views are recorded; longer if recording would take more than some "
        "thousandths of a core.",
        table="recording",
        unit="seconds",
        minimum=1,
        maximum=3600,
    )
    historyRows: int = setting(
        200,
        "Own setting. Number of rows recorded of each live view: the first ones in its default order.",
        table="recording",
        minimum=1,
        maximum=10_000,
    )
