"""``pulsarbox backup``: create, verify, list and remove backups of a data directory."""

import sys
from pathlib import Path
from typing import Final

import click

from pulsarbox.cli.common.exits import EXIT_FAILED, Misused, NotThere
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import OUTPUT, ago, clean, counted, megabytes, notify, print_document
from pulsarbox.cli.common.value_types import BoundedInteger, ByteRate
from pulsarbox.cli.data.backup_text import BackupProgress, document_of, ended, lower_priority, moment_of
from pulsarbox.cli.process.directory_options import CONFIG, DATA_DIR, box_directories

_DIRECTORY: Final = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
RATE: Final = click.option("--rate", type=ByteRate(), help="Maximum bytes per second, such as 20MB/s, or off.")


class BackupGroup(SuggestingGroup):
    """Group that runs ``create`` if its first argument is not a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["create", *args]
        return super().parse_args(ctx, args)


@click.group(cls=BackupGroup, context_settings={"ignore_unknown_options": False})
def backup() -> None:
    """Back up the data directory of a running or stopped box.

    `pulsarbox backup DIR` creates a backup in the directory DIR, which can hold any number of backups. Backups are
    incremental. `pulsarbox restore` turns a backup into a data directory.

    \b
    Exit codes:
      0  done
      1  failed, or verify found damage
      2  an option is invalid
      3  the data directory, the backup directory or the backup does not exist
      4  another backup is running in DIR, or DIR is not a backup directory

    \b
    Examples:
      pulsarbox backup /mnt/backups/box
      pulsarbox backup verify /mnt/backups/box
      pulsarbox backup list /mnt/backups/box
      pulsarbox restore /mnt/backups/box newdata
    """


@backup.command()
@_DIRECTORY
@CONFIG
@DATA_DIR
@RATE
@click.option("--copy", is_flag=True, help="Copy sealed volumes instead of creating hard links.")
@click.option("--full", is_flag=True, help="Store every file again, including those of earlier backups.")
@OUTPUT
def create(  # options
    directory: Path,
    config_file: Path | None,
    data_dir: str | None,
    rate: int | None,
    copy: bool,
    full: bool,
    output: str,
) -> None:
    """Create a backup in DIR. The word `create` is optional, and DIR is created if missing.

    The backup is a consistent snapshot of all topics, subscriptions, transactions and policies. The box keeps serving.
    Sealed volumes become hard links if DIR is on the same file system (--copy copies them), and files stored by an
    earlier backup in DIR are reused. Beside a running box, the default --rate is 16M.

    Of a box with several data directories, each entry is stored once, from a directory that has it intact. The backup
    is restored into one directory.

    An interrupted backup is marked incomplete, and the next backup resumes it.

    \b
    Examples:
      pulsarbox backup /mnt/backups/box
      pulsarbox backup /mnt/backups/box --data-dir mybox --rate 100M
      pulsarbox backup create ./verify
    """
    from pulsarbox.server.process.rlimit import raise_file_limit
    from pulsarbox.storage.backup.creation import Plan
    from pulsarbox.storage.backup.creation import create as make

    source, *others = _with_data_first(box_directories(config_file, data_dir))
    _check_source(source)
    raise_file_limit()  # one open file per volume
    lower_priority()
    progress = BackupProgress("backing up")
    made = ended(lambda: make(source, directory, Plan(rate, not copy, full), progress, others), progress)
    if made.manifest.lost:
        notify(f"{made.manifest.lost:,} entries are not in the backup: no data directory has an intact copy")
    document = {
        **document_of(made.manifest),
        "directory": str(directory.absolute()),
        "data": str(source.absolute()),
        "copiedBytes": made.copied,
        "linkedBytes": made.linked,
        "reusedBytes": made.reused,
        "directories": made.manifest.directories,
        "lostEntries": made.manifest.lost,
    }
    if output != "table":
        print_document(document, output)
        return
    took = (made.manifest.completed - made.manifest.begun) / 1000
    parts = f"{megabytes(made.copied)} copied, {megabytes(made.linked)} linked, {megabytes(made.reused)} reused"
    click.echo(f"backup    {made.manifest.name}, complete")
    click.echo(f"box       {made.manifest.box.instance}, up to batch {made.manifest.position}")
    if made.manifest.is_of_several:
        click.echo(f"read      {made.manifest.directories} data directories")
    click.echo(f"size      {megabytes(made.manifest.size)}: {parts}")
    click.echo(f"time      {took:.1f} s")


@backup.command()
@_DIRECTORY
@click.option("--backup", "names", metavar="NAME", multiple=True, help="Verify only this backup; repeatable.")
@RATE
@OUTPUT
def verify(directory: Path, names: tuple[str, ...], rate: int | None, output: str) -> None:
    """Verify the size and checksum of every file of the backups in DIR.

    Prints one line per finding. Exits with 1 if a file is damaged, or DIR has no complete backup.

    \b
    Examples:
      pulsarbox backup verify /mnt/backups/box
      pulsarbox backup verify /mnt/backups/box --backup 2026-12-01T11-28-14Z
      pulsarbox backup verify /mnt/backups/box -o json | jq .findings
    """
    from pulsarbox.storage.backup.pace import CopyPace
    from pulsarbox.storage.backup.repository import Repository
    from pulsarbox.storage.backup.verification import verify as examine

    progress = BackupProgress("verifying")
    report = ended(lambda: examine(Repository(directory), names, CopyPace(rate or 0, progress)), progress)
    for name in report.interrupted:
        notify(f"backup {name} is incomplete: it runs, or was interrupted; `pulsarbox backup {directory}` resumes it")
    if report.unreferenced:
        files = counted(report.unreferenced, "file")
        notify(f"{files} without a backup; `pulsarbox backup remove {directory}` removes them")
    if output != "table":
        findings = [finding._asdict() for finding in report.findings]
        print_document({**report._asdict(), "findings": findings}, output)
    else:
        for finding in report.findings:
            of = f" ({', '.join(finding.paths)})" if finding.paths else ""
            what = f"{finding.file} {finding.reason}{of}: backup {', '.join(finding.backups)}"
            click.echo(clean(f"DAMAGE {what}"))
        total = f"{counted(len(report.backups), 'backup')}, {counted(report.files, 'file')}, {megabytes(report.bytes)}"
        click.echo(f"{len(report.findings)} damaged: {total}")
    if report.findings:
        notify(f"`pulsarbox backup {directory} --full` makes a backup that uses none of the damaged files")
        sys.exit(EXIT_FAILED)
    if not report.backups:
        notify(f"{directory} has no complete backup")
        sys.exit(EXIT_FAILED)


@backup.command("list")
@_DIRECTORY
@form_option
def list_(directory: Path, output: OutputOptions) -> None:
    """List the backups in DIR, oldest first.

    Fields: name, state, completed (ms since 1970), position (last batch), bytes, instance, begun, files, codecs,
    version.

    \b
    Examples:
      pulsarbox backup list /mnt/backups/box
      pulsarbox backup list /mnt/backups/box -o name
      pulsarbox backup list /mnt/backups/box -o json | jq -r '.backups[].name'
    """
    from pulsarbox.storage.backup.listing import listed
    from pulsarbox.storage.backup.repository import Repository

    found = ended(lambda: listed(Repository(directory)))
    rows = [
        {"name": row.name, "state": row.state, **(document_of(row.manifest) if row.manifest else {})} for row in found
    ]
    show(
        output,
        lambda: TableOutput(
            rows,
            _COLUMNS,
            titles=_TITLES,
            document={"backups": rows},
            shown=_readable,
            cut={"instance": 8, "name": 16},
            least=("instance", "position"),
            wide=("begun", "files", "codecs", "version"),
            fields=_FIELDS,
            empty=f"no backups in {directory}; create one: pulsarbox backup create {directory}",
        ),
    )


_FIELDS: Final = (
    *("name", "state", "completed", "position", "bytes", "instance", "begun", "files", "codecs", "version"),
)


_COLUMNS: Final = ("name", "state", "completed", "position", "bytes", "instance")
_TITLES: Final = {"name": "BACKUP", "position": "BATCH", "bytes": "SIZE", "instance": "BOX"}


def _readable(row: Row) -> Row:
    if "completed" not in row:
        return row
    when = f"{moment_of(row['completed'])} ({ago(row['completed'])})"
    return row | {"completed": when, "begun": moment_of(row["begun"]), "bytes": megabytes(row["bytes"])}


@backup.command()
@_DIRECTORY
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--keep", metavar="N", type=BoundedInteger(1), help="Keep only the newest N complete backups.")
@OUTPUT
def remove(directory: Path, names: tuple[str, ...], keep: int | None, output: str) -> None:
    """Remove backups from DIR, and files that no other backup needs.

    Interrupted backups must be named. Without NAME and --keep, removes only files that belong to no backup.

    \b
    Examples:
      pulsarbox backup remove /mnt/backups/box 2026-12-01T11-28-14Z
      pulsarbox backup remove /mnt/backups/box --keep 7
    """
    from pulsarbox.storage.backup.repository import Repository

    if names and keep is not None:
        raise Misused("name the backups to remove, or say with --keep how many stay, not both")

    def work() -> tuple[list[str], int]:
        repository = Repository(directory)
        with repository.locked():
            chosen = list(names) if keep is None else repository.names()[:-keep]
            return chosen, repository.remove(chosen)

    removed, freed = ended(work)
    if output != "table":
        print_document({"removed": removed, "freedBytes": freed}, output)
        return
    for name in removed:
        click.echo(f"{name} removed")
    click.echo(f"{megabytes(freed)} freed")


def _with_data_first(paths: list[Path]) -> list[Path]:
    """Return data directories with one first that a box has used, if there is any: the others may be lost."""
    from pulsarbox.storage.format import INSTANCE

    return sorted(paths, key=lambda path: not (path / INSTANCE).exists())


def _check_source(source: Path) -> None:
    """Raise NotThere for a missing directory, which does not depend on the other boxes of this machine."""
    if source.exists():
        return
    from pulsarbox.server.process.memory_box_entry import entries

    if entries():
        raise NotThere(
            f"{source} does not exist: name the data directory of a box with --data-dir. A running box was started with"
            " --memory: it keeps nothing on disk, so it cannot be backed up"
        )
    raise NotThere(f"{source} does not exist: name the data directory of a box with --data-dir")
