"""A replica in threads of this process, and a box side to connect to it."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pulsarbox.server.network.certificates import Certificates
from pulsarbox.server.replica.directory_owner import DirectoryOwner
from pulsarbox.server.replica.replica_connector import ReplicaConnector
from pulsarbox.server.replica.replica_server import ReplicaServer, listen
from pulsarbox.server.replica.served_directory import ServedDirectory
from pulsarbox.storage.ensemble.remote.remote_member import RemoteMember

SECRET = b"a secret of two machines"
SMALL = {"volume_size": 1 << 16, "index_flush_entries": 7, "open_volumes_max": 2}


class ReplicaUnderTest:
    """A running replica, and the files that both sides use."""

    def __init__(self, folder: Path, server: ReplicaServer, scheme: str) -> None:
        self.folder = folder
        self.server = server
        self.port = server.address[1]
        self.name = f"{scheme}://127.0.0.1:{self.port}"

    def connector(
        self, secret: bytes = SECRET, trusted: Path | None = None, silence_seconds: float = 5.0
    ) -> ReplicaConnector:
        """Return a connector with a secret."""
        file = self.folder / f"secret-{secret[:4].hex()}"
        file.write_bytes(secret + b"\n")
        return ReplicaConnector(file, trusted, silence_seconds)

    def member(self, run: str = "one", generation: int = 0, silence_seconds: float = 5.0) -> RemoteMember:
        """Return a member of a box process, not yet open."""
        connect = self.connector(silence_seconds=silence_seconds).connect
        return RemoteMember(self.name, connect, lambda: {"run": run, "generation": generation}, "")


@contextlib.contextmanager
def replica_at(
    folder: Path, directory: str = "served", certificates: Certificates | None = None
) -> Iterator[ReplicaUnderTest]:
    """Serve a directory below ``folder`` on a free port."""
    owner = DirectoryOwner(ServedDirectory(folder / directory, **SMALL))
    server = ReplicaServer(listen("127.0.0.1", 0), SECRET, owner, certificates)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield ReplicaUnderTest(folder, server, "replica" if certificates is None else "replica+ssl")
    finally:
        server.stop()
        thread.join()


def wait_until(condition: "object", seconds: float = 20.0) -> None:
    """Wait until a condition holds."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
