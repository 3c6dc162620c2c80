"""``pulsarbox.broker.security.basic``: files written by htpasswd, and verification of passwords."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.security.basic import BasicProvider, Matches, users_of
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import LongCheck, Refused
from tests.unit.broker.security.signing import proven

# Each hash is of "123456"; the first line is from the Python client's own tests.
LINES = {
    "admin": "$apr1$FG4AO6aX$KGYPuMoLUou3i6vUkPUUf.",
    "bcrypt": "$2y$05$kicRQPLjhwLZn8LbHec4BuiPvVLX0RoZmIWjkSP.WCXKId.ZOY38S",
    "sha": "{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=",
    "des": "ab01FAX.bQRSU",
    "sha512": "$6$rounds=1000$abcdefgh$"
    "Q8pJPf/6naOfYYkiWOb8LawxXYH9VjXAoZAKS4uhrds9oa9nskvqlm4i6.MJ0e0IITpbMgvxccEG/j0ltXNIC0",
}


def provider(lines: dict[str, str] = LINES) -> BasicProvider:
    return BasicProvider(users(lines), b"key")


def users(lines: dict[str, str]) -> dict[str, Matches]:
    return users_of("".join(f"{user}:{hashed}\n" for user, hashed in lines.items()).encode())


SHARED = provider({"admin": LINES["admin"]})


def authenticated(by: BasicProvider, data: bytes) -> Principal:
    return proven(by.authenticate(data, "", 0))


def refused(data: bytes, by: BasicProvider = SHARED) -> Refused:
    with pytest.raises(Refused) as caught:
        authenticated(by, data)
    return caught.value


@pytest.mark.parametrize("user", LINES)
def test_a_password_of_each_kind(user: str) -> None:
    by = provider({user: LINES[user]})
    for again in (False, True):
        found = by.authenticate(f"{user}:123456".encode(), "", 0)
        assert isinstance(found, LongCheck) != again  # a verified password is not hashed again
        assert proven(found) == Principal(user, "basic")
        for wrong in ("1234567", "12345", "", "12345\n"):
            assert refused(f"{user}:{wrong}".encode(), by).role == user


def test_nobody_is_known_for_a_password_of_another() -> None:
    both = provider({"admin": LINES["admin"], "sha": LINES["sha"]})
    assert authenticated(both, b"admin:123456").role == "admin"
    assert refused(b"nobody:123456", both).role == ""
    assert str(refused(b"nobody:123456", both)) == str(refused(b"sha:x", both)) == "Unknown user or invalid password"


def test_a_password_may_have_colons_and_be_long() -> None:
    import bcrypt

    long = b"a:b" * 40
    hashed = bcrypt.hashpw(long[:72], bcrypt.gensalt(4)).decode()
    assert authenticated(provider({"u": hashed}), b"u:" + long).role == "u"


@given(st.binary(max_size=60))
def test_bytes_are_no_user(data: bytes) -> None:
    if not data.startswith(b"admin:"):
        refused(data)


@pytest.mark.parametrize(
    "data", [b"", b":", b":x", b"admin", b"admin:\0", b"\xff:x", b"a\nb:x", b"admin:" + b"x" * 2000]
)
def test_what_is_no_user_and_password(data: bytes) -> None:
    assert refused(data).code == "INVALID_AUTH_DATA" or refused(data).code == "INVALID_TOKEN"


def test_a_password_verified_earlier_is_refused_once_it_has_changed() -> None:
    by = provider({"admin": LINES["admin"]})
    assert authenticated(by, b"admin:123456").role == "admin"
    import bcrypt

    late = by.authenticate(b"admin:1234567", "", 0)
    assert isinstance(late, LongCheck)
    by.use_users(users({"admin": bcrypt.hashpw(b"new", bcrypt.gensalt(4)).decode()}))
    assert authenticated(by, b"admin:new").role == "admin"
    refused(b"admin:123456", by)
    with pytest.raises(Refused, match="the users changed"):
        late.finish(True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file contains no users"),
        ("# nobody\n\n", "the file contains no users"),
        ("admin", "line 1: expected user:hash"),
        ("# one\n:hash", "line 2: expected user:hash"),
        ("admin:123456", "line 1, user admin: unknown hash; expected bcrypt"),
        ("admin:$apr1$", "line 1, user admin: unknown hash; expected bcrypt"),
        ("admin:$2y$05$short", "invalid bcrypt hash"),
        ("admin:$2y$31$kicRQPLjhwLZn8LbHec4BuiPvVLX0RoZmIWjkSP.WCXKId.ZOY38S", "a bcrypt cost above 10 is too slow"),
        ("admin:$6$rounds=999999$abcdefgh$" + "x" * 86, "more than 20000 rounds"),
    ],
)
def test_a_file_that_cannot_be_used_tells_the_line_and_no_hash(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        users_of(text.encode())
    assert "$2y" not in str(caught.value) and "123456" not in str(caught.value)


def test_the_header_of_http() -> None:
    assert SHARED.data_of("Basic YTpi") == SHARED.data_of("basic YTpi") == b"a:b"
    for other in ("", "Bearer YTpi", "Basic ???"):
        with pytest.raises(Refused):
            SHARED.data_of(other)
