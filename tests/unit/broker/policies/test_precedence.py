"""Precedence of every policy at every combination of levels: responses match the behaviour of the broker."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from pulsarbox.broker.policies.effective import held_of
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.policies.precedence import GLOBAL, Level
from pulsarbox.cli.commands.limits_text import EXPLAINED, _chain
from pulsarbox.cli.commands.policies import _row, _value
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.protocol.policies.offload_shape import OFFLOAD, THRESHOLD_BYTES
from pulsarbox.protocol.policies.policy_values import meaningful
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import OTHER_ROWS, QUOTA_ROWS, ROWS, row_of
from pulsarbox.server.live.quota_changes import Of, change_of
from pulsarbox.server.live.quotas import QUOTAS
from pulsarbox.server.live.view import ViewScope
from pulsarbox.tui.actions.quota_operations import stands
from tests.tools.campaigns import short
from tests.unit.broker.policies.test_policy import CONSTANTS
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

NAMESPACE: Final = "public/levels"
TOPIC: Final = parse_topic(f"persistent://{NAMESPACE}/t")
PATH: Final = "/persistent/public/levels/t"


def dispatch(number: int) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": number,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    }


def publish(number: int) -> dict[str, Any]:
    return {"publishThrottlingRateInMsg": number, "publishThrottlingRateInByte": -1}


def subscribe(number: int, period: int = 30) -> dict[str, Any]:
    return {"subscribeThrottlingRatePerConsumer": number, "ratePeriodInSecond": period}


def quota(number: int) -> dict[str, Any]:
    return {"limit": number, "limitSize": number, "limitTime": number, "policy": "producer_exception"}


def retention(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


def inactive(seconds: int, deleted: bool) -> dict[str, Any]:
    return {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": seconds,
        "deleteWhileInactive": deleted,
    }


def delayed(tick: int, active: bool) -> dict[str, Any]:
    return {"tickTime": tick, "active": active, "maxDeliveryDelayInMillis": 0}


def subscriptions(allowed: bool) -> dict[str, bool]:
    return {"allowAutoSubscriptionCreation": allowed}


def persistence(number: int) -> dict[str, Any]:
    copies = {f"bookkeeper{word}": 1 for word in ("Ensemble", "WriteQuorum", "AckQuorum")}
    return copies | {"managedLedgerMaxMarkDeleteRate": float(number)}


def offload(number: int) -> dict[str, Any]:
    return OFFLOAD.read({THRESHOLD_BYTES: number, "managedLedgerOffloadDriver": "filesystem"}, "offloadPolicies")


def filters(names: str) -> dict[str, str]:
    return {"entryFilterNames": names}


class Samples(NamedTuple):
    """Values of a policy: one per level, and those that defer to the next level."""

    topic: Any
    everywhere: Any
    namespace: Any
    nothing: tuple[Any, ...] = ()


def numbers(*nothing: Any) -> Samples:
    return Samples(3, 0, 5, nothing)


def rates(made: Any, *more: Any) -> Samples:
    return Samples(made(3), made(4), made(5), (made(-1), made(0), *more))


COUNTS: Final = numbers(-1)
SAMPLES: Final[dict[str, Samples]] = {
    "retention": Samples(retention(3, 3), retention(0, 0), retention(-1, 7)),
    "message-ttl": COUNTS,
    "subscription-expiration-time": COUNTS,
    "inactive-topic-policies": Samples(inactive(3, True), inactive(4, False), inactive(5, True)),
    "compaction-threshold": COUNTS,
    "compression-at-rest": Samples("zstd", "none", "zlib"),
    "persistence": Samples(persistence(3), persistence(4), persistence(5)),
    "dispatch-rate": rates(dispatch),
    "subscription-dispatch-rate": rates(dispatch),
    "publish-rate": rates(publish),
    "subscribe-rate": rates(subscribe, subscribe(5, 0)),
    "delayed-delivery": Samples(delayed(3, True), delayed(4, False), delayed(5, True)),
    "dispatcher-pause-on-ack-state-persistent": Samples(True, False, True),
    "max-producers": COUNTS,
    "max-consumers": COUNTS,
    "max-consumers-per-subscription": COUNTS,
    "max-subscriptions-per-topic": COUNTS,
    "max-topics-per-namespace": COUNTS,
    "max-unacked-messages-per-consumer": COUNTS,
    "max-unacked-messages-per-subscription": COUNTS,
    "max-message-size": COUNTS,
    "deduplication": Samples(False, True, False),
    "deduplication-snapshot-interval": numbers(),
    "subscription-types-enabled": Samples(["Shared"], ["Failover"], ["Exclusive"], ([],)),
    "auto-topic-creation": Samples(
        None, None, {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    ),
    "auto-subscription-creation": Samples(subscriptions(False), subscriptions(True), subscriptions(False)),
    "encryption-required": Samples(None, None, True, (False,)),
    "subscription-auth-mode": Samples(None, None, "Prefix"),
    "schema-compatibility-strategy": Samples("BACKWARD", "FORWARD", "ALWAYS_COMPATIBLE", ("UNDEFINED",)),
    "schema-auto-update-compatibility-strategy": Samples(None, None, "Backward"),
    "is-allow-auto-update-schema": Samples(None, None, False),
    "schema-validation-enforced": Samples(False, True, False),
    "allowed-topic-property-keys-for-metrics": Samples(None, None, ["a"]),
    "backlog-quota:destination_storage": Samples(quota(3), quota(0), quota(5)),
    "backlog-quota:message_age": Samples(quota(3), quota(0), quota(5)),
    "resource-group": Samples(None, None, "g"),
    "offload-policies": Samples(offload(3), offload(4), offload(5)),
    "replicator-dispatch-rate": Samples(dispatch(3), dispatch(-1), dispatch(5)),
    "entry-filters": Samples(filters("a"), filters("b,c"), filters("d")),
    "anti-affinity-group": Samples(None, None, "g"),
    "replication-clusters": Samples(["standalone"], ["a", "standalone"], ["a", "b"]),
    "allowed-clusters": Samples(None, None, ["standalone"], ([],)),
    "shadow-topics": Samples(["persistent://a/b/c"], ["a/b/d"], None),
}
CASES: Final = {row.name: row for row in (*ROWS, *QUOTA_ROWS, *OTHER_ROWS)}
READ_BY_BROKER: Final[dict[str, Policy[Any]]] = {each.name: each for each in CONSTANTS}


def test_each_policy_has_samples() -> None:
    assert set(SAMPLES) == set(CASES)
    assert {name for name, samples in SAMPLES.items() if samples.nothing} == {
        name for name, row in CASES.items() if row.sets.__name__ != "always"
    }


def under(row: PolicyRow, place: PolicyEndpoint | None, value: Any, cluster: str) -> dict[str, Any]:
    """Return the policy row member that contains the value."""
    if place is None or value is None:
        return {}
    for member in (cluster,) if place.by_cluster else reversed(place.members):
        value = {member: value}
    return {place.key: value}


def combinations(row: PolicyRow) -> Iterator[tuple[Any, Any, Any]]:
    """Yield values of a topic, of a topic for all clusters, and of a namespace: absent, set, or set without effect."""
    samples = SAMPLES[row.name]
    own, everywhere, namespace = ([None, value, *samples.nothing] for value in samples[:3])
    nowhere = [None]
    yield from itertools.product(
        own if row.topic is not None else nowhere,
        everywhere if row.topic is not None else nowhere,
        namespace if row.namespace is not None else nowhere,
    )


@pytest.mark.parametrize("name", short(CASES, 12))
async def test_what_is_in_effect_is_the_same_wherever_it_is_asked(name: str) -> None:
    row, samples = CASES[name], SAMPLES[name]

    async def check(box: HttpBox, levels: list[tuple[Level, Any]], nearest: Any) -> None:
        level, value = levels[0]
        if name in READ_BY_BROKER:
            policy = READ_BY_BROKER[name]
            assert box.broker.policies.of(TOPIC).found(policy) == (policy.read(value), level)
        shown = (await box.ask("GET", f"/pulsarbox/v1/policies{PATH}")).value[name]
        assert (shown["level"], shown["value"]) == (level, value)
        assert shown["levels"] == [{"level": level, "value": value} for level, value in levels]
        if row.topic is not None and row.topic.applied:
            unlimited = name == "subscribe-rate" and level is Level.BROKER
            assert await applied(box) == (nearest if unlimited else value)
        check_command(name, shown)
        if name in LIMITS:
            check_dashboard(box, name, READ_BY_BROKER[name].read(value), level)

    async def applied(box: HttpBox) -> Any:
        quota_type = name.partition(":")[2]
        base = "/pulsarbox/v1/policies" if row.own else "/admin/v2"
        assert row.topic is not None
        path = "backlogQuotaMap" if quota_type else row.topic.path
        got = await box.ask("GET", f"{base}{PATH}/{path}?applied=true")
        if not got.text:
            return None
        value = got.value
        return value[quota_type] if quota_type else value

    async with running_box() as box:
        await box.put(f"/namespaces/{NAMESPACE}")
        await box.put(PATH)
        Client(box).subscribe(str(TOPIC))
        assert box.broker.samples.step(box.shell.now(), 10)
        core = box.broker
        key = row.namespace.key if row.namespace is not None else ""
        before = {each: value for each, value in box.broker.tenants.policies(NAMESPACE).items() if each != key}
        core.policies.put_namespace(NAMESPACE, before, box.shell.now())
        cluster = core.settings.clusterName
        broker = held_of(core.policies, name, NAMESPACE, TOPIC).value
        for own, everywhere, of_namespace in combinations(row):
            policies = {GLOBAL: under(row, row.topic, everywhere, cluster)} | under(row, row.topic, own, cluster)
            core.policies.put_topic(TOPIC, policies, box.shell.now())
            core.policies.put_namespace(
                NAMESPACE, before | under(row, row.namespace, of_namespace, cluster), box.shell.now()
            )
            levels = [(Level.TOPIC, own), (Level.TOPIC, everywhere), (Level.NAMESPACE, of_namespace)]
            levels = [(level, value) for level, value in levels if value is not None]
            nearest = levels[0][1] if levels else broker
            levels = [(level, value) for level, value in levels if value not in samples.nothing]
            levels.append((Level.BROKER, broker))
            await check(box, levels, nearest)


# Commands


def check_command(name: str, shown: dict[str, Any]) -> None:
    """`topic policy` prints the value in input syntax, and `quota explain` marks the level that sets it."""
    printed = _row(name, shown)
    assert (printed["level"], printed["applied"]) == (shown["level"], not row_of(name.partition(":")[0]).stored_only)
    if shown["value"] is not None:
        row = row_of(name)
        typed = row.shape.read(_value(row, str(printed["setting"])), name)
        assert typed == meaningful(shown["value"])
    if name in EXPLAINED:
        (line,) = [each for each in _chain(name, shown) if "in effect" in each]
        assert line.split()[0] == shown["level"]
        is_limited = bool(LIMITS[name](READ_BY_BROKER[name].read(shown["value"])))
        assert ("no limit" not in line) is is_limited


# Dashboard


def of_rate(rate: Any) -> list[float]:
    return [each for each in (rate.messages, rate.bytes) if each > 0]


def of_count(count: int) -> list[float]:
    return [count] if count > 0 else []


LIMITS: Final[dict[str, Callable[[Any], list[float]]]] = {
    "publish-rate": of_rate,
    "dispatch-rate": of_rate,
    "subscription-dispatch-rate": of_rate,
    "subscribe-rate": lambda rate: of_count(rate.times),
    "backlog-quota:destination_storage": lambda quota: [quota.limit] if quota.limit >= 0 else [],
    "backlog-quota:message_age": lambda quota: of_count(quota.limit // 1000),
    **dict.fromkeys(
        (
            *("max-producers", "max-consumers", "max-consumers-per-subscription", "max-subscriptions-per-topic"),
            *("max-topics-per-namespace", "max-unacked-messages-per-consumer"),
            "max-unacked-messages-per-subscription",
        ),
        of_count,
    ),
}
"""Limits that the dashboard shows for a broker value; empty if the value limits nothing."""


def check_dashboard(box: HttpBox, name: str, value: Any, level: Level) -> None:
    """The quota screen shows the limit that the broker enforces, its level, and the editable value."""
    rows = QUOTAS.things(box.broker, ViewScope(f"{NAMESPACE}/"), box.shell.now())
    mine = [each for each in rows if each is not None and each.policy == name]
    assert sorted(each.limit for each in mine) == sorted(LIMITS[name](value))
    assert {each.level for each in mine} <= {level}
    for each in mine:
        change = change_of(box.broker, Of(name, each.level, each.topic, each.name, each.unit))
        assert change is not None
        assert float(stands({"change": change._asdict()})) == each.limit
        assert change.of == ("namespace" if level is Level.NAMESPACE or each.topic == NAMESPACE else "topic")


@pytest.mark.parametrize(
    ("path", "setting", "made", "field"),
    [
        ("dispatchRate", "dispatchThrottlingRatePerTopicInMsg", dispatch, "dispatchThrottlingRateInMsg"),
        (
            "subscriptionDispatchRate",
            "dispatchThrottlingRatePerSubscriptionInMsg",
            dispatch,
            "dispatchThrottlingRateInMsg",
        ),
        ("subscribeRate", "subscribeThrottlingRatePerConsumer", subscribe, "subscribeThrottlingRatePerConsumer"),
    ],
)
async def test_a_rate_of_minus_one_leaves_the_policy_to_the_broker(
    path: str, setting: str, made: Any, field: str
) -> None:
    async with running_box(Settings(**{setting: 77})) as box:
        await box.put("/persistent/public/default/t")
        await box.post(f"/namespaces/public/default/{path}", made(-1))
        await box.post(f"/persistent/public/default/t/{path}", made(-1))
        assert (await box.get(f"/persistent/public/default/t/{path}?applied=true")).value[field] == 77
        assert (await box.get(f"/persistent/public/default/t/{path}")).value[field] == -1, "as it was set"


async def test_a_subscribe_rate_without_effect_is_shown_as_it_was_set(box: HttpBox) -> None:
    topic, namespace = "/persistent/public/default/t", "/namespaces/public/default"
    await box.put(topic)

    async def shown() -> list[int]:
        value = (await box.get(f"{topic}/subscribeRate?applied=true")).value
        return [value["subscribeThrottlingRatePerConsumer"], value["ratePeriodInSecond"]]

    assert await shown() == [0, 30]
    without_effect: tuple[tuple[dict[str, Any], list[int]], ...] = (
        ({}, [-1, 30]),
        (subscribe(5, 0), [5, 0]),
        (subscribe(0), [0, 30]),
    )
    for value, expected in (*without_effect, (subscribe(7), [7, 30])):
        await box.post(f"{namespace}/subscribeRate", value)
        assert await shown() == expected
    await box.post(f"{topic}/subscribeRate", {})
    assert await shown() == [7, 30], "a topic without a limit of its own has that of the namespace"


async def test_the_rate_of_one_subscription_comes_before_all_others(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.post("/namespaces/public/default/subscriptionDispatchRate", dispatch(5))
    path = "/persistent/public/default/t/{}/dispatchRate?applied=true"

    async def found(subscription: str) -> int:
        return int((await box.get(path.format(subscription))).value["dispatchThrottlingRateInMsg"])

    await box.post("/persistent/public/default/t/a/dispatchRate", dispatch(3))
    await box.post("/persistent/public/default/t/b/dispatchRate?isGlobal=true", dispatch(4))
    assert [await found(each) for each in "abc"] == [3, 4, 5]


@pytest.mark.parametrize(("word", "strategy"), [("Forward", "FORWARD"), ("AutoUpdateDisabled", "ALWAYS_INCOMPATIBLE")])
async def test_the_old_words_of_a_strategy_are_in_effect_where_there_are_no_new_ones(
    box: HttpBox, word: str, strategy: str
) -> None:
    await box.put("/persistent/public/default/t")
    await box.put("/namespaces/public/default/schemaAutoUpdateCompatibilityStrategy", word)
    path = "/persistent/public/default/t/schemaCompatibilityStrategy?applied=true"
    assert (await box.get(path)).value == strategy
    await box.put("/namespaces/public/default/schemaCompatibilityStrategy", "FULL_TRANSITIVE")
    assert (await box.get(path)).value == "FULL_TRANSITIVE"


async def test_a_quota_must_be_within_the_retention_in_effect() -> None:
    async with running_box() as box:
        await box.put("/persistent/public/default/t")
        await box.post("/namespaces/public/default/retention", retention(10, 100))
        await box.post("/persistent/public/default/t/retention?isGlobal=true", retention(10, 10))
        path = "/persistent/public/default/t/backlogQuota"
        large = quota(20 << 20) | {"limitTime": -1}
        refused = await box.post(path, large)
        assert refused.status == 412
        assert "exceeds configured retention quota for topic" in refused.reason
        await box.delete("/persistent/public/default/t/retention?isGlobal=true")
        assert (await box.post(path, large)).status == 204
