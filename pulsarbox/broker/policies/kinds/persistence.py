"""To how many bookies a message goes. A box keeps one copy, so the numbers are stored, and are 1 until they are set.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, persistence.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy


class Persistence(NamedTuple):
    """Copies of a message: over how many directories, how many there are, how many must be safe."""

    ensemble: int
    write_quorum: int
    ack_quorum: int
    mark_delete_rate: float
    """How often a second a cursor may be stored; a box stores it with every batch."""


def _read(value: dict[str, Any]) -> Persistence:
    return Persistence(
        value["bookkeeperEnsemble"],
        value["bookkeeperWriteQuorum"],
        value["bookkeeperAckQuorum"],
        value["managedLedgerMaxMarkDeleteRate"],
    )


PERSISTENCE: Final = Policy("persistence", _read)
