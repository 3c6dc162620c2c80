"""Consistency checks across settings."""

from typing import TYPE_CHECKING, Final

from pulsarbox.config.data_directories import check_directories, replicas
from pulsarbox.config.disk_share import disk_share
from pulsarbox.config.listeners import advertised, bound
from pulsarbox.config.setting import OFF, ConfigError, did_you_mean
from pulsarbox.config.tables import PORTS
from pulsarbox.config.tls_words import versions

if TYPE_CHECKING:
    from pulsarbox.config.settings import Settings

_REPLICA_BATCH_MAX: Final = 24 << 20
"""A batch has at most one message more than journalMaxBatchMbytes; both fit in a frame."""
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")


def check_together(settings: "Settings") -> None:
    """Raise ``ConfigError`` if settings contradict each other."""
    _check_ports(settings)
    if settings.journalMaxBatchMbytes > settings.journalVolumeSizeMbytes:
        limit = f"journalVolumeSizeMbytes, {settings.journalVolumeSizeMbytes}"
        raise ConfigError("", "journalMaxBatchMbytes", f"a batch must fit in a volume ({limit})")
    if settings.maxMessageSize > settings.journalVolumeSizeMbytes << 20:
        limit = f"journalVolumeSizeMbytes, {settings.journalVolumeSizeMbytes}"
        raise ConfigError("", "maxMessageSize", f"a message must fit in a volume ({limit})")
    _check_copies(settings)
    wrong = check_directories(settings) if settings.dataDirectories else ""
    if wrong:
        raise ConfigError("", "dataDirectories", wrong)
    _check_sizes_for_replicas(settings)
    if settings.preciseDispatcherFlowControl and settings.dispatchThrottlingOnBatchMessageEnabled:
        problem = (
            "cannot be combined with dispatchThrottlingOnBatchMessageEnabled, which counts a batch as one message: "
            "set one of them to false"
        )
        raise ConfigError("", "preciseDispatcherFlowControl", problem)
    if settings.authorizationEnabled and not settings.authenticationEnabled:
        problem = (
            "requires authenticationEnabled = true, because permissions are granted to authenticated roles: set both "
            "to true or both to false"
        )
        raise ConfigError("", "authorizationEnabled", problem)
    _check_listeners(settings)
    _check_allowed(settings)
    _check_tls(settings)
    try:
        disk_share(settings.unsubscribedRetentionSize)
    except ValueError as error:
        raise ConfigError("", "unsubscribedRetentionSize", str(error)) from None
    for name in settings.subscriptionTypesEnabled.split(","):
        if name.strip() not in SUBSCRIPTION_TYPES:
            hint = did_you_mean(name.strip(), SUBSCRIPTION_TYPES)
            problem = f'unknown subscription type "{name.strip()}": expected {", ".join(SUBSCRIPTION_TYPES)}{hint}'
            raise ConfigError("", "subscriptionTypesEnabled", problem)


def _check_sizes_for_replicas(settings: "Settings") -> None:
    """Raise ConfigError if a batch might not fit in a frame of the replica protocol."""
    if not replicas(settings):
        return
    sizes = {
        "journalMaxBatchMbytes": settings.journalMaxBatchMbytes << 20,
        "maxMessageSize": settings.maxMessageSize,
    }
    for name, size in sizes.items():
        if size > _REPLICA_BATCH_MAX:
            raise ConfigError("", name, f"must not exceed {_REPLICA_BATCH_MAX >> 20} MiB with a replica")


def _check_copies(settings: "Settings") -> None:
    """Raise ConfigError unless the ensemble is at least the write quorum, and that at least the ack quorum."""
    names = [f"managedLedgerDefault{word}" for word in ("EnsembleSize", "WriteQuorum", "AckQuorum")]
    for name, most in zip(names[1:], names, strict=False):
        if getattr(settings, name) > getattr(settings, most):
            raise ConfigError("", name, f"must not exceed {most}, {getattr(settings, most)}: set both")


def uses_tls(settings: "Settings") -> str:
    """Return a setting that enables TLS on a port; empty if none does."""
    tls = [name for name in PORTS[2:] if getattr(settings, name) != OFF]
    if any(address.scheme == "pulsar+ssl" for address in bound(settings.bindAddresses)):
        tls.append("bindAddresses")
    return tls[0] if tls else ""


def _check_ports(settings: "Settings") -> None:
    taken: dict[int, str] = {}
    for name in PORTS:
        port = getattr(settings, name)
        if port > 0 and taken.setdefault(port, name) != name:
            raise ConfigError("", name, f"port {port} is also set for {taken[port]}")
    for plain, tls in (PORTS[::2], PORTS[1::2]):
        if getattr(settings, plain) == OFF == getattr(settings, tls):
            raise ConfigError("", plain, f"is off, and so is {tls}: set at least one of them to a port")


def _check_tls(settings: "Settings") -> None:
    tls = uses_tls(settings)
    for name in ("tlsCertificateFilePath", "tlsKeyFilePath"):
        if tls and not getattr(settings, name):
            raise ConfigError("", name, f"is empty, but {tls} requires it: set it to a PEM file")
    if settings.tlsRequireTrustedClientCertOnConnect and not settings.tlsTrustCertsFilePath:
        problem = "requires tlsTrustCertsFilePath, a PEM file with the authorities of client certificates"
        raise ConfigError("", "tlsRequireTrustedClientCertOnConnect", problem)
    try:
        versions(settings.tlsProtocols)
    except ValueError as error:
        raise ConfigError("", "tlsProtocols", str(error)) from None


def _check_allowed(settings: "Settings") -> None:
    if not settings.httpAllowedHosts and not settings.httpAllowedOrigins:
        return
    from pulsarbox.config.origins import allowed_hosts, allowed_origins  # deferred: rarely configured

    key = "httpAllowedHosts"
    try:
        allowed_hosts(settings.httpAllowedHosts)
        key = "httpAllowedOrigins"
        allowed_origins(settings.httpAllowedOrigins)
    except ValueError as error:
        raise ConfigError("", key, str(error)) from None


def _check_listeners(settings: "Settings") -> None:
    key = "advertisedListeners"
    try:
        listeners = advertised(settings.advertisedListeners)
        key = "bindAddresses"
        used = {address.listener: key for address in bound(settings.bindAddresses)}
    except ValueError as error:
        raise ConfigError("", key, str(error)) from None
    if settings.internalListenerName:
        used[settings.internalListenerName] = "internalListenerName"
    for name, where in used.items():
        if name not in listeners:
            there = ", ".join(listeners) or "which is empty"
            raise ConfigError("", where, f"listener {name} is not in advertisedListeners ({there})")
