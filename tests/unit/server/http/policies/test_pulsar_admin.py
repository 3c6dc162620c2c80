"""What Pulsar's own pulsar-admin sends for each of its commands about policies: a box takes it."""

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, RESOURCE_GROUP_NAME, ROWS
from tests.unit.server.http.harness import Box, with_box

RECORDED: Final = Path(__file__).parents[3] / "cli" / "pulsar_admin" / "recorded.jsonl"
WORDS: Final = {place.path for row in (*ROWS, BACKLOG_QUOTA, RESOURCE_GROUP_NAME) for place in row.places} | {
    "backlogQuotaMap",
    "policies",
    "resourcegroups",
}

REFUSED: Final = {
    "get": (404,),  # of a resource group: there is none of that name
    "set-auto-topic-creation": (412,),  # a number of partitions for topics that have none
    "set-persistence": (400,),  # numbers that Pulsar refuses too
    "set-resource-group": (412,),  # there is none
    "set-retention": (400,),  # a single 0
}
"""Commands whose recorded values cannot be, and the status that says so."""


def requests() -> list[tuple[str, str, str, Any]]:
    """Command, method, path with query, body: what is about policies of the namespace and the topic of the records."""
    found = []
    for line in RECORDED.read_text("utf-8").splitlines():
        recorded = json.loads(line)
        for method, path, query, *body in recorded["requests"] if recorded["code"] == 0 else ():
            words = unquote(path).strip("/").split("/")
            if recorded["args"][0] not in ("namespaces", "topics", "topicPolicies", "resourcegroups"):
                continue
            if not WORDS & set(words) or not {"nsp", "resourcegroups"} & set(words) or "bookieAffinity" in words:
                continue
            found.append(
                (recorded["args"][1], method, path + (f"?{query}" if query else ""), body[0] if body else None)
            )
    return found


def test_a_box_takes_what_pulsar_admin_sends() -> None:
    async def scenario(box: Box) -> None:
        await box.put("/tenants/ten", {"adminRoles": [], "allowedClusters": ["standalone"]})
        await box.put("/namespaces/ten/nsp")
        await box.put("/persistent/ten/nsp/top")
        wrong, commands = [], set()
        for command, method, path, body in requests():
            got = await box.ask(method, path, body)
            commands.add(command)
            if got.status >= 400 and got.status not in REFUSED.get(command, ()):
                wrong.append((command, method, path, body, got.status, got.text))
        assert wrong == []
        assert len(commands) > 90

    with_box(scenario)
