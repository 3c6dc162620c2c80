"""Calls that set and remove policies."""

from dataclasses import replace
from typing import Any

from pulsarbox.declaration.admin_calls import AdminCall, admin, own
from pulsarbox.names import TopicName
from pulsarbox.protocol.admin_paths import path_of, quoted
from pulsarbox.protocol.policies.row import Blank, PolicyEndpoint, PolicyRow, Silent
from pulsarbox.protocol.policies.stored_rows import CLUSTER_ROWS
from pulsarbox.protocol.policies.table import QUOTA_ROWS, RESOURCE_GROUP_NAME

Subject = TopicName | str
"""A topic, or ``tenant/namespace``."""


def base_of(of: Subject) -> str:
    """Return the path of a topic or namespace below /admin/v2."""
    return path_of(of) if isinstance(of, TopicName) else f"/namespaces/{quoted(*of.split('/'))}"


def own_base_of(of: Subject) -> str:
    """Return the path of the policies of a topic or namespace below /pulsarbox/v1."""
    return f"/policies{path_of(of)}" if isinstance(of, TopicName) else f"/policies/{quoted(*of.split('/'))}"


def setting_call(of: Subject, row: PolicyRow, place: PolicyEndpoint, value: Any) -> AdminCall:
    """Return the call that sets a policy."""
    if row is RESOURCE_GROUP_NAME:
        return admin("POST", f"{base_of(of)}/{place.path}/{quoted(value)}")
    if row in QUOTA_ROWS:
        return admin("POST", f"{base_of(of)}/{place.path}", value, backlogQuotaType=place.members[0])
    if place.query:
        return admin(place.verb, f"{base_of(of)}/{place.path}", **{place.query: str(value)})
    return _call(place.verb, of, row, place, value.encode() if place.local else value)


def removal_call(of: Subject, row: PolicyRow, place: PolicyEndpoint, own_cluster: str) -> AdminCall:
    """Return the call that removes a policy; the next level applies then. Namespaces always have their own cluster."""
    if row in CLUSTER_ROWS and not place.removed:
        return admin(place.verb, f"{base_of(of)}/{place.path}", [own_cluster])
    if row in QUOTA_ROWS:
        return admin("DELETE", f"{base_of(of)}/{place.path}", backlogQuotaType=place.members[0])
    if place.removed:
        return _call("DELETE", of, row, replace(place, path=place.removal or place.path))
    if place.blank is Blank.REMOVES:
        return admin(place.verb, f"{base_of(of)}/{place.path}")
    assert not isinstance(place.unset, Silent), row.name
    return admin(place.verb, f"{base_of(of)}/{place.path}", place.unset)


def _call(verb: str, of: Subject, row: PolicyRow, place: PolicyEndpoint, value: Any = None) -> AdminCall:
    if row.own:
        return own(verb, f"{own_base_of(of)}/{place.path}", value)
    return admin(verb, f"{base_of(of)}/{place.path}", value)
