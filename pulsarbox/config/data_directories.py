"""The setting dataDirectories: paths, and addresses of replicas, separated by commas. Pure."""

import posixpath
from typing import TYPE_CHECKING

from pulsarbox.config.replica_address import is_replica, parse_address

if TYPE_CHECKING:
    from pulsarbox.config.settings import Settings

DIRECTORIES_MAX = 16


def data_directories(settings: "Settings") -> tuple[str, ...]:
    """Return the data directories of a box, as configured: paths, and addresses of replicas."""
    listed = tuple(path.strip() for path in settings.dataDirectories.split(",") if path.strip())
    return listed or (settings.dataDirectory,)


def local_directories(settings: "Settings") -> tuple[str, ...]:
    """Return the data directories that are paths of this machine."""
    return tuple(name for name in data_directories(settings) if not is_replica(name))


def replicas(settings: "Settings") -> tuple[str, ...]:
    """Return the data directories that are addresses of replicas."""
    return tuple(name for name in data_directories(settings) if is_replica(name))


def check_directories(settings: "Settings") -> str:
    """Return what is wrong with the list; empty if it is valid."""
    listed = data_directories(settings)
    if len(listed) > DIRECTORIES_MAX:
        return f"has {len(listed)} directories: at most {DIRECTORIES_MAX} are possible"
    return _check_replicas(settings) or _check_paths(local_directories(settings))


def _check_replicas(settings: "Settings") -> str:
    names = replicas(settings)
    for name in names:
        try:
            parse_address(name)
        except ValueError as error:
            return str(error)
        if names.count(name) > 1:
            return f"contains {name} twice: each copy needs its own directory"
    if names and not local_directories(settings):
        return f"contains only replicas: add a directory of this machine, such as /var/lib/pulsarbox,{names[0]}"
    if names and not settings.ensembleReplicaSecretFile:
        return f"contains {names[0]}: set ensembleReplicaSecretFile to the file with the secret of the replica"
    return ""


def _check_paths(listed: tuple[str, ...]) -> str:
    paths = [posixpath.normpath(path) for path in listed]
    for path in paths:
        if paths.count(path) > 1:
            return f"contains {path} twice: each copy needs its own directory"
        if any(other.startswith(path.rstrip("/") + "/") for other in paths):
            return f"contains a directory inside {path}: no directory may contain another one"
    return ""
