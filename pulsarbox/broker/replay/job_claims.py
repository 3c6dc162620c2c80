"""Subscriptions that running jobs claim for themselves.

A running job claims its subscription like an exclusive consumer: other consumers would receive the messages it moves.
"""

from typing import NamedTuple, Protocol

from pulsarbox.errors import ConsumerBusy, ServiceNotReady
from pulsarbox.names import TopicName


class ClaimedSubscription(Protocol):
    """A subscription that a job may claim."""

    topic_name: TopicName
    name: str
    job_moves: int
    """Entries that a job is moving to another topic and that are not durable there yet."""


class JobClaim(NamedTuple):
    """The job that claims a subscription."""

    number: int
    kind: str


class JobClaims:
    """The claims of all running jobs, by topic and subscription."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], JobClaim] = {}

    def add(self, topic: str, subscription: str, claim: JobClaim) -> None:
        """Claim a subscription of a topic for a job."""
        self._claims[topic, subscription] = claim

    def release(self, number: int) -> None:
        """End all claims of a job."""
        self._claims = {place: claim for place, claim in self._claims.items() if claim.number != number}

    def find(self, topic: str, subscription: str) -> JobClaim | None:
        """Return the claim on a subscription, None if no job claims it."""
        return self._claims.get((topic, subscription))

    def check_consumer(self, subscription: ClaimedSubscription) -> None:
        """Raise ConsumerBusy if a job claims the subscription, ServiceNotReady while its last step is not durable."""
        claim = self.find(str(subscription.topic_name), subscription.name)
        if claim is not None:
            raise ConsumerBusy(
                f"Job {claim.number} ({claim.kind}) is using subscription {subscription.name}:"
                " wait until it ends, or pause it"
            )
        if subscription.job_moves:
            raise ServiceNotReady("Messages moved by a job are still being committed, try again")
