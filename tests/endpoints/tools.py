"""Requests of Pulsar Manager and of Terraform's provider, as facts in ``tests/data/tool-requests.tsv``.

Columns: tool, method, path, body, and the status with which Pulsar 4.2.4 answered. ``python -m tests.endpoints.tools
URL`` records the statuses. Sources: https://github.com/apache/pulsar-manager (front-end/src/api, service/impl) and
https://github.com/streamnative/terraform-provider-pulsar, with https://github.com/apache/pulsar-client-go/tree/master/pulsaradmin.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.endpoints.playing import send

FILE: Final = Path(__file__).parents[1] / "data" / "tool-requests.tsv"
BROKER: Final = "BROKER"
"""Placeholder of the broker's id."""


class ToolRequest(NamedTuple):
    """A request of a tool, in the order in which it is sent."""

    tool: str
    method: str
    path: str
    body: str
    """JSON; empty without a body."""
    status: int
    """Pulsar's."""

    @property
    def succeeds(self) -> bool:
        """Whether Pulsar accepts the request."""
        return self.status < 400


def requests() -> list[ToolRequest]:
    """Return all requests, in order."""
    rows = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()[1:]]
    return [ToolRequest(tool, method, path, body, int(status)) for tool, method, path, body, status in rows]


def replay(web_url: str, asked: Sequence[ToolRequest]) -> Iterator[tuple[ToolRequest, int, bytes]]:
    """Send the requests to a broker and yield its answers."""
    broker = json.loads(send(web_url, "GET", "/admin/v2/brokers/leaderBroker")[2])["brokerId"]
    for each in asked:
        path, body = each.path.replace(BROKER, broker), each.body.replace(BROKER, broker)
        status, _, answer = send(web_url, each.method, f"/{path}", body or None)
        yield each, status, answer


def main(words: Sequence[str]) -> int:
    """Record the statuses of a Pulsar broker."""
    (web_url,) = words
    lines = [FILE.read_text("utf-8").splitlines()[0]]
    for each, status, answer in replay(web_url, requests()):
        lines.append("\t".join((each.tool, each.method, each.path, each.body, str(status))))
        if not 200 <= status < 400:
            sys.stderr.write(f"{status} {each.method} {each.path}: {answer.decode()[:200]}\n")
    FILE.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
