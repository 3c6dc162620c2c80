"""Settings of the [tls] table: TLS ports, certificates, and requirements on clients."""

from dataclasses import dataclass

from pulsarbox.config.setting import OFF, port_setting, setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class TlsSettings:
    """The [tls] part of ``Settings``."""

    brokerServicePortTls: int = port_setting(
        OFF,
        "TCP port of the Pulsar protocol over TLS (pulsar+ssl://), usually 6651. 0 takes any free port. Empty: "
        "disabled.",
        table="tls",
    )
    webServicePortTls: int = port_setting(
        OFF,
        "TCP port of the Admin REST API over TLS (HTTPS), usually 8443. 0 takes any free port. Empty: disabled.",
        table="tls",
    )
    tlsCertificateFilePath: str = setting(
        "",
        "PEM file with the certificate of the box, followed by the intermediate certificates of its chain.",
        table="tls",
    )
    tlsKeyFilePath: str = setting(
        "",
        "PEM file with the private key of the certificate, without a password.",
        table="tls",
    )
    tlsTrustCertsFilePath: str = setting(
        "",
        "PEM file with the certificate authorities for client certificates. Empty: clients are not asked for a "
        "certificate; Pulsar then trusts the system's authorities.",
        table="tls",
    )
    tlsRequireTrustedClientCertOnConnect: bool = setting(
        False,
        "Rejects clients without a certificate from the authorities in tlsTrustCertsFilePath. If false, a certificate "
        "is optional, but one that is presented must be valid.",
        table="tls",
    )
    tlsAllowInsecureConnection: bool = setting(
        False,
        "Accepted for compatibility. In Pulsar, clients with an untrusted certificate are accepted without the "
        "identity that it claims. Python's TLS does not support this: such clients are rejected, with a warning "
        "at startup.",
        table="tls",
    )
    tlsCertRefreshCheckDurationSec: int = setting(
        300,
        "Interval at which the TLS files are checked for changes, which apply to new connections. If a file is "
        "unusable, this is logged and the previous certificate stays in use. 0: never.",
        table="tls",
        unit="seconds",
        minimum=0,
    )
    tlsProtocols: str = setting(
        "",
        "TLS versions of both ports, comma-separated: TLSv1.3,TLSv1.2. All versions from the lowest to the highest "
        "are enabled. Empty: these two.",
        table="tls",
    )
    tlsCiphers: str = setting(
        "",
        "Cipher suites of both ports up to TLS 1.2, comma-separated, by their names in Java or OpenSSL. TLS 1.3 "
        "suites cannot be selected one by one: any of them in the list enables all, none disables TLS 1.3. Empty: the "
        "system's default.",
        table="tls",
    )
    tlsHandshakeTimeoutSeconds: int = setting(
        10,
        "Own setting. Maximum duration of the handshake on a TLS port.",
        table="tls",
        unit="seconds",
        minimum=1,
    )
