"""Warnings about the policy ``persistence``: its numbers of copies need as many data directories."""

from typing import Any

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.policies.kinds.persistence import PERSISTENCE
from pulsarbox.broker.topic.topic_copies import copies_of
from pulsarbox.protocol.policies.row import PolicyRow
from pulsarbox.server.http.framework.request import DONE, HttpResponse
from pulsarbox.server.http.framework.stored_only import with_warning


def without_effect(broker: Broker, row: PolicyRow) -> str:
    """Return why this box does not apply a policy; empty if it does."""
    has_copies = row.name == PERSISTENCE.name and broker.commits.replication is not None
    return "" if has_copies else row.stored_only


def warn_of_copies(broker: Broker, value: Any, done: HttpResponse = DONE) -> HttpResponse:
    """Add a warning to the answer to a persistence policy that the data directories cannot meet at present."""
    replication = broker.commits.replication
    warning = None if replication is None else replication.warning(copies_of(PERSISTENCE.read(value)))
    return done if warning is None else with_warning(f"{PERSISTENCE.name}: {warning}", done)
