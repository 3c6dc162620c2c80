"""Options that override settings, shared by the commands that load the configuration."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.process.directory_options import CONFIG, DATA_DIR, DEFAULT_FILE
from pulsarbox.config import ConfigError, Loaded, Value, load, settings_by_name
from pulsarbox.config.setting import OFF

__all__ = [
    "CONFIG",
    "DATA_DIR",
    "DEFAULT_FILE",
    "EXIT_BAD_CONFIGURATION",
    "file_used",
    "loaded_or_exit",
    "overrides",
    "settings_options",
]

EXIT_BAD_CONFIGURATION: Final = 2


class Port(BoundedInteger):
    """A port, or ``off``."""

    name = "port"

    def __init__(self) -> None:
        super().__init__(0, 65535)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType."""
        return OFF if value in ("off", "", OFF) else super().convert(value, param, ctx)

    @property
    def expected(self) -> str:
        """See BoundedInteger."""
        return f"{super().expected}, or off"


_PORT: Final = Port()

_SETTINGS: Final = (
    CONFIG,
    DATA_DIR,
    click.option("--host", help="Listen address or host name (bindAddress)."),
    click.option("--port", type=_PORT, help="Pulsar protocol port; 0: any free port, off: none (brokerServicePort)."),
    click.option("--web-port", type=_PORT, help="Admin REST API port; 0: any free port, off: none (webServicePort)."),
    click.option("--tls-port", type=_PORT, help="Pulsar protocol port with TLS (brokerServicePortTls)."),
    click.option("--web-tls-port", type=_PORT, help="Admin REST API port with TLS (webServicePortTls)."),
    click.option("--tls-cert", metavar="FILE", help="Server certificate, PEM (tlsCertificateFilePath)."),
    click.option("--tls-key", metavar="FILE", help="Private key of the certificate, PEM (tlsKeyFilePath)."),
    click.option("--init", metavar="FILE", help="Create what FILE declares before serving clients (initFile)."),
    click.option(
        "--log-level",
        type=click.Choice(settings_by_name()["logLevel"].facts.choices),
        help="Minimum severity of log messages (logLevel).",
    ),
    click.option(
        "--clock",
        type=click.Choice(settings_by_name()["brokerClock"].facts.choices),
        help="Clock of retention, delays and ages; a virtual one can be advanced (brokerClock).",
    ),
    click.option(
        "--faults",
        is_flag=True,
        flag_value=True,
        default=None,
        help="Enable fault injection by rule, to test applications (faultInjectionEnabled).",
    ),
)
_NAMES: Final = {
    "data_dir": "dataDirectory",
    "host": "bindAddress",
    "port": "brokerServicePort",
    "web_port": "webServicePort",
    "tls_port": "brokerServicePortTls",
    "web_tls_port": "webServicePortTls",
    "tls_cert": "tlsCertificateFilePath",
    "tls_key": "tlsKeyFilePath",
    "init": "initFile",
    "log_level": "logLevel",
    "clock": "brokerClock",
    "faults": "faultInjectionEnabled",
}


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `pulsarbox start` that override settings; ``overrides`` reads them."""
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


def overrides(options: dict[str, Any]) -> dict[str, Value]:
    """Return the settings given among the options of a command."""
    given = {_NAMES[name]: value for name, value in options.items() if name in _NAMES and value is not None}
    # --data-dir selects one directory, also where the configuration lists several.
    return {**given, "dataDirectories": ""} if "dataDirectory" in given else given


def file_used(config_file: Path | None) -> Path | None:
    """Return the configuration file: the given one, or ./pulsarbox.toml if it exists."""
    return DEFAULT_FILE if config_file is None and DEFAULT_FILE.exists() else config_file


def loaded_or_exit(config_file: Path | None, given: dict[str, Value]) -> Loaded:
    """Load the configuration and print its warnings on stderr. Exit if it is invalid."""
    try:
        loaded = load(file_used(config_file), given, os.environ)
    except ConfigError as error:
        notify(str(error))
        sys.exit(EXIT_BAD_CONFIGURATION)
    for warning in loaded.warnings:
        notify(f"warning: {warning}")
    return loaded
