"""Consistency checks across the members of a policy value, with Pulsar's error texts."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.errors import BadRequest, PreconditionFailed
from pulsarbox.protocol.policies.offload_shape import check_offload
from pulsarbox.protocol.policies.policy_values import QUOTA_TYPES, SIZE_QUOTA, quota_value
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import row_of

ENSEMBLE_MAX: Final = 5


def check(row: PolicyRow, place: PolicyEndpoint, value: Any) -> None:
    """Raise BadRequest or PreconditionFailed if the policy cannot have this value."""
    if place.minimum is not None and value < place.minimum:
        raise PreconditionFailed(place.too_small)
    of_its_own = _CHECKS.get(row.name)
    if of_its_own is not None:
        of_its_own(value)


def _retention(value: dict[str, Any]) -> None:
    minutes, megabytes = value["retentionTimeInMinutes"], value["retentionSizeInMB"]
    wrong = "Invalid retention policy: "
    if minutes < -1:
        raise BadRequest(f"{wrong}time limit must be >= -1")
    if megabytes < -1:
        raise BadRequest(f"{wrong}size limit must be >= -1")
    if (minutes == 0) != (megabytes == 0):
        raise BadRequest(
            f"{wrong}Setting a single time or size limit to 0 is invalid when one of the limits has a non-zero value."
            " Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits must be"
            " set to 0."
        )


def _persistence(value: dict[str, Any]) -> None:
    ensemble, write, ack = (value[f"bookkeeper{word}"] for word in ("Ensemble", "WriteQuorum", "AckQuorum"))
    for name, number in (("Ensemble", ensemble), ("WriteQuorum", write), ("AckQuorum", ack)):
        if not 0 < number <= ENSEMBLE_MAX:
            raise BadRequest(f"Bookkeeper-{name} must be <= {ENSEMBLE_MAX} and > 0.")
    if not ensemble >= write >= ack:
        raise BadRequest(f"Bookkeeper Ensemble ({ensemble}) >= WriteQuorum ({write}) >= AckQuorum ({ack})")


def _auto_topics(value: dict[str, Any]) -> None:
    if not value["allowAutoTopicCreation"]:
        return
    kind, count = value.get("topicType"), value.get("defaultNumPartitions")
    wrong = ""
    if kind not in ("partitioned", "non-partitioned"):
        wrong = f"Unknown topic type [{'null' if kind is None else kind}]"
    elif kind == "partitioned" and count is None:
        wrong = "[defaultNumPartitions] cannot be null when the type is partitioned."
    elif kind == "partitioned" and count is not None and count < 1:
        wrong = "[defaultNumPartitions] cannot be less than 1 for partition type."
    elif kind == "non-partitioned" and count is not None:
        wrong = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    if wrong:
        raise PreconditionFailed(f"Invalid configuration for autoTopicCreationOverride. the detail is {wrong}")


def _entry_filters(value: dict[str, Any]) -> None:
    names = [name.strip() for name in value.get("entryFilterNames", "").split(",") if name.strip()]
    if not names:
        raise BadRequest("entryFilterNames can't be empty. To remove entry filters use the remove method.")
    raise BadRequest(f"Entry filter '{names[0]}' not found: entry filters are Java classes, which a box does not load")


_CHECKS: Final[Mapping[str, Callable[[Any], None]]] = {
    "retention": _retention,
    "persistence": _persistence,
    "auto-topic-creation": _auto_topics,
    "offload-policies": check_offload,
    "entry-filters": _entry_filters,
}


# Backlog quotas


def quota(value: dict[str, Any]) -> dict[str, Any]:
    """Return a backlog quota in its stored form, with the size under both names. Raises BadRequest without a policy."""
    if "policy" not in value:
        raise BadRequest("the attribute policy cannot be null")
    size = value.get("limitSize", value.get("limit", 0))
    delayed = bool(value.get("excludeDelayed"))
    return quota_value(value["policy"], size=size, seconds=value["limitTime"], exclude_delayed=delayed)


def fits(quota: Mapping[str, Any] | None, retention: Mapping[str, Any] | None) -> bool:
    """Return whether a backlog can reach its quota before retention limits apply."""
    if quota is None or retention is None:
        return True
    megabytes, minutes = retention["retentionSizeInMB"], retention["retentionTimeInMinutes"]
    too_large = megabytes > 0 and quota["limitSize"] >= megabytes << 20
    too_old = minutes > 0 and quota["limitTime"] >= minutes * 60
    return bool(not too_large and not too_old)


def size_quota(policies: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the size quota that a namespace sets; None for none."""
    place = row_of(SIZE_QUOTA).namespace
    found: Mapping[str, Any] | None = place.value_in(policies, "") if place is not None else None
    return found


def retention_of(policies: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the retention that a namespace sets; None for none."""
    place = row_of("retention").namespace
    found: Mapping[str, Any] | None = place.value_in(policies, "") if place is not None else None
    return found


def quota_map(value: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the quotas of a namespace by type. Raises BadRequest."""
    strange = sorted(set(value) - set(QUOTA_TYPES))
    if strange:
        raise BadRequest(f"backlog_quota_map: unknown type {strange[0]}; expected {' or '.join(QUOTA_TYPES)}")
    return {kind: quota(each) for kind, each in value.items()}
