"""JSON shapes of policy values, and the predicates that decide whether a stored value sets its policy."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.protocol.policies.shapes import LONG_BITS, Flag, Fraction, ObjectShape, Text, WholeNumber, Word

INT: Final = WholeNumber(zero=0)
"""Java's int; Whole() is Integer."""
LONG: Final = WholeNumber(LONG_BITS, zero=0)
BOOLEAN: Final = Flag(zero=False)

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Failover", "Key_Shared", "Shared")
QUOTA_TYPES: Final = ("destination_storage", "message_age")
QUOTA_POLICIES: Final = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
INACTIVE_MODES: Final = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
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

DISPATCH_RATE: Final = ObjectShape(
    {
        "dispatchThrottlingRateInMsg": (WholeNumber(), 0),
        "dispatchThrottlingRateInByte": (WholeNumber(LONG_BITS), 0),
        "relativeToPublishRate": (Flag(), False),
        "ratePeriodInSecond": (WholeNumber(), 0),
    }
)
TYPED_RATE: Final = {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
"""Defaults of a dispatch rate's members on the command line."""
PUBLISH_RATE: Final = ObjectShape(
    {"publishThrottlingRateInMsg": (WholeNumber(), -1), "publishThrottlingRateInByte": (WholeNumber(LONG_BITS), -1)}
)
SUBSCRIBE_RATE: Final = ObjectShape(
    {"subscribeThrottlingRatePerConsumer": (WholeNumber(), -1), "ratePeriodInSecond": (WholeNumber(), 30)}
)
RETENTION: Final = ObjectShape(
    {"retentionTimeInMinutes": (WholeNumber(), 0), "retentionSizeInMB": (WholeNumber(LONG_BITS), 0)}
)
QUOTA: Final = ObjectShape(
    {
        "limit": (WholeNumber(LONG_BITS), None),
        "limitSize": (WholeNumber(LONG_BITS), None),
        "limitTime": (WholeNumber(), 0),
        "policy": (Word(QUOTA_POLICIES), None),
        "excludeDelayed": (Flag(), None),
    }
)
INACTIVE_TOPICS: Final = ObjectShape(
    {
        "inactiveTopicDeleteMode": (Word(INACTIVE_MODES), None),
        "maxInactiveDurationSeconds": (WholeNumber(), 0),
        "deleteWhileInactive": (Flag(), False),
    }
)
PERSISTENCE: Final = ObjectShape(
    {
        "bookkeeperEnsemble": (WholeNumber(), 2),
        "bookkeeperWriteQuorum": (WholeNumber(), 2),
        "bookkeeperAckQuorum": (WholeNumber(), 2),
        "managedLedgerMaxMarkDeleteRate": (Fraction(), -1.0),
    }
)
DELAYED_DELIVERY: Final = ObjectShape(
    {
        "tickTime": (WholeNumber(LONG_BITS), 0),
        "active": (Flag(), False),
        "maxDeliveryDelayInMillis": (WholeNumber(LONG_BITS), 0),
    }
)
AUTO_TOPIC: Final = ObjectShape(
    {
        "allowAutoTopicCreation": (Flag(), False),
        "topicType": (Text(), None),
        "defaultNumPartitions": (WholeNumber(), None),
    }
)
AUTO_SUBSCRIPTION: Final = ObjectShape({"allowAutoSubscriptionCreation": (Flag(), False)})
RESOURCE_GROUP: Final = ObjectShape(
    {
        "publishRateInMsgs": (WholeNumber(), None),
        "publishRateInBytes": (WholeNumber(LONG_BITS), None),
        "dispatchRateInMsgs": (WholeNumber(), None),
        "dispatchRateInBytes": (WholeNumber(LONG_BITS), None),
    }
)


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


NO_LIMIT: Final = -1
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
