"""The rows of the settings table about what is kept for those who look later: events and the history."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class RecordingSettings:
    """See ``settings.Settings``, of which these are a part."""

    eventsMaxMbytes: int = setting(
        8,
        "Own setting. How much of the events (`pulsarbox events`) is kept in the data directory, over restarts; the "
        "oldest go first. 0: none, then only the newest are known, in memory.",
        table="recording",
        unit="MiB",
        minimum=0,
        maximum=1024,
    )
    historyMaxMbytes: int = setting(
        64,
        "Own setting. How much of the history is kept in the data directory: what the live views have shown, for those "
        "who look at last night (`at=`). The oldest goes first. 0: none is recorded.",
        table="recording",
        unit="MiB",
        minimum=0,
        maximum=65_536,
    )
    historyMaxDays: int = setting(
        7,
        "Own setting. How old the history may become. What is older than six hours is kept once a minute, older than "
        "two days once in ten minutes.",
        table="recording",
        unit="days",
        minimum=1,
        maximum=3650,
    )
    historyIntervalSeconds: int = setting(
        10,
        "Own setting. How often the views are recorded; less often where there is so much that it would take more than "
        "some thousandths of a core.",
        table="recording",
        unit="seconds",
        minimum=1,
        maximum=3600,
    )
    historyRows: int = setting(
        200,
        "Own setting. How many rows of each view are recorded: the first, by the order that it has by itself.",
        table="recording",
        minimum=1,
        maximum=10_000,
    )
