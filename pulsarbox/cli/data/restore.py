"""``pulsarbox restore``: turn a backup into a data directory."""

import os
from pathlib import Path

import click

from pulsarbox.cli.common.terminal_text import OUTPUT, megabytes, notify, print_document
from pulsarbox.cli.data.backup import RATE
from pulsarbox.cli.data.backup_text import BackupProgress, document_of, ended, moment_of


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("target", metavar="TARGET", type=click.Path(path_type=Path))
@click.option("--backup", "name", metavar="NAME", help="Backup to restore. [default: the newest complete one]")
@click.option("-f", "--force", is_flag=True, help="Replace the stopped box in TARGET.")
@click.option("--keep-id", is_flag=True, help="Keep the ID of the box. Use only if the original never runs again.")
@RATE
@OUTPUT
def restore(  # options
    directory: Path, target: Path, name: str | None, force: bool, keep_id: bool, rate: int | None, output: str
) -> None:
    """Restore a backup from the backup directory DIR into the data directory TARGET.

    TARGET is created if missing; replacing a box in it requires --force. Every file is verified while it is restored.
    On failure, TARGET is unchanged. A box does not start on a partially restored directory: run the command again.

    The restored box gets a new ID, because the original may still run or may have stored more data since.
    Configuration and key files are not part of a backup.

    A backup of several data directories becomes one directory, which the box can start with. Listed in dataDirectories
    together with empty directories, it copies the entries to them.

    \b
    Exit codes:
      0  restored
      1  failed, or the backup is damaged
      2  an option is invalid
      3  DIR or the backup does not exist
      4  TARGET is not empty, or is in use

    \b
    Examples:
      pulsarbox restore /mnt/backups/box newdata
      pulsarbox restore /mnt/backups/box data --force
      pulsarbox restore /mnt/backups/box data --backup 2026-12-01T11-28-14Z
    """
    from pulsarbox.storage.backup.pace import CopyPace
    from pulsarbox.storage.backup.repository import Repository
    from pulsarbox.storage.backup.restoring import restore as rebuild

    os.umask(0o077)
    progress = BackupProgress("restoring")
    pace = CopyPace(rate or 0, progress)
    done = ended(lambda: rebuild(Repository(directory), name, target, pace, force=force, keep_id=keep_id), progress)
    manifest = done.manifest
    if output != "table":
        document = {**document_of(manifest), "originalInstance": manifest.box.instance, "instance": done.instance}
        print_document({**document, "data": str(target.absolute())}, output)
        return
    click.echo(f"restored  backup {manifest.name} of {moment_of(manifest.completed)}")
    click.echo(f"data      {target.absolute()}, {megabytes(manifest.size)}, up to batch {manifest.position}")
    click.echo(f"box       {done.instance}" + ("" if keep_id else f", restored from {manifest.box.instance}"))
    if manifest.is_of_several:
        notify(
            "this directory has the entries of all data directories; to restore their copies, list it together with"
            " empty ones in dataDirectories"
        )
    if manifest.codecs:
        notify(
            f"compressed entries need these codecs: {', '.join(manifest.codecs)}; `pulsarbox plugins list` shows them"
        )
