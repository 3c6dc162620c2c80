"""JSON Web Tokens as Pulsar has them, and the keys that they are signed with.

Secret keys are so many random bytes; of a pair, the private key is PKCS #8 and the public one SubjectPublicKeyInfo, in
DER as Pulsar writes them, or in PEM. What is named is a file, a ``file:`` or ``data:`` URL, or the key in base64.
Source: https://pulsar.apache.org/docs/4.2.x/security-jwt/.
"""

import json
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, unquote_to_bytes

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

SECRET_SIZES: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Algorithms of secret keys, and how many bytes theirs have at least."""
RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
PAIRS: Final = (*RSA, *_CURVES)
_RSA_BITS: Final = {"256": 2048, "384": 3072, "512": 4096}


class TokenError(ValueError):
    """A key or a token cannot be used; says why."""


def key_bytes(named: str) -> bytes:
    """The bytes of a key. Raises TokenError."""
    try:
        if named.startswith("data:"):
            head, comma, data = named.partition(",")
            if not comma:
                raise TokenError("a data: URL looks like data:;base64,...")
            return b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
        if named.startswith("file:"):
            return Path(unquote(named.removeprefix("file:").removeprefix("//"))).read_bytes()
        path = Path(named)
        return path.read_bytes() if path.exists() else b64decode(named, validate=True)
    except OSError as error:
        raise TokenError(f"{error.filename}: {error.strerror}") from None
    except NoBase64:
        raise TokenError("it is neither a file nor a key in base64") from None


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


def secret_algorithm(secret: bytes) -> str:
    """The algorithm that a secret key is long enough for. Raises TokenError."""
    fitting = [name for name, size in SECRET_SIZES.items() if len(secret) >= size]
    if not fitting:
        raise TokenError(f"a secret key has 32 bytes at least, and this one {len(secret)}")
    return fitting[-1]


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


def validated(token: str, key: Any, algorithms: list[str], now: float) -> dict[str, Any]:
    """The claims of a token that is signed with the key and has not expired at ``now`` (s since 1970).

    Raises TokenError.
    """
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms,
            options={"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False},
        )
    except (jwt.PyJWTError, TypeError, ValueError, AttributeError) as error:
        raise TokenError(f"the token is not valid: {error}") from None
    for name, wrong in (("exp", "it has expired"), ("nbf", "its time has not come")):
        at = claims.get(name)
        if at is not None and not isinstance(at, int | float):
            raise TokenError(f"the token is not valid: its {name} is no time")
        if at is not None and (at <= now if name == "exp" else at > now):
            raise TokenError(f"the token is not valid: {wrong}")
    return claims


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
