"""Connections to a broker, as a reach says. Nothing of pyspark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pulsarbox.client.admin import Admin
from pulsarbox.client.client import Client
from pulsarbox.client.credentials import Credentials
from pulsarbox.spark.epochs import SinkError
from pulsarbox.spark.options import OptionError, Options
from pulsarbox.spark.segments import Reach

if TYPE_CHECKING:
    from pulsarbox.server.running import Running


def client_of(reach: Reach) -> Client:
    """A client of the Pulsar protocol; nothing is connected yet. Raises NotConnected, SinkError."""
    secure, hosts = _hosts(reach.service_url, {"pulsar": 6650, "pulsar+ssl": 6651})
    return Client(hosts, reach.seconds, secure=secure, credentials=reach.credentials)


def admin_of(reach: Reach, seconds: float | None = None) -> Admin:
    """A client of the Admin API; nothing is connected yet. Raises SinkError."""
    secure, hosts = _hosts(reach.admin_url, {"http": 8080, "https": 8443})
    return Admin(hosts, reach.seconds if seconds is None else seconds, secure=secure, credentials=reach.credentials)


def reach_of(options: Options) -> Reach:
    """How the broker is reached that options name: that of the box on ``data.dir`` where they give no URL.

    Raises OptionError.
    """
    service_url, admin_url, credentials = options.service_url, options.admin_url, credentials_of(options)
    if options.data_dir and not service_url:
        running = _running(Path(options.data_dir))
        service_url, admin_url = running.local_url(False), admin_url or running.local_url(True)
        credentials = replace(
            credentials,
            pinned=running.certificate or None,
            operator=None if credentials.method else running.operator or None,
        )
    service_url = service_url or "pulsar://localhost:6650"
    if not admin_url:
        secure = service_url.startswith("pulsar+ssl:")
        host = urlsplit(service_url.split(",")[0]).hostname or "localhost"
        shown = f"[{host}]" if ":" in host else host
        admin_url = f"https://{shown}:8443" if secure else f"http://{shown}:8080"
    return Reach(
        service_url, admin_url, options.data_dir, options.access, credentials, seconds=options.timeout_ms / 1000
    )


def credentials_of(options: Options) -> Credentials:
    """What proves who asks. Raises OptionError."""
    made = Credentials(
        trusted=options.tls_trust or None, insecure=options.tls_insecure, check_host=options.tls_check_host
    )
    plugin, params = options.auth_plugin.rpartition(".")[2].removeprefix("Authentication").lower(), options.auth_params
    token, token_file = options.token, options.token_file
    if params.startswith("token:") or (plugin == "token" and not params.startswith("file:")):
        token = token or params.removeprefix("token:")
    elif plugin in ("", "token") and params.startswith("file:"):
        token_file = token_file or params.removeprefix("file:").removeprefix("//")
    if token or token_file:
        return replace(made, token=token or None, token_file=token_file or None)
    if not plugin:
        return made
    found = _parameters(params)
    if plugin == "tls" and found.keys() >= {"tlsCertFile", "tlsKeyFile"}:
        return replace(made, certificate=found["tlsCertFile"], key=found["tlsKeyFile"])
    if plugin == "basic" and found.keys() >= {"userId", "password"}:
        return replace(made, basic=f"{found['userId']}:{found['password']}")
    needs = {"tls": "tlsCertFile:PATH,tlsKeyFile:PATH", "basic": '{"userId":"...","password":"..."}'}.get(plugin)
    if needs is None:
        raise OptionError("option pulsar.client.authPluginClassName: token, basic and tls are known here")
    raise OptionError(f"option pulsar.client.authParams: {plugin} needs {needs}")


def _parameters(text: str) -> dict[str, str]:
    if text.strip().startswith("{"):
        try:
            return {name: str(value) for name, value in json.loads(text).items()}
        except ValueError:
            raise OptionError("option pulsar.client.authParams is no JSON") from None
    return {name.strip(): value for name, _, value in (each.partition(":") for each in text.split(","))}


def _running(directory: Path) -> "Running":
    from pulsarbox.server.running import read
    from pulsarbox.storage.directory import holder

    live, pid = holder(directory)
    running = read(directory, pid) if live else None
    if running is None:
        raise OptionError(f"option data.dir: no box serves {directory}: start it, or give service.url and admin.url")
    return running


def _hosts(url: str, schemes: dict[str, int]) -> tuple[bool, list[tuple[str, int]]]:
    scheme, mark, rest = url.strip().partition("://")
    names = list(schemes)
    if not mark or scheme not in schemes:
        raise SinkError(f"{url!r} is no URL of a broker: it begins with {names[0]}:// or {names[1]}://")
    hosts = []
    for each in rest.rstrip("/").split(","):
        try:
            parts = urlsplit(f"//{each}")
            hosts.append((parts.hostname or "", parts.port or schemes[scheme]))
        except ValueError as error:
            raise SinkError(f"{url!r} is no URL of a broker: {error}") from None
    if not all(host for host, _ in hosts):
        raise SinkError(f"{url!r} names no host")
    return scheme == names[1], hosts
