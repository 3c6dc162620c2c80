"""The file limit of the process: connections and LMDB environments are files."""

import resource

from pulsarbox.config import Settings

FILES_OF_ITS_OWN = 256
"""Files for volumes, listening sockets, the loop and the threads."""
FILES_MIN = 128
"""Minimum limit for startup."""
FILES_WANTED = 4096
"""Limit below which a warning is due if brokerMaxConnections is unlimited."""

WAY_OUT = "raise it with `ulimit -n 65536` in the shell that starts it, or LimitNOFILE=65536 in its systemd unit"


def raise_file_limit() -> int:
    """Raise the limit to the hard limit; return the result."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # a container may forbid it
        pass
    return file_limit()


def file_limit() -> int:
    """Return the limit of this process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft


def too_few(limit: int, settings: Settings) -> str:
    """Return the problem with a file limit; empty if there is none. Below FILES_MIN startup must fail."""
    if limit < FILES_MIN:
        return f"the process may open {limit} files, it needs at least {FILES_MIN}: {WAY_OUT}"
    connections = settings.brokerMaxConnections
    if connections and limit < connections + FILES_OF_ITS_OWN:
        return (
            f"the process may open {limit} files, too few for {connections} connections (brokerMaxConnections) and"
            f" {FILES_OF_ITS_OWN} of its own: {WAY_OUT}"
        )
    if not connections and limit < FILES_WANTED:
        left = max(limit - FILES_OF_ITS_OWN, 0)
        return f"the process may open {limit} files, which leaves {left} for connections: {WAY_OUT}"
    return ""
