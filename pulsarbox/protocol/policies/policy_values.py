"""JSON shapes of policy values, and the predicates that decide whether a stored value sets its policy."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.protocol.policies.shapes import (
    INT_BITS,
    LONG_BITS,
    NO_LIMIT,
    Flag,
    Fraction,
    ObjectShape,
    Text,
    WholeNumber,
    Word,
)
from pulsarbox.protocol.policies.short_forms import (
    OFF,
    UNLIMITED,
    DelayForm,
    InactivityForm,
    QuorumForm,
    QuotaForm,
    RateForm,
    RetentionForm,
    SwitchForm,
    TopicCreationForm,
)
from pulsarbox.quantities import BYTES, MEBIBYTES, MILLISECONDS, MINUTES, SECONDS, Quantity

_OFF_IS_0: Final = {OFF: 0, UNLIMITED: 0}


def number_or_off(quantity: Quantity | None = None) -> WholeNumber:
    """Return the shape of a limit of which 0 is none. Java's int; WholeNumber() is Integer."""
    return WholeNumber(zero=0, quantity=quantity, words=_OFF_IS_0)


COUNT: Final = number_or_off()
LONG: Final = WholeNumber(LONG_BITS, zero=0)
SIZE_OR_OFF: Final = WholeNumber(LONG_BITS, zero=0, quantity=BYTES, words=_OFF_IS_0)
BOOLEAN: Final = Flag(zero=False)

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Failover", "Key_Shared", "Shared")
QUOTA_SIZE: Final = "destination_storage"
QUOTA_AGE: Final = "message_age"
QUOTA_TYPES: Final = (QUOTA_SIZE, QUOTA_AGE)
"""Types of backlog quotas. One of a type limits only what it is named after, whatever else its value contains."""
QUOTA_ACTIONS: Final[Mapping[str, str]] = {
    "hold": "producer_request_hold",
    "refuse": "producer_exception",
    "evict": "consumer_backlog_eviction",
}
"""Actions of backlog quotas in the Admin API, by their word in commands."""
INACTIVE_MODES: Final[Mapping[str, str]] = {
    "no-subscriptions": "delete_when_no_subscriptions",
    "caught-up": "delete_when_subscriptions_caught_up",
}
"""When inactive topics are deleted, in the Admin API, by their word in commands."""
UNDEFINED: Final = "UNDEFINED"
"""A schema compatibility strategy that is not set."""
OLD_SCHEMA_STRATEGIES: Final[Mapping[str, str]] = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""Schema compatibility strategies by their name in schemaAutoUpdateCompatibilityStrategy."""

_UNLIMITED_IS_NEGATIVE: Final = {UNLIMITED: NO_LIMIT}
_OFF_IS_NEGATIVE: Final = {UNLIMITED: NO_LIMIT, OFF: NO_LIMIT}


def _limit(
    quantity: Quantity | None = None, bits: int = INT_BITS, words: Mapping[str, int] = _OFF_IS_NEGATIVE
) -> WholeNumber:
    """Return the shape of a member of which -1 is no limit."""
    return WholeNumber(bits, quantity=quantity, words=words)


_MESSAGES: Final = _limit()
_BYTES: Final = _limit(BYTES, LONG_BITS)
_PERIOD_SHAPE: Final = WholeNumber(quantity=SECONDS)

DISPATCH_RATE: Final = ObjectShape(
    {
        "dispatchThrottlingRateInMsg": (_MESSAGES, 0),
        "dispatchThrottlingRateInByte": (_BYTES, 0),
        "relativeToPublishRate": (Flag(), False),
        "ratePeriodInSecond": (_PERIOD_SHAPE, 0),
    },
    form=RateForm(
        "dispatchThrottlingRateInMsg",
        "dispatchThrottlingRateInByte",
        "ratePeriodInSecond",
        {"relativeToPublishRate": False},
    ),
)
TYPED_RATE: Final = {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
"""Defaults of a dispatch rate's members on the command line."""
PUBLISH_RATE: Final = ObjectShape(
    {"publishThrottlingRateInMsg": (_MESSAGES, -1), "publishThrottlingRateInByte": (_BYTES, -1)},
    form=RateForm("publishThrottlingRateInMsg", "publishThrottlingRateInByte"),
)
SUBSCRIBE_RATE: Final = ObjectShape(
    {"subscribeThrottlingRatePerConsumer": (_MESSAGES, -1), "ratePeriodInSecond": (_PERIOD_SHAPE, 30)},
    form=RateForm("subscribeThrottlingRatePerConsumer", period="ratePeriodInSecond"),
)
RETENTION: Final = ObjectShape(
    {  # 0 keeps nothing, so that off would be read as 0
        "retentionTimeInMinutes": (_limit(MINUTES, words=_UNLIMITED_IS_NEGATIVE), 0),
        "retentionSizeInMB": (_limit(MEBIBYTES, LONG_BITS, _UNLIMITED_IS_NEGATIVE), 0),
    },
    form=RetentionForm(),
)
QUOTA: Final = ObjectShape(
    {
        "limit": (_BYTES, None),
        "limitSize": (_BYTES, None),
        "limitTime": (_limit(SECONDS), 0),
        "policy": (Word(tuple(QUOTA_ACTIONS.values()), short=QUOTA_ACTIONS), None),
        "excludeDelayed": (Flag(), None),
    },
    form=QuotaForm(QUOTA_ACTIONS),
)
INACTIVE_TOPICS: Final = ObjectShape(
    {
        "inactiveTopicDeleteMode": (Word(tuple(INACTIVE_MODES.values()), short=INACTIVE_MODES), None),
        "maxInactiveDurationSeconds": (WholeNumber(quantity=SECONDS), 0),
        "deleteWhileInactive": (Flag(), False),
    },
    form=InactivityForm(INACTIVE_MODES),
)
PERSISTENCE: Final = ObjectShape(
    {
        "bookkeeperEnsemble": (WholeNumber(), 2),
        "bookkeeperWriteQuorum": (WholeNumber(), 2),
        "bookkeeperAckQuorum": (WholeNumber(), 2),
        "managedLedgerMaxMarkDeleteRate": (Fraction(), -1.0),
    },
    form=QuorumForm(),
)
DELAYED_DELIVERY: Final = ObjectShape(
    {
        "tickTime": (WholeNumber(LONG_BITS, quantity=MILLISECONDS), 0),
        "active": (Flag(), False),
        "maxDeliveryDelayInMillis": (WholeNumber(LONG_BITS, quantity=MILLISECONDS, words=_OFF_IS_0), 0),
    },
    form=DelayForm(),
)
AUTO_TOPIC: Final = ObjectShape(
    {
        "allowAutoTopicCreation": (Flag(), False),
        "topicType": (Text(), None),
        "defaultNumPartitions": (WholeNumber(), None),
    },
    form=TopicCreationForm(),
)
AUTO_SUBSCRIPTION: Final = ObjectShape(
    {"allowAutoSubscriptionCreation": (Flag(), False)}, form=SwitchForm("allowAutoSubscriptionCreation")
)
RESOURCE_GROUP: Final = ObjectShape(
    {
        "publishRateInMsgs": (_MESSAGES, None),
        "publishRateInBytes": (_BYTES, None),
        "dispatchRateInMsgs": (_MESSAGES, None),
        "dispatchRateInBytes": (_BYTES, None),
    }
)


