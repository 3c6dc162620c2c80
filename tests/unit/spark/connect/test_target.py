"""Broker URL and credentials from the options."""

from ssl import SSLCertVerificationError

import pytest

from pulsarbox.client.admin import Admin, AdminRefused
from pulsarbox.client.errors import NotConnected, passes
from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.connect.connections import admin_of, client_of
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.options import BATCH, OptionError, parse
from pulsarbox.spark.topic_segments import Reach

TOKEN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def reached(**options: str) -> Reach:
    """Return the resolved target; an option ``a_b`` stands for ``a.b``."""
    return reach(parse({"topic": "t", **{name.replace("_", "."): value for name, value in options.items()}}, BATCH))


def test_the_client_s_credentials_are_those_of_the_admin_api_too() -> None:
    found = reached(pulsar_client_authPluginClassName=TOKEN, pulsar_client_authParams="token:c")
    assert (found.credentials.token, found.admin_credentials) == ("c", None)
    assert reached(token="token:x").credentials.token == "x"


def test_the_admin_api_may_have_credentials_of_its_own() -> None:
    """The existing connector documents the same option name below pulsar.admin."""
    found = reached(
        service_url="pulsar+ssl://localhost:6651",
        pulsar_admin_authPluginClassName=TOKEN,
        pulsar_admin_authParams="token:a",
        pulsar_client_authPluginClassName=TOKEN,
        pulsar_client_authParams="token:c",
        pulsar_client_tlsTrustCertsFilePath="/ca.pem",
        pulsar_client_tlsAllowInsecureConnection="false",
        pulsar_client_tlsHostnameVerificationenable="true",
    )
    assert found.admin_credentials is not None
    assert [each.token for each in (found.credentials, found.admin_credentials)] == ["c", "a"]
    assert found.credentials._replace(token="a") == found.admin_credentials
    assert (found.credentials.trusted, found.credentials.check_host) == ("/ca.pem", True)
    assert found.admin_url == "https://localhost:8443"


def test_what_is_not_said_of_the_admin_api_is_as_for_the_client() -> None:
    found = reached(
        token="c", pulsar_admin_tlsTrustCertsFilePath="/web.pem", pulsar_admin_tlsAllowInsecureConnection="true"
    )
    assert found.admin_credentials is not None
    assert (found.admin_credentials.token, found.admin_credentials.trusted) == ("c", "/web.pem")
    assert (found.admin_credentials.insecure, found.credentials.insecure) == (True, False)


def test_the_admin_api_is_asked_with_its_own() -> None:
    found = reached(token="c", pulsar_admin_authParams="token:a")
    with admin_of(found) as admin:
        assert admin._web._credentials.token == "a"


def test_what_is_not_reached_is_told_with_its_option() -> None:
    nobody = reached(service_url="pulsar://127.0.0.1:1", admin_url="http://127.0.0.1:1")
    with pytest.raises(NotConnected, match=r"pulsar://127.0.0.1:1 \(option service.url\) cannot be reached: .*refused"):
        client_of(nobody).service()
    with admin_of(nobody) as admin, pytest.raises(NotConnected, match=r"127.0.0.1:1 \(option admin.url\) cannot be"):
        admin.own("/clock")


def test_who_is_not_trusted_or_known_is_told_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    untrusted, unknown = NotConnected("no TLS handshake"), AdminRefused(401, "Authentication required", "GET")
    untrusted.__cause__ = SSLCertVerificationError("self-signed certificate")
    wrong: list[Exception] = [untrusted, unknown, AdminRefused(404, "not there", "GET")]

    def ask(*_: object) -> None:
        raise wrong.pop(0)

    monkeypatch.setattr(Admin, "_ask", ask)
    with admin_of(reached()) as admin:
        with pytest.raises(
            PulsarBoxError, match=r"option admin.url\) has an untrusted certificate: .*tlsTrustCertsFilePath"
        ) as error:
            admin.own("/clock")
        assert not passes(error.value), "waiting does not help"
        with pytest.raises(
            AdminRefused, match=r"Authentication required\. Authenticate with option token or tokenFile"
        ):
            admin.own("/clock")
        with pytest.raises(AdminRefused, match=r"^not there$"):
            admin.own("/clock")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"service_url": "http://h"}, "option service.url = 'http://h': invalid URL"),
        ({"pulsar_client_authPluginClassName": "kerberos"}, "unknown method 'kerberos'; expected token, tls or basic"),
        ({"pulsar_client_authPluginClassName": "tls", "pulsar_client_authParams": "tlsCertFile:x"}, "lacks tlsKeyFile"),
        ({"data_dir": "/nowhere"}, "no box is running there. Start one with"),
        ({"pulsar_client_authPluginClassName": TOKEN}, "requires a token: set option token"),
        ({"token": "t", "pulsar_client_authPluginClassName": "tls"}, "token and .*'tls' conflict"),
    ],
)
def test_what_cannot_be_reached_is_said_by_name(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        reached(**options)
