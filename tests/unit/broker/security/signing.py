"""Keys and tokens for tests; each kind of key is made once."""

import base64
import functools
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization

from pulsarbox.broker.security.authentication import Authentication, Proved
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import LongCheck, Refused
from pulsarbox.clock import Now
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


def proven(found: Principal | LongCheck) -> Principal:
    """The principal of what a provider returns, with its long work done. Raises Refused."""
    return found.finish(found.work()) if isinstance(found, LongCheck) else found


def by_connection(authentication: Authentication, method: str, data: bytes, now: Now) -> Principal:
    """The principal of a connection. Raises Refused."""
    return _settled(authentication, now, partial(authentication.of_connection, method, data, "", "here:1", now))


def by_request(authentication: Authentication, method: str | None, header: str, now: Now) -> Principal:
    """The principal of an HTTP request. Raises Refused."""
    return _settled(authentication, now, partial(authentication.of_request, method, header, "", "here", now))


def _settled(authentication: Authentication, now: Now, ask: Callable[[Proved], None]) -> Principal:
    results: list[Principal | Refused] = []
    ask(lambda result, when: results.append(result))
    while checks := authentication.checks.take():
        for check in checks:
            authentication.checks.done(check, check.work(), now)
    (found,) = results
    if isinstance(found, Refused):
        raise found
    return found


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
