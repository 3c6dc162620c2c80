"""The option that says where files with plugins are."""

from pathlib import Path
from typing import Final

import click

PLUGINS_DIR: Final = click.option(
    "--plugins-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    envvar="PULSARBOX_pluginsDirectory",
    help="Directory with files that are plugins (pluginsDirectory).",
)
