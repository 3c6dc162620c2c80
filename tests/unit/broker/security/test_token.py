"""``pulsarbox.broker.security.token``: valid tokens, and every reason for rejection."""

import base64
import json
from typing import Any

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused
from pulsarbox.broker.security.token import ClaimRules, Key, TokenProvider, key_set_of, public, secret
from pulsarbox.protocol.tokens import PAIRS, SECRET_SIZES, TokenError
from tests.tools.campaigns import examples
from tests.unit.broker.security.signing import NOW, SECRET, pair, pem, token

PROVIDER = TokenProvider((secret(SECRET),), ClaimRules())


def ask(data: bytes, provider: TokenProvider = PROVIDER, now: float = NOW) -> Principal:
    return provider.authenticate(data, "", int(now * 1000))


def refused(data: bytes, provider: TokenProvider = PROVIDER, now: float = NOW) -> Refused:
    with pytest.raises(Refused) as caught:
        ask(data, provider, now)
    return caught.value


@pytest.mark.parametrize("algorithm", SECRET_SIZES)
def test_a_secret_key_of_each_size(algorithm: str) -> None:
    assert ask(token(algorithm=algorithm)) == Principal("ann", "token")
    assert refused(token(b"x" * 64, algorithm)).code == "INVALID_TOKEN"


@pytest.mark.parametrize("algorithm", PAIRS)
def test_a_pair_of_each_algorithm(algorithm: str) -> None:
    private, der = pair("RS256" if algorithm[0] in "RP" else algorithm)
    other, _ = pair("RS256" if algorithm[0] in "RP" else algorithm, number=1)
    for form in (der, pem(der)):
        provider = TokenProvider((public(form, algorithm),), ClaimRules())
        assert ask(token(private, algorithm), provider).role == "ann"
        assert "Signature verification failed" in str(refused(token(other, algorithm), provider))


def test_a_short_secret_checks_no_longer_signature() -> None:
    provider = TokenProvider((secret(SECRET[:32]),), ClaimRules())
    assert ask(token(SECRET[:32]), provider).role == "ann"
    long = jwt.encode({"sub": "ann"}, SECRET[:32], "HS256").split(".")[1]
    header = base64.urlsafe_b64encode(b'{"alg":"HS512"}').rstrip(b"=").decode()
    assert "no configured key supports the algorithm" in str(refused(f"{header}.{long}.AAAA".encode(), provider))


def test_a_public_key_is_no_secret() -> None:
    """An attacker signs with the public key and declares the algorithm as HMAC."""
    _, der = pair("RS256")
    provider = TokenProvider((public(der, "RS256"),), ClaimRules())
    for known in (der, pem(der), pem(der).strip()):
        forged = hmac_signed(known)
        assert "no configured key supports the algorithm HS256" in str(refused(forged, provider))


def hmac_signed(key: bytes) -> bytes:
    """Sign a token that PyJWT would refuse to sign."""
    import hashlib
    import hmac

    parts = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in (b'{"alg":"HS256"}', b'{"sub":"ann"}')]
    signature = hmac.new(key, b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")])


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 5, ["HS256"], "HS256 "])
def test_none_is_no_algorithm(algorithm: Any) -> None:
    good = token().split(b".")
    header = base64.urlsafe_b64encode(json.dumps({"alg": algorithm}).encode()).rstrip(b"=")
    for signature in (b"", good[2]):
        assert refused(b".".join([header, good[1], signature])).code == "INVALID_TOKEN"


def test_an_expired_one_and_one_whose_time_has_not_come() -> None:
    limited = token(exp=NOW + 10, nbf=NOW - 10)
    assert ask(limited) == Principal("ann", "token", (NOW + 10) * 1000)
    assert "it has expired" in str(refused(limited, now=NOW + 10))
    assert refused(limited, now=NOW + 10).role == "ann"
    assert ask(limited, now=NOW - 10).role == "ann"
    assert "it is not valid yet" in str(refused(limited, now=NOW - 10.001))


