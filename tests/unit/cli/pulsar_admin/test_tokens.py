"""Keys and tokens: output of the commands, and errors for invalid input."""

import base64
import json
import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.protocol import tokens


def play(*words: str, code: int = 0, stdin: str | None = None, **env: str) -> Result:
    done = CliRunner().invoke(main, ["admin", "tokens", *words], input=stdin, env=env)
    assert done.exit_code == code, done.output
    return done


def claims_of(token: str) -> Any:
    return jwt.decode(token, options={"verify_signature": False})


@pytest.mark.parametrize(("algorithm", "size"), [("HS256", 32), ("HS384", 48), ("HS512", 64)])
def test_a_secret_key_signs_and_checks(tmp_path: Path, algorithm: str, size: int) -> None:
    key = tmp_path / "secret.key"
    play("create-secret-key", "-a", algorithm, "--output", str(key))
    assert len(key.read_bytes()) == size and stat.S_IMODE(key.stat().st_mode) == 0o600
    token = play("create", "-sk", key.as_uri(), "-s", "ann", "-e", "1h", "-hs", "kid=7").stdout.strip()
    header = jwt.get_unverified_header(token)
    assert header == {"alg": algorithm, "kid": "7"}
    claims = jwt.decode(token, key.read_bytes(), [algorithm])
    assert claims["sub"] == "ann" and claims.keys() == {"sub", "exp"}
    for named in (str(key), key.as_uri(), f"file:{key}", f"data:;base64,{base64.b64encode(key.read_bytes()).decode()}"):
        assert json.loads(play("validate", "-sk", named, token).stdout) == claims
    other = base64.b64encode(b"x" * size).decode()
    assert "invalid token: Signature verification failed" in play("validate", "-sk", other, token, code=1).stderr


@pytest.mark.parametrize("algorithm", ["RS256", "PS384", "ES256", "ES512"])
def test_a_pair_signs_and_checks(tmp_path: Path, algorithm: str) -> None:
    private, public = tmp_path / "private.key", tmp_path / "public.key"
    play("create-key-pair", "-a", algorithm, "--output-private-key", str(private), "--output-public-key", str(public))
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    token = play("create", "-a", algorithm, "-pk", str(private), "-s", "ann").stdout.strip()
    assert claims_of(token) == {"sub": "ann"}
    assert json.loads(play("validate", "-a", algorithm, "-pk", str(public), "-i", stdin=token + "\n").stdout) == {
        "sub": "ann"
    }
    assert "invalid token" in play("validate", "-a", "RS512", "-pk", str(public), token, code=1).stderr
    assert "not a public key" in play("validate", "-pk", str(private), token, code=2).stderr
    assert "not a private key" in play("create", "-pk", str(public), "-s", "ann", code=2).stderr


def test_a_key_is_none_for_another_algorithm(tmp_path: Path) -> None:
    private = tmp_path / "private.key"
    play("create-key-pair", "-a", "ES256", "--output-private-key", str(private), "--output-public-key", "/dev/null")
    assert "the key does not match RS256" in play("create", "-pk", str(private), "-s", "ann", code=2).stderr


def test_a_secret_key_in_base64_and_on_stdout() -> None:
    key = play("create-secret-key", "--base64").stdout
    assert len(base64.b64decode(key)) == 32
    token = play("create", "-sk", key, "-s", "ann").stdout.strip()
    assert json.loads(play("validate", "--secret-key", key, TOKEN=token).stdout) == {"sub": "ann"}


def test_a_token_is_shown(tmp_path: Path) -> None:
    token = jwt.encode({"sub": "a\x1bb"}, b"x" * 32, "HS256", headers={"typ": None})
    shown = play("show", token).stdout.splitlines()
    assert [json.loads(shown[0]), shown[1]] == [{"alg": "HS256"}, "---"] and "\x1b" not in shown[2]
    (tmp_path / "t").write_text(token + "\n")
    assert play("show", "-f", str(tmp_path / "t")).stdout.splitlines() == shown
    for words in (("show", "abc"), ("show", "a.b.c")):
        assert "invalid token" in play(*words, code=2).stderr
    assert "no token" in play("show", code=2).stderr


def test_what_cannot_be_used(tmp_path: Path) -> None:
    for words, says in (
        (("create", "-s", "ann"), "specify exactly one of --secret-key and --private-key"),
        (("create", "-s", "ann", "-sk", "a", "-pk", "b"), "specify exactly one of --secret-key and --private-key"),
        (("create", "-s", "ann", "-sk", base64.b64encode(b"short").decode()), "must have at least 32 bytes, not 5"),
        (("create", "-s", "ann", "-sk", "file:///nowhere/k"), "/nowhere/k: No such file or directory"),
        (("create", "-s", "ann", "-sk", "not base64!"), "neither an existing file nor base64"),
        (("create", "-s", "ann", "-sk", "data:nothing"), "expected data:;base64,..."),
        (
            ("create", "-s", "ann", "-sk", base64.b64encode(b"k" * 32).decode(), "-e", "soon"),
            "expected a duration such as",
        ),
        (("validate", "x"), "specify exactly one of --secret-key and --public-key"),
        (("create-secret-key", "-o", str(tmp_path / "no" / "key")), "No such file or directory"),
    ):
        assert says in play(*words, code=2).stderr


def test_a_token_has_its_time() -> None:
    key = b"k" * 32
    made = tokens.create({"sub": "ann", "exp": 1000, "nbf": 500}, key, "HS256", {})
    assert tokens.validated(made, key, ["HS256"], 999.9)["sub"] == "ann"
    for now, says in ((1000, "it has expired"), (499, "it is not valid yet")):
        with pytest.raises(tokens.TokenError, match=says):
            tokens.validated(made, key, ["HS256"], now)
    odd = tokens.create({"sub": "ann", "nbf": 1}, key, "HS256", {})
    head, _, sign = odd.split(".")
    forged = f"{head}.{base64.urlsafe_b64encode(json.dumps({'sub': 'root'}).encode()).decode().rstrip('=')}.{sign}"
    with pytest.raises(tokens.TokenError, match="invalid token"):
        tokens.validated(forged, key, ["HS256"], 5)
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=") + "." + forged.split(".")[1] + "."
    with pytest.raises(tokens.TokenError, match="invalid token"):
        tokens.validated(none, key, ["HS256"], 5)
