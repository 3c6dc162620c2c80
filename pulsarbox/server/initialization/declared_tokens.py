"""Files of declared tokens: created if they are missing, or no longer hold a valid token of their role."""

import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pulsarbox.config import Settings
from pulsarbox.config.secret_source import read_from
from pulsarbox.declaration.declaration import Declaration, TokenDeclaration
from pulsarbox.declaration.places import DeclarationProblem, InvalidDeclaration
from pulsarbox.declaration.plan import Step
from pulsarbox.protocol import tokens
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory

_TOKEN_MAX = 1 << 16
"""Bytes read of a token file."""


class _SigningKey(NamedTuple):
    signing: Any
    verifying: Any
    algorithms: tuple[str, ...]
    algorithm: str


class DeclaredTokens:
    """The tokens of a declaration, signed with the keys of the settings or with those that it names."""

    def __init__(self, declaration: Declaration, settings: Settings, now: float) -> None:
        """``now`` is in seconds since 1970."""
        self._declaration = declaration
        self._settings = settings
        self._now = now

    def steps(self) -> list[Step]:
        """Return a step for each token that is to be written. Raises InvalidDeclaration if a key cannot be used."""
        return list(self._steps())

    def _steps(self) -> Iterator[Step]:
        for each in self._declaration.tokens:
            key = self._checked_key(each)
            path = path_of_token(each)
            if not self._is_valid(path, each.role, key):
                yield Step("write", f"token of role {each.role} to", str(path), each.place, token=each)

    def write(self, declared: TokenDeclaration) -> None:
        """Write a token, readable only by its owner. Raises InvalidDeclaration."""
        key, path = self._checked_key(declared), path_of_token(declared)
        token = tokens.create(self._claims(declared), key.signing, key.algorithm, {})
        try:
            make_directory(path.parent)
            _replace(path, token.encode() + b"\n")
        except OSError as error:
            why = f"cannot write {path}: {error.strerror}"
            raise InvalidDeclaration([DeclarationProblem(declared.place, why)]) from None

    def _claims(self, declared: TokenDeclaration) -> dict[str, Any]:
        settings = self._settings
        claims: dict[str, Any] = {settings.tokenAuthClaim: declared.role}
        if declared.lifetime is not None:
            claims["exp"] = int(self._now + declared.lifetime / 1000)
        if settings.tokenAudience:
            claims[settings.tokenAudienceClaim or "aud"] = settings.tokenAudience
        return claims

    def _is_valid(self, path: Path, role: str, key: _SigningKey) -> bool:
        try:
            with path.open("rb") as source:
                is_private = not stat.S_IMODE(os.fstat(source.fileno()).st_mode) & ~PRIVATE
                text = source.read(_TOKEN_MAX).decode("ascii").strip()
            claims = tokens.validated(text, key.verifying, key.algorithms, self._now)
        except (OSError, ValueError):
            return False
        audience = self._settings.tokenAudience
        named = claims.get(self._settings.tokenAudienceClaim or "aud")
        return is_private and claims.get(self._settings.tokenAuthClaim) == role and (not audience or named == audience)

    def _checked_key(self, declared: TokenDeclaration) -> _SigningKey:
        try:
            return self._key(declared)
        except ValueError as error:
            why = f"token {declared.role}: {error}"
            raise InvalidDeclaration([DeclarationProblem(declared.place, why)]) from None

    def _key(self, declared: TokenDeclaration) -> _SigningKey:
        """Return the key of a token. Raises ValueError."""
        if declared.private_key:
            private = tokens.private_key(read_from(str(_beside(declared, declared.private_key))))
            public = private.public_key()
            algorithms = tokens.public_algorithms(public)
            return _SigningKey(private, public, algorithms, algorithms[0])
        if not self._settings.tokenSecretKey.strip():
            raise ValueError("there is no key to sign it: set tokenSecretKey, or name its private-key")
        secret = read_from(self._settings.tokenSecretKey)
        fitting = tuple(tokens.secret_algorithms(secret))
        return _SigningKey(secret, secret, fitting, fitting[-1])


def path_of_token(declared: TokenDeclaration) -> Path:
    """Return the file of a token."""
    return _beside(declared, declared.file)


def _beside(declared: TokenDeclaration, name: str) -> Path:
    return Path(declared.place.file).parent / name


def _replace(path: Path, data: bytes) -> None:
    """Write a file at once: a reader gets the previous token or the new one. Raises OSError."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE), "wb") as out:
            out.write(data)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
