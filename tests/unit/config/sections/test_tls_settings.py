"""TLS settings: required combinations, disabled ports, Java's cipher suite names."""

import ssl
from typing import Any

import pytest

from pulsarbox.config import ConfigError, Settings, load, settings_by_name
from pulsarbox.config.setting import OFF
from pulsarbox.config.tls_words import ciphers, openssl_name, versions

FILES = {"tlsCertificateFilePath": "c.pem", "tlsKeyFilePath": "k.pem"}


@pytest.mark.parametrize(
    ("values", "key", "words"),
    [
        ({"brokerServicePortTls": 6651}, "tlsCertificateFilePath", "is empty, but brokerServicePortTls requires it"),
        (
            {"webServicePortTls": 0, "tlsCertificateFilePath": "x"},
            "tlsKeyFilePath",
            "but webServicePortTls requires it",
        ),
        (
            {"advertisedListeners": "a:pulsar+ssl://h:1", "bindAddresses": "a:pulsar+ssl://localhost:0"},
            "tlsCertificateFilePath",
            "but bindAddresses requires it",
        ),
        (FILES | {"brokerServicePortTls": 8080}, "brokerServicePortTls", "port 8080 is also set for webServicePort"),
        ({"brokerServicePort": OFF}, "brokerServicePort", "is off, and so is brokerServicePortTls"),
        ({"webServicePort": OFF}, "webServicePort", "is off, and so is webServicePortTls"),
        (
            {"tlsRequireTrustedClientCertOnConnect": True},
            "tlsRequireTrustedClientCertOnConnect",
            "requires tlsTrustCerts",
        ),
        ({"tlsProtocols": "TLSv1.4"}, "tlsProtocols", 'unknown TLS version "TLSv1.4"'),
    ],
)
def test_what_does_not_go_together(values: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        Settings(**values)
    assert raised.value.key == key


def test_a_plain_port_can_be_switched_off_where_there_is_one_with_tls(tmp_path: Any) -> None:
    lines = "brokerServicePort=\nbrokerServicePortTls=6651\ntlsCertificateFilePath=c.pem\ntlsKeyFilePath=k.pem\n"
    (tmp_path / "broker.conf").write_text(lines + "webServicePortTls=\n")
    found = load(tmp_path / "broker.conf")
    assert found.warnings == ()
    assert (found.settings.brokerServicePort, found.settings.brokerServicePortTls) == (OFF, 6651)
    assert found.settings.webServicePortTls == OFF
    (tmp_path / "box.toml").write_text('[network]\nbrokerServicePort = ""\n[tls]\nbrokerServicePortTls = 6651\n')
    assert load(tmp_path / "box.toml", FILES).settings.brokerServicePort == OFF
    environ = {"PULSARBOX_webServicePort": "", "PULSARBOX_webServicePortTls": "8443"}
    assert load(None, FILES, environ).settings.webServicePort == OFF
    row = settings_by_name()["webServicePort"]
    assert (row.written(OFF), row.written(0)) == ("", 0)


def test_versions() -> None:
    assert versions("") == ("TLSv1.2", "TLSv1.3")
    assert versions("TLSv1.3,TLSv1.1") == ("TLSv1.1", "TLSv1.3")


# Cipher suite numbers from IANA, by Java's names: https://www.iana.org/assignments/tls-parameters.
NUMBERS = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": 0xC02F,
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": 0xC02C,
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA8,
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": 0x009F,
    "TLS_RSA_WITH_AES_128_GCM_SHA256": 0x009C,
    "TLS_RSA_WITH_AES_256_CBC_SHA256": 0x003D,
    "TLS_RSA_WITH_AES_128_CBC_SHA": 0x002F,
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": 0xC023,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_javas_names_are_those_suites_of_openssl(name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(f"{openssl_name(name)}:@SECLEVEL=0")
    assert NUMBERS[name] in {each["id"] & 0xFFFF for each in context.get_ciphers()}


def test_suites_of_tls_1_3_are_told_from_older_ones() -> None:
    assert ciphers("TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_AES_128_CBC_SHA:ECDHE-RSA-AES128-SHA") == (
        ["AES128-SHA", "ECDHE-RSA-AES128-SHA"],
        True,
    )
    assert ciphers("") == ([], False)
