"""A PRODUCER or SUBSCRIBE command that waits for its topic, as seen by its connection and by the topic."""

from typing import Literal, Protocol

from pulsarbox.clock import Now
from pulsarbox.errors import ServiceNotReady

Kind = Literal["producer", "consumer"]
Key = tuple[Kind, int]
"""Kind and id; unique on a connection."""


class PendingOpening(Protocol):
    """A command that has not been answered."""

    def abandon(self, now: Now) -> None:
        """Answer that the client has closed the producer or consumer, or that its connection is lost."""


def closed_early(kind: Kind) -> ServiceNotReady:
    """Return the answer to a command whose producer or consumer is closed first."""
    return ServiceNotReady(f"The {kind} was closed before it was open")
