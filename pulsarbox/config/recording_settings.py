"""The rows of the settings table about what is kept for those who look later: events and the history."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True)
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
