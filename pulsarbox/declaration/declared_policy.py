"""Values of declared policies: JSON as in the Admin API, or text as `pulsarbox ns policy` takes it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.policies.checks import check, quota
from pulsarbox.protocol.policies.policy_values import (
    QUOTA_AGE,
    QUOTA_TYPES,
    limited_types,
    meaningful,
)
from pulsarbox.protocol.policies.row import DEFAULT, Blank, PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.shapes import Flag, ObjectShape, Text, ValueShape, WholeNumber, Word
from pulsarbox.protocol.policies.stored_rows import CLUSTER_ROWS, ENTRY_FILTERS, SHADOW_TOPICS
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, QUOTA_ROWS, RESOURCE_GROUP_NAME, ROWS
from pulsarbox.protocol.policies.written_value import OR_DEFAULT, check_members, completed, parsed, shown
from pulsarbox.quantities import InvalidText

UNDECLARED: Final = (ENTRY_FILTERS,)
"""Policies that brokers refuse to change."""

ROWS_BY_NAME: Mapping[str, PolicyRow] = {
    row.name: row for row in (*ROWS, *QUOTA_ROWS, RESOURCE_GROUP_NAME, *CLUSTER_ROWS) if row not in UNDECLARED
}
"""Every policy that can be declared: each backlog quota type is one."""


def level_of(row: PolicyRow, *, topic: bool) -> PolicyEndpoint | None:
    """Return the policy at the level of topics or namespaces; None if it does not exist there."""
    return row.topic if topic else row.namespace


def rows_at(*, topic: bool) -> Iterator[tuple[PolicyRow, PolicyEndpoint]]:
    """Yield the policies that exist at the level of topics or namespaces."""
    for row in ROWS_BY_NAME.values():
        place = level_of(row, topic=topic)
        if place is not None:
            yield row, place


def policy_value(row: PolicyRow, place: PolicyEndpoint, given: Any) -> Any:
    """Return a declared value as a broker stores it, or None if it removes the policy. Raises ValueError.

    Rejects meaningless numbers and unknown members, which brokers accept.
    """
    if given == DEFAULT:
        return None
    check_members(given)
    try:
        value = read_value(row.shape, row.typed, given)
    except InvalidText as error:
        raise error.or_also(OR_DEFAULT) from None
    try:
        if row in QUOTA_ROWS:
            value = quota(value)
            _check_type(row.name.partition(":")[2], value)
        check(row, place, value)
        value = [str(parse_topic(each)) for each in value] if row is SHADOW_TOPICS else value
    except PulsarBoxError as error:
        raise ValueError(str(error)) from None
    if place.blank is Blank.UNMET and (not value or (isinstance(value, str) and not value.strip())):
        raise ValueError(f"the value is empty; to remove the policy, specify {DEFAULT}")
    if place.always is not None and value != place.always:
        return None
    return value if row.sets(value) and value != place.nothing else None


def _check_type(kind: str, value: Mapping[str, Any]) -> None:
    if kind not in limited_types(value):
        limit = "an age, such as 7d,evict" if kind == QUOTA_AGE else "a size, such as 10G,hold"
        raise ValueError(f"expected {limit}")


def quota_types_of(text: str) -> tuple[str, ...]:
    """Return the types of backlog quota that a text such as ``10G,hold`` declares. Raises ValueError."""
    value = QUOTA_TYPES if text == DEFAULT else parsed(BACKLOG_QUOTA.shape, text)
    return limited_types(value) if isinstance(value, dict) else QUOTA_TYPES


def written_value(row: PolicyRow, place: PolicyEndpoint, value: Any) -> Any:
    """Return a stored value as people write it, if a declaration reads it back to the same; otherwise as it is."""
    shape = row.shape
    if isinstance(shape, ObjectShape):
        text = shape.form.text(meaningful(value)) if shape.form is not None else None
    else:
        text = shown(shape, value) if isinstance(shape, WholeNumber | Text) else None
    if text is None or text == str(value):
        return value
    try:
        is_same = is_equal(policy_value(row, place, text), value)
    except ValueError:
        return value
    return text if is_same else value


def read_value(shape: ValueShape, defaults: Mapping[str, Any], given: Any) -> Any:
    """Return a declared value in its JSON shape; ``defaults`` as ``PolicyRow.typed``. Raises ValueError."""
    if isinstance(given, bool) and isinstance(shape, ObjectShape | WholeNumber):
        given = Flag().text(given)  # YAML reads `off` as false
    if isinstance(given, str):
        given = parsed(shape, given)
    if isinstance(given, dict):
        given = completed(shape, defaults, _members(shape, given))
    try:
        return shape.read(given, "the value")
    except PulsarBoxError as error:
        raise ValueError(str(error)) from None


def _members(shape: ValueShape, given: dict[str, Any]) -> dict[str, Any]:
    """Return the members of an object, with the numbers of those that are text (``limitSize: 1.5G``)."""
    if not isinstance(shape, ObjectShape):
        return given
    found = dict(given)
    for name, value in given.items():
        member = shape.members.get(name, (None, None))[0]
        if isinstance(value, str) and isinstance(member, WholeNumber | Flag | Word):
            try:
                found[name] = member.parse(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
    return found


def is_unset(row: PolicyRow, place: PolicyEndpoint, present: Any) -> bool:
    """Return whether a present value leaves the policy to the next level."""
    return present is None or not row.sets(present) or present == place.unset


def beyond_own(row: PolicyRow, value: Any, own: str) -> Any:
    """Return the value of a namespace's policy; None if it names no cluster but the broker's own, the default."""
    return None if row in CLUSTER_ROWS and value == [own] else value


def is_equal(declared: Any, present: Any) -> bool:
    """Return whether a present value has the effect of a declared one."""
    return bool(meaningful(declared) == meaningful(present))
