"""``pulsarbox epochs``: sinks that commit by epoch, such as queries of Spark, and how far they are."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.stats_text import document_lines
from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.output import Found, Output, output_options, show
from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.cli.connect.admin_client import with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_HOME: Final = "public/default/"


def sink_named(text: str) -> str:
    """``tenant/namespace/sink``; a name alone is in public/default. Raises Misused."""
    name = text if "/" in text else _HOME + text
    if name.count("/") < 2 or not all(name.split("/", 2)):
        raise Misused(f"{text!r} is no sink: write its name, or tenant/namespace/name, as `pulsarbox epochs list` does")
    return name


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def epochs() -> None:
    """Look at the sinks that commit by epoch, as Spark writes exactly once, and forget them. Of a box only.

    A stream of Spark is a sink with the name of its sinkId, or else its query's id; a batch write with a jobId is
    job-JOBID.

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
def list_sinks(namespace: str | None, output: Output, admin: "Admin") -> None:
    """List the sinks of NAMESPACE that have committed an epoch, of all namespaces without one.

    Fields: sink (tenant/namespace/name), epoch (the last that is published), seconds (since then), committed (when, in
    ms since 1970), writer (who may write: the id of a query, or the job), run (the start of it that writes).

    \b
    Examples:
      pulsarbox epochs list
      pulsarbox epochs list acme/prod -o name
      pulsarbox epochs list -o json
    """
    show(output, partial(_listed, admin, namespace))


def _listed(admin: "Admin", namespace: str | None) -> Found:
    rows = [_row(each) for name in _namespaces(admin, namespace) for each in admin.sinks(name)]
    return Found(rows, ["sink", "epoch", "seconds", "writer"], name="sink")


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
def show_sink(sink: str, output: Output, admin: "Admin") -> None:
    """Show one sink. Fields: those of `epochs list`.

    \b
    Exit codes:
      3  there is no such sink, or it has committed nothing

    \b
    Examples:
      pulsarbox epochs show job-nightly
      pulsarbox epochs show acme/prod/sales -o json
    """
    show(output, partial(_one, admin, sink_named(sink)))


def _one(admin: "Admin", sink: str) -> Found:
    told = admin.last_epoch(sink)
    if told is None:
        raise NotThere(f"sink {sink} has committed nothing: `pulsarbox epochs list` has those that did")
    row = _row(told)
    return Found([row], name="sink", lines=document_lines(row))


@epochs.command()
@click.argument("sinks", metavar="SINK...", nargs=-1, required=True, shell_complete=completions.sinks)
@yes_option
@dry_run_option
@with_admin
def forget(sinks: tuple[str, ...], yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Forget sinks: their writers, and which epochs are published. Nothing that is published is touched.

    A query that goes on with such a sink begins it anew, and what it had published but not noted in its checkpoint is
    published again; a job of that name is written again. On a terminal the name has to be typed in; elsewhere --yes is
    needed.

    \b
    Exit codes:
      2  a name cannot be one, or no terminal to confirm on and no --yes
      3  it had committed nothing
      4  not confirmed, or an epoch of it is being committed
      8  some could be forgotten, and some not

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
    admin.forget_sink(sink)  # in any case: it may have begun one
    if told is None:
        raise NotThere(f"sink {sink} had committed nothing; if somebody has begun an epoch of it, that is forgotten")
