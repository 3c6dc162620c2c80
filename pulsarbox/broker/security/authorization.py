"""Who may do what: superusers everything, the admins of a tenant all within it, other roles what they were granted.

A role is granted actions in a namespace or with a topic of it, and that is all it may: what nobody has granted is
refused. A subscription may be kept for some roles, and names of subscriptions may have to begin with the role. Nothing
is asked for a message: only when a producer or consumer comes, when a topic is looked up, for every request of the
Admin API, and once more of those that are here when the policies of their topic change. Source:
https://pulsar.apache.org/docs/4.2.x/security-authorization/.
"""

from collections.abc import Iterable
from typing import Any, Final

from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.topic.system_topics import COORDINATORS
from pulsarbox.config import Settings
from pulsarbox.errors import AuthenticationError, AuthorizationError, NamespaceNotFound
from pulsarbox.names import TopicName
from pulsarbox.storage.catalog import Catalog, Row, namespace_key, tenant_key

PRODUCE: Final = "produce"
CONSUME: Final = "consume"

WEBSOCKET: Final = "__websocket_dummy_original_principle"
"""For whom Pulsar's WebSocket proxy asks: nobody but itself."""


class Authorization:
    """The rules of one broker. Every ``require_...`` returns where the principal may, and otherwise raises.

    AuthenticationError for nobody, AuthorizationError with the reason for a role that may not, NamespaceNotFound where
    the tenant it is about does not exist (a superuser is let through, and told by whoever answers).
    """

    def __init__(self, settings: Settings, catalog: Catalog, policies: Policies) -> None:
        self.enabled = settings.authenticationEnabled and settings.authorizationEnabled
        """Whether anything is asked at all; None for a principal is nobody then, and not everybody."""
        self._catalog = catalog
        self._policies = policies
        self._superusers = roles_of(settings.superUserRoles)
        self._viewers = roles_of(settings.viewerRoles)
        self._proxies = roles_of(settings.proxyRoles)
        self._wildcards = settings.authorizationAllowWildcardsMatching

    # What may be asked

    def require_name(self, principal: Principal | None) -> None:
        """It is somebody, whoever it is."""
        self._roles(principal)

    def require_superuser(self, principal: Principal | None) -> None:
        """It may do everything."""
        for role in self._roles(principal):
            if role not in self._superusers:
                raise AuthorizationError(
                    f"This operation requires super-user access: {role!r} is none of superUserRoles"
                )

    def require_watcher(self, principal: Principal | None, tenant: str = "") -> None:
        """It may see how the box is doing, of a tenant what belongs to that."""
        for role in self._roles(principal):
            if role in self._viewers or (tenant and self._administers(role, tenant)) or role in self._superusers:
                continue
            more = f", nor an admin of {tenant}" if tenant else "; admins of a tenant name it (tenant=)"
            raise AuthorizationError(
                f"This takes a view of the whole box: {role!r} is none of superUserRoles or viewerRoles{more}"
            )

    def require_tenant_admin(self, principal: Principal | None, tenant: str) -> None:
        """It may do everything in the tenant."""
        for role in self._roles(principal):
            if not self._administers(role, tenant):
                raise _no_admin(role, tenant)

    def require_tenant(self, principal: Principal | None, tenant: str) -> None:
        """It may do everything with the tenant itself. A tenant that is missing is refused like one of others."""
        for role in self._roles(principal):
            try:
                administers = self._administers(role, tenant)
            except NamespaceNotFound:
                administers = False
            if not administers:
                raise _no_admin(role, tenant)

    def require_in_namespace(
        self, principal: Principal | None, namespace: str, actions: Iterable[str], subscription: str = ""
    ) -> None:
        """It may do one of the actions in the whole namespace, with the subscription where one is named."""
        for role in self._roles(principal):
            if not self._administers(role, namespace.partition("/")[0]):
                self._check_subscription(role, namespace, subscription)
                granted = self._granted(namespace).get("namespace_auth", {})
                if not self._holds(role, granted, actions):
                    raise AuthorizationError(_refusal(role, actions, f"in the namespace {namespace}"))

    def require_on_topic(
        self, principal: Principal | None, topic: TopicName, actions: Iterable[str], subscription: str = ""
    ) -> None:
        """It may do one of the actions with the topic, and with the subscription where one is named.

        Whoever has a name may ask where transactions are coordinated: there is no such topic.
        """
        if str(topic.base) == COORDINATORS:
            self.require_name(principal)
            return
        for role in self._roles(principal):
            if not self._administers(role, topic.tenant):
                self._check_subscription(role, topic.namespace, subscription)
                granted = self._granted(topic.namespace)
                of_topics = granted.get("destination_auth", {})
                # What is granted on a partitioned topic holds for its partitions, those that come later as well.
                names = dict.fromkeys((str(topic), str(topic.base)))
                places = [granted.get("namespace_auth", {}), *(of_topics.get(name, {}) for name in names)]
                if not any(self._holds(role, place, actions) for place in places):
                    raise AuthorizationError(_refusal(role, actions, f"on {topic}"))

    def check_proxy(self, principal: Principal) -> None:
        """A proxy says for whom it asks, and nobody else does. Raises AuthorizationError."""
        role, original = principal.role, principal.original
        if role in self._proxies:
            if not original.strip():
                raise AuthorizationError(f"{role!r} is a proxy (proxyRoles) and has to say for whom it asks")
            if original in self._proxies:
                raise AuthorizationError(f"{original!r} is a proxy itself: a proxy asks for one who is not")
        elif original.strip() and original not in (role, WEBSOCKET):
            raise AuthorizationError(f"{role!r} is no proxy (proxyRoles): it may not ask for {original!r}")

    def is_proxy(self, role: str) -> bool:
        """Whether a role is one of proxies."""
        return role in self._proxies

    # The rules

    def _roles(self, principal: Principal | None) -> tuple[str, ...]:
        """Who has to be allowed: the role; of a proxy also the one for whom it asks; nobody where nothing is asked."""
        if not self.enabled:
            return ()
        if principal is None:
            raise AuthenticationError("Need to authenticate to perform the request")
        self.check_proxy(principal)
        if principal.role in self._proxies and principal.original != WEBSOCKET:
            return principal.role, principal.original
        return (principal.role,)

    def _administers(self, role: str, tenant: str) -> bool:
        if role in self._superusers:
            return True
        row = self._catalog.get(tenant_key(tenant))
        if row is None:
            raise NamespaceNotFound("Tenant does not exist")
        return role in row["adminRoles"]

    def _namespace(self, namespace: str) -> Row:
        return self._policies.row(namespace_key(namespace))

    def _granted(self, namespace: str) -> dict[str, Any]:
        return self._namespace(namespace).get("auth_policies") or {}

    def _check_subscription(self, role: str, namespace: str, subscription: str) -> None:
        if not subscription:
            return
        kept_for = self._granted(namespace).get("subscription_auth_roles", {}).get(subscription)
        if kept_for and role not in kept_for:
            raise AuthorizationError(
                f"{role!r} may not use the subscription {subscription}: it is kept for other roles"
            )
        if self._namespace(namespace).get("subscription_auth_mode") == "Prefix" and not subscription.startswith(role):
            raise AuthorizationError(
                "Failed to create consumer - The subscription name needs to be prefixed by the authentication role, "
                f"like {role}-xxxx, in the namespace {namespace}"
            )

    def _holds(self, role: str, granted: dict[str, list[str]], actions: Iterable[str]) -> bool:
        """Whether a role has one of the actions by its name or, where that is on, by the beginning or end of it."""
        wanted = set(actions)
        if not wanted.isdisjoint(granted.get(role, ())):
            return True
        return self._wildcards and any(
            _fits(role, pattern) and not wanted.isdisjoint(held) for pattern, held in granted.items()
        )


def roles_of(setting: str) -> frozenset[str]:
    """The roles of a setting that lists them with commas between."""
    return frozenset(role.strip() for role in setting.split(",") if role.strip())


def _fits(role: str, pattern: str) -> bool:
    """``my-*`` and ``*-service``: a star at one end stands for anything, elsewhere for itself."""
    if pattern.endswith("*") and role.startswith(pattern[:-1]):
        return True
    return pattern.startswith("*") and role.endswith(pattern[1:])


def _no_admin(role: str, tenant: str) -> AuthorizationError:
    return AuthorizationError(
        f"Don't have permission to administrate resources on this tenant: {role!r} is none of the admin roles of "
        f"{tenant}"
    )


def _refusal(role: str, actions: Iterable[str], where: str) -> str:
    return f"{role!r} has no permission to {' or '.join(actions)} {where}: admins of the tenant can grant it"
