"""All endpoints of the Admin API of Pulsar 4.2, with the support status of each.

The rows are in ``admin-endpoints.tsv``. The server, command line, documentation and tests share them, so they always
agree. Source: the Admin API of Pulsar 4.2, https://pulsar.apache.org/admin-rest-api/.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

NEVER: Final = {
    "functions": "pulsarbox runs no Pulsar Functions or connectors; pipelines run on Spark",
}
"""Features that a single-process broker cannot offer, by their keyword in the table, with the reason."""


class Endpoint(NamedTuple):
    """One endpoint of the Admin API."""

    method: str
    path: str
    """Path template: ``{domain}`` is ``persistent`` or ``non-persistent``, other braces hold a name."""
    operation: str
    """Pulsar's name of the operation."""
    query: tuple[str, ...]
    """Query parameters, except ``authoritative``, which every endpoint accepts."""
    body: str
    """The Java type of the request body; empty for none."""
    answer: str
    """The Java type of the response; empty for none, or for bytes."""
    standing: str
    """``served``, or ``never:`` followed by a keyword of the table above."""

    @property
    def served(self) -> bool:
        """Whether the endpoint is supported."""
        return self.standing == "served"

    @property
    def refusal(self) -> str:
        """Why the endpoint is not supported, as an error message; empty if it is supported."""
        kind, _, word = self.standing.partition(":")
        if kind == "never":
            return f"{self.operation} is not supported: {NEVER[word]}"
        return ""


@cache
def endpoints() -> tuple[Endpoint, ...]:
    """Return all rows, sorted by path."""
    text = Path(__file__).with_name("admin-endpoints.tsv").read_text("utf-8")
    rows = csv.reader(text.splitlines()[1:], delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(
        Endpoint(method, path, operation, tuple(query.split(",")) if query else (), body, answer, standing or "served")
        for method, path, operation, query, body, answer, standing in rows
    )
