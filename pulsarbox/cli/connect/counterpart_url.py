"""Lookup of the other URL of a broker, so that a command never administers one broker and messages another.

The Admin API reports the service URL. The Pulsar protocol does not report the URL of the Admin API, which comes from a
local box with that port, or else is guessed as the default port on the same host. A guessed port may belong to another
server, so it gets no secret, and the server must report the service URL without one.
"""

import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pulsarbox.cli.common.exits import Misused
from pulsarbox.client.errors import NoAnswer, NotConnected

if TYPE_CHECKING:
    from pulsarbox.cli.connect.target import Target
    from pulsarbox.server.process.runtime_file import RuntimeFile

SECONDS: Final = 10.0
"""Timeout of requests to the broker."""
_WEB_PORT: Final = 8080
_WEB_PORT_TLS: Final = 8443
"""Default web ports of a Pulsar broker."""


def service_url_of(admin: "Target", seconds: float = SECONDS) -> str:
    """Return the service URL of the broker with this Admin API, with TLS if that uses TLS.

    Raises Unreachable, TimedOut; Misused if the broker does not report it.
    """
    try:
        plain, tls = _asked(admin, seconds)
    except NotConnected as error:
        raise admin.unreachable(str(error)) from None
    except NoAnswer:
        raise admin.silent(seconds) from None
    except _Unknown as error:
        raise Misused(_refusal(admin, f"the Admin API responds with {error}", "--url")) from None
    url = (tls or plain) if admin.secure else (plain or tls)
    if not url:
        raise Misused(_refusal(admin, "the broker reports none", "--url"))
    scheme, _, hosts = url.partition("://")
    return f"{scheme}://{','.join(_reachable(each, admin) for each in hosts.split(','))}"


def origin_of(named: "Target") -> str:
    """Return the origin of a URL derived from a named one."""
    return f"of {named.url}, {named.origin}"


def admin_url_of(service: "Target", boxes: "Iterable[RuntimeFile]", seconds: float = SECONDS) -> tuple[str, bool]:
    """Return the URL of the Admin API of the broker with this service URL, and whether its port is a guess.

    ``boxes`` are those of this machine. Raises Misused if the URL is unknown, or guessed with secrets configured.
    """
    ports = {port for _, port in service.hosts}
    for running in boxes:
        if ports & {running.port, running.tls_port} and all(_is_here(host, running) for host, _ in service.hosts):
            return running.local_url(True), False
    host = service.hosts[0][0]
    scheme, port = ("https", _WEB_PORT_TLS) if service.secure else ("http", _WEB_PORT)
    url = f"{scheme}://{_bracketed(host)}:{port}"
    candidate = service._replace(
        url=url, origin=origin_of(service), hosts=((host, port),), certificate="", operator="", guessed=True
    )
    try:
        found = _asked(candidate, seconds)
    except (NotConnected, NoAnswer) as error:
        raise Misused(_refusal(service, f"{url} does not respond ({error})", "--admin-url")) from None
    except _Unknown as error:
        raise Misused(_refusal(service, f"{url} does not report its service URL ({error})", "--admin-url")) from None
    if not ports & {port for each in found for port in _ports(each)}:
        other = " and ".join(filter(None, found)) or "none"
        raise Misused(_refusal(service, f"{url} belongs to another broker, {other}", "--admin-url"))
    return url, True


class _Unknown(Exception):
    """The Admin API does not report its service URL."""


def _asked(admin: "Target", seconds: float) -> tuple[str, str]:
    """Return the service URLs without and with TLS. Raises NotConnected, NoAnswer, _Unknown."""
    from pulsarbox.client.admin import Admin, AdminRefused

    with Admin(admin.hosts, seconds, secure=admin.secure, credentials=admin.credentials()) as asked:
        try:
            return asked.service_urls()
        except AdminRefused as error:
            raise _Unknown(f"HTTP {error.status}: {error}") from None


def _refusal(named: "Target", problem: str, option: str) -> str:
    other = "service URL" if option == "--url" else "Admin API"
    variable = "PULSARBOX_SERVICE_URL" if option == "--url" else "PULSARBOX_ADMIN_URL"
    return (
        f"the {other} of {named.url} ({named.origin}) is unknown: {problem}; set it with {option}, {variable}"
        " or in the context"
    )


def _reachable(text: str, admin: "Target") -> str:
    """Return a reported host and port, with localhost replaced by the host of the Admin API."""
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, ""
    asked = admin.hosts[0][0]
    if _is_loopback(host) and not _is_loopback(asked):
        return f"{_bracketed(asked)}:{port}" if port else _bracketed(asked)
    return text


def _ports(url: str) -> set[int]:
    """Return the ports of a service URL."""
    scheme, _, hosts = url.partition("://")
    default = 6651 if scheme == "pulsar+ssl" else 6650
    found = (each.rpartition(":")[2] for each in hosts.rstrip("/").split(",") if each)
    return {int(each) if each.isdigit() else default for each in found}


def _is_here(host: str, running: "RuntimeFile") -> bool:
    return _is_loopback(host) or host == running.host


def _is_loopback(host: str) -> bool:
    host = host.strip("[]")
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
