"""``pulsarbox.server.security.configured``: valid settings, and the errors of invalid ones."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.broker.security.authentication import Authentication
from pulsarbox.broker.security.provider import Refused
from pulsarbox.clock import Now
from pulsarbox.config import ConfigError, Settings
from pulsarbox.server.security.configured import authentication_of
from tests.unit.broker.security.signing import NOW, SECRET, by_connection, named, pair, token

INSTANT = Now(0.0, NOW * 1000)
JAVA = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
USERS = named(b"admin:{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs=\n")


def made(**settings: Any) -> Authentication:
    found = authentication_of(Settings(authenticationEnabled=True, **settings))
    assert found is not None
    return found


def role_of(authentication: Authentication, data: bytes) -> str:
    return by_connection(authentication, "token", data, INSTANT).role


def problem(**settings: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        made(**settings)
    return caught.value


def test_it_is_off_unless_it_is_wanted() -> None:
    assert authentication_of(Settings(authenticationProviders="token", tokenSecretKey="nothing")) is None


def test_the_words_and_pulsars_names() -> None:
    names = f"{JAVA}Tls,{JAVA}Token, {JAVA}Basic,token"
    both = made(authenticationProviders=names, tokenSecretKey=named(SECRET), basicAuthConf=USERS)
    assert both.methods == ["tls", "token", "basic"]
    assert both.challenges == 'Bearer realm="pulsarbox", Basic realm="pulsarbox", charset="UTF-8"'
    assert made(authenticationProviders="tls").methods == ["tls"]


def test_a_key_from_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a key"
    file.write_bytes(SECRET)
    text = base64.b64encode(SECRET).decode()
    monkeypatch.setenv("KEY_TEXT", text + "\n")
    monkeypatch.setenv("KEY_FILE", str(file))
    monkeypatch.setenv("KEY_DATA", named(SECRET))
    quoted = "%".join(f"{byte:02x}" for byte in SECRET)
    places = (str(file), file.as_uri(), f"file:{file}", text, named(SECRET), f"data:,%{quoted}")
    for place in (*places, "env:KEY_TEXT", "env:KEY_FILE", "env:KEY_DATA", f" {file} "):
        assert role_of(made(authenticationProviders="token", tokenSecretKey=place), token()) == "ann"


def test_both_keys_are_checked_with() -> None:
    private, public = pair("ES256")
    both = made(
        authenticationProviders="token",
        tokenSecretKey=named(SECRET),
        tokenPublicKey=named(public),
        tokenPublicAlg="ES256",
    )
    assert role_of(both, token()) == role_of(both, token(private, "ES256")) == "ann"


def test_the_claims_are_those_of_the_settings() -> None:
    one = made(
        authenticationProviders="token",
        tokenSecretKey=named(SECRET),
        tokenAuthClaim="email",
        tokenAudience="box",
        tokenAudienceClaim="whom",
        tokenAllowedClockSkewSeconds=5,
    )
    assert role_of(one, token(email="a@b", whom="box", exp=NOW - 4)) == "a@b"
    one = made(authenticationProviders="token", tokenSecretKey=named(SECRET), tokenAudience="box")
    assert role_of(one, token(aud="box")) == "ann"
    with pytest.raises(Refused):
        role_of(one, token(whom="box"))


@pytest.mark.parametrize(
    ("settings", "key", "text"),
    [
        ({}, "authenticationProviders", "requires a provider; expected token, basic or tls"),
        ({"authenticationProviders": " , "}, "authenticationProviders", "requires a provider"),
        ({"authenticationProviders": "kerberos"}, "authenticationProviders", "unknown provider kerberos"),
        ({"authenticationProviders": f"{JAVA}OpenID"}, "authenticationProviders", "use token with tokenJwksFile"),
        ({"authenticationProviders": "token"}, "tokenSecretKey", "the token provider has no key"),
        (
            {"authenticationProviders": "token", "tokenSecretKey": "/nowhere.key"},
            "tokenSecretKey",
            "neither an existing file",
        ),
        (
            {"authenticationProviders": "token", "tokenSecretKey": "file:///nowhere"},
            "tokenSecretKey",
            "/nowhere: No such",
        ),
        (
            {"authenticationProviders": "token", "tokenSecretKey": "env:NOT_THERE"},
            "tokenSecretKey",
            "NOT_THERE holds no value",
        ),
        ({"authenticationProviders": "token", "tokenSecretKey": "data:x"}, "tokenSecretKey", "data:;base64,"),
        ({"authenticationProviders": "token", "tokenSecretKey": "c2hvcnQ="}, "tokenSecretKey", "at least 32 bytes"),
        ({"authenticationProviders": "token", "tokenPublicKey": named(b"x")}, "tokenPublicKey", "not a public key"),
        ({"authenticationProviders": "token", "tokenPublicKey": named(pair("ES256")[1])}, "tokenPublicKey", "is RS256"),
        (
            {"authenticationProviders": "token", "tokenSecretKey": named(SECRET), "tokenAudienceClaim": "aud"},
            "tokenAudience",
            "tokenAudienceClaim requires tokenAudience",
        ),
        ({"authenticationProviders": "token", "tokenJwksFile": "k"}, "tokenJwksIssuers", "requires tokenJwksIssuers"),
        (
            {"authenticationProviders": "token", "tokenJwksFile": "k", "tokenJwksIssuers": "i"},
            "tokenAudience",
            "tokenJwksFile requires tokenAudience",
        ),
        (
            {
                "authenticationProviders": "token",
                "tokenJwksFile": "/nowhere",
                "tokenJwksIssuers": "i",
                "tokenAudience": "b",
            },
            "tokenJwksFile",
            "/nowhere: No such file",
        ),
        ({"authenticationProviders": "basic"}, "basicAuthConf", "htpasswd -Bc FILE USER"),
        ({"authenticationProviders": "basic", "basicAuthConf": "file:///nowhere"}, "basicAuthConf", "No such file"),
        ({"authenticationProviders": "basic", "basicAuthConf": named(b"a:b")}, "basicAuthConf", "line 1, user a"),
    ],
)
def test_what_cannot_work_says_what_to_do(settings: dict[str, Any], key: str, text: str) -> None:
    found = problem(**settings)
    assert found.key == key and text in str(found)


def test_a_problem_tells_no_key() -> None:
    for bad in ("data:;base64,c2VjcmV0IQ", "c2VjcmV0IQ==", "c2VjcmV0IQ!"):
        assert "c2VjcmV0" not in str(problem(authenticationProviders="token", tokenSecretKey=bad))


def test_tokens_of_an_identity_provider(tmp_path: Path) -> None:
    from tests.unit.broker.security.test_token import issued, row

    (tmp_path / "keys.json").write_text(json.dumps({"keys": [row("RS256", "one")]}))
    one = made(
        authenticationProviders="token",
        tokenJwksFile=str(tmp_path / "keys.json"),
        tokenJwksIssuers="https://other, https://id",
        tokenAudience="box",
    )
    assert role_of(one, issued()) == "ann"
