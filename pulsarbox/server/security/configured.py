"""Authentication as configured: reads the keys and users that settings name, with errors for invalid settings."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pulsarbox.broker.security.authentication import Authentication
from pulsarbox.broker.security.authorization import roles_of
from pulsarbox.broker.security.operator import OperatorProvider
from pulsarbox.broker.security.provider import Provider
from pulsarbox.config import ConfigError, Settings
from pulsarbox.config.secret_source import path_of, read_from
from pulsarbox.server.security.credential_files import CredentialFiles
from pulsarbox.server.security.watched_file import WatchedFile

if TYPE_CHECKING:
    from pulsarbox.broker.security.token import Key, TokenProvider

T = TypeVar("T")
_JAVA: Final = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
PROVIDERS: Final = {"token": "Token", "basic": "Basic", "tls": "Tls"}
"""Names in authenticationProviders, with the last part of Pulsar's class names."""


def authentication_of(
    settings: Settings, operator: str = "", files: CredentialFiles | None = None
) -> Authentication | None:
    """Return the configured authentication; None if disabled. Raises ConfigError for invalid settings.

    ``operator``: the secret of an OperatorProvider, empty for none. ``files`` receives the files to watch. A provider's
    dependencies (JWT, password hashes) are imported only if that provider is configured.
    """
    if not settings.authenticationEnabled:
        return None
    words = providers_of(settings)
    if not words:
        raise ConfigError(
            "", "authenticationProviders", "authenticationEnabled requires a provider; expected token, basic or tls"
        )
    made: dict[str, Callable[[Settings, CredentialFiles], Provider]]
    made = {"token": token_provider, "basic": _basic, "tls": _tls}
    files = CredentialFiles() if files is None else files
    providers = [made[word](settings, files) for word in words]
    if operator:
        providers.append(OperatorProvider(operator, _operator_role(settings)))
    return Authentication(providers, settings.anonymousUserRole.strip())


def providers_of(settings: Settings) -> list[str]:
    """Return the distinct providers in authenticationProviders. Raises ConfigError for an unknown one."""
    by_name = {_JAVA + ending: word for word, ending in PROVIDERS.items()} | {word: word for word in PROVIDERS}
    found: dict[str, None] = {}
    for name in filter(None, map(str.strip, settings.authenticationProviders.split(","))):
        if name not in by_name:
            advice = "; for tokens of an identity provider, use token with tokenJwksFile" if "OpenID" in name else ""
            known = f"expected {', '.join(PROVIDERS)}, or their Pulsar class names{advice}"
            raise ConfigError("", "authenticationProviders", f"unknown provider {name}; {known}")
        found[by_name[name]] = None
    return list(found)


def token_provider(settings: Settings, files: CredentialFiles) -> "TokenProvider":
    """Return the token provider; ``files`` receives its key set. Raises ConfigError for invalid settings."""
    from pulsarbox.broker.security.token import ClaimRules, TokenProvider, public, secret

    keys: list[Key] = []
    if settings.tokenSecretKey.strip():
        keys.append(_found("tokenSecretKey", lambda: secret(read_from(settings.tokenSecretKey))))
    if settings.tokenPublicKey.strip():
        keys.append(
            _found("tokenPublicKey", lambda: public(read_from(settings.tokenPublicKey), settings.tokenPublicAlg))
        )
    watched: WatchedFile[tuple[Key, ...]] | None = None
    if settings.tokenJwksFile.strip():
        path, issuers = Path(settings.tokenJwksFile.strip()), _issuers(settings)
        watched = _found("tokenJwksFile", lambda: WatchedFile(path, lambda: _key_set(path, issuers)))
    if not keys and watched is None:
        raise ConfigError(
            "",
            "tokenSecretKey",
            "the token provider has no key: set tokenSecretKey, tokenPublicKey or tokenJwksFile "
            "(`pulsarbox token create ROLE` creates a secret key)",
        )
    if settings.tokenAudienceClaim.strip() and not settings.tokenAudience.strip():
        raise ConfigError(
            "",
            "tokenAudience",
            "tokenAudienceClaim requires tokenAudience, the audience that tokens for this box must name",
        )
    claims = ClaimRules(
        role=settings.tokenAuthClaim.strip(),
        audience=settings.tokenAudience.strip(),
        audience_claim=settings.tokenAudienceClaim.strip() or "aud",
        skew=settings.tokenAllowedClockSkewSeconds,
    )
    provider = TokenProvider(tuple(keys), claims)
    if watched is not None:
        files.add(watched, provider.use_key_set)
    return provider


def _key_set(path: Path, issuers: frozenset[str]) -> tuple["Key", ...]:
    """Return the keys of a JSON Web Key Set. Raises ValueError."""
    from pulsarbox.broker.security.token import key_set_of

    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    return key_set_of(data, str(path), issuers)


def _operator_role(settings: Settings) -> str:
    """Return the first superuser that is not a proxy, because proxies must name an original principal."""
    proxies = roles_of(settings.proxyRoles)
    superusers = filter(None, map(str.strip, settings.superUserRoles.split(",")))
    return next((role for role in superusers if role not in proxies), OperatorProvider.method)


def _issuers(settings: Settings) -> frozenset[str]:
    """Return the trusted issuers. Raises ConfigError if these or the audience are not set.

    Without them, tokens that an identity provider has issued for other services would be accepted.
    """
    issuers = frozenset(filter(None, map(str.strip, settings.tokenJwksIssuers.split(","))))
    if not issuers:
        raise ConfigError(
            "", "tokenJwksIssuers", "tokenJwksFile requires tokenJwksIssuers, the issuer of its tokens (claim iss)"
        )
    if not settings.tokenAudience.strip():
        raise ConfigError(
            "",
            "tokenAudience",
            "tokenJwksFile requires tokenAudience, to reject tokens that were issued for other services",
        )
    return issuers


def _basic(settings: Settings, files: CredentialFiles) -> Provider:
    named = settings.basicAuthConf
    if not named.strip():
        raise ConfigError(
            "", "basicAuthConf", "the basic provider has no users: create a file with `htpasswd -Bc FILE USER`"
        )
    from pulsarbox.broker.security.basic import BasicProvider, users_of

    watched = _found("basicAuthConf", lambda: WatchedFile(path_of(named), lambda: users_of(read_from(named))))
    provider = BasicProvider(watched.value, os.urandom(32))
    files.add(watched, provider.use_users)
    return provider


def _tls(settings: Settings, files: CredentialFiles) -> Provider:
    from pulsarbox.broker.security.tls import TlsProvider

    return TlsProvider()


def _found(key: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError("", key, f"{error}") from None
