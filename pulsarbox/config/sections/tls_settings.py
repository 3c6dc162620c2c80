"""The settings of TLS: the ports that speak it, certificates, and what is asked of clients."""

from dataclasses import dataclass

from pulsarbox.config.setting import OFF, port_setting, setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class TlsSettings:
    """Those of ``Settings`` that stand in the table [tls]."""

    brokerServicePortTls: int = port_setting(
        OFF,
        "TCP port of the Pulsar protocol over TLS (pulsar+ssl://), 6651 as a rule. 0 takes any free port. Empty: none.",
        table="tls",
    )
    webServicePortTls: int = port_setting(
        OFF,
        "TCP port of the Admin REST API over TLS (HTTPS), 8443 as a rule. 0 takes any free port. Empty: none.",
        table="tls",
    )
    tlsCertificateFilePath: str = setting(
        "",
        "The certificate of the box, a PEM file; those that lead to its authority follow in the same file.",
        table="tls",
    )
    tlsKeyFilePath: str = setting(
        "",
        "The key of that certificate, a PEM file without a password.",
        table="tls",
    )
    tlsTrustCertsFilePath: str = setting(
        "",
        "Authorities whose certificates are taken from clients, a PEM file. Empty: no client is asked for a "
        "certificate. Pulsar then takes those of the system's authorities.",
        table="tls",
    )
    tlsRequireTrustedClientCertOnConnect: bool = setting(
        False,
        "Whether a client without a certificate of these authorities is refused. If not, it may have none; one that is "
        "shown has to be good in any case.",
        table="tls",
    )
    tlsAllowInsecureConnection: bool = setting(
        False,
        "In Pulsar: whether clients with a certificate of another authority are let in, without being who it says. "
        "Python's TLS has no such thing: they are refused here, and the start log says so.",
        table="tls",
    )
    tlsCertRefreshCheckDurationSec: int = setting(
        300,
        "How often it is looked whether the files above have changed; then new connections get what is new. A file "
        "that cannot be used is told in the log, and what there was goes on. 0: never.",
        table="tls",
        unit="seconds",
        minimum=0,
    )
    tlsProtocols: str = setting(
        "",
        "Versions of TLS, with commas between: TLSv1.3,TLSv1.2. All between the lowest and the highest are taken. "
        "Empty: these two. For both ports.",
        table="tls",
    )
    tlsCiphers: str = setting(
        "",
        "Cipher suites up to TLS 1.2, with commas between, by their names in Java or in OpenSSL. The suites of TLS 1.3 "
        "cannot be told apart here: one of them in the list stands for all, none turns TLS 1.3 off. Empty: those of "
        "the system. For both ports.",
        table="tls",
    )
    tlsHandshakeTimeoutSeconds: int = setting(
        10,
        "Own setting. How long a client on a TLS port may take to be done with the handshake.",
        table="tls",
        unit="seconds",
        minimum=1,
    )
