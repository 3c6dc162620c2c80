"""Settings of the [policies] table on retention and delayed delivery: defaults for topics without a policy."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class PolicySettings:
    """The part of ``Settings`` on retention and delayed delivery, in the table [policies]."""

    defaultRetentionTimeInMinutes: int = setting(
        0,
        "Time for which messages are kept after all subscriptions have acknowledged them; -1: forever. A retention "
        "policy of the namespace or topic takes precedence.",
        table="policies",
        unit="minutes",
        minimum=-1,
        dynamic=True,
    )
    defaultRetentionSizeInMB: int = setting(
        0,
        "Size of a topic above which messages that all subscriptions have acknowledged are removed; -1: no limit. "
        "Only whole ledgers are removed, and never the current one.",
        table="policies",
        unit="MiB",
        minimum=-1,
        dynamic=True,
    )
    delayedDeliveryEnabled: bool = setting(
        True,
        "Enables delayed delivery: shared and key-shared subscriptions hold a message until its delivery time. Other "
        "subscription types ignore it. Policies of the namespace or topic take precedence over this setting, "
        "delayedDeliveryTickTimeMillis and delayedDeliveryMaxDelayInMillis.",
        table="policies",
        dynamic=True,
    )
    delayedDeliveryTickTimeMillis: int = setting(
        1000,
        "Precision of delayed delivery: a message may be delivered up to one tick early, so that messages of a tick "
        "are delivered together.",
        table="policies",
        unit="milliseconds",
        minimum=1,
        dynamic=True,
    )
    isDelayedDeliveryDeliverAtTimeStrict: bool = setting(
        False,
        "Never delivers a message before its delivery time, not even by less than a tick.",
        table="policies",
        dynamic=True,
    )
    delayedDeliveryMaxDelayInMillis: int = setting(
        0,
        "Maximum delay of a message; messages with a longer delay are rejected. 0: no limit.",
        table="policies",
        unit="milliseconds",
        minimum=0,
        dynamic=True,
    )
