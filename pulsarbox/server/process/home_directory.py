"""The home of a box with several data directories: the first usable one, for its small files (events, history)."""

import os
from dataclasses import replace
from pathlib import Path

from pulsarbox.config import Settings
from pulsarbox.config.data_directories import local_directories
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.format import RUNNING
from pulsarbox.storage.lmdb.directory import holder


def at_home(settings: Settings) -> Settings:
    """Return the settings with the home as ``dataDirectory``; unchanged for a box with one data directory."""
    if not settings.dataDirectories:
        return settings
    return replace(settings, dataDirectory=str(home_directory(settings)))


def home_directory(settings: Settings) -> Path:
    """Return the first data directory that can be written or created, or the first if there is none."""
    paths = [Path(path).absolute() for path in local_directories(settings)]
    return next(filter(_is_usable, paths), paths[0])


def home_of_box(settings: Settings) -> Path:
    """Return a data directory that leads to the running box, or the one that a start would choose."""
    held = [path for each in local_directories(settings) if _is_held(path := Path(each).absolute())]
    serving = [path for path in held if (path / RUNNING).exists()]
    return next(iter([*serving, *held]), None) or home_directory(settings)


def _is_held(path: Path) -> bool:
    """Return whether a process has a directory open. The runtime file of a directory that was lost may be outdated."""
    try:
        return holder(path)[0]
    except PersistenceError:  # of another user: the command says so
        return True


def _is_usable(path: Path) -> bool:
    """Return whether a directory can be written, or created."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path.is_dir() and os.access(path, os.W_OK | os.X_OK)
