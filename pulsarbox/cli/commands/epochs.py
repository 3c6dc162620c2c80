"""``pulsarbox epochs``: sinks that commit by epoch, such as Spark queries."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.stats_text import document_lines
from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.cli.connect.admin_client import with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_HOME: Final = "public/default/"


def sink_named(text: str) -> str:
    """Return the full name ``tenant/namespace/sink``; public/default is the default. Raises Misused."""
    name = text if "/" in text else _HOME + text
    if name.count("/") < 2 or not all(name.split("/", 2)):
        raise Misused(f"invalid sink {text!r}; expected NAME or tenant/namespace/NAME, as in `pulsarbox epochs list`")
    return name


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def epochs() -> None:
    """Show and forget sinks that commit by epoch, as Spark's exactly-once writes do.

    The sink of a Spark stream is named by its sinkId, or else by its query ID; that of a batch write with a jobId is
    job-JOBID. Not supported against Apache Pulsar.

    \b
    Examples:
      pulsarbox epochs list
      pulsarbox epochs show job-nightly
      pulsarbox epochs forget job-nightly --yes
    """


@epochs.command("list")
@click.argument("namespace", metavar="[NAMESPACE]", required=False, shell_complete=completions.namespaces)
@output_options
@with_admin
def list_sinks(namespace: str | None, output: OutputOptions, admin: "Admin") -> None:
    """List the sinks of NAMESPACE that have committed an epoch, by default of all namespaces.

    Fields: sink (tenant/namespace/name), epoch (last published), seconds (since then), committed (ms since 1970),
    writer (ID of the query or job that may write), run (ID of its current run).

    \b
    Examples:
      pulsarbox epochs list
      pulsarbox epochs list acme/prod -o name
      pulsarbox epochs list -o json
    """
    show(output, partial(_listed, admin, namespace))


def _listed(admin: "Admin", namespace: str | None) -> TableOutput:
    rows = [_row(each) for name in _namespaces(admin, namespace) for each in admin.sinks(name)]
    return TableOutput(
        rows,
        ["sink", "epoch", "seconds", "writer"],
        name="sink",
        shown=readable(times=("committed",)),
        cut={"sink": 20, "writer": 12},
        wide=("run", "committed"),
        fields=("sink", "epoch", "seconds", "committed", "writer", "run"),
        empty="no sink has committed an epoch",
    )


def _namespaces(admin: "Admin", namespace: str | None) -> Iterator[str]:
    if namespace is not None:
        yield namespace
        return
    for tenant in sorted(admin.tenants()):
        yield from sorted(admin.namespaces(tenant))


def _row(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "sink": told["sink"],
        "epoch": told["epoch"],
        "seconds": max(wall_now() - told["committedAt"], 0) // 1000,
        "committed": told["committedAt"],
        "writer": told.get("writer"),
        "run": told.get("run"),
    }


@epochs.command("show")
@click.argument("sink", metavar="SINK", shell_complete=completions.sinks)
@output_options
@with_admin
def show_sink(sink: str, output: OutputOptions, admin: "Admin") -> None:
    """Show one sink. Fields as in `epochs list`.

    \b
    Exit codes:
      3  the sink does not exist, or has committed nothing

    \b
    Examples:
      pulsarbox epochs show job-nightly
      pulsarbox epochs show acme/prod/sales -o json
    """
    show(output, partial(_one, admin, sink_named(sink)))


def _one(admin: "Admin", sink: str) -> TableOutput:
    told = admin.last_epoch(sink)
    if told is None:
        raise NotThere(f"sink {sink} has no committed epoch; `pulsarbox epochs list` lists the sinks")
    row = _row(told)
    return TableOutput([row], name="sink", lines=document_lines(row))


@epochs.command()
@click.argument("sinks", metavar="SINK...", nargs=-1, required=True, shell_complete=completions.sinks)
@yes_option
@dry_run_option
@with_admin
def forget(sinks: tuple[str, ...], yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Forget the writers and published epochs of sinks. Published messages are unaffected.

    A query that continues with a forgotten sink starts it anew: epochs that it had published but not yet recorded in
    its checkpoint are published again. A job of the same name runs again. Prompts for the name on a terminal;
    otherwise requires --yes.

    \b
    Exit codes:
      2  a name is invalid, or no terminal to confirm on and no --yes
      3  the sink has committed nothing
      4  not confirmed, or an epoch is being committed
      8  some sinks were forgotten, others not

    \b
    Examples:
      pulsarbox epochs forget job-nightly
      pulsarbox epochs forget acme/prod/sales acme/prod/returns --yes
    """
    names = [sink_named(each) for each in sinks]
    what = f"forget sink {names[0]}" if len(names) == 1 else f"forget {len(names)} sinks"
    confirm(what, names, yes=yes, dry_run=dry_run)
    carry_out([("forgotten sink", name, partial(_forget, admin, name)) for name in names], dry_run=dry_run)


def _forget(admin: "Admin", sink: str) -> None:
    told = admin.last_epoch(sink)
    admin.forget_sink(sink)  # always: the sink may have an uncommitted epoch
    if told is None:
        raise NotThere(f"sink {sink} had no committed epoch; an epoch that it had begun is forgotten")
