"""Authorization: superusers may do everything, tenant admins everything in their tenant, other roles what was granted.

A role is granted actions in a namespace or on a topic; anything not granted is refused. A subscription can be reserved
for some roles, and subscription names can be required to begin with the role. Permissions are not checked per message.
They are checked when a producer or consumer connects, for topic lookups and for every Admin API request, and again for
connected clients when the policies of their topic change. Source:
https://pulsar.apache.org/docs/4.2.x/security-authorization/.
"""

from collections.abc import Iterable
from typing import Any, Final

from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.policies.precedence import in_effect
from pulsarbox.broker.security.principal import BOX, Principal
from pulsarbox.broker.topic.system_topics import COORDINATORS
from pulsarbox.config import Settings
from pulsarbox.errors import GRANT_HINT, AuthenticationError, AuthorizationError, NamespaceNotFound
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.table import row_of
from pulsarbox.storage.catalog import Catalog, Row, namespace_key, tenant_key

_AUTH_MODE: Final = row_of("subscription-auth-mode")

PRODUCE: Final = "produce"
CONSUME: Final = "consume"

WEBSOCKET: Final = "__websocket_dummy_original_principle"
"""Original principal that Pulsar's WebSocket proxy sends; it means the proxy itself."""


class Authorization:
    """The rules of one broker. Every ``require_...`` returns if the principal is authorized, and raises otherwise.

    AuthenticationError without a principal, AuthorizationError with the reason for an unauthorized role,
    NamespaceNotFound if the tenant does not exist (superusers pass; the handler reports the missing tenant).
    """

    def __init__(self, settings: Settings, catalog: Catalog, policies: Policies) -> None:
        self.enabled = settings.authenticationEnabled and settings.authorizationEnabled
        """Whether anything is checked. If so, a principal of None is unauthenticated rather than unrestricted."""
        self._catalog = catalog
        self._policies = policies
        self._superusers = roles_of(settings.superUserRoles)
        self._viewers = roles_of(settings.viewerRoles)
        self._proxies = roles_of(settings.proxyRoles)
        self._wildcards = settings.authorizationAllowWildcardsMatching

    # Requirements

    def require_name(self, principal: Principal | None) -> None:
        """Require any authenticated principal."""
        self._roles(principal)

    def require_superuser(self, principal: Principal | None) -> None:
        """Require a superuser."""
        for role in self._roles(principal):
            if role not in self._superusers:
                raise AuthorizationError(
                    f"This operation requires super-user access: {role!r} is not in superUserRoles"
                )

    def require_watcher(self, principal: Principal | None, tenant: str = "") -> None:
        """Require permission to view the state of the box or, with ``tenant``, of that tenant."""
        for role in self._roles(principal):
            if role in self._viewers or (tenant and self._administers(role, tenant)) or role in self._superusers:
                continue
            more = f", and is not an admin of {tenant}" if tenant else "; admins of a tenant name it (tenant=)"
            raise AuthorizationError(
                f"This operation reads the whole box: {role!r} is in neither superUserRoles nor viewerRoles{more}"
            )

    def require_tenant_admin(self, principal: Principal | None, tenant: str) -> None:
        """Require permission for everything in the tenant."""
        for role in self._roles(principal):
            if not self._administers(role, tenant):
                raise _no_admin(role, tenant)

    def require_tenant(self, principal: Principal | None, tenant: str) -> None:
        """Require permission for the tenant itself. A missing tenant is refused like another's tenant."""
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
        """Require one of the actions in the whole namespace, and on the subscription if given."""
        for role in self._roles(principal):
            if not self._administers(role, namespace.partition("/")[0]):
                self._check_subscription(role, namespace, subscription)
                granted = self._granted(namespace).get("namespace_auth", {})
                if not self._holds(role, granted, actions):
                    raise AuthorizationError(_refusal(role, actions, f"in the namespace {namespace}"))

    def require_on_topic(
        self, principal: Principal | None, topic: TopicName, actions: Iterable[str], subscription: str = ""
    ) -> None:
        """Require one of the actions on the topic, and on the subscription if given.

        Any authenticated principal may look up the transaction coordinator, which is not a real topic.
        """
        if str(topic.base) == COORDINATORS:
            self.require_name(principal)
            return
        for role in self._roles(principal):
            if not self._administers(role, topic.tenant):
                self._check_subscription(role, topic.namespace, subscription)
                granted = self._granted(topic.namespace)
                of_topics = granted.get("destination_auth", {})
                # A grant on a partitioned topic applies to its partitions, including later ones.
                names = dict.fromkeys((str(topic), str(topic.base)))
                places = [granted.get("namespace_auth", {}), *(of_topics.get(name, {}) for name in names)]
                if not any(self._holds(role, place, actions) for place in places):
                    raise AuthorizationError(_refusal(role, actions, f"on {topic}"))

    def check_proxy(self, principal: Principal) -> None:
        """Check that a proxy, and only a proxy, names an original principal. Raises AuthorizationError."""
        role, original = principal.role, principal.original
        if role in self._proxies:
            if not original.strip():
                raise AuthorizationError(f"{role!r} is a proxy (proxyRoles) and has to say for whom it asks")
            if original in self._proxies:
                raise AuthorizationError(f"{original!r} is a proxy itself: a proxy asks for one who is not")
        elif original.strip() and original not in (role, WEBSOCKET):
            raise AuthorizationError(f"{role!r} is no proxy (proxyRoles): it may not ask for {original!r}")

    def is_proxy(self, role: str) -> bool:
        """Return whether a role is one of proxyRoles."""
        return role in self._proxies

    # Rules

    def _roles(self, principal: Principal | None) -> tuple[str, ...]:
        """Return the roles to check: the principal's and, for a proxy, its original principal's.

        None if authorization is disabled, and for the box itself.
        """
        if not self.enabled or principal is BOX:
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
        mode = in_effect(_AUTH_MODE, self._policies.levels(namespace), self._policies.settings).value
        if mode == "Prefix" and not subscription.startswith(role):
            raise AuthorizationError(
                "Failed to create consumer - The subscription name needs to be prefixed by the authentication role, "
                f"like {role}-xxxx, in the namespace {namespace}"
            )

    def _holds(self, role: str, granted: dict[str, list[str]], actions: Iterable[str]) -> bool:
        """Return whether a role has one of the actions, by name or (if enabled) by a prefix or suffix pattern."""
        wanted = set(actions)
        if not wanted.isdisjoint(granted.get(role, ())):
            return True
        return self._wildcards and any(
            _fits(role, pattern) and not wanted.isdisjoint(held) for pattern, held in granted.items()
        )


def roles_of(setting: str) -> frozenset[str]:
    """Return the roles in a comma-separated setting."""
    return frozenset(role.strip() for role in setting.split(",") if role.strip())


def _fits(role: str, pattern: str) -> bool:
    """Return whether a role matches ``my-*`` or ``*-service``; a star is a wildcard only at either end."""
    if pattern.endswith("*") and role.startswith(pattern[:-1]):
        return True
    return pattern.startswith("*") and role.endswith(pattern[1:])


def _no_admin(role: str, tenant: str) -> AuthorizationError:
    return AuthorizationError(
        f"Don't have permission to administrate resources on this tenant: {role!r} is not an admin role of {tenant}"
    )


def _refusal(role: str, actions: Iterable[str], where: str) -> str:
    return f"{role!r} has no permission to {' or '.join(actions)} {where}{GRANT_HINT}"
