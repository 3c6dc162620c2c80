"""Every endpoint of the Admin API of Pulsar 4.2, and where pulsarbox stands with it.

The rows are in ``admin-endpoints.tsv``. Server, command line, documents and tests go by them, so that none knows an
endpoint that the others lack. Source: the Admin API of Pulsar 4.2, https://pulsar.apache.org/admin-rest-api/.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

LATER: Final = {
    "offload": "offloading to other storage",
}
"""What a later version of pulsarbox brings, by its word in the table."""

NEVER: Final = {
    "bookies": "a box keeps its ledgers itself: there are no bookies",
    "clusters": "a box is the only cluster there is",
    "entry-filters": "entry filters are Java classes",
    "functions": "there are no Pulsar Functions and connectors here: pipelines run on Spark",
    "java": "it is about the Java process of a broker",
    "load-balancing": "one broker has everything: there is no load to balance",
    "metadata-store": "a box has no metadata store beside its data directory",
    "packages": "there are no Pulsar Functions here, and so no packages of them",
    "transaction-logs": "transactions stand in the log of everything else: they have no logs of their own",
}
"""What one box can never do, by its word in the table, and why."""


class Endpoint(NamedTuple):
    """One row."""

    method: str
    path: str
    """``{domain}`` in it is ``persistent`` or ``non-persistent``, other braces hold a name."""
    operation: str
    """Pulsar's name of it."""
    query: tuple[str, ...]
    """The parameters of its query, ``authoritative`` aside, which every one has."""
    body: str
    """The Java type of the body it takes; empty where it takes none."""
    answer: str
    """The Java type of its answer; empty where there is none, or bytes."""
    standing: str
    """``served``, or ``later:`` or ``never:`` with a word of the tables above."""

    @property
    def served(self) -> bool:
        """Whether it works."""
        return self.standing == "served"

    @property
    def refusal(self) -> str:
        """Why it does not, for a client; empty where it does."""
        kind, _, word = self.standing.partition(":")
        if kind == "never":
            return f"{self.operation} is not supported: {NEVER[word]}"
        if kind == "later":
            return f"{self.operation} is not supported by this version of pulsarbox: {LATER[word]} will be"
        return ""


@cache
def endpoints() -> tuple[Endpoint, ...]:
    """All rows, sorted by path."""
    text = Path(__file__).with_name("admin-endpoints.tsv").read_text("utf-8")
    rows = csv.reader(text.splitlines()[1:], delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(
        Endpoint(method, path, operation, tuple(query.split(",")) if query else (), body, answer, standing or "served")
        for method, path, operation, query, body, answer, standing in rows
    )
