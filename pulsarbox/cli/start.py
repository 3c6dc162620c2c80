"""``pulsarbox start``: from the configuration to a running daemon."""

import os
import sys
from pathlib import Path
from typing import Final

import click

from pulsarbox.config import ConfigError, Loaded, Value, load, settings_by_name

EXIT_BAD_CONFIGURATION: Final = 2

# Read when no file is named.
DEFAULT_FILE: Final = Path("pulsarbox.toml")

PORT: Final = click.IntRange(0, 65535)


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="PULSARBOX_CONFIG",
    help="Configuration: TOML, or a Pulsar broker.conf. Without it, ./pulsarbox.toml if there is one.",
)
@click.option("--data-dir", help="Directory of everything that is kept (dataDirectory).")
@click.option("--host", help="Host name or address to listen on (bindAddress).")
@click.option("--port", type=PORT, help="Port of the Pulsar protocol, 0 for any (brokerServicePort).")
@click.option("--web-port", type=PORT, help="Port of the Admin REST API, 0 for any (webServicePort).")
@click.option(
    "--log-level",
    type=click.Choice(settings_by_name()["logLevel"].facts.choices),
    help="Least serious messages to log (logLevel).",
)
def start(
    config_file: Path | None,
    data_dir: str | None,
    host: str | None,
    port: int | None,
    web_port: int | None,
    log_level: str | None,
) -> None:
    """Start the broker in the foreground.

    Options win over environment variables (PULSARBOX_<setting>), and these over the file. Ends with exit code 2 if the
    configuration cannot be used.

    \b
    Examples:
      pulsarbox start
      pulsarbox start --data-dir mybox --port 0 --web-port 0
    """
    options: dict[str, Value | None] = {
        "dataDirectory": data_dir,
        "bindAddress": host,
        "brokerServicePort": port,
        "webServicePort": web_port,
        "logLevel": log_level,
    }
    loaded = _load(config_file, {name: value for name, value in options.items() if value is not None})

    from pulsarbox.server.daemon import run  # the daemon's imports are paid for by nobody else

    code: int = run(loaded.settings)
    sys.exit(code)


def _load(config_file: Path | None, options: dict[str, Value]) -> Loaded:
    """The configuration, with a line on stderr for where it comes from and each warning. Exits if it cannot be used."""
    if config_file is None and DEFAULT_FILE.exists():
        config_file = DEFAULT_FILE
    try:
        loaded = load(config_file, options, os.environ)
    except ConfigError as error:
        click.echo(f"pulsarbox: {error}", err=True)
        sys.exit(EXIT_BAD_CONFIGURATION)
    for warning in loaded.warnings:
        click.echo(f"pulsarbox: warning: {warning}", err=True)
    click.echo(f"pulsarbox: settings from {config_file or 'the defaults'}", err=True)
    return loaded
