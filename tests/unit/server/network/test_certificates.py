"""The certificate of a box: invalid files, and renewal."""

import logging
import os
import shutil
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.server.network.certificates import DAY_MS, Certificate, CertificateError, Certificates, context_of
from tests.tools.certificates import Authority, locked_key

WALL = 1_800_000_000_000


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(authority: Authority, **more: Any) -> Settings:
    own = authority.signs("localhost", days=100_000)
    files = {"tlsCertificateFilePath": str(own.certificate), "tlsKeyFilePath": str(own.key)}
    return Settings(brokerServicePortTls=0, **(files | more))


def test_what_a_handshake_goes_by(authority: Authority) -> None:
    context = context_of(settings(authority))
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert context.verify_mode is ssl.CERT_NONE
    trusting = settings(authority, tlsTrustCertsFilePath=str(authority.file))
    assert context_of(trusting).verify_mode is ssl.CERT_OPTIONAL
    assert context_of(replace(trusting, tlsRequireTrustedClientCertOnConnect=True)).verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("protocols", "suites", "lowest", "highest"),
    [
        ("TLSv1.2", "", "TLSv1_2", "TLSv1_2"),
        ("TLSv1.3, TLSv1.2", "", "TLSv1_2", "TLSv1_3"),
        ("", "TLS_AES_128_GCM_SHA256", "TLSv1_3", "TLSv1_3"),
        ("", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLSv1_2", "TLSv1_2"),
        ("", "TLS_AES_256_GCM_SHA384,ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1_2", "TLSv1_3"),
    ],
)
def test_versions_and_suites(authority: Authority, protocols: str, suites: str, lowest: str, highest: str) -> None:
    context = context_of(settings(authority, tlsProtocols=protocols, tlsCiphers=suites))
    assert (context.minimum_version.name, context.maximum_version.name) == (lowest, highest)
    older = {each["name"] for each in context.get_ciphers() if not each["name"].startswith("TLS_")}
    if "ECDHE" in suites:
        assert len(older) == 1


def test_what_is_wrong_with_the_files_is_said(authority: Authority, tmp_path: Path) -> None:
    good = settings(authority)
    locked_key(tmp_path / "locked.key")
    (tmp_path / "text.pem").write_text("no certificate")
    other = authority.signs("other")
    text, old = str(tmp_path / "text.pem"), authority.signs("old", begins=-10, days=9)
    wrong = {
        "tlsCertificateFilePath: /nix/c.pem cannot be read: No such file": {"tlsCertificateFilePath": "/nix/c.pem"},
        "tlsKeyFilePath: /nix/k.pem cannot be read: No such file": {"tlsKeyFilePath": "/nix/k.pem"},
        "tlsTrustCertsFilePath: /nix/t.pem cannot be read": {"tlsTrustCertsFilePath": "/nix/t.pem"},
        "does not match the certificate in": {"tlsKeyFilePath": str(other.key)},
        "locked.key is protected by a password": {"tlsKeyFilePath": str(tmp_path / "locked.key")},
        "text.pem contains no PEM certificate": {"tlsCertificateFilePath": text},
        "text.pem contains no PEM certificates": {"tlsTrustCertsFilePath": text},
        "text.pem contains no PEM private key": {"tlsKeyFilePath": text},
        "the certificate of old in .* expired on": {
            "tlsCertificateFilePath": str(old.certificate),
            "tlsKeyFilePath": str(old.key),
        },
        "ABC is not a cipher suite of this OpenSSL": {"tlsCiphers": "ABC"},
        "none of these cipher suites is valid for the versions": {
            "tlsCiphers": "AES128-SHA",
            "tlsProtocols": "TLSv1.3",
        },
    }
    now = int(Path(text).stat().st_mtime * 1000)
    changed: Any
    for words, changed in wrong.items():
        with pytest.raises(CertificateError, match=words):
            Certificates(replace(good, **changed), now)
    with pytest.raises(CertificateError, match="is not valid before"):
        Certificates(good, now - 10 * DAY_MS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_key_of_somebody_else(authority: Authority) -> None:
    good = settings(authority)
    Path(good.tlsKeyFilePath).chmod(0)
    with pytest.raises(CertificateError, match="cannot be read: Permission denied"):
        context_of(good)


def test_new_files_are_taken_and_broken_ones_are_not(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pulsarbox.server.network.certificates")
    given = settings(authority, tlsCertRefreshCheckDurationSec=300)
    timers, start = Timers(), Now(0.0, WALL)
    held = Certificates(given, WALL)
    held.watch(timers, start)
    first = held.context

    def turn(seconds: int) -> None:
        """Advance only the wall clock, as by the passage of time or a clock change."""
        timers.run(Now(0.0, WALL + 1000 * seconds))

    turn(301)
    assert held.context is first
    other = authority.signs("other", days=100_000)
    shutil.copy(other.key, given.tlsKeyFilePath)
    turn(602)
    assert held.context is first
    turn(903)
    assert caplog.text.count("the new certificate is unusable, the previous one stays in use") == 1
    assert "does not match the certificate" in caplog.text
    shutil.copy(other.certificate, given.tlsCertificateFilePath)
    turn(904)
    assert held.context is first  # before the next check
    turn(1204)
    assert held.context is not first
    assert held.certificate.subject == "other"
    assert "new certificate: other" in caplog.text


def test_without_looking_nothing_is_renewed(authority: Authority) -> None:
    timers = Timers()
    Certificates(settings(authority, tlsCertRefreshCheckDurationSec=0), WALL).watch(timers, Now(0.0, WALL))
    assert timers.next().wall is None


def test_a_certificate_that_ends_soon_is_a_warning_each_day(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    own = authority.signs("short", begins=-1, days=41)
    files = {"tlsCertificateFilePath": str(own.certificate), "tlsKeyFilePath": str(own.key)}
    now = own.certificate.stat().st_mtime_ns // 1_000_000
    timers = Timers()
    held = Certificates(settings(authority, **files), now)
    held.watch(timers, Now(0.0, now))
    assert not caplog.records
    for hour in range(24 * 12):  # from 40 to 28 days before expiry, in virtual time
        timers.run(Now(0.0, now + hour * 3_600_000, hour * 3_600_000))
    warnings = [record.getMessage() for record in caplog.records]
    assert [f"in {days} days" in each for days, each in zip((29, 28), warnings, strict=True)] == [True, True]
    timers.run(Now(0.0, now + 41 * DAY_MS, 41 * DAY_MS))
    assert "expired on" in caplog.records[-1].getMessage()


def test_when_a_certificate_holds() -> None:
    one = Certificate("x", WALL, WALL + 100 * DAY_MS)
    assert "is not valid before" in one.problem(WALL - 1)
    assert not one.problem(WALL)
    assert not one.warning(WALL + 70 * DAY_MS)
    assert "in 29 days" in one.warning(WALL + 70 * DAY_MS + 1)
    assert not one.problem(WALL + 100 * DAY_MS - 1)
    assert "expired on" in one.problem(WALL + 100 * DAY_MS)
    assert "clients reject it" in one.warning(WALL + 100 * DAY_MS)
