"""The option that says where files with plugins are."""

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
    help="Directory with files that are plugins (pluginsDirectory). Else what ./pulsarbox.toml says, if there is one.",
)


def plugins_directory(given: Path | None) -> Path | None:
    """Where files with plugins are: as given, or as a box that is started here would have it; None: nowhere.

    Ends the process where the configuration cannot be read. It is read only where there is one: that takes a while.
    """
    named = os.environ.get("PULSARBOX_CONFIG")
    if given is not None or not (named or DEFAULT_FILE.exists()):
        return given
    from pulsarbox.cli.process.setting_options import loaded_or_exit

    said = loaded_or_exit(Path(named) if named else None, {}).settings.pluginsDirectory
    return Path(said) if said else None
