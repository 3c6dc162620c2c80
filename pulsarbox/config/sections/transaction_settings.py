"""Settings of the [transactions] table."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class TransactionSettings:
    """The [transactions] part of ``Settings``."""

    transactionCoordinatorEnabled: bool = setting(
        True,
        "Enables transactions. Pulsar disables them by default because they need system topics and markers; here they "
        "have no cost unless they are used.",
        table="transactions",
    )
    maxActiveTransactionsPerCoordinator: int = setting(
        100_000,
        "Maximum number of open transactions, each of which takes some memory until it ends. 0: no limit.",
        table="transactions",
        minimum=0,
        dynamic=True,
    )
    transactionMaxTimeoutSeconds: int = setting(
        86_400,
        "Own setting. Maximum timeout of a transaction, and the timeout of one without its own. An open transaction "
        "delays the consumers of its topics. Pulsar has no limit.",
        table="transactions",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
