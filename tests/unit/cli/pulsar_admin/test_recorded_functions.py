"""Requests and output for functions, sinks, sources and packages, compared with recordings of pulsar-admin 4.2.4.

Each line of ``recorded_functions.jsonl`` is one command line, as in ``test_recorded``. The body of a form is
``{"form": {name: [media type, content]}}``, and ``started`` has the arguments of the local runner. Names in braces are
files.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli.pulsar_admin.playing import Player, same
from tests.unit.cli.pulsar_admin.test_recorded import beginning

RECORDED = Path(__file__).with_name("recorded_functions.jsonl")

DIFFERENT: Final = {
    r".* --name a b/c": "a slash in a name is no separator",
    r".* -k a/b": "a slash in a key is no separator",
    r".* --className \S+ --classname|.* --destinationTopicName \S+ --d|.* -k k --key": (
        "of two equal options, the last counts"
    ),
    r".* --instanceIdOffset 7$": "an outdated spelling counts if the current one is not given",
    r".*-config-file \{unknown field\}": "unknown fields are refused",
    r'.*putstate .* \{"key": "k", "x": 1\}': "unknown fields are refused",
    r"sinks (create|update) --(sinkConfigFile|sink-config-file) \{sink\}": "the retries in a file count",
    r"packages \S+ function:///b/c@1": "a package without a tenant is refused",
    r"\w+ (restart|start|stop) .*--instance-id x": "a number that is none is refused",
}
"""Command lines, by regular expressions for their beginnings, whose requests differ on purpose, and the reasons."""

SAID_DIFFERENTLY: Final = {
    r"\w+ (status|getstatus|stats) .*--name fn|functions-worker function-stats": (
        "fields that the worker did not send are not made up"
    ),
    r"migration start": "the next command is that of pulsarbox",
}
"""Command lines whose output differs on purpose, and the reasons."""

FILES: Final = {
    "{jar}": "PK jar bytes",
    "{py}": "def process(x):\n    return x\n",
    "{go}": "go binary",
    "{nar}": "PK nar bytes",
    "{data}": "some data\n",
    "{function}": """\
tenant: ten
namespace: nsp
name: from-file
className: a.b.C
inputs:
  - in1
  - in2
output: out
parallelism: 2
autoAck: true
userConfig:
  word: x
  count: 3
  rate: 1.5
  nested: {deep: [1, two]}
resources:
  cpu: 0.5
  ram: 1024
windowConfig:
  windowLengthCount: 10
processingGuarantees: EFFECTIVELY_ONCE
subscriptionPosition: Earliest
py: "<folder>{py}"
""",
    "{sink}": """\
tenant: ten
namespace: nsp
name: from-file
className: a.b.C
inputs: [in1, in2]
configs:
  url: "http://x"
  size: 5
maxMessageRetries: 4
parallelism: 3
archive: "<folder>{nar}"
""",
    "{source}": """\
tenant: ten
namespace: nsp
name: from-file
className: a.b.C
topicName: out
configs:
  a: b
batchSourceConfig:
  discoveryTriggererClassName: x.Y
archive: "<folder>{nar}"
""",
    "{typed sink}": "name: from-file\nsinkType: jdbc\ninputs: [in1]\n",
    "{typed source}": "name: from-file\nsourceType: kafka\ntopicName: out\n",
    "{typed function}": "name: from-file\nfunctionType: exclaim\ninputs: [in1]\n",
    "{unknown field}": "name: x\nnoSuchField: 1\n",
    "{bad yaml}": "name: [x\n",
    "{wrong type}": "name: x\nparallelism: many\n",
    "{json config}": '{"name": "from-json", "className": "a.B", "inputs": ["in1"], "py": "<folder>{py}"}',
}
MISSING: Final = ("{missing}", "{download}")
FILLED: Final = ("inputSpecs", "producerConfig")
"""Parts of a configuration to which pulsar-admin adds default values."""
RUNNER: Final = """\
#!/bin/sh
printf '%s\\0' "$@" > '{out}'
"""


@cache
def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]


def asked(requests: Any) -> list[Any]:
    return [same(request) for request in requests]


def without_defaults(ours: Any, theirs: Any) -> Any:
    """Their value without the fields that ours lacks, in all maps."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {key: without_defaults(ours[key], theirs[key]) for key in theirs if key in ours}
    return theirs


def comparable(ours: Any, theirs: Any) -> Any:
    """Their requests, without the default values that pulsar-admin adds to parts of configurations."""
    made = json.loads(json.dumps(theirs))
    for our, their in zip(ours, made, strict=False):
        for mine, other in zip(configs(our), configs(their), strict=False):
            strip(mine, other)
    return made


def configs(request: list[Any]) -> list[dict[str, Any]]:
    form = request[3].get("form", {}) if len(request) > 3 and isinstance(request[3], dict) else {}
    return [form[name][1] for name in form if name.endswith("Config")]


def strip(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name in set(FILLED) & set(ours) & set(theirs):
        theirs[name] = without_defaults(ours[name], theirs[name])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files, and a local runner that stores its arguments."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace("<folder>", f"{tmp_path}/"), "utf-8")
    runner = tmp_path / "home" / "bin" / "function-localrunner"
    runner.parent.mkdir(parents=True)
    runner.write_text(RUNNER.format(out=tmp_path / "started"), "utf-8")
    runner.chmod(0o755)
    monkeypatch.setenv("PULSAR_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)  # some files are named without a folder
    return tmp_path


def relative(found: Any, folder: Path) -> Any:
    return json.loads(json.dumps(found).replace(f"{folder}/", ""))


def rows() -> list[Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in recorded():
        groups.setdefault(" ".join(one["args"][:2]), []).append(one)
    return [pytest.param(found, id=name) for name, found in groups.items()]


@pytest.mark.parametrize("lines", rows())
def test_the_same_is_sent_and_printed(lines: list[dict[str, Any]], play: Player, files: Path) -> None:
    for place, one in enumerate(lines):
        words = " ".join(one["args"])
        if beginning(DIFFERENT, words):
            continue
        args = [f"{files}/{arg}" if arg in (*FILES, *MISSING) else arg for arg in one["args"]]
        result = play(*args, answers=one.get("answers"))
        where = (place, words, result.output, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), where
        ours = relative(play.web.requests, files)
        assert asked(ours) == asked(comparable(ours, one["requests"])), where
        if beginning(SAID_DIFFERENTLY, words):
            continue
        if one.get("answers") or one["code"] == 0:
            assert (result.exit_code == 0) == (one["code"] == 0), where
        if "out" in one:
            assert relative(result.stdout, files) == one["out"], where
        if "started" in one:
            assert_started(files, one["started"], where)


def assert_started(folder: Path, theirs: list[Any], where: Any) -> None:
    """Compare the arguments of the local runner, with the configuration parsed."""
    option, config, *rest = relative((folder / "started").read_text("utf-8").split("\0")[:-1], folder)
    ours = json.loads(config)
    strip(ours, theirs[1])
    assert same(("", "", "", ours)) == same(("", "", "", theirs[1])), where
    assert [option, *rest] == [theirs[0], *theirs[2:]], where


@pytest.mark.parametrize("pattern", [*DIFFERENT, *SAID_DIFFERENTLY])
def test_every_difference_is_of_something_recorded(pattern: str) -> None:
    assert any(re.match(pattern, " ".join(one["args"])) for one in recorded())
