"""The rows of the settings table about the log that people read."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class LoggingSettings:
    """See ``settings.Settings``, of which these are a part."""

    logLevel: str = setting(
        "info",
        "Own setting. The least serious messages that are logged.",
        table="logging",
        choices=("debug", "info", "warning", "error"),
    )
    logFormat: str = setting(
        "text",
        "Own setting. Lines for people (text) or one JSON object a line (json).",
        table="logging",
        choices=("text", "json"),
    )
    logFileMaxMbytes: int = setting(
        64,
        "Own setting. Size at which the log file of a box in the background is cut: it becomes <name>.1, and a new one "
        "is begun. 0: never. The log on stderr of a box in the foreground is its starter's.",
        table="logging",
        unit="MiB",
        minimum=0,
    )
    logFileBackupCount: int = setting(
        4,
        "Own setting. How many older log files are kept, <name>.1 being the youngest.",
        table="logging",
        minimum=0,
        maximum=1000,
    )
    logSlowCommitMillis: int = setting(
        1000,
        "Own setting. A commit that takes longer is a warning, at most one in ten seconds, with how many others there "
        "were. 0: no such warnings.",
        table="logging",
        unit="milliseconds",
        minimum=0,
    )
