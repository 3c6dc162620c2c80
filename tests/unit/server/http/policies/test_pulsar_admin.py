"""A box accepts the policy requests of Pulsar's own pulsar-admin."""

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, OTHER_ROWS, ROWS
from tests.unit.server.http.harness import HttpBox

RECORDED: Final = Path(__file__).parents[3] / "cli" / "pulsar_admin" / "recorded.jsonl"
WORDS: Final = {place.path for row in (*ROWS, BACKLOG_QUOTA, *OTHER_ROWS) for place in row.places} | {
    "backlogQuotaMap",
    "policies",
    "resourcegroups",
}

REFUSED: Final = {
    "get": (404,),  # the resource group does not exist
    "set-entry-filters": (400,),  # filters that do not exist
    "set-entry-filters-per-topic": (400,),
    "set-offload-policies": (412,),  # no bucket, or an unknown driver
    "set-clusters": (400,),  # not among the allowed clusters set before
    "set-replication-clusters": (412,),  # without the box's own cluster
    "set-auto-topic-creation": (412,),  # a partition count for non-partitioned topics
    "set-persistence": (400,),  # numbers that Pulsar rejects too
    "set-resource-group": (412,),  # the resource group does not exist
    "set-retention": (400,),  # zero in only one of the limits
}
"""Commands whose recorded values are invalid, and the status of the rejection."""


def requests() -> list[tuple[str, str, str, Any]]:
    """Return command, method, path with query, and body of each recorded policy request."""
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


async def test_a_box_takes_what_pulsar_admin_sends(box: HttpBox) -> None:
    clusters = ["standalone", "a", "ca", "cb"]
    for cluster in clusters[1:]:
        box.broker.clusters.create(cluster, {})
    await box.put("/tenants/ten", {"adminRoles": [], "allowedClusters": clusters})
    await box.put("/namespaces/ten/nsp")
    for topic in ("top", "sha", "shb"):
        await box.put(f"/persistent/ten/nsp/{topic}")
    wrong, commands = [], set()
    for command, method, path, body in requests():
        got = await box.ask(method, path, body)
        commands.add(command)
        if got.status >= 400 and got.status not in REFUSED.get(command, ()):
            wrong.append((command, method, path, body, got.status, got.text))
    assert wrong == []
    assert len(commands) > 90
