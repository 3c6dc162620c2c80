"""The values of policies: what they look like as JSON, and which of them set their policy."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.protocol.policies.shapes import LONG_BITS, Flag, Fraction, Record, Text, Whole, Word

INT: Final = Whole(zero=0)
"""Java's int; Whole() is its Integer."""
LONG: Final = Whole(LONG_BITS, zero=0)
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
"""The strategy that each word of schemaAutoUpdateCompatibilityStrategy stands for."""

DISPATCH_RATE: Final = Record(
    {
        "dispatchThrottlingRateInMsg": (Whole(), 0),
        "dispatchThrottlingRateInByte": (Whole(LONG_BITS), 0),
        "relativeToPublishRate": (Flag(), False),
        "ratePeriodInSecond": (Whole(), 0),
    }
)
TYPED_RATE: Final = {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
"""What a dispatch rate is that is typed without them."""
PUBLISH_RATE: Final = Record(
    {"publishThrottlingRateInMsg": (Whole(), -1), "publishThrottlingRateInByte": (Whole(LONG_BITS), -1)}
)
SUBSCRIBE_RATE: Final = Record(
    {"subscribeThrottlingRatePerConsumer": (Whole(), -1), "ratePeriodInSecond": (Whole(), 30)}
)
RETENTION: Final = Record({"retentionTimeInMinutes": (Whole(), 0), "retentionSizeInMB": (Whole(LONG_BITS), 0)})
QUOTA: Final = Record(
    {
        "limit": (Whole(LONG_BITS), None),
        "limitSize": (Whole(LONG_BITS), None),
        "limitTime": (Whole(), 0),
        "policy": (Word(QUOTA_POLICIES), None),
        "excludeDelayed": (Flag(), None),
    }
)
INACTIVE_TOPICS: Final = Record(
    {
        "inactiveTopicDeleteMode": (Word(INACTIVE_MODES), None),
        "maxInactiveDurationSeconds": (Whole(), 0),
        "deleteWhileInactive": (Flag(), False),
    }
)
PERSISTENCE: Final = Record(
    {
        "bookkeeperEnsemble": (Whole(), 2),
        "bookkeeperWriteQuorum": (Whole(), 2),
        "bookkeeperAckQuorum": (Whole(), 2),
        "managedLedgerMaxMarkDeleteRate": (Fraction(), -1.0),
    }
)
DELAYED_DELIVERY: Final = Record(
    {
        "tickTime": (Whole(LONG_BITS), 0),
        "active": (Flag(), False),
        "maxDeliveryDelayInMillis": (Whole(LONG_BITS), 0),
    }
)
AUTO_TOPIC: Final = Record(
    {
        "allowAutoTopicCreation": (Flag(), False),
        "topicType": (Text(), None),
        "defaultNumPartitions": (Whole(), None),
    }
)
AUTO_SUBSCRIPTION: Final = Record({"allowAutoSubscriptionCreation": (Flag(), False)})
RESOURCE_GROUP: Final = Record(
    {
        "publishRateInMsgs": (Whole(), None),
        "publishRateInBytes": (Whole(LONG_BITS), None),
        "dispatchRateInMsgs": (Whole(), None),
        "dispatchRateInBytes": (Whole(LONG_BITS), None),
    }
)


# A stored value that does not set its policy, as in Pulsar: the next level applies.


def not_negative(value: int) -> bool:
    """Whether a limit is one: 0 is no limit, and sets the policy."""
    return value >= 0


def _limits(*members: str) -> Callable[[Mapping[str, Any]], bool]:
    # ``normalize`` of Pulsar's rates: one that limits nothing is none.
    def limits(value: Mapping[str, Any]) -> bool:
        return any(value.get(member, -1) > 0 for member in members)

    return limits


def limits_subscribing(value: Mapping[str, Any]) -> bool:
    """Whether a subscribe rate limits anything."""
    return bool(value.get("subscribeThrottlingRatePerConsumer", -1) > 0 and value.get("ratePeriodInSecond", 30) > 0)


def is_strategy(value: str) -> bool:
    """Whether a strategy is chosen."""
    return value != UNDEFINED


limits_dispatch: Final = _limits("dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte")
limits_publishing: Final = _limits("publishThrottlingRateInMsg", "publishThrottlingRateInByte")


# Numbers that brokers take and that mean nothing: a rate of 0 limits nothing, and so does a period of -5 seconds.


class Least(NamedTuple):
    """The numbers that a member of a value may be."""

    least: int
    or_no_limit: bool
    """Whether -1 is one of them."""
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
    """Return what is wrong with the value of a member that commands refuse; empty where nothing is."""
    rule = _LEAST.get(member)
    if rule is None or not isinstance(value, int | float) or value >= rule.least:
        return ""
    if rule.or_no_limit and value == NO_LIMIT:
        return ""
    unlimited = ", or -1 for no limit" if rule.or_no_limit else ""
    return f"{member}: {rule.noun} is {rule.least} or more{unlimited}, not {value}"


def meaningful(value: Any) -> Any:
    """Return the value with -1 for what limits nothing, and the shortest period for one that is none."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: each if not problem(name, each) else NO_LIMIT if _LEAST[name].or_no_limit else _LEAST[name].least
        for name, each in value.items()
    }
