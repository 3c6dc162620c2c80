"""Settings of the [authorization] table."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class AuthorizationSettings:
    """The [authorization] part of ``Settings``."""

    authorizationEnabled: bool = setting(
        False,
        "Restricts clients to the operations that they have been granted. Requires authenticationEnabled. If false, "
        "authenticated clients have full access.",
        table="authorization",
    )
    superUserRoles: str = setting(
        "",
        "Roles with full access, comma-separated.",
        table="authorization",
    )
    viewerRoles: str = setting(
        "",
        "Roles that may see the state of the whole box (its live views), comma-separated. They cannot change anything "
        "unless it is granted to them.",
        table="authorization",
    )
    proxyRoles: str = setting(
        "",
        "Roles of proxies, comma-separated. A proxy must name the original client's role, and has only the "
        "permissions that both roles share. No other role may act for another one.",
        table="authorization",
    )
    authorizationAllowWildcardsMatching: bool = setting(
        False,
        "Allows a star at the beginning or end of a role in a permission as a wildcard, as in my-*.",
        table="authorization",
    )
