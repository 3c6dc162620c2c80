"""JSON Web Tokens in Pulsar's form, and their signing keys.

Secret keys are random bytes. Private keys are PKCS #8 and public keys SubjectPublicKeyInfo, in DER, as Pulsar writes
them, or in PEM.
Source: https://pulsar.apache.org/docs/4.2.x/security-jwt/.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

SECRET_SIZES: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Algorithms of secret keys, and the minimum key size of each in bytes."""
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
PAIRS: Final = (*RSA, *_CURVES)
RSA_BITS_MIN: Final = 2048
_RSA_BITS: Final = {"256": 2048, "384": 3072, "512": 4096}


_TIME_MAX: Final = 1e15
"""Seconds since 1970: upper bound of times in claims, which also rejects NaN and integers beyond any float."""


class TokenError(ValueError):
    """A key or token is unusable; the message gives the reason."""


class TokenExpired(TokenError):
    """A token was valid but has expired."""


def private_key(data: bytes) -> "PrivateKeyTypes":
    """Parse a private key. Raises TokenError."""
    load = serialization.load_pem_private_key if data.startswith(b"-----") else serialization.load_der_private_key
    try:
        return load(data, password=None)
    except (ValueError, TypeError) as error:
        raise TokenError(f"not a private key (PKCS #8 in DER or PEM): {error}") from None


def public_key(data: bytes) -> "PublicKeyTypes":
    """Parse a public key. Raises TokenError."""
    load = serialization.load_pem_public_key if data.startswith(b"-----") else serialization.load_der_public_key
    try:
        return load(data)
    except ValueError as error:
        raise TokenError(f"not a public key (DER or PEM): {error}") from None


def new_pair(algorithm: str) -> tuple[bytes, bytes]:
    """Generate a private and a public key for an algorithm of ``PAIRS``, in DER."""
    made: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    if algorithm in RSA:
        made = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS[algorithm[2:]])
    else:
        made = ec.generate_private_key(_CURVES[algorithm])
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    public = made.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return made.private_bytes(serialization.Encoding.DER, *form), public


def create(claims: Mapping[str, Any], key: Any, algorithm: str, headers: Mapping[str, str]) -> str:
    """Create a signed token. Raises TokenError if the key does not match the algorithm."""
    try:
        # Pulsar's tokens have no type in the header.
        return jwt.encode(dict(claims), key, algorithm, headers={"typ": None, **headers})
    except (jwt.PyJWTError, TypeError, ValueError, AttributeError) as error:
        raise TokenError(f"the key does not match {algorithm}: {error}") from None


def verified(token: str | bytes, key: Any, algorithms: Sequence[str]) -> dict[str, Any]:
    """Return the claims of a token after verifying its signature; times are not checked. Raises TokenError."""
    try:
        found = jwt.PyJWS().decode_complete(token, key, list(algorithms))
        claims = json.loads(found["payload"])
    except (jwt.PyJWTError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TokenError(f"invalid token: {error}") from None
    if not isinstance(claims, dict):
        raise TokenError("invalid token: its payload is not a JSON object")
    return claims


def check_times(claims: Mapping[str, Any], now: float, skew: float = 0) -> None:
    """Raise TokenError if a token has expired at ``now`` (s since 1970) or is not valid yet.

    ``skew``: allowed clock difference from the token's issuer, in seconds.
    """
    for name in ("exp", "nbf"):
        at = claims.get(name)
        if at is None:
            continue
        if isinstance(at, bool) or not isinstance(at, int | float) or not -_TIME_MAX < at < _TIME_MAX:
            raise TokenError(f"invalid token: claim {name} is not a time")
        if name == "exp" and at + skew <= now:
            raise TokenExpired("invalid token: it has expired")
        if name == "nbf" and at - skew > now:
            raise TokenError("invalid token: it is not valid yet (claim nbf)")


def validated(token: str, key: Any, algorithms: Sequence[str], now: float) -> dict[str, Any]:
    """Return the claims of a token after verifying its signature and its times at ``now`` (s since 1970).

    Raises TokenError.
    """
    claims = verified(token, key, algorithms)
    check_times(claims, now)
    return claims


def secret_algorithms(secret: bytes) -> list[str]:
    """Return the algorithms that a secret key is long enough for, strongest last. Raises TokenError if there are
    none."""
    fitting = [name for name, size in SECRET_SIZES.items() if len(secret) >= size]
    if not fitting:
        raise TokenError(f"a secret key must have at least 32 bytes, not {len(secret)}")
    return fitting


def public_algorithms(key: Any) -> tuple[str, ...]:
    """Return the algorithms whose signatures a public key can verify. Raises TokenError if there are none."""
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < RSA_BITS_MIN:
            raise TokenError(f"an RSA key must have at least {RSA_BITS_MIN} bits, not {key.key_size}")
        return RSA
    if isinstance(key, ec.EllipticCurvePublicKey):
        fitting = tuple(name for name, curve in _CURVES.items() if curve.name == key.curve.name)
        if fitting:
            return fitting
        raise TokenError(f"no supported algorithm uses the curve of the key, {key.curve.name}")
    raise TokenError("neither an RSA key nor an elliptic curve key")


def content(token: str) -> tuple[str, str]:
    """Return the decoded header and claims of a token without verifying its signature. Raises TokenError."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        raise TokenError("invalid token: expected three parts separated by dots")
    try:
        header, claims = (urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode() for part in parts[:2])
        json.loads(header), json.loads(claims)
    except ValueError:
        raise TokenError("invalid token: its first two parts are not JSON in base64") from None
    return header, claims
