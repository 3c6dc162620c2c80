"""The process of `pulsarbox storage serve`: one data directory for a box on another machine."""

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulsarbox import __version__
from pulsarbox.config import Settings
from pulsarbox.config.replica_address import is_loopback
from pulsarbox.errors import PersistenceError
from pulsarbox.server.process.log_setup import set_up
from pulsarbox.server.process.rlimit import raise_file_limit
from pulsarbox.server.replica.directory_owner import DirectoryOwner
from pulsarbox.server.replica.replica_connector import secret_in
from pulsarbox.server.replica.replica_server import ReplicaServer, certificates_of, listen, stopped_by_signals
from pulsarbox.server.replica.served_directory import ServedDirectory
from pulsarbox.storage.lmdb.directory import DirectoryHeld

log = logging.getLogger(__name__)

EXIT_FAILED: Final = 1
EXIT_MISCONFIGURED: Final = 2
EXIT_TAKEN: Final = 4
_OTHERS: Final = 0o077


class ReplicaRefused(Exception):
    """The replica cannot start; ``code`` is the exit code of the process."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def serve(  # the options of one command
    directory: Path,
    host: str,
    port: int,
    secret_file: Path,
    settings: Settings,
    sizes: dict[str, Any],
    *,
    plaintext: bool,
    ready: Callable[[str, int], None],
) -> None:
    """Serve a directory until SIGTERM or SIGINT; ``ready`` is called with the address.

    ``sizes`` are the arguments of the engine. ``plaintext`` allows other machines to connect without TLS. Raises
    ReplicaRefused.
    """
    set_up(settings)
    raise_file_limit()
    server = _server(directory, (host, port), secret_file, settings, sizes, plaintext=plaintext)
    log.info("pulsarbox %s: process %d serves %s on %s:%d", __version__, os.getpid(), directory, *server.address)
    with stopped_by_signals(server):
        ready(*server.address)
        server.run(settings.tlsCertRefreshCheckDurationSec)
    log.info("stopped")


def _server(
    directory: Path,
    address: tuple[str, int],
    secret_file: Path,
    settings: Settings,
    sizes: dict[str, Any],
    *,
    plaintext: bool,
) -> ReplicaServer:
    try:
        secret = secret_in(secret_file)
        _check_private(secret_file)
        certificates = certificates_of(settings)
        _check_encryption(address[0], is_encrypted=certificates is not None, plaintext=plaintext)
        owner = DirectoryOwner(ServedDirectory(directory.absolute(), **sizes))
        owner.check()
        return ReplicaServer(listen(*address), secret, owner, certificates)
    except DirectoryHeld as error:
        raise ReplicaRefused(EXIT_TAKEN, f"{error}: stop that process, or serve another directory") from None
    except ValueError as error:
        raise ReplicaRefused(EXIT_MISCONFIGURED, str(error)) from None
    except PersistenceError as error:
        raise ReplicaRefused(EXIT_FAILED, str(error)) from None
    except OSError as error:
        what = f"cannot listen on {address[0]}:{address[1]}: {error.strerror}" if error.strerror else str(error)
        raise ReplicaRefused(EXIT_TAKEN if error.errno else EXIT_MISCONFIGURED, what) from None


def _check_private(secret_file: Path) -> None:
    with contextlib.suppress(OSError):
        if secret_file.stat().st_mode & _OTHERS:
            log.warning("%s can be read by other users: `chmod 600 %s`", secret_file, secret_file)


def _check_encryption(host: str, *, is_encrypted: bool, plaintext: bool) -> None:
    """Raise ValueError if messages would be sent unencrypted to other machines without permission."""
    if is_encrypted or is_loopback(host):
        return
    if not plaintext:
        raise ValueError(
            f"messages would be sent unencrypted to {host}: configure tlsCertificateFilePath and tlsKeyFilePath"
            " (--tls-cert, --tls-key), or allow it in a trusted network with --plaintext"
        )
    log.warning("messages are sent unencrypted, because of --plaintext: anyone in the network can read and change them")
