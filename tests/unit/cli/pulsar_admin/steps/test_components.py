"""Functions, sinks and sources: configuration files, checks before sending, downloads, local runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.cli.pulsar_admin import session
from pulsarbox.cli.pulsar_admin.printing import gson
from pulsarbox.cli.pulsar_admin.steps.components import wrapped
from tests.tools.campaigns import short
from tests.unit.cli.pulsar_admin.playing import Player, answer


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text("def process(x): ...", "utf-8")
    return tmp_path


def config_of(play: Player, part: str = "functionConfig") -> Any:
    return play.web.requests[-1][3]["form"][part][1]


@pytest.mark.parametrize(
    ("text", "message"),
    short(
        [
            ("name: [x", "invalid YAML"),
            ("- a\n- b\n", "expected fields such as name: orders"),
            ("", "expected fields such as name: orders"),
            ("nme: x", "unknown field 'nme'; expected one of autoAck"),
            ("parallelism: many", "parallelism: expected an integer, not 'many'"),
            ("parallelism: true", "parallelism: expected an integer, not 'True'"),
            ("inputs: a,b", "inputs: expected a list, not 'a,b'"),
            ("name: !!python/object/apply:os.system [true]", "invalid YAML"),
            ("a: &a [x]\nname: *b", "invalid YAML"),
            ("x: " + "[" * 5000, "invalid YAML"),
            ("#" * (1 << 20) + "\nname: x", "larger than 1048576 bytes"),
            ("\x00", "invalid YAML"),
        ],
        6,
    ),
    ids=range(12),
)
def test_an_invalid_configuration_file(text: str, message: str, code: Path, play: Player) -> None:
    (code / "config").write_text(text, "utf-8")
    result = play("functions", "create", "--function-config-file", "config")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert play.web.requests == []


def test_options_take_precedence_over_the_file(code: Path, play: Player) -> None:
    (code / "config").write_text(
        json.dumps({"name": "a", "className": "x.Y", "py": "f.py", "parallelism": 2, "resources": {"ram": 5}}), "utf-8"
    )
    result = play("functions", "create", "--function-config-file", "config", "--parallelism", "3", "--cpu", "2")
    assert result.output == "Created successfully\n"
    config = config_of(play)
    assert (config["name"], config["parallelism"]) == ("a", 3)
    assert config["resources"] == {"cpu": 2.0, "ram": 5, "disk": 10 << 30}


def test_numbers_for_text_in_a_file_are_text(code: Path, play: Player) -> None:
    (code / "config").write_text("name: 7\nclassName: a\npy: f.py\n", "utf-8")
    assert play("functions", "create", "--function-config-file", "config").exit_code == 0
    assert config_of(play)["name"] == "7"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("functions create --py f.py", "specify --name, --fqfn or --classname"),
        ("functions create --name f --py f.py", "specify --classname"),
        ("functions create --name f", "specify exactly one of --jar, --py, --go and --function-type"),
        ("functions create --name f --classname a --py none.py", "--py: there is no file none.py"),
        ("functions create --name f --classname a --py .", "--py: there is no file ."),
        ("functions create --name f --user-config 5", "expected a JSON object"),
        ("functions create --name f --user-config {", "invalid JSON"),
        ("functions create --fqfn a/b --py f.py --classname a", "--fqfn: expected tenant/namespace/name"),
        ("functions get --fqfn a/b/c --name d", "specify either --fqfn, or"),
        ("functions status --name f --instance-id x", "'x' is not a number"),
        ("functions trigger --name f", "specify --trigger-value or --trigger-file"),
        ("functions trigger --name f --trigger-file none", "cannot read none"),
        ("functions upload --path x --source-file none", "cannot read none: No such file"),
        ("functions download --name f", "specify --destination-file"),
        ("functions putstate --name f -s []", "such as"),
        ("sinks create --name s", "specify --archive"),
        ("sinks create --archive f.py", "specify --name"),
        ("sinks create --name s --archive none.nar", "--archive: there is no file none.nar"),
        ("sources create --name s --archive f.py --source-type kafka", "cannot be combined"),
        ("sources create --name s --archive f.py --batch-source-config {}", "discoveryTriggererClassName is missing"),
        ("sinks create --name s --archive f.py --input-specs {\"a\":1}", "--input-specs: a: expected a JSON object"),
        ("packages get-metadata orders", "expected type://tenant/namespace/name@version"),
        ("packages get-metadata jar://a/b/c", "expected one of function, sink, source"),
        ("packages upload sink://a/b/c@1 --description x --path none", "cannot read none"),
        ("documents generate nothing", "unknown group 'nothing'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_sent(words: str, message: str, code: Path, play: Player) -> None:
    result = play(*words.split())
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert play.web.requests == []


def test_the_types_of_the_worker_are_named(play: Player) -> None:
    result = play("sinks", "create", "--name", "s", "--sink-type", "x", answers=[answer([{"name": "jdbc"}])])
    assert (result.exit_code, result.stderr) == (2, "pulsarbox: unknown sink type 'x'; the worker has jdbc\n")
    assert [one[:2] for one in play.web.requests] == [("GET", "/admin/v3/sink/builtinsinks")]


CONTENT = {"body": "content", "type": "application/octet-stream"}


def test_a_download_creates_the_file_and_its_folder(code: Path, play: Player) -> None:
    assert play("packages", "download", "sink://a/b/c@1", "--path", "new/file", answers=[CONTENT]).exit_code == 0
    assert (code / "new" / "file").read_text("utf-8") == "content"
    assert (code / "new" / "file").stat().st_mode & 0o777 == 0o644
    assert [one.name for one in (code / "new").iterdir()] == ["file"]


def test_a_failed_download_keeps_the_previous_file(code: Path, play: Player) -> None:
    (code / "file").write_text("old", "utf-8")
    result = play("packages", "download", "sink://a/b/c@1", "--path", "file", answers=[answer({"reason": "no"}, 404)])
    assert (result.exit_code, result.stderr) == (3, "pulsarbox: no\n")
    assert sorted(one.name for one in code.iterdir()) == ["f.py", "file"]
    assert (code / "file").read_text("utf-8") == "old"


def test_a_download_that_cannot_be_written(code: Path, play: Player) -> None:
    result = play("packages", "download", "sink://a/b/c@1", "--path", "f.py/below", answers=[CONTENT])
    assert result.exit_code == 1
    assert "cannot write f.py/below" in result.stderr


def test_a_long_file_name_can_be_downloaded_to(code: Path, play: Player) -> None:
    name = "n" * 250
    assert len(name) > session._NAME_MAX
    assert play("packages", "download", "sink://a/b/c@1", "--path", name, answers=[CONTENT]).exit_code == 0
    assert (code / name).exists()


def test_a_watched_value_is_printed_until_interrupted(play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("pulsarbox.cli.pulsar_admin.steps.functions.time.sleep", sleep)
    answers = [answer({"reason": "none"}, 404), answer({"key": "k", "numberValue": 1})]
    result = play("functions", "querystate", "--name", "f", "-k", "k", "-w", answers=answers)
    assert waits == [1.0] * 3
    assert result.stdout == '{\n  "key": "k",\n  "numberValue": 1\n}\n' * 2
    assert "none" in result.stderr


def test_a_local_run_needs_a_pulsar_installation(code: Path, play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSAR_HOME", raising=False)
    run = ("functions", "localrun", "--name", "f", "--py", "f.py", "--classname", "f")
    result = play(*run)
    assert (result.exit_code, "set PULSAR_HOME to a Pulsar installation" in result.stderr) == (2, True)
    monkeypatch.setenv("PULSAR_HOME", str(code))
    result = play(*run)
    assert (result.exit_code, "cannot start" in result.stderr) == (1, True)
    runner = code / "bin" / "function-localrunner"
    runner.parent.mkdir()
    runner.write_text("#!/bin/sh\nexit 3\n", "utf-8")
    runner.chmod(0o755)
    result = play(*run)
    assert (result.exit_code, result.stderr) == (1, "pulsarbox: the local runner failed with exit code 3\n")


EXTRACT = ("schemas", "extract", "t/n/orders", "-j", "x.jar", "-c", "Order")
PROGRAM = """#!/bin/sh
printf '%s\\n' "$*" > '{folder}/words'
echo persistent://t/n/orders
echo '{{"type": "AVRO", "schema": "text", "properties": {{}}}}'
"""


@pytest.fixture
def pulsar_admin(code: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of pulsar-admin, which prints a schema."""
    monkeypatch.setenv("PULSAR_HOME", str(code))
    program = code / "bin" / "pulsar-admin"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(folder=code), "utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.usefixtures("pulsar_admin")
