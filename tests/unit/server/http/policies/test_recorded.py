"""Responses of Pulsar 4.2.4 to set, get, applied and remove of every policy, replayed against a box.

The data are requests in order, ``[method, path, body, status, answer]``. If the answer is null, Pulsar sent a page, a
stack trace or a parser message, and only the status counts.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from pulsarbox.names import parse_topic
from tests.unit.broker.policies.test_policy import CONSTANTS
from tests.unit.server.http.harness import Got, HttpBox

RECORDED: Final = Path(__file__).parents[4] / "data" / "admin-policies.jsonl"

WANTED: Final = (
    (r"POST \S+/(backlogQuota|subscriptionTypesEnabled) ?(null|\[\"bogus\"\])?$", "400 in place of a stack trace"),
    (r"POST \S+/backlogQuota .*bogus", "the text names the policies that there are"),
    (r"PUT resourcegroups/hpg3 $", "400 in place of a stack trace"),
    (r"DELETE resourcegroups/hpg", "404 in place of a stack trace"),
    (r"PUT namespaces/own/m7 ", "a limit below 0 is refused for new namespaces too"),
    (r"GET namespaces/own/m7", "a limit below 0 is refused for new namespaces too"),
    (r"\w+ namespaces/own/nons/retention", "one text for a missing namespace"),
    (r"GET \S+/retention\?applied=true", "what is set for all clusters counts as applied"),
    (r"GET \S+/messageTTL\?applied=true", "what is set for all clusters counts as applied"),
    (r"GET persistent/own/n/p/backlogQuotaMap\?applied=true", "each type of quota has what holds for it"),
)
"""Requests whose responses differ from Pulsar's, and the reason."""


def rows() -> list[list[Any]]:
    return [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]


def alike(got: Got, status: int, told: str | None) -> bool:
    if got.status != status:
        return False
    if told is None or (status >= 400 and not told):
        return True
    if status >= 400:
        return str(got.reason).startswith(told)
    try:
        return bool(json.loads(got.text or "null") == json.loads(told or "null"))
    except ValueError:
        return got.text == told


async def test_a_box_answers_as_pulsar_did(box: HttpBox) -> None:
    await box.put("/tenants/own", {"adminRoles": [], "allowedClusters": ["standalone"]})
    await box.put("/namespaces/own/n")
    await box.put("/persistent/own/n/t")
    await box.put("/persistent/own/n/p/partitions", 3)
    differ = []
    for method, path, body, status, told in rows():
        got = await box.ask(method, f"/admin/v2/{path}", None if body is None else body.encode())
        shown = f"{method} {path}" + ("" if body is None else f" {body}")
        if not alike(got, status, told):
            differ.append((shown, (status, told), (got.status, got.text)))
    unwanted = [each for each in differ if not any(re.match(known, each[0]) for known, _ in WANTED)]
    assert unwanted == [], unwanted
    idle = [known for known, _ in WANTED if not any(re.match(known, each[0]) for each in differ)]
    assert idle == [], "these are no differences any more"


async def test_what_a_box_takes_it_can_go_by(box: HttpBox) -> None:
    await box.put("/tenants/own", {"adminRoles": [], "allowedClusters": ["standalone"]})
    await box.put("/namespaces/own/n")
    await box.put("/persistent/own/n/t")
    topic = parse_topic("own/n/t")
    for method, path, body, *_ in rows():
        if method != "GET":
            await box.ask(method, f"/admin/v2/{path}", None if body is None else body.encode())
            policies = box.broker.policies.of(topic)
            for policy in CONSTANTS:
                policies.get(policy)
