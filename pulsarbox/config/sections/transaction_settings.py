"""The rows of the settings table that are about transactions."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class TransactionSettings:
    """See ``settings.Settings``, of which these are a part."""

    transactionCoordinatorEnabled: bool = setting(
        True,
        "Whether clients may use transactions. With Pulsar they may not unless this is turned on, because they cost it "
        "system topics and markers; here who uses none pays for none.",
        table="transactions",
    )
    maxActiveTransactionsPerCoordinator: int = setting(
        100_000,
        "How many transactions may be open at a time; each takes some memory until it ends. 0: any number.",
        table="transactions",
        minimum=0,
        dynamic=True,
    )
    transactionMaxTimeoutSeconds: int = setting(
        86_400,
        "The longest time-out that a client may ask for; who asks for none gets this one. An open transaction holds "
        "back the readers of its topics. Not in Pulsar, which has no limit.",
        table="transactions",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
