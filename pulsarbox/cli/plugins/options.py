"""The --plugins-dir option."""

import os
from pathlib import Path
from typing import Final

import click

from pulsarbox.cli.process.directory_options import DEFAULT_FILE

PLUGINS_DIR: Final = click.option(
    "--plugins-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    envvar="PULSARBOX_pluginsDirectory",
    help="Directory of plugin files (pluginsDirectory). [default: as set in ./pulsarbox.toml]",
)


def plugins_directory(given: Path | None) -> Path | None:
    """Return the directory of plugin files: the given one, or that of a box started here; None without any.

    Exits if the configuration is invalid. Reads it only if a file exists, because that is slow.
    """
    named = os.environ.get("PULSARBOX_CONFIG")
    if given is not None or not (named or DEFAULT_FILE.exists()):
        return given
    from pulsarbox.cli.process.setting_options import loaded_or_exit

    said = loaded_or_exit(Path(named) if named else None, {}).settings.pluginsDirectory
    return Path(said) if said else None
