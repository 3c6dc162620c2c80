"""The replicas of a box, as its settings describe them."""

import logging
import time
import uuid
from pathlib import Path

from pulsarbox.config import ConfigError, Settings
from pulsarbox.config.data_directories import replicas
from pulsarbox.config.replica_address import TLS, is_loopback, parse_address
from pulsarbox.server.replica.replica_connector import ReplicaConnector, secret_in
from pulsarbox.server.replica.served_directory import machine_id
from pulsarbox.storage.ensemble.keeping.directories import Directories
from pulsarbox.storage.ensemble.remote.replica_directories import ReplicaDirectories

log = logging.getLogger(__name__)


def replica_directories(settings: Settings, local: Directories) -> ReplicaDirectories:
    """Return the directories of this machine together with replicas. Raises ConfigError if there is no secret."""
    secret_file = Path(settings.ensembleReplicaSecretFile)
    try:
        secret_in(secret_file)
    except ValueError as error:
        raise ConfigError("", "ensembleReplicaSecretFile", str(error)) from None
    for name in replicas(settings):
        address = parse_address(name)
        if not address.is_tls and not is_loopback(address.host):
            log.warning("%s: messages are sent unencrypted; use %s:// beyond a trusted network", name, TLS)
    trusted = settings.ensembleReplicaTrustCertsFilePath
    connector = ReplicaConnector(secret_file, Path(trusted) if trusted else None, settings.ensembleLateSeconds)
    return ReplicaDirectories(local, connector.connect, str(uuid.uuid4()), machine_id(), time.monotonic)
