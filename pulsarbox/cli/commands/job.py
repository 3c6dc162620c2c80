"""``pulsarbox job``: what the box was asked to do with dead letters, and how far it is."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed, Interrupted, Partly
from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.output import Found, Output, output_options, show
from pulsarbox.cli.common.terminal_text import clean, say
from pulsarbox.cli.connect.admin_client import short, with_admin

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

COLUMNS: Final = ["id", "kind", "state", "dryRun", "topic", "total", "done", "skipped", "failed", "returned", "error"]
_EVERY_SECONDS: Final = 0.3


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def job() -> None:
    """Jobs: dead letters that the box puts back, or drops. `pulsarbox dlq replay` and `dlq drop` begin them.

    A job belongs to the box: it goes on when the command that began it has ended, and over restarts.

    \b
    Examples:
      pulsarbox job list
      pulsarbox job pause 17
    """


def row_of(told: dict[str, Any]) -> dict[str, Any]:
    """A job as a row of a table: the fields of the API, names of topics as people write them."""
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
def list_jobs(output: Output, admin: "Admin") -> None:
    """List the jobs of the box, the newest first: those that have not ended, and the last 100 that have.

    Fields: id, kind (dlq-replay, dlq-drop), state (running, paused, done, cancelled, failed, tripped), topic,
    subscription, target, filter, edit, rate (messages a second, 0: unlimited), dryRun, maxReturned, maxReturnedShare,
    skipRefused, total (messages when it began), seen, done, skipped (by the filter), failed (refused, and kept),
    returned (dead letters again), reasons, targets, returnedIn (by topic), started, ended (ms since 1970), by, error.
    Of a box only.

    \b
    Examples:
      pulsarbox job list
      pulsarbox job list --filter 'state == "running"' --watch
      pulsarbox job list -o ndjson
    """
    show(output, lambda: Found([row_of(each) for each in admin.jobs()], COLUMNS, name="id"))


@job.command("show")
@click.argument("number", metavar="ID", type=click.IntRange(1))
@output_options
@with_admin
def show_job(number: int, output: Output, admin: "Admin") -> None:
    """Show one job: what was asked for, how far it is, where messages went, and why others did not.

    \b
    Exit codes:
      3  there is no such job

    \b
    Examples:
      pulsarbox job show 17
      pulsarbox job show 17 -o json
      pulsarbox job show 17 --watch
    """
    show(output, partial(found_of, admin, number))


def found_of(admin: "Admin", number: int) -> Found:
    """One job, as it is shown."""
    row = row_of(admin.job(number))
    return Found([row], COLUMNS, name="id", lines=lines_of(row))


def lines_of(row: dict[str, Any]) -> list[str]:
    """A job in words."""
    what = "put back" if row["kind"] == "dlq-replay" else "dropped"
    if row["dryRun"]:
        what = f"would be {what}"
    lines = [
        f"job {row['id']}: {row['kind']} of {clean(row['topic'])}, {row['state']}",
        f"  {row['seen']:,} of {row['total']:,} messages seen: {row['done']:,} {what}, {row['skipped']:,} left out,"
        f" {row['failed']:,} refused and kept, {row['returned']:,} dead letters again",
    ]
    lines += [f"  to {clean(name)}: {count:,}" for name, count in row["targets"].items()]
    lines += [f"  back in {clean(name)}: {count:,}" for name, count in row["returnedIn"].items()]
    lines += [f"  refused, {count:,}: {clean(name)}" for name, count in row["reasons"].items()]
    return [*lines, f"  {clean(row['error'])}"] if row["error"] else lines


def _changing(action: str, doc: str) -> Callable[..., Any]:
    def change(number: int, admin: "Admin") -> None:
        click.echo(lines_of(row_of(admin.change_job(number, action)))[0])

    change.__doc__ = doc
    command = click.argument("number", metavar="ID", type=click.IntRange(1))(with_admin(change))
    return job.command(action)(command)


pause = _changing(
    "pause",
    """Let a job rest until it is resumed, over restarts too. Its subscription is free meanwhile.

    \b
    Exit codes:
      3  there is no such job
      4  it is not running

    \b
    Examples:
      pulsarbox job pause 17
    """,
)
resume = _changing(
    "resume",
    """Go on with a job that is paused, or that has tripped: what came back so far does not count any more.

    \b
    Exit codes:
      3  there is no such job
      4  it is not paused, or its subscription has consumers

    \b
    Examples:
      pulsarbox job resume 17
    """,
)
cancel = _changing(
    "cancel",
    """Stop a job for good. What it has done stays done; what it has not stays where it is.

    \b
    Exit codes:
      3  there is no such job
      4  it has ended

    \b
    Examples:
      pulsarbox job cancel 17
    """,
)


def wait_for(admin: "Admin", number: int) -> dict[str, Any]:
    """The row of a job once it rests or has ended; how far it is goes to stderr. Raises Interrupted: it goes on."""
    said = ""
    try:
        while True:
            row = row_of(admin.job(number))
            now = row["error"] or f"{row['seen']:,} of {row['total']:,} messages, {row['done']:,} done"
            if row["state"] != "running":
                return row
            if now != said:
                say(f"job {number}: {clean(now)}")
                said = now
            time.sleep(_EVERY_SECONDS)
    except KeyboardInterrupt:
        raise Interrupted(
            f"job {number} goes on in the box: `pulsarbox job show {number}`, `pulsarbox job cancel {number}`"
        ) from None


def check_ended(row: dict[str, Any]) -> None:
    """Raises the ending of a command whose job did not do all that it was to do."""
    if row["state"] != "done":
        raise Failed(f"job {row['id']} is {row['state']}" + (f": {clean(row['error'])}" if row["error"] else ""))
    if row["failed"]:
        raise Partly(f"{row['failed']:,} messages were refused, and are kept")
