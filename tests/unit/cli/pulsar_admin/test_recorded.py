"""Requests and output of `pulsarbox admin`, compared with recordings of pulsar-admin 4.2.

Each line of ``recorded.jsonl`` is one command line with its exit code and its requests (method, path, query, body). If
responses were served, the line also has these responses and the output. ``DIFFERENT`` lists the intended differences
with reasons.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli.pulsar_admin.playing import Player, same

RECORDED = Path(__file__).with_name("recorded.jsonl")

DIFFERENT: Final = {
    "brokers backlog-quota-check": "pulsar-admin ends before it has sent its request",
    "clusters list": "the cluster that answers is asked for only with --current",
    "namespaces clear-backlog": "the question is asked on a terminal only",
    "namespaces set-retention .* 90s": "a time that is no whole number of minutes is refused, not cut",
    "namespaces create": "of the policies only those that are given are sent",
    "non-persistent": "the domain of a topic is for the broker to judge",
    "persistent grant-permission": "commas between actions are taken here too",
    "tenants update": "the tenant is asked for once",
    "topics compact non-persistent": "the domain of a topic is for the broker to judge",
    "topics create-shadow-topic": "no answer about the source is no error",
    "topics grant-permission a b": "a space in a path is %20",
    "topics list ten/nsp .*-p": "--property goes to both domains",
    "topics list ten/nsp --property": "--property goes to both domains",
    "topics .* 3:4:5": "a message in a batch can be named",
    "topicPolicies set-schema-compatibility-strategy .* full": "strategies are taken in lower case too",
}
"""Command lines, by regular expressions for their beginnings, whose requests differ on purpose, and the reasons."""

SAID_DIFFERENTLY: Final = {
    "bookies|brokers leader-broker|clusters get|topics (stats|stats-internal|last-message-id|get-message-id)": (
        "fields that the broker did not send are not made up"
    ),
    "namespaces (policies|get-offload-policies)|resource-quotas|schemas metadata|topics analyze-backlog": (
        "fields that the broker did not send are not made up"
    ),
    "broker-stats": "a line ends with a line feed",
    "brokers namespaces|clusters list-failure-domains|namespaces get-backlog-quotas|ns-isolation-policy|transactions": (
        "objects are printed as JSON, not as Java names them"
    ),
    "schemas compatibility": "the answer is printed",
    "topics list": "persistent topics come first",
    "topics (peek|examine|get-message-by-id)": "properties of messages were lost on the way to pulsar-admin",
    "topics delete": "that a topic could not be deleted is an error",
}
"""Command lines whose output differs on purpose, and the reasons."""

FILES: Final = {
    "{schema}": '{"type": "JSON", "schema": "{}", "properties": {"a": "b"}}',
    "{plain schema}": '{"type": "STRING", "schema": "", "properties": {}}',
    "{topics}": "persistent://ten/nsp/one\nten/nsp/two\n",
}


@cache
def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]


def beginning(patterns: dict[str, str], words: str) -> bool:
    return any(re.match(pattern, words) for pattern in patterns)


def asked(requests: Any, listing: bool) -> list[Any]:
    made = [same(request) for request in requests]
    made = [(one[0], re.sub(r"resetcursor/\d+", "resetcursor/NOW", one[1]), *one[2:]) for one in made]
    return sorted(made, key=str) if listing else made


@pytest.mark.parametrize("group", sorted({one["args"][0] for one in recorded()}))
def test_the_same_is_asked_and_printed(group: str, play: Player, tmp_path: Path) -> None:
    for place, one in enumerate(one for one in recorded() if one["args"][0] == group):
        words = " ".join(one["args"])
        if beginning(DIFFERENT, words):
            continue
        result = play(*files(one["args"], tmp_path), answers=one.get("answers"))
        where = (place, words, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit), where
        listing = one["args"][1].startswith("list") or "-r" in one["args"]
        ours, theirs = asked(play.web.requests, listing), asked(one["requests"], listing)
        if one["args"][1] == "set-offload-policies" and ours and theirs:
            # Pulsar's client sends the known settings of all drivers; ours must be a subset with equal values.
            theirs = [(*theirs[0][:3], {key: theirs[0][3][key] for key in ours[0][3]})]
        assert ours == theirs, where
        if beginning(SAID_DIFFERENTLY, words):
            continue
        if one.get("answers") or one["code"] == 0:  # else Java failed on our empty response
            assert (result.exit_code == 0) == (one["code"] == 0), where
        if one.get("answers") and one["code"] == 0:
            assert result.stdout == one["out"], where


def files(args: list[str], folder: Path) -> list[str]:
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    return [str(folder / arg) if arg in (*FILES, "{missing}") else arg for arg in args]


@pytest.mark.parametrize("pattern", [*DIFFERENT, *SAID_DIFFERENTLY])
def test_every_difference_is_of_something_recorded(pattern: str) -> None:
    assert any(re.match(pattern, " ".join(one["args"])) for one in recorded())
