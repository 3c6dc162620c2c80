"""Settings of the [ensemble] table: several data directories, and copies of the messages in them."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class EnsembleSettings:
    """The [ensemble] part of ``Settings``."""

    dataDirectories: str = setting(
        "",
        "Own setting. Data directories that store copies of the data, as the bookies of a Pulsar cluster do, separated "
        "by commas; preferably on separate disks. replica://HOST:PORT and replica+ssl://HOST:PORT are directories on "
        "other machines, served by `pulsarbox storage serve DIR`. Replaces dataDirectory: its contents are taken over "
        "if it is one of them. The persistence policies and the settings managedLedgerDefault...Quorum set the number "
        "of copies. Empty: only dataDirectory.",
        table="ensemble",
    )
    journalSegmentMbytes: int = setting(
        64,
        "Own setting. Amount of the journal after which the next of the data directories are written, if the ensemble "
        "of a topic is larger than its write quorum.",
        table="ensemble",
        unit="MiB",
        minimum=1,
    )
    ensembleLateSeconds: int = setting(
        5,
        "Own setting. Time after which a data directory that has not completed a write is no longer used. Publishing "
        "that waits for its copy continues with another one.",
        table="ensemble",
        unit="seconds",
        minimum=1,
        maximum=3600,
    )
    ensembleRepairMbytesPerSecond: int = setting(
        32,
        "Own setting. Maximum rate at which missing copies are written; 0: no limit.",
        table="ensemble",
        unit="MiB a second",
        minimum=0,
    )
    ensembleScrubMbytesPerSecond: int = setting(
        8,
        "Own setting. Maximum rate at which stored entries are read to verify their checksums; 0: no limit.",
        table="ensemble",
        unit="MiB a second",
        minimum=0,
    )
    ensembleScrubDays: int = setting(
        7,
        "Own setting. Interval at which all entries of a data directory are verified; 0: never.",
        table="ensemble",
        unit="days",
        minimum=0,
        maximum=365,
    )
    ensembleReplicaSecretFile: str = setting(
        "",
        "Own setting. File with the secret that the box and its replicas share, at least 16 bytes; both sides prove "
        "that they know it, and never send it. Required if dataDirectories contains a replica.",
        table="ensemble",
    )
    ensembleReplicaTrustCertsFilePath: str = setting(
        "",
        "Own setting. PEM file with the certificate authorities of replicas with TLS (replica+ssl://). Empty: those of "
        "the system.",
        table="ensemble",
    )
