"""``pulsarbox events``: show past events of a box, and follow new ones."""

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Interrupted, abandon_stdout
from pulsarbox.cli.common.output import FORMS, OutputOptions, Row, TableOutput, show
from pulsarbox.cli.common.scope_options import scope_options
from pulsarbox.cli.common.table_cells import local_time
from pulsarbox.cli.common.terminal_text import clean, coloured, notify
from pulsarbox.cli.common.time_arguments import moment
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import short, with_admin

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

PAGE: Final = 1000
AGAIN_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 60.0
"""How long --follow waits for an unreachable box."""
_COLOURS: Final = {"warning": "yellow", "error": "red"}


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Keep printing new events until Ctrl-C.")
@click.option("-n", "--count", type=BoundedInteger(0), help="Number of newest events. [default: 20; all with --since]")
@click.option("--since", metavar="TIME", help="Start at this time: -1h, 2026-11-21T10:00.")
@click.option(
    "--filter",
    "filter_text",
    metavar="EXPRESSION",
    help='Show only matching events: `severity != "info" and kind == "quota-hit"`, or /text.',
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(FORMS),
    default="table",
    show_default=True,
    help="Output format. Field names are stable in all but table and wide. With --follow: table or ndjson.",
)
@scope_options
@with_admin
def events(
    admin: "Admin",
    scope: dict[str, str],
    follow: bool,
    count: int | None,
    since: str | None,
    filter_text: str | None,
    output: str,
) -> None:
    """Show the events of a box, oldest first: quotas, evictions, dead letters, clients, changes, faults.

    The box keeps the newest events across restarts, up to eventsMaxMbytes. Repeated events are summed up: the first
    is shown, and the others as one count ten seconds later. Fields: sequence, time (ms since 1970, by the clock of
    the box), severity (info, warning, error), kind, subject, text, count, fields. --follow survives a restart of the
    box. Requires a superuser or one of the viewerRoles. Tenant admins pass --tenant and see the events of its topics.

    \b
    Exit codes:
      0    success
      2    an option is invalid
      5    not authorized
      6    the box is unreachable; with --follow, for a minute
      130  Ctrl-C

    \b
    Examples:
      pulsarbox events
      pulsarbox events --since -12h --filter 'severity != "info"'
      pulsarbox events --follow --filter '/orders' -o ndjson
      pulsarbox events --tenant shop --filter 'startswith(kind, "job-")'
    """
    if follow and output not in ("table", "ndjson"):
        raise click.UsageError(f"-o {output} and --follow cannot be combined: use -o ndjson")
    query = scope | {"limit": str(PAGE)}
    if filter_text:
        query["filter"] = filter_text
    if since:
        query["since"] = _since(since)
    try:
        at = _past(admin, query, count, bool(since), output)
        if follow:
            _follow(admin, query, at, output)
    except BrokenPipeError:  # the reader, such as `| head`, is gone
        abandon_stdout()
    except KeyboardInterrupt:
        raise Interrupted("stopped following" if follow else "interrupted") from None


def _since(text: str) -> str:
    """Return the query value: a relative time unchanged, to count by the clock of the box; others in milliseconds."""
    try:
        at = moment(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    return text if text[:1] in ("-", "+") else str(at)


def _past(admin: "Admin", query: dict[str, str], count: int | None, all_: bool, output: str) -> int:
    """Print past events. Return the sequence number after which to follow."""
    rows: list[dict[str, Any]] = []
    wanted = count if count is not None else (None if all_ else 20)
    page = admin.events(**query | {"limit": str(min(PAGE, max(wanted or PAGE, 1)))})
    at = int(page["next"])
    while page["events"]:
        rows = page["events"] + rows
        if wanted is not None and len(rows) >= wanted:
            break
        page = admin.events(**query, before=str(rows[0]["sequence"]))
    if wanted is not None:
        rows = rows[max(len(rows) - wanted, 0) :]
    if output in ("table", "ndjson"):
        if output == "table":
            click.echo(_TITLE)
        _print(rows, output)
    else:
        found = TableOutput(
            rows, _COLUMNS, name="sequence", shown=_shown, wide=["fields"], fields=[*_COLUMNS, "fields"]
        )
        show(OutputOptions(output, None, None), lambda: found)
    return at


_COLUMNS: Final = ("sequence", "time", "severity", "kind", "subject", "text", "count")
_TITLE: Final = f"{'TIME':<19}  {'SEVERITY':<8}  {'KIND':<19}  SUBJECT  TEXT"


def _shown(row: Row) -> Row:
    return row | {
        "sequence": str(row["sequence"]), "time": local_time(row["time"]), "subject": short(str(row["subject"]))
    }  # fmt: skip


def _follow(admin: "Admin", query: dict[str, str], at: int, output: str) -> None:
    from pulsarbox.cli.common.terminal import check_reader, rest
    from pulsarbox.client.errors import NoAnswer, NotConnected

    lost: float | None = None
    while True:
        try:
            while (page := admin.events(**query, after=str(at)))["events"] or int(page["next"]) > at:
                _print(page["events"], output)  # events from before the connection
                at, lost = int(page["next"]), None
            for event in admin.follow_events(**query, after=str(at)):
                lost = None
                if event is not None:
                    _print([event], output)
                    at = event["sequence"]
                elif sys.stdout is not None:
                    check_reader(sys.stdout.fileno())
        except (NoAnswer, NotConnected):
            if lost is not None and time.monotonic() - lost > PATIENCE_SECONDS:
                raise
        if lost is None:
            notify("the box no longer responds: retrying")
            lost = time.monotonic()
        rest(AGAIN_SECONDS)


def _print(rows: list[dict[str, Any]], output: str) -> None:
    for row in rows:
        click.echo(_line(row) if output == "table" else json.dumps(row, separators=(",", ":")))
    sys.stdout.flush()


def _line(row: dict[str, Any]) -> str:
    severity = str(row["severity"])
    padded = f"{clean(severity):<8}"
    shown = coloured(padded, fg=_COLOURS[severity]) if severity in _COLOURS else padded
    subject = clean(short(str(row["subject"])))
    words = [local_time(row["time"]), shown, f"{clean(str(row['kind'])):<19}", subject, clean(str(row["text"]))]
    return "  ".join(word for word in words if word).rstrip()
