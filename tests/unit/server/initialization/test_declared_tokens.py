"""Files of declared tokens: written if missing, invalid or readable by others, and kept otherwise."""

import base64
import stat
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.protocol import tokens
from pulsarbox.server.initialization.declared_files import read_declarations
from pulsarbox.server.initialization.declared_tokens import DeclaredTokens

SECRET = bytes(range(32))
NOW = 1_700_000_000.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "box.yaml"


def declared(file: Path, now: float = NOW, **settings: Any) -> DeclaredTokens:
    given = {"tokenSecretKey": f"data:;base64,{base64.b64encode(SECRET).decode()}"} | settings
    return DeclaredTokens(read_declarations([str(file)]), Settings(**given), now)


def written(file: Path, now: float = NOW, **settings: Any) -> list[str]:
    found = declared(file, now, **settings)
    steps = found.steps()
    for step in steps:
        assert step.token is not None
        found.write(step.token)
    return [str(each) for each in steps]


def claims(path: Path, now: float = NOW, key: Any = SECRET, algorithm: str = "HS256") -> dict[str, Any]:
    return tokens.validated(path.read_text().strip(), key, [algorithm], now)


def test_a_missing_token_is_written_for_its_owner_only(file: Path, tmp_path: Path) -> None:
    file.write_text("tokens: {ann: {file: secrets/ann.token}, bob: {file: bob.token, expires: 1h}}")
    path = tmp_path / "secrets" / "ann.token"
    assert written(file) == [f"write token of role ann to {path}", f"write token of role bob to {tmp_path}/bob.token"]
    assert claims(path) == {"sub": "ann"}
    assert claims(tmp_path / "bob.token") == {"sub": "bob", "exp": int(NOW) + 3600}
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
    before = path.read_bytes()
    assert written(file) == []
    assert path.read_bytes() == before
    assert sorted(each.name for each in path.parent.iterdir()) == ["ann.token"]


@pytest.mark.parametrize(
    "spoilt", ["garbage", "another role", "another key", "expired", "mode", "audience", "directory"]
)
def test_a_token_that_is_not_valid_is_replaced(file: Path, tmp_path: Path, spoilt: str) -> None:
    file.write_text("tokens: {ann: {file: ann.token, expires: 1h}}")
    written(file)
    path, now, settings = tmp_path / "ann.token", NOW, {}
    if spoilt == "garbage":
        path.write_bytes(b"\xff\xfe")
    elif spoilt == "another role":
        path.write_text(tokens.create({"sub": "eve"}, SECRET, "HS256", {}))
    elif spoilt == "another key":
        path.write_text(tokens.create({"sub": "ann"}, SECRET[::-1], "HS256", {}))
    elif spoilt == "expired":
        now = NOW + 3601
    elif spoilt == "mode":
        path.chmod(0o644)
    elif spoilt == "audience":
        settings = {"tokenAudience": "box"}
    else:
        path.unlink()
        path.symlink_to(tmp_path / "nowhere")
    assert written(file, now, **settings) == [f"write token of role ann to {path}"]
    assert claims(path, now)["sub"] == "ann"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert written(file, now, **settings) == []


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_private_key_beside_the_file_signs(file: Path, tmp_path: Path, algorithm: str) -> None:
    private, public = tokens.new_pair(algorithm)
    (tmp_path / "private.key").write_bytes(private)
    file.write_text("tokens: {ann: {file: ann.token, private-key: private.key}}")
    assert len(written(file, tokenSecretKey="")) == 1
    assert claims(tmp_path / "ann.token", key=tokens.public_key(public), algorithm=algorithm) == {"sub": "ann"}
    assert written(file, tokenSecretKey="") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{file: x}", "there is no key to sign it: set tokenSecretKey, or name its private-key"),
        ("{file: x, private-key: none.key}", "none.key: No such file or directory"),
    ],
)
def test_a_key_that_is_missing_is_named(file: Path, text: str, said: str) -> None:
    file.write_text(f"tokens:\n  ann: {text}")
    with pytest.raises(InvalidDeclaration) as caught:
        declared(file, tokenSecretKey="").steps()
    assert str(caught.value).startswith(f"{file}:2: token ann: ") and str(caught.value).endswith(said)


def test_a_file_that_cannot_be_written_is_named(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    file.write_text("tokens: {ann: {file: taken/ann.token}}")
    with pytest.raises(InvalidDeclaration, match=r"box.yaml:1: cannot write .*/taken/ann.token: "):
        written(file)
