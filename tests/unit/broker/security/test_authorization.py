"""``pulsarbox.broker.security.authorization``: each rule, and isolation of tenants."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.security.authorization import WEBSOCKET, Authorization, roles_of
from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import AuthenticationError, AuthorizationError, NamespaceNotFound, PulsarBoxError
from pulsarbox.names import TopicName, parse_topic
from tests.unit.broker.roles import TOPIC, guarded_box

ORDERS = parse_topic(TOPIC)


def named(role: str, original: str = "") -> Principal:
    return Principal(role, "token", original=original)


def may(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except AuthorizationError:
        return False
    return True


def may_on(it: Authorization, role: str, topic: TopicName, *actions: str) -> bool:
    return may(lambda: it.require_on_topic(named(role), topic, actions))


def rules(**settings: object) -> Authorization:
    return guarded_box(**settings).broker.authorization


def test_roles_of_a_setting() -> None:
    assert roles_of(" admin, ops ,,") == {"admin", "ops"}
    assert roles_of("") == frozenset()


def test_nobody_is_refused_everything_and_with_authorization_off_nothing() -> None:
    on, off = rules(), rules(authorizationEnabled=False)
    asked: tuple[Callable[[Authorization], None], ...] = (
        lambda it: it.require_name(None),
        lambda it: it.require_superuser(None),
        lambda it: it.require_tenant_admin(None, "shop"),
        lambda it: it.require_in_namespace(None, "shop/eu", ("produce",)),
        lambda it: it.require_on_topic(None, ORDERS, ("produce",)),
    )
    for ask in asked:
        ask(off)
        with pytest.raises(AuthenticationError):
            ask(on)


def test_an_empty_role_in_the_settings_is_nobodys() -> None:
    with pytest.raises(AuthorizationError):
        rules(superUserRoles="").require_superuser(named(""))


def test_a_missing_tenant_is_said_to_all_but_superusers() -> None:
    it = rules()
    with pytest.raises(NamespaceNotFound, match="Tenant does not exist"):
        it.require_tenant_admin(named("admin"), "gone")
    it.require_tenant_admin(named("root"), "gone")


def test_actions_are_apart() -> None:
    it = rules()
    assert may_on(it, "producer", ORDERS, "produce")
    assert not may_on(it, "producer", ORDERS, "consume")
    assert may_on(it, "producer", ORDERS, "produce", "consume")
    assert not may(lambda: it.require_in_namespace(named("topic-producer"), "shop/eu", ("produce",)))


def test_what_is_granted_on_a_topic_holds_for_its_partitions_and_for_no_other_topic() -> None:
    it = rules()
    for name, allowed in ((f"{TOPIC}-partition-7", True), (f"{TOPIC}2", False), (f"{TOPIC}-DLQ", False)):
        topic = parse_topic(name)
        assert may_on(it, "topic-producer", topic, "produce") is allowed
    other_domain = parse_topic(TOPIC.replace("persistent", "non-persistent"))
    assert not may_on(it, "topic-producer", other_domain, "produce")


def test_what_is_granted_on_one_partition_holds_for_it_alone() -> None:
    box = guarded_box()
    box.broker.permissions.grant_topic(parse_topic(f"{TOPIC}-partition-1"), "one", ["produce"], box.now)
    it = box.broker.authorization
    assert may_on(it, "one", parse_topic(f"{TOPIC}-partition-1"), "produce")
    assert not may_on(it, "one", parse_topic(f"{TOPIC}-partition-2"), "produce")
    assert not may_on(it, "one", ORDERS, "produce")


@pytest.mark.parametrize(
    ("pattern", "role", "fits"),
    [
        ("svc-*", "svc-1", True),
        ("svc-*", "svc-", True),
        ("svc-*", "sv", False),
        ("*-svc", "a-svc", True),
        ("*-svc", "a-svc2", False),
        ("*", "anybody", True),
        ("s*c", "svc", False),
        ("s*c", "s*c", True),
    ],
)
@pytest.mark.parametrize("on_topic", [False, True])
def test_wildcards_where_they_are_on(pattern: str, role: str, fits: bool, on_topic: bool) -> None:
    for wildcards in (True, False):
        box = guarded_box(authorizationAllowWildcardsMatching=wildcards)
        if on_topic:
            box.broker.permissions.grant_topic(ORDERS, pattern, ["produce"], box.now)
        else:
            box.broker.permissions.grant("shop/eu", pattern, ["produce"], box.now)
        it = box.broker.authorization
        expected = fits and (wildcards or pattern == role)
        assert may_on(it, role, ORDERS, "produce") is expected
        assert not may_on(it, role, ORDERS, "consume")


def test_proxies_ask_for_others_and_both_must_be_allowed() -> None:
    it = rules(proxyRoles="proxy, proxy2", superUserRoles="root,proxy")
    produce = ("produce",)
    assert may(lambda: it.require_on_topic(named("proxy", "producer"), ORDERS, produce))
    assert not may(lambda: it.require_on_topic(named("proxy", "stranger"), ORDERS, produce))
    assert not may(lambda: it.require_on_topic(named("proxy2", "producer"), ORDERS, produce))
    assert may(lambda: it.require_superuser(named("proxy", "root")))
    assert not may(lambda: it.require_superuser(named("proxy", "admin")))
    assert may(lambda: it.require_superuser(named("proxy", WEBSOCKET)))


@pytest.mark.parametrize(
    ("role", "original", "said"),
    [
        ("proxy", "", "has to say for whom it asks"),
        ("proxy", " ", "has to say for whom it asks"),
        ("proxy", "proxy", "is a proxy itself"),
        ("root", "admin", "is no proxy"),
        ("stranger", "root", "is no proxy"),
    ],
)
def test_who_asks_for_whom(role: str, original: str, said: str) -> None:
    it = rules(proxyRoles="proxy", superUserRoles="root,proxy")
    with pytest.raises(AuthorizationError, match=said):
        it.require_name(named(role, original))


def test_a_role_may_name_itself() -> None:
    rules(proxyRoles="proxy").require_superuser(named("root", "root"))


NAMES = st.sampled_from(["shop", "other", "eu", "us", "orders", "a"])
ROLES = st.sampled_from(["admin", "other-admin", "producer", "consumer", "topic-producer", "stranger", "", "*", "sho"])
ACTIONS = st.lists(st.sampled_from(["produce", "consume", "functions", "packages"]), min_size=1, max_size=3)
GUARDED = guarded_box(authorizationAllowWildcardsMatching=True).broker.authorization


@given(role=ROLES, tenant=NAMES, namespace=NAMES, local=NAMES, actions=ACTIONS, subscription=NAMES)
def test_no_role_is_allowed_anything_outside_its_tenant(
    role: str, tenant: str, namespace: str, local: str, actions: list[str], subscription: str
) -> None:
    home = {"other-admin": "other", "stranger": None, "": None, "*": None, "sho": None}.get(role, "shop")
    topic = TopicName("persistent", tenant, namespace, local)
    principal = named(role)
    asked: tuple[Callable[[], None], ...] = (
        lambda: GUARDED.require_superuser(principal),
        lambda: GUARDED.require_tenant_admin(principal, tenant),
        lambda: GUARDED.require_in_namespace(principal, f"{tenant}/{namespace}", actions, subscription),
        lambda: GUARDED.require_on_topic(principal, topic, actions, subscription),
    )
    for ask in asked:
        try:
            ask()
        except PulsarBoxError:
            continue
        assert tenant == home
