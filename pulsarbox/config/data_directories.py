"""The setting dataDirectories: paths separated by commas. Pure."""

import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarbox.config.settings import Settings

DIRECTORIES_MAX = 16


def data_directories(settings: "Settings") -> tuple[str, ...]:
    """Return the data directories of a box, as configured."""
    listed = tuple(path.strip() for path in settings.dataDirectories.split(",") if path.strip())
    return listed or (settings.dataDirectory,)


def check_directories(settings: "Settings") -> str:
    """Return what is wrong with the list; empty if it is valid."""
    listed = data_directories(settings)
    paths = [posixpath.normpath(path) for path in listed]
    if len(listed) > DIRECTORIES_MAX:
        return f"has {len(listed)} directories: at most {DIRECTORIES_MAX} are possible"
    for path in paths:
        if paths.count(path) > 1:
            return f"contains {path} twice: each copy needs its own directory"
        if any(other.startswith(path.rstrip("/") + "/") for other in paths):
            return f"contains a directory inside {path}: no directory may contain another one"
    return ""
