"""The options that name a configuration and a data directory. Light, for commands that seldom need either."""

from pathlib import Path
from typing import Final

import click

CONFIG: Final = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="PULSARBOX_CONFIG",
    help="Configuration: TOML, or a Pulsar broker.conf. Without it, ./pulsarbox.toml if there is one.",
)
DATA_DIR: Final = click.option("--data-dir", help="Directory of everything that is kept (dataDirectory).")