def test_the_schema_of_a_java_class_is_extracted_and_uploaded(code: Path, play: Player) -> None:
    assert play(*EXTRACT, "-t", "avro", "-a", "false").exit_code == 0
    schema = {"type": "AVRO", "schema": "text", "properties": {}}
    assert play.web.requests == [("POST", "/admin/v2/schemas/t/n/orders/schema", "", schema)]
    words = "schemas extract persistent://t/n/orders -j x.jar -c Order -t avro -n -a false\n"
    assert (code / "words").read_text("utf-8") == words


@pytest.mark.usefixtures("pulsar_admin")
def test_a_dry_run_prints_the_schema(play: Player) -> None:
    result = play(*EXTRACT, "-t", "json", "-n")
    assert result.stdout == (
        'persistent://t/n/orders\n{\n  "type" : "AVRO",\n  "schema" : "text",\n  "properties" : { }\n}\n'
    )
    assert play.web.requests == []


def test_a_failed_extraction(pulsar_admin: Path, play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    pulsar_admin.write_text("#!/bin/sh\necho java.lang.ClassNotFoundException: Order >&2\nexit 1\n", "utf-8")
    result = play(*EXTRACT, "-t", "avro")
    assert (result.exit_code, "ClassNotFoundException: Order" in result.stderr) == (1, True)
    assert play(*EXTRACT, "-t", "protobuf").exit_code == 2
    pulsar_admin.unlink()
    assert play(*EXTRACT, "-t", "avro").exit_code == 1
    monkeypatch.delenv("PULSAR_HOME")
    assert play(*EXTRACT, "-t", "avro").exit_code == 2


def test_the_reference_of_groups(play: Player) -> None:
    result = play("documents", "generate", "tenants", "sink", "tenants")
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("# ")] == ["# tenants", "# sinks"]
    assert "| `-r, --admin-roles` | Roles that may administer the tenant" in result.stdout
    assert "--className" not in result.stdout
    whole = play("documents", "generate").stdout
    assert whole.count("\n# ") + 1 == 21
    assert "# persistent" not in whole


