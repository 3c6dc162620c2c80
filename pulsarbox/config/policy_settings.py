"""The rows of the settings table that are policies: what holds where neither topic nor namespace says otherwise."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True)
class PolicySettings:
    """See ``settings.Settings``, of which these are a part."""

    defaultRetentionTimeInMinutes: int = setting(
        0,
        "How long messages that all subscriptions have acknowledged are kept; -1: for ever. A namespace's retention "
        "policy wins over it.",
        table="policies",
        unit="minutes",
        minimum=-1,
        dynamic=True,
    )
    defaultRetentionSizeInMB: int = setting(
        0,
        "How large a topic may be before such messages are removed; -1: any size. Only whole ledgers go, and never "
        "the one that grows.",
        table="policies",
        unit="MiB",
        minimum=-1,
        dynamic=True,
    )
