"""``pulsarbox topic compact``: start, watch and cancel compactions."""

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.confirmation import carry_out, dry_run_option
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.progress import LiveLine, bar
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.connect.admin_client import short, suggesting, topic_named, with_admin
from pulsarbox.names import TopicName

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_EVERY_SECONDS: Final = 0.3
_WORDS: Final = {"NOT_RUN": "not compacted", "SUCCESS": "compacted", "RUNNING": "running", "ERROR": "failed"}


@click.command()
@click.argument("name", metavar="TOPIC")
@click.option("--wait", is_flag=True, help="Wait for the end; show the progress on a terminal.")
@click.option("--status", is_flag=True, help="Show the status of the current or last compaction.")
@click.option("--cancel", is_flag=True, help="Cancel the running compaction; the compacted view is unchanged.")
@dry_run_option
@output_options
@with_admin
def compact(
    name: str, wait: bool, status: bool, cancel: bool, dry_run: bool, output: OutputOptions, admin: "Admin"
) -> None:
    """Compact TOPIC.

    Readers of the compacted view get the latest message of each key, followed by the messages published since. The
    topic itself is unchanged. For a partitioned topic, compacts each partition.

    Fields with --status: name, topic, status (not compacted, running, compacted, failed), phase, read, to_read, keys,
    written, error.

    \b
    Exit codes:
      1  with --wait: the compaction failed; the compacted view is unchanged
      4  already running, or nothing to cancel

    \b
    Examples:
      pulsarbox topic compact orders
      pulsarbox topic compact orders --wait
      pulsarbox topic compact orders --status -o json
      pulsarbox topic compact orders --cancel
    """
    if status + cancel + wait > 1:
        raise click.UsageError("--wait, --status and --cancel cannot be combined")
    found = topic_named(name)
    if status:
        show(output, partial(_status, admin, found))
        return
    parts = _parts(admin, found)
    if cancel:
        things = [("cancelled the compaction of", short(each), partial(_cancel, admin, each)) for each in parts]
        carry_out(things, dry_run=dry_run)
        return
    carry_out([("compacting", short(found), partial(_start, admin, found))], dry_run=dry_run)
    if wait and not dry_run:
        _wait(admin, parts)


def _parts(admin: "Admin", name: TopicName) -> list[TopicName]:
    with suggesting(admin, name):
        count = admin.partitions(name)
    return [name.partition(number) for number in range(count)] if count else [name]


def _start(admin: "Admin", name: TopicName) -> None:
    from pulsarbox.client.admin import path_of

    with suggesting(admin, name):
        admin.ask("PUT", f"{path_of(name)}/compaction")


def _cancel(admin: "Admin", name: TopicName) -> None:
    with suggesting(admin, name):
        admin.cancel_compaction(name)


def _asked(admin: "Admin", name: TopicName) -> dict[str, Any]:
    from pulsarbox.client.admin import path_of

    with suggesting(admin, name):
        found: dict[str, Any] = admin.ask("GET", f"{path_of(name)}/compaction")
    return found


def _status(admin: "Admin", name: TopicName) -> TableOutput:
    rows = []
    for each in _parts(admin, name):
        found = _asked(admin, each)
        progress = found.get("progress", {})
        rows.append(
            {
                "name": short(each),
                "topic": str(each),
                "status": _WORDS.get(found["status"], clean(str(found["status"]))),
                **{field: progress.get(field) for field in ("phase", "read", "to_read", "keys", "written")},
                "error": clean(found["lastError"]),
            }
        )
    columns = ["name", "status", "phase", "read", "to_read", "keys", "written", "error"]
    return TableOutput(
        rows,
        columns,
        name="topic",
        cut={"name": 16, "error": 16},
        least=("phase", "keys", "written"),
        fields=("topic", *columns),
    )


def _wait(admin: "Admin", parts: list[TopicName]) -> None:
    line = LiveLine()
    for each in parts:
        while (found := _asked(admin, each))["status"] == "RUNNING":
            line.draw(partial(_progress, short(each), found.get("progress", {})))
            time.sleep(_EVERY_SECONDS)
        line.clear()
        if found["status"] == "ERROR":
            raise click.ClickException(f"{short(each)} is not compacted: {clean(found['lastError'])}")
        notify(f"{short(each)}: compacted")


def _progress(name: str, progress: dict[str, Any]) -> str:
    return f"compacting {name} {_in_words(progress)}"


def _in_words(progress: dict[str, Any]) -> str:
    if progress.get("phase") == "reading":
        share = progress["read"] / max(progress["to_read"], 1)
        return f"{bar(share)} {progress['read']:,} of {progress['to_read']:,} entries read"
    if progress.get("phase") == "writing":
        return f"{progress['keys']:,} keys, {progress['written']:,} entries written"
    return "waiting for another compaction"
