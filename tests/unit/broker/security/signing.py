"""Keys and tokens for tests; each kind of key is generated once."""

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
"""Start time of the boxes in the playbook, in seconds since 1970."""
SECRET = b"0123456789abcdef" * 4
"""A secret long enough for each algorithm."""


def named(key: bytes) -> str:
    """Return a key in the format of a setting."""
    return f"data:;base64,{base64.b64encode(key).decode()}"


GUARDED: Final[dict[str, Any]] = {
    "authenticationEnabled": True,
    "authenticationProviders": "token,basic,tls",
    "tokenSecretKey": named(SECRET),
    "basicAuthConf": named(b"admin:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n"),
}
"""Settings of a box with authentication by token, by password (admin with 123456), and by certificate."""


def proven(found: Principal | LongCheck) -> Principal:
    """Return the principal that a provider authenticates, with its long computation complete. Raises Refused."""
    return found.finish(found.work()) if isinstance(found, LongCheck) else found


def by_connection(authentication: Authentication, method: str, data: bytes, now: Now) -> Principal:
    """Return the principal of a connection. Raises Refused."""
    return _settled(authentication, now, partial(authentication.of_connection, method, data, "", "here:1", now))


def by_request(authentication: Authentication, method: str | None, header: str, now: Now) -> Principal:
    """Return the principal of an HTTP request. Raises Refused."""
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
    """Return a private key and its public key in DER; each number has its own pair."""
    private, public = tokens.new_pair(algorithm)
    return tokens.private_key(private), public


def token(key: Any = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **claims: Any) -> bytes:
    """Return a token with subject ann unless overridden. A claim of None is omitted."""
    said = {name: value for name, value in ({"sub": "ann"} | claims).items() if value is not None}
    return jwt.PyJWS().encode(json.dumps(said).encode(), key, algorithm, headers).encode()


def pem(public: bytes) -> bytes:
    """Convert a public key from DER to PEM."""
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return tokens.public_key(public).public_bytes(*form)
