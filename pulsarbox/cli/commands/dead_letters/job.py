"""``pulsarbox job``: list, pause, resume and cancel dead letter jobs."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed, Interrupted, Partly
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.progress import ProgressBar, messages
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import short, with_admin

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

COLUMNS: Final = ["id", "kind", "state", "dryRun", "topic", "total", "done", "skipped", "failed", "returned", "error"]
_EVERY_SECONDS: Final = 0.3


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def job() -> None:
    """List, pause, resume and cancel dead letter jobs.

    `pulsarbox dlq replay` and `pulsarbox dlq drop` start them. A job runs in the box, independently of the command
    that started it, and continues after a restart.

    \b
    Examples:
      pulsarbox job list
      pulsarbox job pause 17
    """


def row_of(told: dict[str, Any]) -> dict[str, Any]:
    """Return a job as a row: the fields of the API, with short topic names."""
    target = told["target"]
    targets = {short(name): count for name, count in told["targets"].items()}
    return told | {
        "topic": short(told["topic"]),
        "target": None if target is None else short(target),
        "targets": targets,
        "returnedIn": {short(name): count for name, count in (told.get("returnedIn") or {}).items()},
    }


@job.command("list")
@output_options
@with_admin
def list_jobs(output: OutputOptions, admin: "Admin") -> None:
    """List the jobs of the box, newest first: unfinished ones and the last 100 finished.

    Fields: id, kind (dlq-replay, dlq-drop), state (running, paused, done, cancelled, failed, tripped), topic,
    subscription, target, filter, edit, rate (messages per second, 0: unlimited), dryRun, maxReturned,
    maxReturnedShare, skipRefused, total (messages at its start), seen, done, skipped (by the filter), failed (rejected
    and kept), returned (failed again), reasons, targets, returnedIn (by topic), started, ended (ms since 1970), by,
    error.
    Not supported against Apache Pulsar.

    \b
    Examples:
      pulsarbox job list
      pulsarbox job list --filter 'state == "running"' --watch
      pulsarbox job list -o ndjson
    """
    show(output, partial(_listed, admin))


def _listed(admin: "Admin") -> TableOutput:
    return TableOutput(
        [row_of(each) for each in admin.jobs()],
        COLUMNS,
        name="id",
        shown=readable(times=("started", "ended")),
        cut=_CUT,
        least=_LEAST,
        wide=("target", "subscription", "filter", "rate", "by", "started", "ended"),
        fields=_FIELDS,
        empty="no jobs; replay dead letters: pulsarbox dlq replay TOPIC --dry-run",
    )


_CUT: Final = {"topic": 14, "error": 16, "kind": 8}
_LEAST: Final = ("dryRun", "skipped", "kind", "total", "done")
_FIELDS: Final = (
    *("id", "kind", "state", "topic", "subscription", "target", "filter", "edit", "rate", "dryRun", "maxReturned"),
    *("maxReturnedShare", "skipRefused", "total", "seen", "done", "skipped", "failed", "returned", "reasons"),
    *("targets", "returnedIn", "started", "ended", "by", "error"),
)


@job.command("show")
@click.argument("number", metavar="ID", type=BoundedInteger(1))
@output_options
@with_admin
def show_job(number: int, output: OutputOptions, admin: "Admin") -> None:
    """Show one job: its parameters, progress, targets and rejections.

    \b
    Exit codes:
      3  the job does not exist

    \b
    Examples:
      pulsarbox job show 17
      pulsarbox job show 17 -o json
      pulsarbox job show 17 --watch
    """
    show(output, partial(found_of, admin, number))


def found_of(admin: "Admin", number: int) -> TableOutput:
    """Return one job for output."""
    row = row_of(admin.job(number))
    return TableOutput([row], COLUMNS, name="id", lines=lines_of(row))


def lines_of(row: dict[str, Any]) -> list[str]:
    """Describe a job in text lines."""
    what = "replayed" if row["kind"] == "dlq-replay" else "dropped"
    if row["dryRun"]:
        what = f"would be {what}"
    lines = [
        f"job {row['id']}: {row['kind']} of {clean(row['topic'])}, {row['state']}",
        f"  {row['seen']:,} of {messages(row['total'])} read: {row['done']:,} {what}, {row['skipped']:,} skipped,"
        f" {row['failed']:,} rejected and kept, {row['returned']:,} failed again",
    ]
    lines += [f"  to {clean(name)}: {count:,}" for name, count in row["targets"].items()]
    lines += [f"  failed again in {clean(name)}: {count:,}" for name, count in row["returnedIn"].items()]
    lines += [f"  rejected, {count:,}: {clean(name)}" for name, count in row["reasons"].items()]
    return [*lines, f"  {clean(row['error'])}"] if row["error"] else lines


def _changing(action: str, doc: str) -> Callable[..., Any]:
    def change(number: int, admin: "Admin") -> None:
        click.echo(lines_of(row_of(admin.change_job(number, action)))[0])

    change.__doc__ = doc
    command = click.argument("number", metavar="ID", type=BoundedInteger(1))(with_admin(change))
    return job.command(action)(command)


pause = _changing(
    "pause",
    """Pause a job until it is resumed, even across restarts. Releases its subscription.

    \b
    Exit codes:
      3  the job does not exist
      4  the job is not running

    \b
    Examples:
      pulsarbox job pause 17
    """,
)
resume = _changing(
    "resume",
    """Resume a paused or tripped job. Resets its count of messages that failed again.

    \b
    Exit codes:
      3  the job does not exist
      4  the job is not paused, or its subscription has consumers

    \b
    Examples:
      pulsarbox job resume 17
    """,
)
cancel = _changing(
    "cancel",
    """Cancel a job permanently. Processed messages stay processed; the others stay in the dead letter topic.

    \b
    Exit codes:
      3  the job does not exist
      4  the job has ended

    \b
    Examples:
      pulsarbox job cancel 17
    """,
)


def wait_for(admin: "Admin", number: int) -> dict[str, Any]:
    """Wait until a job is no longer running, with a progress bar, and return its row.

    Raises Interrupted on Ctrl-C; the job continues.
    """
    progress = ProgressBar(f"job {number}")
    try:
        while True:
            row = row_of(admin.job(number))
            if row["state"] != "running":
                return row
            progress.update(row["seen"], row["total"], row["error"] or f"{row['done']:,} done")
            time.sleep(_EVERY_SECONDS)
    except KeyboardInterrupt:
        raise Interrupted(
            f"job {number} continues in the box: `pulsarbox job show {number}`, `pulsarbox job cancel {number}`"
        ) from None
    finally:
        progress.clear()


def check_ended(row: dict[str, Any]) -> None:
    """Raise Failed if the job is not done, Partly if it rejected messages."""
    if row["state"] != "done":
        raise Failed(f"job {row['id']} is {row['state']}" + (f": {clean(row['error'])}" if row["error"] else ""))
    if row["failed"]:
        raise Partly(f"{messages(row['failed'])} rejected and kept")
