"""JSON Web Tokens as Pulsar has them, and the keys that they are signed with.

Secret keys are so many random bytes; of a pair, the private key is PKCS #8 and the public one SubjectPublicKeyInfo, in
DER as Pulsar writes them, or in PEM. What is named is a file, a ``file:`` or ``data:`` URL, or the key in base64.
Source: https://pulsar.apache.org/docs/4.2.x/security-jwt/.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from pulsarbox.config.secret_source import read_from

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

SECRET_SIZES: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Algorithms of secret keys, and how many bytes theirs have at least."""
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
PAIRS: Final = (*RSA, *_CURVES)
RSA_BITS_MIN: Final = 2048
_RSA_BITS: Final = {"256": 2048, "384": 3072, "512": 4096}


_TIME_MAX: Final = 1e15
"""Seconds since 1970, in the claims of a token; NaN and whole numbers beyond any float are none either."""


class TokenError(ValueError):
    """A key or a token cannot be used; says why."""


class TokenExpired(TokenError):
    """A token was good, and is not any more."""


def key_bytes(named: str) -> bytes:
    """The bytes of a key, from where ``read_from`` finds them. Raises TokenError."""
    try:
        return read_from(named)
    except ValueError as error:
        raise TokenError(str(error)) from None


def private_key(data: bytes) -> "PrivateKeyTypes":
    """A private key. Raises TokenError."""
    load = serialization.load_pem_private_key if data.startswith(b"-----") else serialization.load_der_private_key
    try:
        return load(data, password=None)
    except (ValueError, TypeError) as error:
        raise TokenError(f"it is no private key (PKCS #8, DER or PEM): {error}") from None


def public_key(data: bytes) -> "PublicKeyTypes":
    """A public key. Raises TokenError."""
    load = serialization.load_pem_public_key if data.startswith(b"-----") else serialization.load_der_public_key
    try:
        return load(data)
    except ValueError as error:
        raise TokenError(f"it is no public key (DER or PEM): {error}") from None


def new_pair(algorithm: str) -> tuple[bytes, bytes]:
    """A new private and public key for an algorithm of ``PAIRS``, in DER."""
    made: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    if algorithm in RSA:
        made = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS[algorithm[2:]])
    else:
        made = ec.generate_private_key(_CURVES[algorithm])
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    public = made.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return made.private_bytes(serialization.Encoding.DER, *form), public


def create(claims: Mapping[str, Any], key: Any, algorithm: str, headers: Mapping[str, str]) -> str:
    """A signed token. Raises TokenError where the key is none for the algorithm."""
    try:
        # Pulsar's have no type in the header, and no other claims than these.
        return jwt.encode(dict(claims), key, algorithm, headers={"typ": None, **headers})
    except (jwt.PyJWTError, TypeError, ValueError, AttributeError) as error:
        raise TokenError(f"the key is none for {algorithm}: {error}") from None


def verified(token: str | bytes, key: Any, algorithms: Sequence[str]) -> dict[str, Any]:
    """The claims of a token that is signed with the key, whatever they say of times. Raises TokenError."""
    try:
        found = jwt.PyJWS().decode_complete(token, key, list(algorithms))
        claims = json.loads(found["payload"])
    except (jwt.PyJWTError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TokenError(f"the token is not valid: {error}") from None
    if not isinstance(claims, dict):
        raise TokenError("the token is not valid: what it says is no JSON object")
    return claims


def check_times(claims: Mapping[str, Any], now: float, skew: float = 0) -> None:
    """Raises TokenError where a token has expired at ``now`` (s since 1970), or its time has not come.

    ``skew``: by how much the clock of who has made it may differ, in seconds.
    """
    for name in ("exp", "nbf"):
        at = claims.get(name)
        if at is None:
            continue
        if isinstance(at, bool) or not isinstance(at, int | float) or not -_TIME_MAX < at < _TIME_MAX:
            raise TokenError(f"the token is not valid: its {name} is no time")
        if name == "exp" and at + skew <= now:
            raise TokenExpired("the token is not valid: it has expired")
        if name == "nbf" and at - skew > now:
            raise TokenError("the token is not valid: its time has not come")


def validated(token: str, key: Any, algorithms: Sequence[str], now: float) -> dict[str, Any]:
    """The claims of a token that is signed with the key and has not expired at ``now`` (s since 1970).

    Raises TokenError.
    """
    claims = verified(token, key, algorithms)
    check_times(claims, now)
    return claims


def secret_algorithms(secret: bytes) -> list[str]:
    """The algorithms that a secret key is long enough for, the strongest last. Raises TokenError for none."""
    fitting = [name for name, size in SECRET_SIZES.items() if len(secret) >= size]
    if not fitting:
        raise TokenError(f"a secret key has 32 bytes at least, and this one {len(secret)}")
    return fitting


def public_algorithms(key: Any) -> tuple[str, ...]:
    """The algorithms whose signatures a public key can check. Raises TokenError where there are none."""
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < RSA_BITS_MIN:
            raise TokenError(f"an RSA key has {RSA_BITS_MIN} bits at least, and this one {key.key_size}")
        return RSA
    if isinstance(key, ec.EllipticCurvePublicKey):
        fitting = tuple(name for name, curve in _CURVES.items() if curve.name == key.curve.name)
        if fitting:
            return fitting
        raise TokenError(f"the curve of the key is {key.curve.name}, for which there is no algorithm")
    raise TokenError("it is neither an RSA key nor one of an elliptic curve")


def content(token: str) -> tuple[str, str]:
    """Header and claims as they are written, of any token, whoever signed it. Raises TokenError."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        raise TokenError("it is no token: those have three parts with dots between them")
    try:
        header, claims = (urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode() for part in parts[:2])
        json.loads(header), json.loads(claims)
    except ValueError:
        raise TokenError("it is no token: its first two parts are not JSON in base64") from None
    return header, claims
