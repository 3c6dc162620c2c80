"""Settings of the [logging] table."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class LoggingSettings:
    """The [logging] part of ``Settings``."""

    logLevel: str = setting(
        "info",
        "Own setting. Minimum severity of logged messages.",
        table="logging",
        choices=("debug", "info", "warning", "error"),
    )
    logFormat: str = setting(
        "text",
        "Own setting. Log format: plain lines (text), or one JSON object on each line (json).",
        table="logging",
        choices=("text", "json"),
    )
    logFileMaxMbytes: int = setting(
        64,
        "Own setting. Size at which the log file of a background box is rotated: it is renamed to <name>.1 and a new "
        "one is started. 0: never. A foreground box logs to stderr and does not rotate.",
        table="logging",
        unit="MiB",
        minimum=0,
    )
    logFileBackupCount: int = setting(
        4,
        "Own setting. Number of rotated log files to keep; <name>.1 is the newest.",
        table="logging",
        minimum=0,
        maximum=1000,
    )
    logSlowCommitMillis: int = setting(
        1000,
        "Own setting. Commits that take longer are logged as warnings, at most once every ten seconds with the number "
        "of others. 0: no such warnings.",
        table="logging",
        unit="milliseconds",
        minimum=0,
    )
