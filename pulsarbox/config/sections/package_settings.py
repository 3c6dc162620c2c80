"""Settings of the [packages] table: files with the code of functions, sinks and sources."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class PackageSettings:
    """The [packages] part of ``Settings``."""

    enablePackagesManagement: bool = setting(
        True,
        "Stores packages, which the Admin API uploads and downloads; their code never runs in a box. If false, these "
        "requests are rejected with 503. Pulsar's default is false in broker.conf, and true in its standalone broker.",
        table="packages",
        dynamic=True,
    )
    maxPackageSizeMbytes: int = setting(
        100,
        "Own setting. Maximum size of a package; a larger one is rejected with 413.",
        table="packages",
        unit="MiB",
        minimum=1,
        maximum=1 << 20,
        dynamic=True,
    )
    maxPackagesTotalMbytes: int = setting(
        1024,
        "Own setting. Maximum size of all packages together; beyond it, uploads are rejected with 413.",
        table="packages",
        unit="MiB",
        minimum=1,
        maximum=1 << 30,
        dynamic=True,
    )
