"""``pulsarbox sql``: query topics, offloaded and live messages together. Imports DuckDB only when a query runs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.target import Target, late_service_and_admin_options

_FORMS: Final = ("table", "wide", "json", "ndjson", "yaml", "csv", "parquet", "arrow")
_BYTES: Final = ("text", "base64", "hex")
ROWS_SHOWN: Final = 1000
"""Rows of a table on a terminal, by default."""


@click.command()
@click.argument("query", metavar="[QUERY]", default="")
@click.option(
    "--history", "root", metavar="DIR",
    help="Also read the messages that `pulsarbox pipeline offload` wrote to DIR, s3://BUCKET/PREFIX, or "
    "iceberg:DIR/NAMESPACE.TABLE. With @SNAPSHOT, as of that snapshot of the table.",
)  # fmt: skip
@click.option(
    "--catalog", metavar="NAME", default="", help="Catalog of iceberg:NAMESPACE.TABLE in pyiceberg's settings."
)
@click.option("--no-live", is_flag=True, help="With --history: read no live messages, and ask no broker.")
@click.option("--follow", is_flag=True, help="Print new rows as messages are published, until Ctrl-C.")
@click.option(
    "-o", "--output", "form", type=click.Choice(_FORMS),
    help="Output format. [default: by the suffix of --output-file, else table]",
)  # fmt: skip
@click.option(
    "--output-file", "file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE, which appears when it is complete.",
)  # fmt: skip
@click.option(
    "--limit", metavar="N", type=BoundedInteger(0),
    help=f"Maximum number of rows to print; 0: all. [default: {ROWS_SHOWN} for a table on a terminal, else all]",
)  # fmt: skip
@click.option(
    "--bytes", "bytes_form", type=click.Choice(_BYTES), default="text", show_default=True,
    help="Bytes in text formats. text: UTF-8, with other bytes as \\xNN.",
)  # fmt: skip
@click.option("--timezone", metavar="ZONE", default="", help="Time zone, such as Europe/Berlin. [default: local]")
@click.option("--memory", metavar="SIZE", default="1GB", show_default=True, help="Memory limit; more goes to disk.")
@click.option("--skip-lost", is_flag=True, help="Skip missing and damaged messages instead of failing.")
@late_service_and_admin_options
def sql(service: Callable[[], Target], admin: Callable[[], Target], query: str, **given: Any) -> None:
    """Query topics with SQL.

    Topics are tables: `orders` is persistent://public/default/orders, and `"tenant/namespace/topic"` any other. Columns
    are the fields of the topic's schema, then __key, __publishTime and other metadata. The dialect is that of DuckDB.
    Queries only read, and only topics. Without QUERY, reads it from stdin, or starts a shell on a terminal. With
    --data-dir, the messages of a stopped box are read from its directory. Requires
    `pip install 'pulsarbox[sql]'`.

    \b
    Exit codes:
      0    success, even without rows
      1    the query failed, or messages are lost
      2    the query or an option is invalid
      3    the topic does not exist
      6, 7 the broker is unreachable, or does not respond

    \b
    Examples:
      pulsarbox sql 'select count(*) from orders'
      pulsarbox sql 'select * from orders order by __publishTime desc limit 5'
      pulsarbox sql --history /data/history 'select __key, sum(total) from orders group by all' -o csv
      pulsarbox sql --follow 'select __key, total from orders where total > 100'
    """
    if given["no_live"] and given["root"] is None:
        raise Misused("--no-live requires --history")
    if given["catalog"] and given["root"] is None:
        raise Misused("--catalog requires --history iceberg:NAMESPACE.TABLE")
    if given["follow"] and given["limit"] is not None:
        raise Misused("--follow and --limit cannot be combined: end it with Ctrl-C")
    if not query and not sys.stdin.isatty():
        query = sys.stdin.read()
    from pulsarbox.cli.sql.query_session import execute

    execute(service, admin, query, given)