def quota_name(kind: str) -> str:
    """Return the policy name of a backlog quota type: ``backlog-quota:message_age``."""
    return f"{BACKLOG_QUOTA_NAME}:{kind}"


BACKLOG_QUOTA_NAME: Final = "backlog-quota"
SIZE_QUOTA: Final = quota_name(QUOTA_SIZE)
AGE_QUOTA: Final = quota_name(QUOTA_AGE)


# Members of a value, with their meaning


def quota_value(
    action: str | None, *, size: int = NO_LIMIT, seconds: int = NO_LIMIT, exclude_delayed: bool = False
) -> dict[str, Any]:
    """Return a backlog quota, with the size under both of its names."""
    value = {"limit": size, "limitSize": size, "limitTime": seconds, "policy": action}
    return value | {"excludeDelayed": True} if exclude_delayed else value


def quota_size(value: Mapping[str, Any]) -> int:
    """Return the limit of a size quota in bytes; NO_LIMIT for none. ``limit`` is the legacy name of ``limitSize``."""
    given = [value[name] for name in ("limitSize", "limit") if value.get(name) is not None]
    return max(int(given[0]), NO_LIMIT) if given else NO_LIMIT


def quota_seconds(value: Mapping[str, Any]) -> int:
    """Return the limit of an age quota in seconds; NO_LIMIT for none. 0 is no limit either, as in Pulsar."""
    seconds = int(value.get("limitTime") or 0)
    return seconds if seconds > 0 else NO_LIMIT


