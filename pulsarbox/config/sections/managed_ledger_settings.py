"""The rows of the settings table about ledgers and the cache in front of them."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class ManagedLedgerSettings:
    """See ``settings.Settings``, of which these are a part."""

    managedLedgerMaxEntriesPerLedger: int = setting(
        50_000,
        "A ledger is closed and the next one begun at this number of entries.",
        table="managedLedger",
        minimum=1,
    )
    managedLedgerMaxSizePerLedgerMbytes: int = setting(
        2048,
        "The same at this size.",
        table="managedLedger",
        unit="MiB",
        minimum=1,
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = setting(
        240,
        "The same at this age. Only closed ledgers are trimmed and offloaded.",
        table="managedLedger",
        unit="minutes",
        minimum=1,
    )
    managedLedgerCacheSizeMB: int = setting(
        64,
        "Memory for the recent entries of all topics, from which consumers that keep up are served. Pulsar takes a "
        "fifth of the JVM's direct memory.",
        table="managedLedger",
        unit="MiB",
        minimum=1,
        dynamic=True,
    )
