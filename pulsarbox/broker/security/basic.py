"""Basic authentication: users and password hashes in the format of ``htpasswd``.

Hashes are bcrypt (``htpasswd -B``), apr1 (its default), {SHA} (``-s``), and those of crypt(3): sha512, sha256, md5,
des.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from hmac import compare_digest
from typing import ClassVar, Final

import bcrypt
from passlib.hash import apr_md5_crypt, des_crypt, ldap_sha1, md5_crypt, sha256_crypt, sha512_crypt

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import LongCheck, Refused

BCRYPT_COST_MAX: Final = 10
"""A check takes about 50 ms at cost 10, and twice as long with each further step."""
ROUNDS_MAX: Final = 20_000
"""Rounds of sha256 and sha512 that take about as long."""
_BCRYPT_BYTES: Final = 72
"""bcrypt ignores the bytes after this."""
_KNOWN_MAX: Final = 10_000
_WRONG: Final = "Unknown user or invalid password"

Matches = Callable[[bytes], bool]


class BasicProvider:
    """Basic authentication. Source: https://pulsar.apache.org/docs/4.2.x/security-basic-auth/."""

    method: ClassVar[str] = "basic"
    name: ClassVar[str] = "AuthenticationProviderBasic"
    challenge: ClassVar[str] = 'Basic realm="pulsarbox", charset="UTF-8"'

    def __init__(self, users: Mapping[str, Matches], digest_key: bytes) -> None:
        """``users``: see ``users_of``. ``digest_key``: a secret for the digests of verified passwords."""
        self._users = users
        self._key = digest_key
        self._right: dict[bytes, Matches] = {}
        """Keyed digests of verified credentials, with the hash that they match: they need no further verification."""

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal | LongCheck:
        """Return the principal if the password was verified earlier, or the work that verifies it. Raises Refused.

        ``data``: user, a colon, password.
        """
        name, colon, password = data.partition(b":")
        try:
            user = name.decode()
        except UnicodeDecodeError:
            user = ""
        if not colon or not user or not user.isprintable() or len(data) > 1024 or b"\0" in password:
            raise Refused("Base64 decoded params are invalid")
        users = self._users
        matches = users.get(user)
        digest = hashlib.blake2b(data, key=self._key).digest()
        if matches is not None and self._right.get(digest) is matches:
            return Principal(user, self.method)
        # The password of an unknown user is hashed too, so that the time does not reveal which users exist.
        hashed = matches or next(iter(users.values()))
        return LongCheck((digest, hashed), partial(hashed, password), partial(self._verified, user, matches, digest))

    def _verified(self, user: str, matches: Matches | None, digest: bytes, is_right: bool) -> Principal:
        if matches is None:
            raise Refused(_WRONG)
        if not is_right:
            raise Refused(_WRONG, "INVALID_TOKEN", user)
        if self._users.get(user) is not matches:
            raise Refused("the users changed during the verification", "INVALID_TOKEN", user)
        if len(self._right) >= _KNOWN_MAX:
            self._right.clear()
        self._right[digest] = matches
        return Principal(user, self.method)

    def data_of(self, authorization: str) -> bytes:
        """Return the credentials of an Authorization header. Raises Refused for another scheme or invalid base64."""
        scheme, _, value = authorization.partition(" ")
        if scheme.upper() != "BASIC":
            raise Refused('Authentication token has to be started with "Basic "', "INVALID_HEADER")
        try:
            return base64.b64decode(value.strip(), validate=True)
        except ValueError:
            raise Refused("Base64 decoding is failure", "INVALID_HEADER") from None

    def use_users(self, users: Mapping[str, Matches]) -> None:
        """Replace all users; passwords verified earlier are verified again."""
        self._users = users
        self._right.clear()


def users_of(data: bytes) -> dict[str, Matches]:
    """Parse a password file. Raises ValueError, which names the line and contains no hash."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    users: dict[str, Matches] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        user, colon, hashed = line.strip().partition(":")
        if not colon or not user:
            raise ValueError(f"line {number}: expected user:hash")
        try:
            users[user] = matcher(hashed)
        except ValueError as error:
            raise ValueError(f"line {number}, user {user}: {error}") from None
    if not users:
        raise ValueError("the file contains no users")
    return users


def matcher(hashed: str) -> Matches:
    """Return the verification of passwords against a hash. Raises ValueError for an invalid or too slow hash."""
    if hashed.startswith(("$2y$", "$2b$", "$2a$")):
        return _bcrypt(hashed)
    for handler in (apr_md5_crypt, sha512_crypt, sha256_crypt, md5_crypt, ldap_sha1):
        if handler.identify(hashed):
            break
    else:
        handler = des_crypt
    try:
        made = handler.from_string(hashed)
    except (ValueError, TypeError):
        made = None
    if made is None or not made.checksum:
        raise ValueError("unknown hash; expected bcrypt, apr1, {SHA} or crypt: create it with `htpasswd -B`")
    if getattr(made, "rounds", 0) > ROUNDS_MAX:
        raise ValueError(f"more than {ROUNDS_MAX} rounds are too slow: create the hash with `htpasswd -B`")

    def matches(password: bytes) -> bool:
        try:
            return bool(handler.verify(password, hashed))
        except ValueError:  # the hash does not support such a password
            return False

    return matches


def _bcrypt(hashed: str) -> Matches:
    parts = hashed.split("$")
    if len(hashed) != 60 or len(parts) != 4 or not parts[2].isdigit():
        raise ValueError("invalid bcrypt hash: create it with `htpasswd -B`")
    if int(parts[2]) > BCRYPT_COST_MAX:
        raise ValueError(f"a bcrypt cost above {BCRYPT_COST_MAX} is too slow: create the hash with `htpasswd -B`")
    try:
        bcrypt.checkpw(b"", hashed.encode())
    except ValueError:
        raise ValueError("invalid bcrypt hash: create it with `htpasswd -B`") from None

    def matches(password: bytes) -> bool:
        return compare_digest(bcrypt.hashpw(password[:_BCRYPT_BYTES], hashed.encode()), hashed.encode())

    return matches
