"""Tests of the comparison of Java tools; one runs the tools themselves, with Java, Maven's jars and a box."""

import json
from pathlib import Path

import pytest

from pulsarbox.server.http.admin_endpoints import endpoints
from tests.java_tools import files
from tests.java_tools.__main__ import arguments_of, differences, recorded_results
from tests.java_tools.known import TEXT, reason_of
from tests.java_tools.playing import Seen, Target, observed, play
from tests.java_tools.scripts import Script, ScriptError, parse, scripts, split
from tests.java_tools.tools import LATE, MAIN, Result, tools
from tests.tools.box import BoxProcess
from tests.tools.java import TOOLS, Jars, JavaError

ADMIN = ["topics", "stats", "t"]


def test_a_file_of_scenarios() -> None:
    (one, two) = parse("client", "# comment\n== a\nclient read t\n\n== b (box)\nsecure-admin tenants list\n")
    assert (one.name, one.lines, one.box_only, one.is_secure) == ("client.a", ["client read t"], False, False)
    assert (two.name, two.box_only, two.is_secure) == ("client.b", True, True)


def test_a_command_before_the_first_heading_is_a_mistake() -> None:
    with pytest.raises(ScriptError, match=r"client\.txt, line 2: a command before the first heading"):
        parse("client", "\nadmin tenants list\n== a\n")


def test_a_line_has_a_tool_arguments_and_input() -> None:
    assert split("client produce t -m 'a b'") == ("client", ["produce", "t", "-m", "a b"], "")
    assert split("pulsar-shell - | admin tenants list; config list") == (
        "pulsar-shell",
        ["-"],
        "admin tenants list\nconfig list\n",
    )


def test_scenarios_are_chosen_by_file_or_name() -> None:
    names = [each.name for each in scripts()]
    assert len(names) == len(set(names))
    assert [each.name for each in scripts(["shell"])] == [each for each in names if each.startswith("shell.")]
    assert [each.name for each in scripts(["client.chunks"])] == ["client.chunks"]
    with pytest.raises(ScriptError, match="unknown scenario none: expected one of admin"):
        scripts(["none"])


def test_every_line_has_a_known_tool() -> None:
    known = {"admin", "client", "wait", *MAIN, "secure-admin", "secure-client", "secure-perf"}
    assert {line.split()[0] for each in scripts() for line in each.lines} <= known


def test_every_command_of_a_scenario_is_recorded() -> None:
    recorded = recorded_results()
    wanted = {each.name: {line for line in each.lines if not line.startswith("wait ")} for each in scripts()}
    box_only = {each.name for each in scripts() if each.box_only}
    assert {name: lines - {*recorded.get(name, {})} for name, lines in wanted.items() if name not in box_only} == {
        name: set() for name in wanted if name not in box_only
    }


def test_results_without_what_differs_between_any_two_brokers() -> None:
    seen = observed(
        Result("0", '{"storageSize": 7, "msgInCounter": 3, "lastPublishTimeStamp": 1795416985123}', ""), "admin", ADMIN
    )
    assert seen == {
        "exit": "0",
        "out": {"storageSize": "number", "msgInCounter": 3, "lastPublishTimeStamp": "number"},
        "err": "",
    }
    listed = observed(Result("0", "public\n@\n@-other\nsomebody\n", ""), "admin", ["tenants", "list"])
    assert listed["out"] == ["@", "@-other", "public"]
    perf = 'INFO Perf Starting\n  "port" : 1\nINFO Perf Aggregated throughput --- 500 records sent --- 1999.123 msg/s'
    assert observed(Result("0", perf, ""), "pulsar-perf", ["produce"])["out"] == [
        "INFO Perf Aggregated throughput --- number records sent --- rate msg/s"
    ]


def test_differences_name_the_command_and_the_field() -> None:
    a: Seen = {"admin x": {"exit": "0", "out": {"n": 1}, "err": ""}, "client y": {"exit": "0", "out": [], "err": ""}}
    assert differences(a, a) == []
    late: Seen = a | {"admin x": {"exit": LATE, "out": [], "err": ""}}
    assert differences(a, late) == []
    assert differences(a, {"admin x": {"exit": "0", "out": {"n": 2}, "err": ""}}) == [
        ("admin x: n", 1, 2, ""),
        ("client y", "exit 0: []", "exit -: not recorded", ""),
    ]


def test_a_refusal_of_the_endpoint_table_and_a_longer_text_are_known() -> None:
    refusal = next(row.refusal for row in endpoints() if row.refusal)
    assert reason_of("admin x", (f"exit 1: {refusal}", "exit 0: []")) == refusal
    assert reason_of("admin x: stderr", ("no such cluster: one", "no such cluster")) == TEXT
    assert reason_of("admin x: stderr", ("other", "no such cluster")) == ""
    assert reason_of("admin x", ("exit 1: anything", "exit 0: []")) == ""


@pytest.mark.parametrize("words", [["--record"], ["--tools", "/lib/*"]])
def test_what_needs_a_broker_to_compare_with(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments_of(words)
    assert f"{words[0]} needs --b" in capsys.readouterr().err


def test_jars_that_are_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="`make java-tools` fetches them, once"):
        Jars("tools", tmp_path / "pom.xml", tmp_path / "none", "java-tools").class_path()


SHORT = """
admin topics create @/n/t
client produce @/n/t -m a,b -k key
client consume @/n/t -s s -n 2 -p Earliest
client read @/n/t -n 2 -m earliest
admin topics subscriptions @/n/t
admin topics stats @/n/none
"""


@pytest.mark.campaign  # where the jars are, it takes longer than any other test
@pytest.mark.timeout(200)
def test_the_tools_themselves(tmp_path: Path) -> None:
    box = BoxProcess(tmp_path / "data")
    try:
        settings = {"brokerServiceUrl": box.url, "webServiceUrl": box.web_url}
        with tools(TOOLS.class_path(), tmp_path / "java", settings) as opened:
            files.write(tmp_path / "files")
            box.start()
            seen = play(Script("short", SHORT.split("\n")[1:-1]), Target(box.web_url, opened, tmp_path / "files"))
    except JavaError as error:
        pytest.skip(str(error))
    finally:
        box.kill()
    exits = [each["exit"] for each in seen.values()]
    assert exits == ["0", "0", "0", "0", "0", "1"], json.dumps(seen, indent=1)
    created, produced, consumed, read, listed, missing = seen.values()
    assert created["out"] == []
    assert "2 messages successfully produced" in produced["out"][-1]
    assert [line.split()[-1] for line in consumed["out"] if "content:" in line] == ["content:a", "content:b"]
    assert [line for line in read["out"] if "key:[key]" in line] == [line for line in read["out"] if "content:" in line]
    assert listed["out"] == ["s"]
    assert "not found" in missing["err"]