@pytest.mark.parametrize("words", ["--version", "-v", "topics --version", "functions list -v", "tenants get --version"])
def test_the_version(words: str, play: Player) -> None:
    result = play(*words.split())
    assert result.exit_code == 0
    assert result.stdout.startswith("Current version of pulsar admin client is: 4.2.4 (pulsarbox ")


def test_v_is_the_value_of_a_command_that_has_it(play: Player) -> None:
    assert play("schemas", "get", "a/b/c", "-v", "3", answers=[answer({"type": "STRING", "data": ""})]).exit_code == 0
    assert play.web.requests[0][1].endswith("/schema/3")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("short", ["short"]),
        ("a" * 80 + " b", ["a" * 80, "b"]),
        ("a" * 79 + " b c", ["a" * 79, "b c"]),
        ("a" * 100 + " b", ["a" * 100, "b"]),
        ("  indented", ["indented"]),
    ],
)
def test_descriptions_are_wrapped(text: str, lines: list[str]) -> None:
    assert wrapped(text).split("\n") == lines


@pytest.mark.parametrize(
    ("value", "text", "line"),
    [
        ({}, "{}", "{}"),
        ([], "[]", "[]"),
        ({"a": None, "b": [None, {}]}, '{\n  "b": [\n    null,\n    {}\n  ]\n}', '{"b":[null,{}]}'),
        ("<'é'&=>\n", '"\\u003c\\u0027é\\u0027\\u0026\\u003d\\u003e\\n"', None),
        (None, "null", "null"),
    ],
)
def test_gson(value: object, text: str, line: str | None) -> None:
    assert gson(value) == text
    assert gson(value, None) == (text if line is None else line)
