"""Authentication by JSON Web Token, signed with one of the configured keys.

The algorithm in a token only selects among the keys made for it: a public key never verifies an HMAC, and the algorithm
``none`` is not supported.
"""

import json
from typing import Any, ClassVar, Final, NamedTuple

import jwt

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused
from pulsarbox.protocol.tokens import (
    TokenError,
    TokenExpired,
    check_times,
    public_algorithms,
    public_key,
    secret_algorithms,
    verified,
)

TOKEN_BYTES_MAX: Final = 64 * 1024


class Key(NamedTuple):
    """A key that verifies signatures."""

    key: Any
    algorithms: tuple[str, ...]
    kid: str = ""
    """Key ID in a key set; tokens that name another one are not verified with it."""
    issuers: frozenset[str] = frozenset()
    """Accepted issuers, empty for any; tokens for a key with issuers must expire."""


class ClaimRules(NamedTuple):
    """The claims that a token must have."""

    role: str = "sub"
    """Claim that contains the role."""
    audience: str = ""
    """Required value of ``audience_claim``; empty for none."""
    audience_claim: str = "aud"
    skew: int = 0
    """Allowed clock skew of the token issuer, in seconds."""


class TokenProvider:
    """Token authentication. Source: https://pulsar.apache.org/docs/4.2.x/security-jwt/."""

    method: ClassVar[str] = "token"
    name: ClassVar[str] = "AuthenticationProviderToken"
    challenge: ClassVar[str] = 'Bearer realm="pulsarbox"'

    def __init__(self, keys: tuple[Key, ...], claims: ClaimRules) -> None:
        self._keys = keys
        self._claims = claims
        self._key_set: tuple[Key, ...] = ()

    def use_key_set(self, keys: tuple[Key, ...]) -> None:
        """Replace the keys of the identity provider, which are accepted besides the fixed ones."""
        self._key_set = keys

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal:
        """Return the principal of a token signed with one of the keys and valid ``now`` (ms). Raises Refused."""
        if not data.strip():
            raise Refused("Blank token found")
        if len(data) > TOKEN_BYTES_MAX:
            raise Refused(f"token of {len(data)} bytes exceeds the limit of {TOKEN_BYTES_MAX} bytes")
        token, wanted = data.strip(), self._claims
        claims = self._signed(token)
        role = _role(claims, wanted.role)
        try:
            check_times(claims, now / 1000, wanted.skew)
        except TokenError as error:
            is_expired = isinstance(error, TokenExpired)
            raise Refused(_failed(error), "INVALID_TOKEN", role, is_expired=is_expired) from None
        if wanted.audience:
            _check_audience(claims, wanted, role)
        if not role:
            raise Refused(_failed(f"no role: the claim {wanted.role} is missing"), "INVALID_TOKEN")
        expires = claims.get("exp")
        return Principal(role, self.method, None if expires is None else int((expires + wanted.skew) * 1000))

    def data_of(self, authorization: str) -> bytes:
        """Return the token in the header. Raises Refused for another scheme."""
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Refused("Invalid HTTP Authorization header")
        return value.encode()

    def _signed(self, token: bytes) -> dict[str, Any]:
        """Return the claims of a token signed with one of the keys. Raises Refused."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise Refused(_failed(error), "INVALID_TOKEN") from None
        algorithm, kid = header.get("alg"), header.get("kid")
        problem: object = f"no configured key supports the algorithm {str(algorithm)[:20]}"
        for key in self._keys + self._key_set:
            if algorithm not in key.algorithms or (kid and key.kid and kid != key.kid):
                continue
            try:
                claims = verified(token, key.key, key.algorithms)
            except TokenError as error:
                problem = error
                continue
            _check_issuer(claims, key)
            return claims
        raise Refused(_failed(problem), "INVALID_TOKEN")


def _failed(why: object) -> str:
    return f"Failed to authentication token: {why}"


def _role(claims: dict[str, Any], name: str) -> str:
    """Return a string claim, or the first item of a list; empty if there is none."""
    found = claims.get(name)
    if isinstance(found, list):
        found = found[0] if found else None
    return found if isinstance(found, str) else ""


def _check_issuer(claims: dict[str, Any], key: Key) -> None:
    if not key.issuers:
        return
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or issuer not in key.issuers:
        raise Refused(_failed("the issuer is not in tokenJwksIssuers"), "UNSUPPORTED_ISSUER")
    if claims.get("exp") is None:
        raise Refused(_failed("no expiry: tokens of an identity provider must expire"), "INVALID_TOKEN")


def _check_audience(claims: dict[str, Any], wanted: ClaimRules, role: str) -> None:
    found = claims.get(wanted.audience_claim)
    if found is None:
        raise Refused(
            _failed(f"Found null Audience in token, for claimed field: {wanted.audience_claim}"), "INVALID_TOKEN", role
        )
    audiences = found if isinstance(found, list) else [found]
    if wanted.audience not in audiences:
        raise Refused(
            f"Audiences in token: {audiences} not contains this broker: {wanted.audience}", "INVALID_AUDIENCES", role
        )


def secret(data: bytes) -> Key:
    """Return a secret key. Raises TokenError."""
    return Key(data, tuple(secret_algorithms(data)))


def public(data: bytes, algorithm: str) -> Key:
    """Return a public key (DER or PEM), which must fit the algorithm. Raises TokenError."""
    found = public_key(data)
    algorithms = public_algorithms(found)
    if algorithm not in algorithms:
        raise TokenError(f"the key supports {algorithms[0]}, but tokenPublicAlg is {algorithm}")
    return Key(found, algorithms)


def key_set_of(data: bytes, name: str, issuers: frozenset[str]) -> tuple[Key, ...]:
    """Return the keys of a JSON Web Key Set, which verify tokens of these issuers. Raises TokenError.

    ``name``: of the key set, for messages.
    """
    try:
        rows = json.loads(data)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise TokenError(f'{name} is not a JSON Web Key Set: expected {{"keys": [...]}}')
    keys = tuple(_key_of(row, issuers) for row in rows if _is_for_signatures(row))
    if not keys:
        raise TokenError(f"{name} contains no public key (RSA or EC) for signatures")
    return keys


def _is_for_signatures(row: Any) -> bool:
    return isinstance(row, dict) and row.get("kty") in ("RSA", "EC") and row.get("use", "sig") == "sig"


def _key_of(row: dict[str, Any], issuers: frozenset[str]) -> Key:
    kid = str(row.get("kid", ""))
    try:
        # Drop the private half of a key pair.
        found = jwt.PyJWK({name: value for name, value in row.items() if name not in _PRIVATE and name != "alg"}).key
        algorithms = public_algorithms(found)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
        raise TokenError(f"invalid key {kid[:80]!r} in the key set: {error}") from None
    own = row.get("alg")
    if own is not None and own not in algorithms:
        raise TokenError(f"key {kid[:80]!r} in the key set: key type does not match the algorithm {str(own)[:20]}")
    return Key(found, algorithms if own is None else (own,), kid, issuers)


_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
