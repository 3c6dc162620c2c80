"""How the broker that options name is reached: its two URLs, and with what we prove who asks."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pulsarbox.client.credentials import Credentials
from pulsarbox.spark.options import OptionError, Options
from pulsarbox.spark.segments import Reach

DEFAULT: Final = "pulsar://localhost:6650"
_SCHEMES: Final = {"pulsar": ("http", 8080), "pulsar+ssl": ("https", 8443)}
_PORTS: Final = {"pulsar": 6650, "pulsar+ssl": 6651, "http": 8080, "https": 443}


def reach(options: Options) -> Reach:
    """The broker that is meant, for the driver and for workers. Raises OptionError with what to do instead."""
    made = Reach(
        service_url=options.service_url,
        admin_url=options.admin_url,
        data_dir=options.data_dir,
        access=options.access,
        credentials=_credentials(options),
        fail_on_data_loss=options.fail_on_data_loss,
        seconds=options.timeout_ms / 1000,
    )
    if options.data_dir and not (options.service_url and options.admin_url):
        made = _of_the_box(made)
    service = made.service_url or DEFAULT
    hosts(service, "service.url")
    admin = made.admin_url or _admin_of(service)
    hosts(admin, "admin.url")
    return replace(made, service_url=service, admin_url=admin)


def hosts(url: str, name: str) -> list[tuple[str, int]]:
    """Hosts and ports of a URL, in its order. Raises OptionError, naming the option."""
    scheme, mark, rest = url.partition("://")
    schemes = ("http", "https") if name == "admin.url" else ("pulsar", "pulsar+ssl")
    if not mark or scheme not in schemes:
        looks = f"{schemes[0]}://localhost:{_PORTS[schemes[0]]}"
        raise OptionError(f"option {name} = {url!r} is no URL: it looks like {looks}")
    return [_host_and_port(each, _PORTS[scheme], name, url) for each in rest.rstrip("/").split(",")]


def _host_and_port(text: str, default: int, name: str, url: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default)
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in text or not port.isdigit() or not 0 < int(port) < 65536:
        raise OptionError(f"option {name} = {url!r} does not name a host and a port, as localhost:{default}")
    return host, int(port)


def _admin_of(service: str) -> str:
    """The usual port of the Admin API on the hosts of a service URL."""
    scheme, _, rest = service.partition("://")
    web, port = _SCHEMES[scheme]
    names = (host if ":" not in host else f"[{host}]" for host, _ in hosts(service, "service.url"))
    return f"{web}://" + ",".join(f"{name}:{port}" for name in names) if rest else ""


def _of_the_box(made: Reach) -> Reach:
    """What the box that runs on the data directory says of itself."""
    from pulsarbox.server.running import read
    from pulsarbox.storage.directory import holder

    directory = Path(made.data_dir).expanduser()
    live, pid = holder(directory) if directory.is_dir() else (False, 0)
    running = read(directory, pid) if live else None
    if running is None:
        raise OptionError(
            f"option data.dir = {made.data_dir!r}: no box runs there. Start it with `pulsarbox start --detach "
            f"--data-dir {made.data_dir}`, or give service.url"
        )
    credentials = made.credentials
    if not credentials.method and running.operator:
        credentials = replace(credentials, operator=running.operator)
    if running.certificate and not credentials.trusted:
        credentials = replace(credentials, pinned=running.certificate)
    service = made.service_url or running.local_url(web=False)
    admin = made.admin_url or running.local_url(web=True)
    return replace(made, service_url=service, admin_url=admin, credentials=credentials)


def _credentials(options: Options) -> Credentials:
    made = Credentials(
        trusted=options.tls_trust or None, insecure=options.tls_insecure, check_host=options.tls_check_host
    )
    if options.token:
        return replace(made, token=options.token.removeprefix("token:"))
    if options.token_file:
        return replace(made, token_file=options.token_file.removeprefix("file://"))
    plugin, params = options.auth_plugin.rpartition(".")[2], options.auth_params.strip()
    if plugin in ("token", "AuthenticationToken") or (not plugin and params):
        if params.startswith("file:"):
            return replace(made, token_file=params.removeprefix("file:").removeprefix("//"))
        return replace(made, token=params.removeprefix("token:"))
    if plugin in ("tls", "AuthenticationTls"):
        found = _pairs(params)
        return replace(made, certificate=_needed(found, "tlsCertFile"), key=_needed(found, "tlsKeyFile"))
    if plugin in ("basic", "AuthenticationBasic"):
        found = _pairs(params)
        return replace(made, basic=f"{_needed(found, 'userId')}:{_needed(found, 'password')}")
    if plugin:
        raise OptionError(
            f"option pulsar.client.authPluginClassName: {plugin!r} is not known; token, tls and basic are"
        )
    return made


def _pairs(text: str) -> dict[str, str]:
    if text.startswith("{"):
        try:
            found = json.loads(text)
            return {str(name): str(value) for name, value in found.items()}
        except (ValueError, AttributeError):
            raise OptionError("option pulsar.client.authParams is no JSON object") from None
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _needed(found: Mapping[str, str], name: str) -> str:
    if not found.get(name):
        raise OptionError(f"option pulsar.client.authParams lacks {name}: it looks like {name}:...")
    return found[name]
