"""``pulsarbox token``: creation, display, and validation as performed by a box."""

import json
import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from tests.unit.broker.security.signing import SECRET, named, pair

KEY = named(SECRET)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home of a user without configuration, contexts or keys."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PULSARBOX_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(*words: str, code: int = 0, stdin: str | None = None, **env: str) -> Result:
    done = CliRunner().invoke(main, ["token", *words], input=stdin, env=env)
    assert done.exit_code == code, done.output
    return done


def test_a_key_is_made_at_first_use_and_is_nobody_elses(home: Path) -> None:
    first = play("create", "ann")
    key = home / "config" / "pulsarbox" / "token.key"
    assert "created the secret key" in first.stderr and stat.S_IMODE(key.stat().st_mode) == 0o600
    assert jwt.decode(first.stdout.strip(), key.read_bytes(), ["HS256"]) == {"sub": "ann"}
    second = play("create", "ann")
    assert "created the secret key" not in second.stderr and second.stdout == first.stdout
    assert play("validate", first.stdout.strip()).stdout == "ann, does not expire\n"


def test_the_key_is_the_one_of_the_configuration(home: Path) -> None:
    (home / "pulsarbox.toml").write_text(
        '[authentication]\ntokenSecretKey = "keys/secret.key"\ntokenAuthClaim = "email"\n'
        'tokenAudience = "box"\ntokenAudienceClaim = "whom"\n'
    )
    made = play("create", "a@b", "--expires", "30d", "--to", "a.token")
    assert made.stdout == "" and "expires 2" in made.stderr
    file = home / "a.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    claims = jwt.decode(file.read_text().strip(), (home / "keys/secret.key").read_bytes(), ["HS256"])
    assert claims.keys() == {"email", "whom", "exp"} and claims["whom"] == "box"
    found = json.loads(play("validate", "-f", "a.token", "-o", "json").stdout)
    assert found == {"role": "a@b", "expires": claims["exp"]}
    for_others = play("create", "a@b", "--audience", "other").stdout.strip()
    assert "not contains this broker" in play("validate", for_others, code=1).stderr


def test_json_has_everything_but_no_secret() -> None:
    found = json.loads(play("create", "ann", "--key", KEY, "-e", "1h", "-o", "json").stdout)
    assert found["role"] == "ann" and found["algorithm"] == "HS512" and found["key"] == "..."
    assert jwt.decode(found["token"], SECRET, ["HS512"])["exp"] == found["expires"]
    written = json.loads(play("create", "ann", "--key", KEY, "--to", "t", "-o", "json").stdout)
    assert written["file"] == "t" and "token" not in written


@pytest.mark.parametrize("algorithm", ["RS256", "PS512", "ES384"])
def test_a_pair_of_keys(home: Path, algorithm: str) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private, public = pair("RS256" if algorithm[0] in "RP" else algorithm)
    (home / "public.key").write_bytes(public)
    (home / "private.key").write_bytes(private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    made = play("create", "ann", "--private-key", "private.key", "-a", algorithm).stdout.strip()
    assert jwt.get_unverified_header(made)["alg"] == algorithm
    (home / "pulsarbox.toml").write_text(
        f'[authentication]\ntokenPublicKey = "public.key"\ntokenPublicAlg = "{algorithm}"\n'
    )
    assert play("validate", made).stdout == "ann, does not expire\n"
    assert "specify its private key with --private-key" in play("create", "ann", code=2).stderr


def test_what_a_token_says_is_shown_whoever_signed_it(home: Path) -> None:
    made = jwt.encode({"sub": "a\x1b[31m", "exp": 1_700_000_000}, b"x" * 32)
    (home / "t").write_text(made)
    for words, more in (([made], {}), (["-f", "t"], {}), (["-i"], {"stdin": made}), ([], {"PULSARBOX_TOKEN": made})):
        text = play("show", *words, **more).stdout  # type: ignore[arg-type] # stdin and the variable
        assert text.splitlines() == [
            "algorithm  HS256",
            "sub        a\\x1b[31m",
            "exp        1700000000, 2023-11-14 22:13:20 UTC",
        ]
    document = json.loads(play("show", "-i", "-o", "json", stdin=f"token:{made}").stdout)
    assert document["claims"]["exp"] == 1_700_000_000


def test_one_that_has_expired_is_not_taken() -> None:
    made = jwt.encode({"sub": "ann", "exp": 1_700_000_000}, SECRET, "HS256")
    assert "it has expired" in play("validate", made, "--key", KEY, code=1).stderr
    assert made not in play("validate", made, "--key", KEY, code=1).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["create", " "], "ROLE must not be empty"),
        (["create", "a", "--expires", "soon"], "expected a duration such as"),
        (["create", "a", "--expires", "99999999999d"], "is after the year 9999"),
        (["create", "a", "--key", KEY, "--private-key", "x"], "--key and --private-key cannot be combined"),
        (["create", "a", "--key", KEY, "-a", "HS256"], "--algorithm requires --private-key"),
        (["create", "a", "--key", named(b"short")], "at least 32 bytes"),
        (["create", "a", "--key", "env:NOT_THERE"], "NOT_THERE holds no value"),
        (["create", "a", "--private-key", "/usr/k.pem"], "/usr/k.pem: No such file"),
        (["create", "a", "--key", KEY, "--to", "/nix/no/t"], "No such file or directory"),
        (["show"], "no token"),
        (["show", "x"], "invalid token"),
        (["show", "-f", "/nix/t"], "No such file"),
        (["validate", "x"], "the token provider has no key"),
        (["validate", "x", "--public-key", KEY], "not a public key"),
    ],
)
def test_what_cannot_be_used(words: list[str], says: str) -> None:
    done = play(*words, code=2)
    assert says in done.stderr and "Traceback" not in done.output


def test_a_configuration_that_cannot_be_used(home: Path) -> None:
    (home / "pulsarbox.toml").write_text("[authentication]\ntokenSecretKeys = 'x'\n")
    for words in (["create", "ann"], ["validate", "x"]):
        assert "did you mean tokenSecretKey?" in play(*words, code=2).stderr


def test_a_key_that_somebody_else_has_just_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(file: Any, data: bytes, mode: int = 0o600, *, replace: bool = True) -> None:
        Path(file).write_bytes(SECRET)
        raise FileExistsError

    monkeypatch.setattr("pulsarbox.cli.connect.token.write", slower)
    assert jwt.decode(play("create", "ann").stdout.strip(), SECRET, ["HS512"]) == {"sub": "ann"}
