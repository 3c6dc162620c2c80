"""--config and --data-dir. Cheap to import, for commands that rarely need either."""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from pulsarbox.config import Settings

config_option: Final = functools.partial(
    click.option,
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    envvar="PULSARBOX_CONFIG",
    help="Configuration file: TOML, or a Pulsar broker.conf. [default: ./pulsarbox.toml if it exists]",
)
CONFIG: Final = config_option()
DEFAULT_FILE: Final = Path("pulsarbox.toml")
"""Configuration file read by default."""
DEFAULT_DIRECTORY: Final = "data"
"""Default of the setting dataDirectory."""
_NO_SETTINGS: Final = frozenset(("PULSARBOX_SERVICE_URL", "PULSARBOX_ADMIN_URL", "PULSARBOX_CONTEXT"))
"""Environment variables that are not settings."""
DATA_DIR: Final = click.option("--data-dir", help="Data directory (dataDirectory).")


def data_directory(config_file: Path | None, data_dir: str | None) -> Path:
    """Return the data directory of a start with the same options. Exit if the configuration is invalid."""
    return box_directories(config_file, data_dir)[0]


def box_directories(config_file: Path | None, data_dir: str | None) -> list[Path]:
    """Return all data directories of this machine for the same options. Exit if the configuration is invalid.

    The first is that of the running box, or the one that a start would choose for its small files.
    """
    settings = _settings(config_file, data_dir)
    if settings is None:
        return [Path(data_dir or DEFAULT_DIRECTORY)]
    if not settings.dataDirectories:
        return [Path(settings.dataDirectory)]
    from pulsarbox.config.data_directories import local_directories
    from pulsarbox.server.process.home_directory import home_of_box

    return [*dict.fromkeys([home_of_box(settings), *(Path(path).absolute() for path in local_directories(settings))])]


def _settings(config_file: Path | None, data_dir: str | None) -> "Settings | None":
    """Return the settings; None if there are none.

    Reads the configuration only if it can matter, because that takes longer than a short command.
    """
    if config_file is None and data_dir != "" and not DEFAULT_FILE.exists() and not _sets_something(os.environ):
        return None
    from pulsarbox.cli.process.setting_options import loaded_or_exit, overrides

    return loaded_or_exit(config_file, overrides({"data_dir": data_dir})).settings


def _sets_something(environ: Mapping[str, str]) -> bool:
    return any(name.startswith("PULSARBOX_") and name not in _NO_SETTINGS for name in environ)