def limited_types(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types of backlog quota that a value limits; all of them if it limits nothing."""
    limits = {QUOTA_SIZE: quota_size(value), QUOTA_AGE: quota_seconds(value)}
    return tuple(kind for kind, limit in limits.items() if limit != NO_LIMIT) or QUOTA_TYPES


def quota_action(value: Mapping[str, Any]) -> str:
    """Return the action of a backlog quota."""
    return value.get("policy") or QUOTA_ACTIONS["hold"]


def retains(value: Mapping[str, Any]) -> bool:
    """Return whether a retention keeps acknowledged messages: neither its time nor its size is 0."""
    return bool(value.get("retentionTimeInMinutes") and value.get("retentionSizeInMB"))


# Stored values that do not set their policy, as in Pulsar: the next level applies.


def not_negative(value: int) -> bool:
    """Return whether a limit sets its policy: 0 does, and means no limit."""
    return value >= 0


def _limits(*members: str) -> Callable[[Mapping[str, Any]], bool]:
    # As ``normalize`` of Pulsar's rates: a rate that limits nothing does not set its policy.
    def limits(value: Mapping[str, Any]) -> bool:
        return any(value.get(member, -1) > 0 for member in members)

    return limits


def limits_subscribing(value: Mapping[str, Any]) -> bool:
    """Return whether a subscribe rate limits anything."""
    return bool(value.get("subscribeThrottlingRatePerConsumer", -1) > 0 and value.get("ratePeriodInSecond", 30) > 0)


def is_strategy(value: str) -> bool:
    """Return whether a schema compatibility strategy is set."""
    return value != UNDEFINED


limits_dispatch: Final = _limits("dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte")
limits_publishing: Final = _limits("publishThrottlingRateInMsg", "publishThrottlingRateInByte")


# Minimums that commands enforce. Brokers accept smaller numbers, which have no effect: a rate of 0, a period of -5 s.


class Least(NamedTuple):
    """The minimum of a numeric member."""

    least: int
    or_no_limit: bool
    """Whether -1 (no limit) is allowed as well."""
    noun: str


_RATE: Final = Least(1, True, "a rate")
_PERIOD: Final = Least(1, False, "a period in seconds")
_LEAST: Final[Mapping[str, Least]] = {
    "dispatchThrottlingRateInMsg": _RATE,
    "dispatchThrottlingRateInByte": _RATE,
    "publishThrottlingRateInMsg": _RATE,
    "publishThrottlingRateInByte": _RATE,
    "publishRateInMsgs": _RATE,
    "publishRateInBytes": _RATE,
    "dispatchRateInMsgs": _RATE,
    "dispatchRateInBytes": _RATE,
    "subscribeThrottlingRatePerConsumer": _RATE,
    "ratePeriodInSecond": _PERIOD,
    "limitSize": Least(0, True, "a size"),
    "limitTime": Least(1, True, "a time in seconds"),
    "maxInactiveDurationSeconds": Least(1, False, "a time in seconds"),
    "tickTime": Least(1, False, "a time in milliseconds"),
    "maxDeliveryDelayInMillis": Least(0, False, "a time in milliseconds"),
    "managedLedgerMaxMarkDeleteRate": Least(0, True, "a rate"),
    "retentionTimeInMinutes": Least(0, True, "a time in minutes"),
    "retentionSizeInMB": Least(0, True, "a size in MiB"),
}


def problem(member: str, value: Any) -> str:
    """Return why commands reject a member's value; empty if they accept it."""
    rule = _LEAST.get(member)
    if rule is None or not isinstance(value, int | float) or value >= rule.least:
        return ""
    if rule.or_no_limit and value == NO_LIMIT:
        return ""
    unlimited = ", or -1 for no limit" if rule.or_no_limit else ""
    return f"{member}: {rule.noun} must be {rule.least} or more{unlimited}, not {value}"


def meaningful(value: Any) -> Any:
    """Return the value with meaningless members replaced: limits by -1 (no limit), periods by their minimum."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: each if not problem(name, each) else NO_LIMIT if _LEAST[name].or_no_limit else _LEAST[name].least
        for name, each in value.items()
    }
