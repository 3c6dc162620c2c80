"""The rows of the settings table that are policies: what holds where neither topic nor namespace says otherwise."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
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
    delayedDeliveryEnabled: bool = setting(
        True,
        "Whether shared and key-shared subscriptions hold a message back until the time that its producer has named. "
        "Others never do. The policies of a namespace or topic win over this and the next two.",
        table="policies",
        dynamic=True,
    )
    delayedDeliveryTickTimeMillis: int = setting(
        1000,
        "How exactly: a message goes out up to a tick before its time, so that those of one tick go out together.",
        table="policies",
        unit="milliseconds",
        minimum=1,
        dynamic=True,
    )
    isDelayedDeliveryDeliverAtTimeStrict: bool = setting(
        False,
        "Whether no message goes out before its time, be it by less than a tick.",
        table="policies",
        dynamic=True,
    )
    delayedDeliveryMaxDelayInMillis: int = setting(
        0,
        "How long a message may be delayed: one with a longer delay is refused. 0: as long as its producer says.",
        table="policies",
        unit="milliseconds",
        minimum=0,
        dynamic=True,
    )