def test_the_clock_of_who_makes_tokens_may_differ() -> None:
    provider = TokenProvider((secret(SECRET),), ClaimRules(skew=5))
    limited = token(exp=NOW, nbf=NOW)
    assert ask(limited, provider, NOW + 4.9) == Principal("ann", "token", (NOW + 5) * 1000)
    assert ask(limited, provider, NOW - 5).role == "ann"
    refused(limited, provider, NOW + 5)
    refused(limited, provider, NOW - 5.1)


@pytest.mark.parametrize("value", ["soon", True, [NOW], {"at": NOW}, float("inf")])
@pytest.mark.parametrize("name", ["exp", "nbf"])
def test_a_time_that_is_none(name: str, value: Any) -> None:
    payload = json.dumps({"sub": "ann", name: value}).encode()
    made = jwt.PyJWS().encode(payload, SECRET, "HS256").encode()
    assert f"claim {name} is not a time" in str(refused(made))


def test_the_role_is_a_claim() -> None:
    provider = TokenProvider((secret(SECRET),), ClaimRules(role="email"))
    assert ask(token(email="a@b"), provider).role == "a@b"
    assert ask(token(email=["first", "second"]), provider).role == "first"
    for odd in (None, "", [], [5], 5, {"a": 1}):
        assert "the claim email is missing" in str(refused(token(email=odd), provider))


def test_for_whom_it_is() -> None:
    provider = TokenProvider((secret(SECRET),), ClaimRules(audience="box", audience_claim="aud"))
    assert ask(token(aud="box"), provider).role == "ann"
    assert ask(token(aud=["other", "box"]), provider).role == "ann"
    for wrong in ("other", ["other"], [], "boxes", {"box": 1}, 5):
        assert refused(token(aud=wrong), provider).code == "INVALID_AUDIENCES"
    assert "Found null Audience" in str(refused(token(), provider))


@given(st.binary(max_size=300))
def test_bytes_are_no_token(data: bytes) -> None:
    refused(data)


@given(st.integers(0, 2**16), st.integers(1, 255))
def test_a_byte_that_is_another_one(at: int, other: int) -> None:
    good = token(exp=NOW + 10)
    at %= len(good)
    changed = good[:at] + bytes([good[at] ^ other]) + good[at + 1 :]
    assert changed.strip() != good
    refused(changed)


@settings(max_examples=examples(30))
@given(st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=8), max_size=4))
def test_a_header_that_says_anything(more: dict[str, Any]) -> None:
    """Any header without a valid signature is rejected, and never yields a role."""
    header = json.dumps({"alg": "HS256"} | more).encode()
    parts = [base64.urlsafe_b64encode(part).rstrip(b"=") for part in (header, b'{"sub":"ann"}', b"x" * 32)]
    refused(b".".join(parts))


def test_what_is_too_large_is_not_looked_at() -> None:
    assert "exceeds the limit" in str(refused(b"x" * 70_000))


@pytest.mark.parametrize("payload", [b"[]", b"5", b'"ann"', b"{", b"\xff", b"[" * 50_000])
def test_what_is_signed_has_to_be_claims(payload: bytes) -> None:
    made = jwt.PyJWS().encode(payload, SECRET, "HS256").encode()
    refused(made)


def test_no_refusal_repeats_the_token() -> None:
    for made in (token(b"x" * 32), token(exp=NOW - 1), token()[:-3] + b"abc"):
        assert made.decode() not in str(refused(made))


