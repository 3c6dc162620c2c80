"""``pulsarbox config``: effective values and their origins, errors in a file, and a template file."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.config import Settings, load, settings_table


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments], env=environ)


def test_what_show_prints_is_a_file_that_gives_the_same(folder: Path) -> None:
    Path("pulsarbox.toml").write_text('[broker]\nclusterName = "a \\"b\\" \\u001b é"\n[network]\nwebServicePort = 5\n')
    for extra in ((), ("--origin",)):
        result = config("show", "--port", "7", *extra, PULSARBOX_logLevel="debug")
        assert result.exit_code == 0, result.output
        Path("again.toml").write_text(result.stdout, encoding="utf-8")
        expected = Settings(clusterName='a "b" \x1b é', webServicePort=5, brokerServicePort=7, logLevel="debug")
        assert load(Path("again.toml")).settings == expected


def test_origins() -> None:
    Path("pulsarbox.toml").write_text("[network]\nwebServicePort = 5\n")
    lines = config("show", "--origin", "--port", "7", PULSARBOX_logLevel="debug").stdout.splitlines()
    assert "brokerServicePort = 7  # command line" in lines
    assert "webServicePort = 5  # pulsarbox.toml:2" in lines
    assert 'logLevel = "debug"  # environment PULSARBOX_logLevel' in lines
    assert 'dataDirectory = "data"  # default' in lines


def test_show_as_rows() -> None:
    lines = config("show", "-o", "csv", "--port", "7000").stdout.splitlines()
    assert lines[0] == "name,value,origin"
    assert "brokerServicePort,7000,command line" in lines
    wide = config("show", "-o", "wide", "--port", "7000").stdout
    assert re.search("^brokerServicePort +7000 +command line$", wide, re.MULTILINE)
    assert "brokerServicePort" in config("show", "-o", "name").stdout.splitlines()


def test_show_as_json() -> None:
    document = json.loads(config("show", "-o", "json", "--port", "7").stdout)
    assert set(document) == {row.name for row in settings_table()}
    assert document["brokerServicePort"] == {"value": 7, "origin": "command line"}


def test_show_of_what_cannot_be_used() -> None:
    result = config("show", PULSARBOX_maxMesageSize="1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean PULSARBOX_maxMessageSize?" in result.stderr


def test_check_lists_everything_with_its_line() -> None:
    Path("x.toml").write_text(
        '[network]\nmaxMesageSize = 1\nwebServicePort = "80"\n[journal]\nbindAddress = "x"\n[netwrok]\n'
    )
    result = config("check", "x.toml")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "ERROR x.toml:2: maxMesageSize: no such setting; did you mean maxMessageSize?",
        'ERROR x.toml:3: webServicePort: expected a whole number from 0 to 65535, or "" to disable, not "80"',
        "ERROR x.toml:5: bindAddress: belongs in the table [network], not in [journal]",
        "ERROR x.toml:6: [netwrok]: no such table; did you mean network?",
    ]
    assert result.stderr == "pulsarbox: x.toml: 4 errors, 0 warnings\n"


@pytest.mark.parametrize(
    ("name", "text", "code", "pattern"),
    [
        ("x.toml", "[network]\n", 0, ""),
        ("x.toml", "[network\n", 1, r"ERROR x.toml:1: not TOML: .*\n"),
        (
            "x.toml",
            "[network]\nbrokerServicePort = 8080\n",
            1,
            r"ERROR default: webServicePort: port 8080 is also set for .*\n",
        ),
        ("b.conf", "zookeeperServers=x\n", 0, r"WARNING b.conf:1: zookeeperServers: has no effect here\n"),
        ("b.conf", "webServicePort=x\nbrokerServicePort=y\n", 1, r"ERROR b.conf:1: .*\nERROR b.conf:2: .*\n"),
    ],
)
def test_check(name: str, text: str, code: int, pattern: str) -> None:
    Path(name).write_text(text)
    result = config("check", name)
    assert result.exit_code == code
    assert re.fullmatch(pattern, result.stdout), result.stdout


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), (b"\xff", "is not UTF-8")])
def test_check_of_what_cannot_be_read(content: bytes | None, words: str) -> None:
    if content is not None:
        Path("x.toml").write_bytes(content)
    result = config("check", "x.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_init_writes_every_setting_and_leaves_a_file_alone_unless_it_is_forced() -> None:
    assert config("init").exit_code == 0
    made = Path("pulsarbox.toml").read_text()
    keys = {key for table in tomllib.loads(made).values() for key in table}
    assert keys == {row.name for row in settings_table()}
    assert load(Path("pulsarbox.toml")).settings == Settings()
    Path("pulsarbox.toml").write_text("mine")
    result = config("init")
    assert result.exit_code == 4
    assert "--force" in result.stderr
    assert Path("pulsarbox.toml").read_text() == "mine"
    assert config("init", "--force").exit_code == 0
    assert Path("pulsarbox.toml").read_text() == made == config("init", "-").stdout
    assert config("init", "none/x.toml").exit_code == 1
