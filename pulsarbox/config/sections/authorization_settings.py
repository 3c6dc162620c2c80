"""The settings of authorization: what those may do who have proved who they are."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class AuthorizationSettings:
    """Those of ``Settings`` that stand in the table [authorization]."""

    authorizationEnabled: bool = setting(
        False,
        "Whether clients may only do what they were granted. It needs authenticationEnabled. If not, whoever has "
        "proved a name may do everything.",
        table="authorization",
    )
    superUserRoles: str = setting(
        "",
        "Roles that may do everything, with commas between.",
        table="authorization",
    )
    viewerRoles: str = setting(
        "",
        "Roles that may see how the whole box is doing (its live views), with commas between. They "
        "may change nothing, unless that was granted.",
        table="authorization",
    )
    proxyRoles: str = setting(
        "",
        "Roles of proxies, with commas between. They have to say for whom they ask, and may do what both may. "
        "Nobody else may ask for others.",
        table="authorization",
    )
    authorizationAllowWildcardsMatching: bool = setting(
        False,
        "Whether a star at the beginning or end of a role in a permission stands for anything, as in my-*.",
        table="authorization",
    )
