"""The options that name a configuration and a data directory. Light, for commands that seldom need either."""

import os
from collections.abc import Mapping
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
DEFAULT_FILE: Final = Path("pulsarbox.toml")
"""Read when no file is named."""
DEFAULT_DIRECTORY: Final = "data"
"""Of the setting dataDirectory."""
_NO_SETTINGS: Final = frozenset(("PULSARBOX_SERVICE_URL", "PULSARBOX_ADMIN_URL", "PULSARBOX_CONTEXT"))
"""Of the environment."""
DATA_DIR: Final = click.option("--data-dir", help="Directory of everything that is kept (dataDirectory).")


def data_directory(config_file: Path | None, data_dir: str | None) -> Path:
    """The data directory that a start with the same options would take. Ends the process where it cannot be known.

    The configuration is read only where something of it can matter: that takes longer than a short command.
    """
    if config_file is None and data_dir != "" and not DEFAULT_FILE.exists() and not _sets_something(os.environ):
        return Path(data_dir or DEFAULT_DIRECTORY)
    from pulsarbox.cli.process.setting_options import loaded_or_exit, overrides

    return Path(loaded_or_exit(config_file, overrides({"data_dir": data_dir})).settings.dataDirectory)


def _sets_something(environ: Mapping[str, str]) -> bool:
    return any(name.startswith("PULSARBOX_") and name not in _NO_SETTINGS for name in environ)
