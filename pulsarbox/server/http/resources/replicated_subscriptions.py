"""Whether the positions of subscriptions are replicated: stored and shown, but a box replicates nothing.

Source: https://pulsar.apache.org/docs/4.2.x/administration-geo/#replicated-subscriptions.
"""

from typing import Final

from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.errors import NotAllowed
from pulsarbox.protocol.policies.policy_values import BOOLEAN
from pulsarbox.protocol.policies.row import Blank, PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.stored_rows import NOT_REPLICATED
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, parts_of, persistent, subscription_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.server.http.policies.values import given

_STATUS: Final = PolicyEndpoint("replicated", "replicatedSubscriptionStatus", blank=Blank.ZERO)
_ROW: Final = PolicyRow("replicated-subscription", "Whether a subscription is replicated", BOOLEAN)


def get_status(call: HttpRequest) -> HttpResponse:
    """Return whether a subscription is replicated, by topic: on a partitioned topic by partition."""
    found = _subscriptions(call, "Cannot get replicated subscriptions on non-persistent topics")
    return answer({str(each.topic_name): each.replicated for each in found})


def set_status(call: HttpRequest) -> HttpResponse:
    """Store whether a subscription is replicated, on all partitions."""
    replicated = bool(given(call, _ROW, _STATUS))
    for each in _subscriptions(call, "Cannot enable/disable replicated subscriptions on non-persistent topics"):
        each.set_replicated(replicated, call.now)
    return replicated_answer(replicated=replicated)


def replicated_answer(*, replicated: bool) -> HttpResponse:
    """Answer a change of a subscription, with a warning if it shall be replicated."""
    return stored_only(_ROW.name, NOT_REPLICATED) if replicated else DONE


def _subscriptions(call: HttpRequest, refusal: str) -> list[Subscription]:
    """Return the subscription on each partition. Raises NotAllowed with the refusal, NotFound."""
    if call.path["domain"] == "non-persistent":
        raise NotAllowed(refusal)
    topics = [persistent(find_topic(call, part, call.now), "This") for part in parts_of(call)]
    return [subscription_of(topic, call.path["subscription"]) for topic in topics]


_PATH: Final = f"/admin/v2/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}/subscription/{{subscription}}/{_STATUS.path}"

ROUTES = (
    HttpRoute("GET", _PATH, Permission.TOPIC_CONSUMER, get_status),
    HttpRoute("POST", _PATH, Permission.TOPIC_CONSUMER, set_status),
)
