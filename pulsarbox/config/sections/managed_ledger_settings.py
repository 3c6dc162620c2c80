"""Settings of the [managedLedger] table: ledger rollover and the entry cache."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class ManagedLedgerSettings:
    """The part of ``Settings`` on ledgers, in the table [managedLedger]."""

    managedLedgerMaxEntriesPerLedger: int = setting(
        50_000,
        "Number of entries at which a ledger is closed and a new one is opened.",
        table="managedLedger",
        minimum=1,
    )
    managedLedgerMaxSizePerLedgerMbytes: int = setting(
        2048,
        "Size at which a ledger is closed and a new one is opened.",
        table="managedLedger",
        unit="MiB",
        minimum=1,
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = setting(
        240,
        "Age at which a ledger is closed and a new one is opened. Only closed ledgers are trimmed and offloaded.",
        table="managedLedger",
        unit="minutes",
        minimum=1,
    )
    managedLedgerCacheSizeMB: int = setting(
        64,
        "Memory for recent entries of all topics, from which consumers that keep up are served. Pulsar uses a fifth "
        "of the JVM's direct memory.",
        table="managedLedger",
        unit="MiB",
        minimum=1,
        dynamic=True,
    )
    managedLedgerDefaultEnsembleSize: int = setting(
        1,
        "Number of data directories over which the copies of a topic's messages are spread, unless a persistence "
        "policy sets it. Has no effect with one data directory.",
        table="managedLedger",
        minimum=1,
        maximum=5,
    )
    managedLedgerDefaultWriteQuorum: int = setting(
        1,
        "Number of copies of each message, each in another data directory, unless a persistence policy sets it. Also "
        "applies to acknowledgements and metadata. Has no effect with one data directory.",
        table="managedLedger",
        minimum=1,
        maximum=5,
    )
    managedLedgerDefaultAckQuorum: int = setting(
        1,
        "Number of copies on disk that a producer's receipt waits for, unless a persistence policy sets it. "
        "Acknowledgements and metadata wait for as many if enough data directories can be written.",
        table="managedLedger",
        minimum=1,
        maximum=5,
    )
