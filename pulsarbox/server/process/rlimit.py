"""How many files the process may have open: connections are files, and so are the environments of LMDB."""

import resource

from pulsarbox.config import Settings

FILES_OF_ITS_OWN = 256
"""Volumes, sockets that listen, and what the loop and the threads need."""
FILES_MIN = 128
"""With fewer it cannot work."""
FILES_WANTED = 4096
"""Fewer are worth a warning where brokerMaxConnections sets no limit."""

WAY_OUT = "raise it with `ulimit -n 65536` in the shell that starts it, or LimitNOFILE=65536 in its systemd unit"


def raise_file_limit() -> int:
    """Take as many as the hard limit gives; how many that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # a container may forbid it
        pass
    return file_limit()


def file_limit() -> int:
    """The limit of this process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 30 if soft == resource.RLIM_INFINITY else soft


def too_few(limit: int, settings: Settings) -> str:
    """What is wrong with a file limit, empty where nothing is. Below FILES_MIN it is more than a warning."""
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
