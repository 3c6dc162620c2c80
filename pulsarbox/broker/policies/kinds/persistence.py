"""Persistence: numbers of bookies per message, which are data directories. No effect in a box with one of them.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, persistence.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.policy import Policy


class Persistence(NamedTuple):
    """BookKeeper's ensemble, write quorum and ack quorum, and the rate of storing cursors."""

    ensemble: int
    write_quorum: int
    ack_quorum: int
    mark_delete_rate: float
    """Mark-delete updates stored per second; a box stores them with every batch."""


def _read(value: dict[str, Any]) -> Persistence:
    return Persistence(
        value["bookkeeperEnsemble"],
        value["bookkeeperWriteQuorum"],
        value["bookkeeperAckQuorum"],
        value["managedLedgerMaxMarkDeleteRate"],
    )


PERSISTENCE: Final = Policy("persistence", _read)
