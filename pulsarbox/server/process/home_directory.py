"""The home of a box with several data directories: the first usable one, for its small files (addresses, events)."""

import os
from dataclasses import replace
from pathlib import Path

from pulsarbox.config import Settings
from pulsarbox.config.data_directories import data_directories
from pulsarbox.storage.format import RUNNING


def at_home(settings: Settings) -> Settings:
    """Return the settings with the home as ``dataDirectory``; unchanged for a box with one data directory."""
    if not settings.dataDirectories:
        return settings
    return replace(settings, dataDirectory=str(home_directory(settings)))


def home_directory(settings: Settings) -> Path:
    """Return the first data directory that can be written or created, or the first if there is none."""
    paths = [Path(path).absolute() for path in data_directories(settings)]
    return next(filter(_is_usable, paths), paths[0])


def home_of_box(settings: Settings) -> Path:
    """Return the home that a running box has chosen, or the one that a start would choose."""
    paths = [Path(path).absolute() for path in data_directories(settings)]
    return next((path for path in paths if (path / RUNNING).exists()), home_directory(settings))


def _is_usable(path: Path) -> bool:
    """Return whether a directory can be written, or created."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path.is_dir() and os.access(path, os.W_OK | os.X_OK)
