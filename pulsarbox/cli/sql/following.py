"""New rows of a query as messages are published: ``--follow``."""

import json
from collections.abc import Iterator
from typing import Any, Final

import duckdb
import pyarrow as pa

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal import rest
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.sql.database import bound, checked, opened
from pulsarbox.cli.sql.execution import running
from pulsarbox.cli.sql.query_dataset import ReadProgress
from pulsarbox.cli.sql.query_session import QuerySession
from pulsarbox.cli.sql.result_output import destination, write
from pulsarbox.cli.sql.topic_table import TopicTable
from pulsarbox.client.errors import NotConnected

FORMS: Final = ("table", "wide", "ndjson", "csv", "arrow")
_EVERY: Final = 0.5
"""Seconds between two looks at the end of the topic."""
_WHOLE: Final = "it needs all rows at once. Run it without --follow"
_CLAUSES: Final = {
    "ORDER_MODIFIER": "ORDER BY",
    "LIMIT_MODIFIER": "LIMIT",
    "LIMIT_PERCENT_MODIFIER": "LIMIT",
    "DISTINCT_MODIFIER": "DISTINCT",
}
Node = dict[str, Any]


def check_rows_only(query: str) -> None:
    """Raise Misused unless each row of a query depends on one message alone."""
    reason = _reason(query)
    if reason:
        raise Misused(f"--follow cannot run this query: {reason}")


def _reason(query: str) -> str:
    with duckdb.connect(":memory:") as database:
        text = database.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0]
        aggregates = {row[0] for row in database.execute(_AGGREGATES).fetchall()}
    found = json.loads(text)
    if found.get("error"):
        return "expected a SELECT of one topic"
    node = found["statements"][0]["node"]
    if node["type"] != "SELECT_NODE" or (node.get("from_table") or {}).get("type") != "BASE_TABLE":
        return "expected a SELECT of one topic, without joins, subqueries and UNION"
    for each in node["modifiers"]:
        return f"{_CLAUSES.get(each['type'], each['type'])}: {_WHOLE}"
    if node["group_expressions"] or node["having"] or node["aggregate_handling"] != "STANDARD_HANDLING":
        return f"GROUP BY: {_WHOLE}"
    if node["qualify"] or node["sample"] or node["cte_map"]["map"]:
        return "expected a SELECT without WITH, QUALIFY and SAMPLE"
    for each in _expressions([node["select_list"], node["where_clause"]]):
        if each["class"] in ("WINDOW", "SUBQUERY"):
            return f"{each['class'].lower()}: {_WHOLE}"
        if each["class"] == "FUNCTION" and each.get("function_name") in aggregates:
            return f"{each['function_name']}(): {_WHOLE}"
    return ""


_AGGREGATES: Final = """
    SELECT function_name FROM duckdb_functions() GROUP BY function_name
    HAVING bool_and(function_type = 'aggregate')
"""


def _expressions(node: Any) -> Iterator[Node]:
    if isinstance(node, list):
        for each in node:
            yield from _expressions(each)
    elif isinstance(node, dict):
        if "class" in node:
            yield node
        for each in node.values():
            yield from _expressions(each)


def follow(session: QuerySession, query: str) -> None:
    """Print the rows of messages published from now on, until Ctrl-C. Raises Misused, Failed and its kinds."""
    if session.catalog.reach is None:
        raise Misused("--follow reads live messages: remove --no-live")
    if session.output.form not in FORMS:
        raise Misused(f"--follow has no end, which -o {session.output.form} requires: use -o ndjson or csv")
    query = checked(query)
    check_rows_only(query)
    [(name, table)] = bound(query, session.catalog.table, session.resources).items()
    following = _Following(session, query, name, table)
    with destination(session.output) as out:
        write(session.output, out, following.schema(), following.batches())


class _Following:
    """A query that is run again for each stretch of new messages."""

    def __init__(self, session: QuerySession, query: str, name: str, table: TopicTable) -> None:
        self._session = session
        self._query = query
        self._name = name
        self._columns = table.columns  # of the beginning: the result keeps its columns
        self._ends = table.ends
        self._table = table
        self._is_away = False

    def schema(self) -> pa.Schema:
        """Return the columns of the result."""
        return next(self._run(self._table._replace(segments=[], history=self._table.history._replace(files={}))))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield new rows, with an empty batch after each stretch. Ends at Ctrl-C."""
        try:
            while True:
                rest(_EVERY)
                table = self._news()
                if table is None or not table.segments:
                    continue
                found = self._run(table._replace(columns=self._columns))
                schema = next(found)
                yield from found
                yield pa.RecordBatch.from_pylist([], schema)
        except KeyboardInterrupt:
            notify("stopped following")

    def _news(self) -> TopicTable | None:
        """Return the messages since the last look; None if there are none, or the broker is away."""
        try:
            if self._session.catalog.ends(self._name) == self._ends:
                return None
            table = self._session.catalog.table(self._name, self._ends)
        except NotConnected as error:
            if not self._is_away:
                notify(f"{error}: retrying")
            self._is_away = True
            return None
        self._is_away = False
        self._ends = table.ends
        return table

    def _run(self, table: TopicTable) -> Iterator[Any]:
        """Yield the columns, then the rows."""
        progress = ReadProgress()
        session = self._session
        with (
            opened({self._name: table}, session.catalog.reach, session.resources, progress) as database,
            running(database, self._query, progress) as found,
        ):
            yield found.schema()
            yield from found.batches()
