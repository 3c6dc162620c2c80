"""``pulsarbox events``: what has happened in a box, and what happens now."""

import json
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Interrupted, abandon_stdout
from pulsarbox.cli.common.scope_options import scope_options
from pulsarbox.cli.common.terminal_text import clean, coloured, say
from pulsarbox.cli.common.time_arguments import moment
from pulsarbox.cli.connect.admin_client import with_admin

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

PAGE: Final = 1000
AGAIN_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 60.0
"""How long a box that is followed may be away."""
_COLOURS: Final = {"warning": "yellow", "error": "red"}


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("-n", "--count", type=click.IntRange(0), help="The newest so many; 20, all that --since asks for.")
@click.option("--since", metavar="TIME", help="Only from then on: -1h, 2026-11-21T10:00.")
@click.option(
    "--filter",
    "filter_text",
    metavar="EXPRESSION",
    help='Only events for which it holds: `severity != "info" and kind == "quota-hit"`, or /text.',
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(("table", "json", "ndjson")),
    default="table",
    show_default=True,
    help="A line each for the eye, or data: names of fields stay.",
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
    """Show what has happened in a box, oldest first: quotas, evictions, dead letters, clients, changes, faults.

    The box keeps the newest over restarts (eventsMaxMbytes). Of many alike, the first is an event and the others are a
    number ten seconds later. Fields: sequence, time (ms since 1970, by the clock of the box), severity (info, warning,
    error), kind, subject, text, count, fields. --follow goes on when the box is back after a restart. For superusers
    and viewerRoles; admins of a tenant say --tenant, and see what is about topics there.

    \b
    Exit codes:
      0    they were shown
      2    an option cannot be used
      5    who asks may not see them
      6    the box cannot be reached, with --follow for a minute
      130  Ctrl-C

    \b
    Examples:
      pulsarbox events
      pulsarbox events --since -12h --filter 'severity != "info"'
      pulsarbox events --follow --filter '/orders' -o ndjson
      pulsarbox events --tenant shop --filter 'startswith(kind, "job-")'
    """
    if follow and output == "json":
        raise click.UsageError("-o json is one document, and --follow has no end: take -o ndjson")
    query = scope | {"limit": str(PAGE)}
    if filter_text:
        query["filter"] = filter_text
    if since:
        query["since"] = _since(since)
    try:
        at = _past(admin, query, count, bool(since), output)
        if follow:
            _follow(admin, query, at, output)
    except BrokenPipeError:  # `| head` has seen enough
        abandon_stdout()
    except KeyboardInterrupt:
        raise Interrupted("no longer followed" if follow else "interrupted") from None


def _since(text: str) -> str:
    """As the box reads it: what is relative counts by its clock, what is absolute is of this machine's zone."""
    try:
        at = moment(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    return text if text[:1] in ("-", "+") else str(at)


def _past(admin: "Admin", query: dict[str, str], count: int | None, all_: bool, output: str) -> int:
    """Show what was; the number behind which it goes on."""
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
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
    else:
        _print(rows, output)
    return at


def _follow(admin: "Admin", query: dict[str, str], at: int, output: str) -> None:
    from pulsarbox.cli.common.terminal import check_reader, rest
    from pulsarbox.client.errors import NoAnswer, NotConnected

    lost: float | None = None
    while True:
        try:
            while (page := admin.events(**query, after=str(at)))["events"] or int(page["next"]) > at:
                _print(page["events"], output)  # what happened before it was connected, or while it was not
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
            say("the box does not answer any more: trying again")
            lost = time.monotonic()
        rest(AGAIN_SECONDS)


def _print(rows: list[dict[str, Any]], output: str) -> None:
    for row in rows:
        click.echo(_line(row) if output == "table" else json.dumps(row, separators=(",", ":")))
    sys.stdout.flush()


def _line(row: dict[str, Any]) -> str:
    when = datetime.fromtimestamp(row["time"] / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    severity = str(row["severity"])
    shown = (
        coloured(f"{clean(severity):<7}", fg=_COLOURS[severity]) if severity in _COLOURS else f"{clean(severity):<7}"
    )
    words = [when, shown, f"{clean(str(row['kind'])):<19}", clean(str(row["subject"])), clean(str(row["text"]))]
    return "  ".join(word for word in words if word).rstrip()
