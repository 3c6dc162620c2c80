"""Corner cases of pulsar-admin's grammar, confirmations, exit codes, help and completion."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.cli.common import exits
from pulsarbox.cli.pulsar_admin import commands, table
from pulsarbox.cli.pulsar_admin.printing import pretty
from pulsarbox.cli.pulsar_admin.steps.messages import dump
from tests.unit.cli.pulsar_admin.playing import Player, answer

TOPIC = "/admin/v2/persistent/public/default/orders"


@pytest.mark.parametrize(
    "words",
    [
        ["-s", "sub", "-n", "5", "orders"],
        ["orders", "-s", "sub", "-n", "5"],
        ["-s", "sub", "orders", "--count=5"],
        ["orders", "-s=sub", "-n=5"],
        ["orders", "-ssub", "-n5"],
        ["--subscription=sub", "--count", "5", "persistent://public/default/orders"],
        ["-s", "sub", "-n", "5", "public/default/orders"],
        ["-s", "sub", "-n", "5", "--", "orders"],
    ],
    ids=" ".join,
)
def test_options_come_in_many_ways(words: list[str], play: Player) -> None:
    assert play("topics", "skip", *words).exit_code == 0
    assert play.web.requests == [("POST", f"{TOPIC}/subscription/sub/skip/5", "", None)]


@pytest.mark.parametrize("force", ["-f", "--force"])
def test_deletion_by_force(force: str, play: Player) -> None:
    play("namespaces", "delete", "a/b", force)
    assert play.web.requests == [("DELETE", "/admin/v2/namespaces/a/b", "force=true", None)]


@pytest.mark.parametrize("force", ["-force", "--force"])
def test_a_long_option_with_one_dash(force: str, play: Player) -> None:
    play("namespaces", "clear-backlog", "a/b", force)
    assert play.web.requests == [("POST", "/admin/v2/namespaces/a/b/clearBacklog", "", None)]


def test_minus_one_is_a_value(play: Player) -> None:
    play("namespaces", "set-retention", "a/b", "-t", "-1", "-s", "-1")
    assert play.web.requests[0][3] == {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}


def test_a_time_without_unit_is_seconds_and_a_size_bytes(play: Player) -> None:
    play("namespaces", "set-retention", "a/b", "-t", "180", "-s", "2097152")
    assert play.web.requests[0][3] == {"retentionTimeInMinutes": 3, "retentionSizeInMB": 2}


@pytest.mark.parametrize(("text", "minutes"), [("90", 90), ("90m", 90), ("2h", 120), ("120s", 2), ("0", 0)])
def test_minutes_with_and_without_a_unit(text: str, minutes: int, play: Player) -> None:
    play("namespaces", "set-subscription-expiration-time", "a/b", "-t", text)
    assert play.web.requests[0][3] == minutes


RATES = (
    ("set-dispatch-rate", ("-md", "-bd"), "-dt"),
    ("set-subscription-dispatch-rate", ("-md", "-bd"), "-dt"),
    ("set-replicator-dispatch-rate", ("-md", "-bd"), "-dt"),
    ("set-publish-rate", ("-m", "-b"), ""),
    ("set-subscribe-rate", ("-sr",), "-st"),
)


@pytest.mark.parametrize(
    ("group", "name", "option", "period"),
    [
        (group, name, option, period)
        for name, options, period in RATES
        for option in options
        for group in ("namespaces", "topicPolicies", "topics")
        if table.named(group, name) is not None
    ],
)
def test_rates_and_periods_that_mean_nothing_are_refused(
    group: str, name: str, option: str, period: str, play: Player
) -> None:
    of = ("a/b",) if group == "namespaces" else ("orders",)
    for value in ("0", "-2", "-7", "x", "1.5"):
        result = play(group, name, *of, option, value)
        assert (result.exit_code, play.web.requests) == (2, []), value
        assert option in result.stderr
    for value in ("0", "-1") if period else ():
        result = play(group, name, *of, option, "5", period, value)
        assert (result.exit_code, play.web.requests) == (2, []), value
        assert f"expected a period of 1 second or more, not {value}" in result.stderr
    for value in ("1", "-1"):
        assert play(group, name, *of, option, value).exit_code == 0


@pytest.mark.parametrize("option", ["-mp", "-bp", "-md", "-bd"])
def test_rates_of_a_resource_group_that_mean_nothing_are_refused(option: str, play: Player) -> None:
    for value in ("0", "-2"):
        assert play("resourcegroups", "update", "g", option, value).exit_code == 2
    assert play.web.requests == []
    assert play("resourcegroups", "update", "g", option, "-1").exit_code == 0


def test_a_list_comes_with_commas_or_again_and_again(play: Player) -> None:
    play("tenants", "create", "t", "-r", "a,b", "-r", "c", "-c", "standalone")
    assert play.web.requests[0][3]["adminRoles"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topics", "skip", "orders", "-s", "sub"], "Missing option '-n' / '--count'"),
        (["topics", "skip", "-s", "sub", "-n", "5"], "Missing argument 'TOPIC'"),
        (["topics", "skip", "orders", "-s", "sub", "-n", "many"], "'many' is not an integer"),
        (["topics", "stats", "a", "b"], "unexpected extra argument"),
        (["topics", "stats", "persistent://a"], "expected persistent://tenant/namespace/topic"),
        (["topics", "stats", "orders", "--get-precise"], "--get-precise-backlog"),
        (
            ["topics", "grant-permission", "orders", "--role", "r", "--actions", "produce,eat"],
            "unknown value 'eat'; expected one of produce",
        ),
        (["namespaces", "policies", "a"], "tenant/namespace"),
        (["namespaces", "set-message-ttl", "a/b", "-ttl", "soon"], "expected a duration such as"),
        (
            ["namespaces", "set-retention", "a/b", "-s", "1G", "-t", "45"],
            "'-t' / '--time': 45 is 0.75 minutes: retention times are in whole minutes; without a unit,"
            " durations are in seconds: 45m means 45 minutes",
        ),
        (
            ["topicPolicies", "set-retention", "orders", "-s", "1G", "-t", "90s"],
            "'-t' / '--time': 90s is 1.5 minutes: retention times are in whole minutes",
        ),
        (["namespaces", "set-retention", "a/b", "-s", "1G", "-t", "-1m"], "-1 without a unit for no limit, not -1m"),
        (
            ["namespaces", "set-retention", "a/b", "-s", "-2", "-t", "1h"],
            "'-s' / '--size': expected a size of 0 or more",
        ),
        (
            ["namespaces", "set-retention", "a/b", "-s", "512K", "-t", "1h"],
            "'-s' / '--size': 512K is 0.5 MiB: retention sizes are in whole MiB",
        ),
        (["namespaces", "set-retention", "a/b", "-s", "10", "-t", "1h"], "in bytes: 10M means 10 MiB"),
        (
            ["namespaces", "set-retention", "a/b", "-s", "1G", "-t", "0"],
            "--time 0 keeps nothing, and --size names a limit: give --time -1",
        ),
        (["topics", "set-retention", "orders", "-s", "0", "-t", "-1"], "--size 0 keeps nothing, and --time names"),
        (
            ["namespaces", "set-subscription-expiration-time", "a/b", "-t", "90s"],
            "'-t' / '--time': 90s is 1.5 minutes: expected whole minutes",
        ),
        (
            ["topicPolicies", "set-subscription-expiration-time", "orders", "-t", "-5"],
            "expected a duration of 0 or more",
        ),
        (["namespaces", "set-delayed-delivery", "a/b", "-e", "-t", "0"], "expected a duration of 1 second or more"),
        (["namespaces", "set-delayed-delivery", "a/b", "-e", "-md", "-1"], "expected a duration of 0 or more"),
        (
            ["namespaces", "set-inactive-topic-policies", "a/b", "-e", "-t", "0", "-m", "delete_when_no_subscriptions"],
            "expected a duration of 1 second or more, not 0",
        ),
        (
            ["namespaces", "set-backlog-quota", "a/b", "-p", "producer_exception", "-t", "message_age", "-lt", "0"],
            "expected a quota of 1 second or more, or -1 for no limit",
        ),
        (
            ["namespaces", "set-backlog-quota", "a/b", "-p", "producer_exception", "-l", "-2"],
            "expected a quota of 0 bytes or more, or -1 for no limit",
        ),
        (
            ["namespaces", "set-persistence", "a/b", "-e", "1", "-w", "1", "-a", "1", "-r", "-7"],
            "expected a rate of 0 or more",
        ),
        (
            ["namespaces", "set-retention", "a/b/c", "-s", "1G", "-t", "3h"],
            "For a topic: pulsarbox admin topicPolicies set-retention a/b/c -s 1G -t 3h",
        ),
        (
            ["namespaces", "clear-backlog", "persistent://a/b/c", "-s", "sub"],
            "For a topic: pulsarbox admin topics clear-backlog persistent://a/b/c -s sub",
        ),
        (["namespaces", "set-deduplication", "a/b"], "specify exactly one of --enable and --disable"),
        (["namespaces", "set-deduplication", "a/b", "-e", "-d"], "specify exactly one of --enable and --disable"),
        (["namespaces", "set-properties", "a/b", "-p", "x"], "expected key=value"),
        (["topics", "reset-cursor", "orders", "-s", "sub"], "specify --time"),
        (["topics", "reset-cursor", "orders", "-s", "sub", "-m", "x"], "such as 12:34"),
        (["topics", "expire-messages", "orders", "-s", "s", "-t", "1", "-p", "1:2"], "cannot be combined"),
        (["topics", "update-subscription-properties", "orders", "-s", "s"], "or --clear"),
        (["topics", "get-message-id", "orders", "-d", "now"], "such as 2026"),
        (["namespaces", "split-bundle", "a/b"], "--bundle and --bundle-type"),
        (["namespaces", "set-backlog-quota", "a/b", "-p", "producer_exception"], "requires --limit"),
        (["namespaces", "set-offload-policies", "a/b", "-d", "tape"], "--driver: expected one of"),
        (["schemas", "get", "orders", "-a", "--version", "1"], "cannot be combined"),
        (["functions", "get"], "specify --name or --fqfn"),
        (["topcs", "list"], "did you mean topics"),
        (["topics", "stast", "orders"], "did you mean stats"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_is_wrong_is_said_and_nothing_is_asked(words: list[str], message: str, play: Player) -> None:
    result = play(*words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert play.web.requests == []
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (401, 5), (403, 5), (404, 3), (409, 4), (412, 2), (500, 1), (501, 1), (503, 6)]
)
def test_a_refusal_ends_with_the_exit_code_of_its_status(status: int, code: int, play: Player) -> None:
    result = play("tenants", "get", "t", answers=[answer({"reason": "no\x1b[2J"}, status)])
    assert result.exit_code == code
    advice = {401: f": {exits.WHO}"}.get(status, "")
    assert result.stderr == f"pulsarbox: no\\x1b[2J{advice}\n"
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [("", "HTTP 500 Internal Server Error"), ("<html>", "HTTP 500 Internal Server Error"), ("plain", "plain")],
)
def test_a_refusal_without_a_reason(body: str, said: str, play: Player) -> None:
    result = play("tenants", "get", "t", answers=[{"status": 500, "body": body, "type": "text/plain"}])
    assert result.stderr == f"pulsarbox: {said}\n"


def test_of_a_java_stack_trace_only_the_message_is_said(play: Player) -> None:
    reason = "\n --- An unexpected error occurred in the server ---\n\nMessage: it broke\n\nStacktrace:\n\njava.lang..."
    assert play("tenants", "list", answers=[answer({"reason": reason}, 500)]).stderr == "pulsarbox: it broke\n"


@pytest.mark.parametrize(("said", "cleared"), [("Y", True), ("yes", True), ("n", False), ("", False)])
def test_a_question_is_asked_on_a_terminal(
    said: str, cleared: bool, play: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def prompt(question: str, **_: Any) -> str:
        asked.append(question)
        return said

    monkeypatch.setattr(commands, "stdin_is_terminal", lambda: True)
    monkeypatch.setattr("click.prompt", prompt)
    assert play("namespaces", "clear-backlog", "a/b").exit_code == 0
    assert asked == ["Are you sure you want to clear the backlog? (Y/N)"]
    assert bool(play.web.requests) == cleared


def test_without_a_terminal_the_question_names_the_option(play: Player) -> None:
    result = play("namespaces", "clear-backlog", "a/b")
    assert result.exit_code == 2
    assert "use --force" in result.stderr
    assert play.web.requests == []


def test_several_deletions_go_on_after_one_that_fails(play: Player) -> None:
    names = ["persistent://public/default/a1", "persistent://public/default/a2", "persistent://public/default/b"]
    result = play(
        *("topics", "delete", "-r", "a."),
        answers=[answer(names), answer([]), answer({"reason": "in use"}, 412), {"status": 204}],
    )
    assert [path for method, path, _, _ in play.web.requests if method == "DELETE"] == [
        "/admin/v2/persistent/public/default/a1",
        "/admin/v2/persistent/public/default/a2",
    ]
    assert result.exit_code == 8
    assert result.stderr == (
        "pulsarbox: cannot delete persistent://public/default/a1: in use\npulsarbox: 1 of 2 topics were not deleted\n"
    )


def test_the_messages_of_a_batch_are_shown_one_by_one(play: Player) -> None:
    from pulsarbox.protocol.batch import encode_batch
    from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, SingleMessageMetadata

    first = SingleMessageMetadata(properties=[KeyValue(key="k", value="v\x1b[2J")], payload_size=0)
    body = encode_batch([(first, b"one"), (SingleMessageMetadata(payload_size=0), b"two")])
    entry = {
        "type": "application/octet-stream",
        "body": body.decode("latin-1"),
        "headers": {"X-Pulsar-Message-ID": "3:4", "X-Pulsar-num-batch-message": "2"},
    }
    result = play(
        "topics",
        "peek-messages",
        "orders",
        "-s",
        "sub",
        "-n",
        "9",
        answers=[entry, answer({"reason": "Message not found"}, 404)],
    )
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("Batch")] == [
        "Batch Message ID: 3:4:0",
        "Batch Message ID: 3:4:1",
    ]
    assert "k    v\\x1b[2J" in lines
    assert result.exit_code == 0


def test_a_topic_that_is_not_there_is_no_empty_subscription(play: Player) -> None:
    result = play(
        "topics", "peek-messages", "orders", "-s", "sub", answers=[answer({"reason": "Topic not found"}, 404)]
    )
    assert (result.exit_code, result.stderr) == (3, "pulsarbox: Topic not found\n")


def test_json_is_printed_as_jackson_does_and_keeps_numbers_as_they_came(play: Player) -> None:
    body = '{"a":1.50,"b":[],"c":{},"d":[{"e":"\\u009b"},2],"f":1E10,"g":null,"h":"\u00fc"}'
    result = play("topics", "stats", "orders", answers=[{"status": 200, "body": body}])
    assert result.stdout == (
        '{\n  "a" : 1.50,\n  "b" : [ ],\n  "c" : { },\n  "d" : [ {\n    "e" : "\\u009b"\n  }, 2 ],\n'
        '  "f" : 1E10,\n  "g" : null,\n  "h" : "\u00fc"\n}\n'
    )
    assert pretty([["a"], []]) == '[ [ "a" ], [ ] ]'


def test_bytes_in_lines_of_sixteen() -> None:
    assert dump(b"") == ""
    assert dump(bytes(range(15)) + b"~a\xff").splitlines()[3:5] == [
        "|00000000| 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 7e |...............~|",
        "|00000010| 61 ff                                           |a.              |",
    ]


def test_the_help_of_a_group_shows_what_is_not_hidden(play: Player) -> None:
    output = play("topics", "--help").output
    assert "\n  stats  " in output
    assert "get-maxProducers" not in output
    assert play("topics", "get-maxProducers", "--help").exit_code == 0
    assert all(f"\n  {group} " in play("--help").output for group in table.GROUPS)


def test_an_alias_calls_the_same_command(play: Player) -> None:
    play("broker-stats", "destinations", answers=[answer({})])
    assert play.web.requests[0][1] == "/admin/v2/broker-stats/topics"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("admin topi", {"topics", "topicPolicies"}),
        ("admin topics sta", {"stats", "stats-internal"}),
        ("admin topics stats --get-p", {"--get-precise-backlog"}),
        ("admin namespaces topics a/b --mode P", {"PERSISTENT"}),
        ("admin topics grant-permission orders --actions produce,c", {"produce,consume"}),
        ("admin topics stats orders --admin", {"--admin-url"}),
    ],
)
def test_a_shell_completes_groups_commands_options_and_values(words: str, expected: set[str]) -> None:
    line = f"pulsarbox {words}"
    found = completed("bash", COMP_WORDS=line, COMP_CWORD=str(len(line.split()) - 1))
    assert expected <= {each.partition(",")[2] for each in found}


def completed(shell: str, **asked: str) -> list[str]:
    """Return the completions that a shell's completion script receives."""
    done = subprocess.run(
        [sys.executable, "-c", "from pulsarbox.cli.main import main; main(prog_name='pulsarbox')"],
        env=os.environ | asked | {"_PULSARBOX_COMPLETE": f"{shell}_complete"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_zsh_and_fish_are_told_what_the_words_do_too() -> None:
    words = "pulsarbox admin to"
    assert completed("zsh", COMP_WORDS=words, COMP_CWORD="2")[6:] == ["plain", "topics", table.GROUPS["topics"]]
    assert f"plain,topics\t{table.GROUPS['topics']}" in completed("fish", COMP_WORDS=words, COMP_CWORD="to")


def test_bash_itself_completes_with_the_script(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    command = tmp_path / "pulsarbox"
    command.write_text(f"#!{sys.executable}\nfrom pulsarbox.cli.main import main\nmain(prog_name='pulsarbox')\n")
    command.chmod(0o755)
    script = 'eval "$(pulsarbox completion bash)"; COMP_WORDS=(pulsarbox admin brokers he); COMP_CWORD=3; '
    script += '_pulsarbox_completion pulsarbox; echo "${COMPREPLY[@]}"'
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "healthcheck\n"


def test_properties_of_a_partitioned_topic_are_sent_as_what_brokers_take_them_for(play: Player) -> None:
    assert play("topics", "create-partitioned-topic", "t", "-p", "3", "-m", "a=b").exit_code == 0
    assert play.web.kinds == ["application/vnd.partitioned-topic-metadata+json"]
    assert play("topics", "create-partitioned-topic", "t", "-p", "3").exit_code == 0
    assert play.web.kinds == ["application/json"]


@pytest.mark.parametrize(
    ("group", "name", "of"),
    [
        ("namespaces", "get-backlog-quotas", "a/b"),
        ("topics", "get-backlog-quotas", "orders"),
        ("topicPolicies", "get-backlog-quota", "orders"),
    ],
)
def test_backlog_quotas_are_printed_as_json(group: str, name: str, of: str, play: Player) -> None:
    quotas = {"destination_storage": {"limitSize": 5, "limitTime": -1, "policy": "producer_exception"}}
    assert json.loads(play(group, name, of, answers=[answer(quotas)]).stdout) == quotas
    assert json.loads(play(group, name, of, answers=[answer({})]).stdout) == {}