def jwks(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": keys})


def row(algorithm: str, kid: str, **more: Any) -> dict[str, Any]:
    """Return a public key as an entry of a key set."""
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm

    private, _ = pair(algorithm)
    kind = RSAAlgorithm if algorithm[0] == "R" else ECAlgorithm
    made: dict[str, Any] = kind.to_jwk(private.public_key(), as_dict=True)
    return made | {"kid": kid, "use": "sig"} | more


def keys_of(text: str) -> tuple[Key, ...]:
    return key_set_of(text.encode(), "keys.json", frozenset({"https://id"}))


@pytest.fixture
def provider() -> TokenProvider:
    made = TokenProvider((secret(SECRET),), ClaimRules(audience="box"))
    made.use_key_set(
        keys_of(jwks(row("RS256", "one", alg="RS256"), row("ES256", "two"), {"kty": "oct", "k": "c2VjcmV0"}))
    )
    return made


def issued(algorithm: str = "RS256", kid: str | None = "one", **claims: Any) -> bytes:
    said = {"iss": "https://id", "aud": "box", "exp": NOW + 60} | claims
    return token(pair(algorithm)[0], algorithm, {"kid": kid} if kid else None, **said)


def test_a_token_of_an_identity_provider(provider: TokenProvider) -> None:
    assert ask(issued(), provider) == Principal("ann", "token", (NOW + 60) * 1000)
    assert ask(issued("ES256", "two"), provider).role == "ann"
    assert ask(issued(kid=None), provider).role == "ann"
    assert ask(token(aud="box"), provider).role == "ann"  # signed by the box's own key, which requires no issuer


def test_what_an_identity_provider_signs_for_others(provider: TokenProvider) -> None:
    assert refused(issued(iss="https://other"), provider).code == "UNSUPPORTED_ISSUER"
    assert refused(issued(iss=None), provider).code == "UNSUPPORTED_ISSUER"
    assert refused(issued(iss=["https://id"]), provider).code == "UNSUPPORTED_ISSUER"
    assert refused(issued(aud="other"), provider).code == "INVALID_AUDIENCES"
    assert "no expiry" in str(refused(issued(exp=None), provider))
    refused(issued(kid="two"), provider)
    refused(issued(kid="three"), provider)
    refused(token(pair("RS256")[0], "RS512", {"kid": "one"}), provider)  # that key is for RS256
    refused(hmac_signed(b"secret"), provider)


def test_a_key_set_that_has_changed(provider: TokenProvider) -> None:
    provider.use_key_set(keys_of(jwks(row("ES256", "two"))))
    refused(issued(), provider)
    assert ask(issued("ES256", "two"), provider).role == "ann"
    assert ask(token(aud="box"), provider).role == "ann"  # the configured key remains valid


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "is not a JSON Web Key Set"),
        ("{", "is not a JSON Web Key Set"),
        ('{"keys": 5}', "is not a JSON Web Key Set"),
        ('{"keys": null}', "is not a JSON Web Key Set"),
        (jwks({"kty": "oct", "k": "c2VjcmV0"}), "contains no public key"),
        (jwks({"kty": "RSA", "kid": "bad", "n": "AQAB", "e": "AQAB"}), "invalid key 'bad' in the key set"),
        (jwks({"kty": "RSA", "kid": "bad"}), "invalid key 'bad' in the key set"),
    ],
)
def test_a_key_set_that_is_none(text: str, problem: str) -> None:
    with pytest.raises(TokenError, match=problem):
        keys_of(text)


def test_a_key_set_is_for_what_its_keys_can_do() -> None:
    with pytest.raises(TokenError, match="key type does not match the algorithm ES512"):
        keys_of(jwks(row("ES256", "two", alg="ES512")))
    (only,) = keys_of(jwks(row("ES256", "two", use="enc"), row("RS256", "one")))
    assert only.kid == "one" and "HS256" not in only.algorithms


def test_keys_that_cannot_be_used() -> None:
    with pytest.raises(TokenError, match="a secret key must have at least 32 bytes, not 5"):
        secret(b"short")
    _, der = pair("ES256")
    with pytest.raises(TokenError, match="the key supports ES256, but tokenPublicAlg is RS256"):
        public(der, "RS256")
    with pytest.raises(TokenError, match="not a public key"):
        public(b"nothing", "RS256")


def test_the_header_of_http() -> None:
    assert PROVIDER.data_of("Bearer abc") == b"abc"
    assert PROVIDER.data_of("bearer abc") == b"abc"
    for other in ("", "Basic YTpi", "Bearerabc"):
        with pytest.raises(Refused):
            PROVIDER.data_of(other)


def test_a_key_is_a_value() -> None:
    assert Key(b"k", ("HS256",)).issuers == frozenset()
