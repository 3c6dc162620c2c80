"""Keys and tokens for tests; each kind of key is made once."""

import base64
import functools
import json
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization

from pulsarbox.protocol import tokens

NOW = 1_700_000_000
"""Seconds since 1970, when the boxes of the playbook begin."""
SECRET = b"0123456789abcdef" * 4
"""Long enough for each algorithm."""


def named(key: bytes) -> str:
    """A key as a setting may have it."""
    return f"data:;base64,{base64.b64encode(key).decode()}"


GUARDED: Final[dict[str, Any]] = {
    "authenticationEnabled": True,
    "authenticationProviders": "token,basic,tls",
    "tokenSecretKey": named(SECRET),
    "basicAuthConf": named(b"admin:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n"),
}
"""Settings of a box that asks who comes: whoever has a token, admin with 123456, and who has shown a certificate."""


@functools.cache
def pair(algorithm: str, number: int = 0) -> tuple[Any, bytes]:
    """A private key, and its public one in DER; another pair for each number."""
    private, public = tokens.new_pair(algorithm)
    return tokens.private_key(private), public


def token(key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **claims: Any) -> bytes:
    """A token for ann, unless the claims say otherwise; a claim that is None is left out."""
    said = {name: value for name, value in ({"sub": "ann"} | claims).items() if value is not None}
    return jwt.PyJWS().encode(json.dumps(said).encode(), key, algorithm, headers).encode()


def pem(public: bytes) -> bytes:
    """A public key in DER, as PEM."""
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return tokens.public_key(public).public_bytes(*form)
