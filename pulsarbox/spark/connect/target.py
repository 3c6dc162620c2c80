"""Resolution of the broker that the options name: its two URLs and credentials."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pulsarbox.client.credentials import Credentials
from pulsarbox.config.listeners import host_in_url
from pulsarbox.errors import PersistenceError, PulsarBoxError
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.options import OptionError, SparkOptions
from pulsarbox.spark.topic_segments import Reach, hosts_of

DEFAULT: Final = "pulsar://localhost:6650"


def reach(options: SparkOptions) -> Reach:
    """Return how to reach the broker, for the driver and the workers. Raises OptionError with the remedy."""
    made = Reach(
        service_url=options.service_url,
        admin_url=options.admin_url,
        data_dir=options.data_dir,
        access=options.access,
        credentials=_credentials(options),
        admin_credentials=_admin_credentials(options),
        fail_on_data_loss=options.fail_on_data_loss,
        plugins_dir=options.plugins_dir,
        seconds=options.timeout_ms / 1000,
    )
    if options.data_dir and not (options.service_url and options.admin_url):
        made = _of_the_box(made)
    service = made.service_url or DEFAULT
    _check("service.url", service, ("pulsar", "pulsar+ssl"), 6650)
    admin = made.admin_url or _admin_of(service)
    _check("admin.url", admin, ("http", "https"), 8080)
    return replace(made, service_url=service, admin_url=admin)


def in_place(to: Reach) -> Reach:
    """Add the data directory that the box reports, for workers that may have access to it."""
    if to.data_dir or to.access == "wire":
        return to
    try:
        with admin_of(to) as admin:
            told = str(admin.ask("GET", "/brokers/configuration/runtime").get("dataDirectory", ""))
    except PulsarBoxError:  # not everyone may read it, and Apache Pulsar has none
        return to
    return replace(to, data_dir=told) if Path(told).is_absolute() else to


def _check(option: str, url: str, schemes: tuple[str, str], port: int) -> None:
    try:
        if url.partition("://")[0] in schemes:
            hosts_of(url, port)
            return
    except ValueError:
        pass
    raise OptionError(f"option {option} = {url!r}: invalid URL; expected one like {schemes[0]}://localhost:{port}")


def _admin_of(service: str) -> str:
    """Return the Admin API URL on the default port of the service URL's hosts."""
    web, port = ("https", 8443) if service.startswith("pulsar+ssl:") else ("http", 8080)
    names = (host_in_url(host) for host, _ in hosts_of(service, 6650)[0])
    return f"{web}://" + ",".join(f"{name}:{port}" for name in names)


def _of_the_box(made: Reach) -> Reach:
    """Fill in the URLs and credentials of the box that runs on the data directory."""
    from pulsarbox.server.process.runtime_file import read
    from pulsarbox.storage.lmdb.directory import holder

    directory = Path(made.data_dir).expanduser()
    try:
        live, pid = holder(directory) if directory.is_dir() else (False, 0)
    except PersistenceError as error:
        raise OptionError(f"option data.dir = {made.data_dir!r}: {error}; or set service.url") from None
    running = read(directory, pid) if live else None
    if running is None:
        raise OptionError(
            f"option data.dir = {made.data_dir!r}: no box is running there. Start one with `pulsarbox start --detach "
            f"--data-dir {shlex.quote(made.data_dir)}`, or set service.url"
        )
    credentials = made.credentials
    if not credentials.method and running.operator:
        credentials = credentials._replace(operator=running.operator)
    if running.certificate and not credentials.trusted:
        credentials = credentials._replace(pinned=running.certificate)
    service = made.service_url or running.local_url(web=False)
    admin = made.admin_url or running.local_url(web=True)
    return replace(made, service_url=service, admin_url=admin, credentials=credentials)


def _admin_credentials(options: SparkOptions) -> Credentials | None:
    """Return separate credentials for the Admin API, or None. Unset options default to the client's."""
    given = {
        "auth_plugin": options.admin_auth_plugin or None,
        "auth_params": options.admin_auth_params or None,
        "tls_trust": options.admin_tls_trust or None,
        "tls_insecure": options.admin_tls_insecure,
        "tls_check_host": options.admin_tls_check_host,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return None
    if options.admin_auth_params:
        given |= {"token": "", "token_file": ""}
    return _credentials(replace(options, **given))  # type: ignore[arg-type]


def _credentials(options: SparkOptions) -> Credentials:
    made = Credentials(
        trusted=options.tls_trust or None, insecure=options.tls_insecure, check_host=options.tls_check_host
    )
    plugin, params = options.auth_plugin.rpartition(".")[2], options.auth_params.strip()
    is_token = plugin in ("token", "AuthenticationToken")
    if (options.token or options.token_file) and plugin and not is_token:
        raise OptionError(
            f"options {'token' if options.token else 'tokenFile'} and pulsar.client.authPluginClassName = {plugin!r} "
            "conflict: set only one of them"
        )
    if options.token:
        return made._replace(token=options.token.removeprefix("token:"))
    if options.token_file:
        return made._replace(token_file=options.token_file.removeprefix("file://"))
    if is_token and not params:
        raise OptionError("option pulsar.client.authPluginClassName requires a token: set option token")
    if is_token or (not plugin and params):
        if params.startswith("file:"):
            return made._replace(token_file=params.removeprefix("file:").removeprefix("//"))
        return made._replace(token=params.removeprefix("token:"))
    if plugin in ("tls", "AuthenticationTls"):
        found = _pairs(params)
        return made._replace(certificate=_needed(found, "tlsCertFile"), key=_needed(found, "tlsKeyFile"))
    if plugin in ("basic", "AuthenticationBasic"):
        found = _pairs(params)
        return made._replace(basic=f"{_needed(found, 'userId')}:{_needed(found, 'password')}")
    if plugin:
        raise OptionError(
            f"option pulsar.client.authPluginClassName: unknown method {plugin!r}; expected token, tls or basic"
        )
    return made


def _pairs(text: str) -> dict[str, str]:
    if text.startswith("{"):
        try:
            found = json.loads(text)
            return {str(name): str(value) for name, value in found.items()}
        except (ValueError, AttributeError):
            raise OptionError("option pulsar.client.authParams is not a valid JSON object") from None
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _needed(found: Mapping[str, str], name: str) -> str:
    if not found.get(name):
        raise OptionError(f"option pulsar.client.authParams lacks {name}; expected {name}:...")
    return found[name]
