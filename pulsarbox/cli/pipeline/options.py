"""Options shared by all pipelines: Spark master, broker, and checkpoint directory."""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Misused, run
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.target import Target, service_and_admin_options
from pulsarbox.client.errors import NotConnected
from pulsarbox.spark.pipelines.run_options import RunOptions

if TYPE_CHECKING:
    from pulsarbox.client.credentials import Credentials

_MASTER: Final = click.option(
    "--master",
    metavar="URL",
    default="local[*]",
    show_default=True,
    help="Spark master: local[*], local[2], spark://host:7077, ...",
)
_CONF: Final = click.option(
    "--conf", metavar="KEY=VALUE", multiple=True, help="Spark setting, such as spark.driver.memory=2g; repeatable."
)
_UI: Final = click.option("--ui", is_flag=True, help="Serve Spark's web pages; `pipeline list` shows their address.")
_ONCE: Final = click.option("--once", is_flag=True, help="Process the available messages and exit.")
STATE: Final = click.option(
    "--state",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Checkpoint directory. [default: ~/.local/state/pulsarbox/pipelines]",
)
_RESTARTS: Final = click.option(
    "--restarts",
    metavar="N",
    type=BoundedInteger(0),
    default=3,
    show_default=True,
    help="Maximum consecutive restarts of a failed query.",
)
_NAME: Final = click.option("--name", metavar="NAME", default="", help="Pipeline name, and its directory in --state.")


def pipeline_options(*, streams: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --master, --conf and the broker options to a command; with ``streams``, also --once, --state and --name.

    The command gets a RunOptions as ``running``; its ``box`` has the broker's options for the Spark format.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def called(
            *args: Any,
            service: Target,
            admin: Target,
            master: str,
            conf: tuple[str, ...],
            once: bool = False,
            state: Path | None = None,
            name: str = "",
            **kwargs: Any,
        ) -> Any:
            box, restarts = options_of(service, admin), kwargs.pop("restarts", 3)
            running = RunOptions(master, once, state, name, conf_of(conf), box, restarts, ui=kwargs.pop("ui"))

            def work() -> Any:
                with reached(service, admin):
                    return command(*args, running=running, **kwargs)

            return run(work)

        made = service_and_admin_options(called)
        for option in (_CONF, _UI, *((_RESTARTS, _NAME, STATE, _ONCE) if streams else ()), _MASTER):
            made = option(made)
        return made

    return decorate


@contextmanager
def reached(service: Target, admin: Target) -> Iterator[None]:
    """Report a failed connection with the URLs of the broker and advice."""
    try:
        yield
    except NotConnected as error:
        raise service.unreachable(f"{error} (its Admin API: {admin.url})") from error


def conf_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse --conf into Spark settings. Raises Misused."""
    found = {}
    for each in pairs:
        key, mark, value = each.partition("=")
        if not mark or not key.startswith("spark."):
            raise Misused(f"--conf {each}: expected NAME=VALUE, such as spark.driver.memory=2g")
        found[key] = value
    return found


def options_of(service: Target, admin: Target) -> dict[str, str]:
    """Return the URLs and credentials of a broker as options of the Spark format ``pulsarbox``.

    For a local box, ``data.dir`` suffices: the operator secret is read from its data directory.
    """
    credentials = service.credentials()
    if service.directory and not _proves(credentials):
        return {"data.dir": service.directory}
    return {"service.url": service.url, "admin.url": admin.url} | _proofs(credentials)


def _proves(credentials: "Credentials") -> bool:
    return credentials.method not in ("", "operator") or bool(credentials.trusted)


def _proofs(credentials: "Credentials") -> dict[str, str]:
    found = {
        "token": credentials.token,
        "tokenFile": credentials.token_file,
        "pulsar.client.tlsTrustCertsFilePath": credentials.trusted or credentials.pinned,
        "pulsar.client.tlsAllowInsecureConnection": "true" if credentials.insecure else None,
        "pulsar.client.tlsHostnameVerificationEnable": "true" if credentials.check_host else None,
    }
    if credentials.basic is not None:
        user, _, password = credentials.basic.partition(":")
        found["pulsar.client.authPluginClassName"] = "basic"
        found["pulsar.client.authParams"] = json.dumps({"userId": user, "password": password})
    elif credentials.certificate is not None:
        found["pulsar.client.authPluginClassName"] = "tls"
        found["pulsar.client.authParams"] = json.dumps(
            {"tlsCertFile": credentials.certificate, "tlsKeyFile": credentials.key or ""}
        )
    return {name: value for name, value in found.items() if value}
