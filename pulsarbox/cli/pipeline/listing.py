"""``pulsarbox pipeline list`` and ``reset``: queries reported to the box, and queries with local state."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.confirmation import confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import InTheWay, NotThere, run
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.cli.connect.target import Target, admin_options
from pulsarbox.cli.pipeline.options import STATE
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.spark.pipelines.run_options import state_home

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.state import Known

_COLUMNS: Final = (
    "pipeline", "query", "state", "inputs", "output", "lag", "rowsPerSecond", "batch", "deadLetters", "lastError",
)  # fmt: skip
_FIELDS: Final = (
    *(*_COLUMNS, "rows", "lastBatchMs", "stages", "watermark", "stateRows", "stateBytes"),
    *("master", "host", "pid", "startedAt", "ui", "reportedAt", "by"),
)
_SECONDS: Final = 10.0


@click.command("list")
@STATE
@output_options
@admin_options
def list_pipelines(state: Path | None, output: OutputOptions, admin: Target) -> None:
    """List pipeline queries: those reported to the box, and those with local state.

    Fields: pipeline, query, state (starting, running, stopped, failed; gone: no longer reported), inputs, output, lag
    (unread messages), rows and deadLetters (since the start of its runner), rowsPerSecond, batch, lastBatchMs and
    stages (its parts, in ms), watermark (event time, ms since 1970), stateRows and stateBytes, lastError, master, host,
    pid, startedAt and reportedAt (ms since 1970), ui (Spark's web pages, with --ui), by (role that reports it). Queries
    unknown to the box come from --state.

    \b
    Examples:
      pulsarbox pipeline list
      pulsarbox pipeline list --filter 'state != "running"' -o json
      pulsarbox pipeline list --watch
    """
    show(output, partial(_listed, admin, state or state_home()))


def _listed(admin: Target, directory: Path) -> TableOutput:
    from pulsarbox.spark.pipelines.state import known

    rows = _told(admin)
    names = {(row["pipeline"], row["query"]) for row in rows}
    rows += [_row(each) for each in known(directory) if (each.pipeline, each.query) not in names]
    rows.sort(key=lambda row: (row["pipeline"], row["query"]))
    return TableOutput(
        [_shortened(row) for row in rows],
        _COLUMNS,
        name="query",
        shown=readable(sizes=("stateBytes",), times=("startedAt", "reportedAt")),
        cut={"pipeline": 10, "query": 10, "inputs": 10, "output": 10, "lastError": 16},
        least=("batch", "inputs", "output", "rowsPerSecond", "deadLetters"),
        wide=("rows", "lastBatchMs", "stateRows", "stateBytes", "host", "pid", "startedAt"),
        fields=_FIELDS,
        empty="no pipelines; write one: pulsarbox pipeline new FILE.py",
    )


def _told(admin: Target) -> list[dict[str, Any]]:
    """Return the queries reported to the box; none, with a message, if it cannot be asked."""
    from pulsarbox.client.admin import Admin, AdminRefused

    with Admin(admin.hosts, _SECONDS, secure=admin.secure, credentials=admin.credentials()) as client:
        try:
            return client.pipelines()
        except (NotConnected, NoAnswer) as error:
            notify(f"cannot query {admin.url} ({error}): listing only the pipelines that have run on this machine")
        except AdminRefused as error:
            if error.status != 404:
                raise
            notify(
                f"{admin.url} is not a box and records no pipelines: listing only those that have run on this machine"
            )
    return []


def _row(found: "Known") -> dict[str, Any]:
    about = found.about
    row = dict.fromkeys(_FIELDS) | {name: about[name] for name in _FIELDS if name in about}
    state = about.get("state") or "stopped"
    if found.pid is not None:
        state = "running"
    elif state in ("starting", "running"):
        state = "gone"  # the process ended without reporting its end
    inputs, output = about.get("inputs") or [], about.get("output") or ""
    return row | {"pipeline": found.pipeline, "query": found.query, "state": state, "inputs": inputs, "output": output}


def _shortened(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"inputs": [short(each) for each in row["inputs"]], "output": short(row["output"])}


@click.command()
@click.argument("name", metavar="PIPELINE")
@click.argument("query", metavar="[QUERY]", required=False)
@STATE
@yes_option
@dry_run_option
def reset(name: str, query: str | None, state: Path | None, yes: bool, dry_run: bool) -> None:
    """Reset a pipeline, or one QUERY of it: delete its checkpoint and state.

    The next run starts anew, as a new sink: it reads its input again, and publishes again to its output topics. Delete
    the files written by a query before its next run. Subscriptions are kept; use `pulsarbox sub delete` to remove them.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Exit codes:
      3  the pipeline or query does not exist
      4  the pipeline is running

    \b
    Examples:
      pulsarbox pipeline reset shop --dry-run
      pulsarbox pipeline reset shop totals --yes
    """
    run(_reset, name, query, state or state_home(), yes, dry_run)


def _reset(name: str, query: str | None, directory: Path, yes: bool, dry_run: bool) -> None:
    from pulsarbox.spark.pipelines.declaration import FILES
    from pulsarbox.spark.pipelines.state import reset as forget

    chosen = list(_chosen(name, query, directory))
    for each in chosen:
        if each.pid is not None:
            raise InTheWay(f"{name}/{each.query} is running (process {each.pid or 'unknown'}): stop it first")
    whole = f"{name}/{query}" if query else name
    queries = ", ".join(each.query for each in chosen)
    confirm(
        f"reset the progress of {whole} ({queries}); messages that it reads again are written again",
        [whole],
        yes=yes,
        dry_run=dry_run,
    )
    for each in chosen:
        if dry_run:
            click.echo(f"would have reset {clean(name)}/{clean(each.query)}")
            continue
        forget(directory, name, each.query)
        click.echo(f"reset {clean(name)}/{clean(each.query)}")
        output = str(each.about.get("output") or "")
        kind, _, place = output.partition(":")
        if kind in FILES:
            notify(f"delete {place} before the next run: it contains the output of the old checkpoint")


def _chosen(name: str, query: str | None, directory: Path) -> "Iterator[Known]":
    from pulsarbox.cli.connect.admin_client import did_you_mean
    from pulsarbox.spark.pipelines.state import known

    found = list(known(directory, name))
    if not found:
        names = {each.pipeline for each in known(directory)}
        raise NotThere(f"no pipeline '{name}' has run in {directory}{did_you_mean(name, sorted(names))}")
    if query is not None and query not in {each.query for each in found}:
        raise NotThere(f"no query '{query}' of {name}{did_you_mean(query, [each.query for each in found])}")
    yield from (each for each in found if query in (None, each.query))
