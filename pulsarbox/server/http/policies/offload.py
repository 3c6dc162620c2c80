"""Offload policies beyond the table: thresholds of namespaces, and the offload of topics, which a box refuses.

The thresholds are members of the offload policies. Source:
https://pulsar.apache.org/docs/4.2.x/tiered-storage-overview/.
"""

from typing import Any, Final

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import BadRequest
from pulsarbox.protocol.policies.offload_shape import DELETION_LAG, EMPTY_OFFLOAD, THRESHOLD_BYTES, THRESHOLD_SECONDS
from pulsarbox.protocol.policies.policy_values import LONG
from pulsarbox.protocol.policies.row import Blank, PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.stored_rows import LEGACY_OFFLOAD, OFFLOAD_POLICIES
from pulsarbox.server.http.framework.message_id_json import EARLIEST, place_of
from pulsarbox.server.http.framework.message_id_json import shown as shown_id
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, persistent
from pulsarbox.server.http.framework.routes import Handler, HttpRoute, Permission
from pulsarbox.server.http.policies.of_namespaces import NAMESPACE
from pulsarbox.server.http.policies.of_topics import TOPIC
from pulsarbox.server.http.policies.values import changed, given, shown
from pulsarbox.storage.catalog import Row

REFUSED: Final = f"Offloading is not supported: {OFFLOAD_POLICIES.stored_only}"


def _threshold(path: str, unset: Any = -1) -> PolicyEndpoint:
    return PolicyEndpoint(path, path, verb="PUT", blank=Blank.ZERO, unset=unset)


_THRESHOLD: Final = PolicyRow("offload-threshold", "A member of the offload policies", LONG)
_BYTES: Final = _threshold("offloadThreshold")
_SECONDS: Final = _threshold("offloadThresholdInSeconds")
_LAG: Final = PolicyEndpoint("offloadDeletionLagMs", "offloadDeletionLagMs", verb="PUT", blank=Blank.ZERO)


def _policies(call: HttpRequest) -> Row:
    """Return the offload policies of a namespace, or without any the defaults."""
    assert OFFLOAD_POLICIES.namespace is not None
    stored = call.tenants.policies(call.namespace())
    return LEGACY_OFFLOAD.filled(stored, stored.get(OFFLOAD_POLICIES.namespace.key)) or dict(EMPTY_OFFLOAD)


def _get(place: PolicyEndpoint, member: str) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        return shown(_policies(call).get(member), place)

    return handler


def _set(place: PolicyEndpoint, member: str, done: HttpResponse = DONE) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        value = given(call, _THRESHOLD, place)
        _put(call, _policies(call) | {member: value})
        return changed(call, OFFLOAD_POLICIES, value, done)

    return handler


def clear_deletion_lag(call: HttpRequest) -> HttpResponse:
    """Remove the deletion lag from the offload policies, which are otherwise kept."""
    policies = _policies(call)
    _put(call, {name: value for name, value in policies.items() if name != DELETION_LAG})
    return DONE


def _put(call: HttpRequest, policies: Row) -> None:
    assert OFFLOAD_POLICIES.namespace is not None
    legacy = dict.fromkeys(LEGACY_OFFLOAD.members)
    call.tenants.set_policies(call.namespace(), {**legacy, OFFLOAD_POLICIES.namespace.key: policies}, call.now)


def scan(call: HttpRequest) -> HttpResponse:
    """Return the offloaded ledgers of a namespace: none."""
    call.tenants.policies(call.namespace())
    return answer({"objects": [], "total": 0, "errors": 0, "unknown": 0})


# Topics


def offload(call: HttpRequest) -> HttpResponse:
    """Accept the offload of a topic, which fails at once, like that of a broker without an offloader."""
    if place_of(call) is None:
        raise BadRequest("messageId is null")
    _topic(call).offload_refused = True
    return DONE


def offload_status(call: HttpRequest) -> HttpResponse:
    """Return the status of the last offload of a topic since it was loaded."""
    refused = _topic(call).offload_refused
    return answer(
        {
            "status": "ERROR" if refused else "NOT_RUN",
            "lastError": REFUSED if refused else "",
            "firstUnoffloadedMessage": shown_id(EARLIEST, -1),
        }
    )


def _topic(call: HttpRequest) -> PersistentTopic:
    return persistent(find_topic(call, call.topic(), call.now), "Offload")


_ADMIN: Final = Permission.TENANT_ADMIN

ROUTES = (
    HttpRoute("GET", f"{NAMESPACE}/{_BYTES.path}", _ADMIN, _get(_BYTES, THRESHOLD_BYTES)),
    HttpRoute("PUT", f"{NAMESPACE}/{_BYTES.path}", _ADMIN, _set(_BYTES, THRESHOLD_BYTES)),
    HttpRoute("GET", f"{NAMESPACE}/{_SECONDS.path}", _ADMIN, _get(_SECONDS, THRESHOLD_SECONDS)),
    HttpRoute("PUT", f"{NAMESPACE}/{_SECONDS.path}", _ADMIN, _set(_SECONDS, THRESHOLD_SECONDS, HttpResponse(200))),
    HttpRoute("GET", f"{NAMESPACE}/{_LAG.path}", _ADMIN, _get(_LAG, DELETION_LAG)),
    HttpRoute("PUT", f"{NAMESPACE}/{_LAG.path}", _ADMIN, _set(_LAG, DELETION_LAG)),
    HttpRoute("DELETE", f"{NAMESPACE}/{_LAG.path}", _ADMIN, clear_deletion_lag),
    HttpRoute("GET", f"{NAMESPACE}/scanOffloadedLedgers", _ADMIN, scan),
    HttpRoute("PUT", f"{TOPIC}/offload", _ADMIN, offload),
    HttpRoute("GET", f"{TOPIC}/offload", _ADMIN, offload_status),
)
