"""``pulsarbox storage``: inspect a data directory of a running or stopped box, read-only."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import click

from pulsarbox.cli.common.lazy_group import LazyCommand, LazyGroup
from pulsarbox.cli.common.progress import ProgressBar, sized
from pulsarbox.cli.common.terminal_text import OUTPUT, clean, print_document
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.plugins.options import PLUGINS_DIR, plugins_directory
from pulsarbox.cli.process.directory_options import CONFIG, DATA_DIR
from pulsarbox.errors import PersistenceError

if TYPE_CHECKING:
    from pulsarbox.storage.inspection.check import CheckReport

EXIT_DAMAGED: Final = 1
EXIT_NOT_OPENED: Final = 2

KINDS: Final = ("entry", "mark_delete", "acked", "batch_acked", "meta", "redelivered", "sequence", "rows")

_T = TypeVar("_T")

DIRECTORY = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
ANY_DIRECTORY = click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
_ENSEMBLE: Final = "pulsarbox.cli.data.ensemble"
_MORE: Final = {
    "members": LazyCommand(f"{_ENSEMBLE}:members", "List the data directories of a running box, with their states."),
    "under-replicated": LazyCommand(
        f"{_ENSEMBLE}:under_replicated", "List entries that have fewer copies than configured."
    ),
    "add": LazyCommand(f"{_ENSEMBLE}:add", "Add DIR to the data directories of a running box."),
    "remove": LazyCommand(
        f"{_ENSEMBLE}:remove", "Release DIR, after its entries were copied to the other directories."
    ),
    "replace": LazyCommand(
        f"{_ENSEMBLE}:replace", "Rebuild the entries of the data directory OLD in NEW, by default at the same path."
    ),
    "serve": LazyCommand(
        "pulsarbox.cli.data.replica:serve", "Serve DIR as a data directory of a box on another machine."
    ),
    "scrub": LazyCommand(
        f"{_ENSEMBLE}:scrub", "Verify the checksums of all entries now, of all data directories or those given."
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_MORE)
def storage() -> None:
    """Inspect a data directory of a running or stopped box; manage several data directories.

    stat, check and dump open files read-only. Without DIR, stat and check read all data directories of the box. A
    damaged file cannot crash these commands, because a separate process maps it. Exit codes: 0 for success, 1 for
    damage, 2 if DIR cannot be opened. The other commands query a running box (docs/ensembles.md).

    \b
    Examples:
      pulsarbox storage stat data
      pulsarbox storage check data
      pulsarbox storage members
    """


@storage.command()
@ANY_DIRECTORY
@CONFIG
@DATA_DIR
@OUTPUT
@click.option(
    "--topics", type=BoundedInteger(0), default=10, show_default=True, help="Number of largest topics to show."
)
def stat(directory: Path | None, config_file: Path | None, data_dir: str | None, output: str, topics: int) -> None:
    """Show statistics of stored and live data, and disk usage.

    Reads all unsealed volumes. Without DIR, shows the data directory of the box; of a box with several, one line for
    each, the size of the entries counted once, and how many entries have how many copies.

    \b
    Examples:
      pulsarbox storage stat data
      pulsarbox storage stat --config box.toml
      pulsarbox storage stat data --topics 50
      pulsarbox storage stat data -o json | jq .lag.batches
    """
    from pulsarbox.cli.data import several_directories
    from pulsarbox.storage.inspection.statistics import statistics

    found = _opened(lambda: several_directories.inspected(directory, config_file, data_dir))
    if found.are_several:
        document = _opened(lambda: several_directories.statistics_of(found, topics))
    else:
        document = _opened(lambda: statistics(found.paths[0], topics))
    if output != "table":
        print_document(document, output)
        return
    from pulsarbox.cli.data.storage_text import show_directories, show_statistics

    (show_directories if found.are_several else show_statistics)(document)


@storage.command()
@ANY_DIRECTORY
@CONFIG
@DATA_DIR
@OUTPUT
@click.option("--quick", is_flag=True, help="Skip the checksums of entry bodies.")
@PLUGINS_DIR
def check(  # options
    directory: Path | None,
    config_file: Path | None,
    data_dir: str | None,
    output: str,
    quick: bool,
    plugins_dir: Path | None,
) -> None:
    """Verify a data directory: pages, batches, entries, index, volume tables, ledgers, subscriptions.

    Prints one line per finding: damage if data is lost or unreliable, otherwise a warning. On a running box, verifies
    the data committed before the check began. Exits with 1 if there is damage. Without DIR, verifies the data directory
    of the box, or all of them; of a stopped box with several, also whether each entry is in one of them.

    \b
    Examples:
      pulsarbox storage check data
      pulsarbox storage check --config box.toml
      pulsarbox storage check data --quick
      pulsarbox storage check data -o json | jq '.findings[] | select(.severity == "damage")'
    """
    from pulsarbox.storage.inspection.check import check as examine

    plugins = plugins_directory(plugins_dir)

    line = ProgressBar("checking", sized)

    def examined(path: Path) -> "CheckReport":
        def progress(name: str, done: int, total: int) -> None:
            line.update(done, total, name)

        return examine(path, quick=quick, progress=progress, plugins=plugins)

    from pulsarbox.cli.data import several_directories

    found = _opened(lambda: several_directories.inspected(directory, config_file, data_dir))
    if found.are_several:
        document = _opened(lambda: several_directories.check_of(found, examined))
    else:
        document = _opened(lambda: examined(found.paths[0])).document()
    line.clear()
    if output != "table":
        print_document(document, output)
    else:
        from pulsarbox.cli.data.storage_text import show_findings, show_findings_of_several

        (show_findings_of_several if found.are_several else show_findings)(document)
    if document["summary"]["damage"]:
        sys.exit(EXIT_DAMAGED)


@storage.command()
@DIRECTORY
@click.option("--topic", metavar="NAME", help="Select the entries and cursor records of this topic.")
@click.option("--ledger", metavar="ID", type=BoundedInteger(0), help="Select this ledger.")
@click.option("--entry", metavar="A-B", help="Select entries A to B, or entry A.")
@click.option(
    "--kind", type=click.Choice(KINDS), help="Select records of this kind; `rows` are those of the checkpoint."
)
@click.option("--volume", metavar="NAME", help="Select this volume, by its name in `stat`.")
@click.option("--limit", metavar="N", type=BoundedInteger(1), help="Maximum number of records.")
@click.option("--body", is_flag=True, help="Include entry bytes in base64, and text payloads.")
@PLUGINS_DIR
def dump(  # noqa: PLR0913  # options
    directory: Path,
    topic: str | None,
    ledger: int | None,
    entry: str | None,
    kind: str | None,
    volume: str | None,
    limit: int | None,
    body: bool,
    plugins_dir: Path | None,
) -> None:
    """Print records as JSON, one per line.

    An entry with a wrong checksum has "damaged": true; use --body to salvage its bytes. Unreadable data is reported on
    stderr and skipped.

    \b
    Examples:
      pulsarbox storage dump data --topic persistent://public/default/orders --limit 5 --body
      pulsarbox storage dump data --ledger 12 --entry 100-200
      pulsarbox storage dump data --kind rows | jq -r .key
      pulsarbox storage dump data --kind entry | jq 'select(.damaged)'
    """
    from pulsarbox.storage.inspection.dump import records_of

    filters = {
        "topic": topic,
        "ledger": ledger,
        "entries": _entries(entry),
        "kind": "entry" if entry is not None and kind is None else kind,
        "volume": volume,
        "limit": limit,
        "body": body,
        "plugins": str(plugins_directory(plugins_dir) or ""),
    }

    def show() -> None:
        for document in records_of(directory, filters, _complain):
            sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()

    try:
        _opened(show)
    except BrokenPipeError:  # the reader, such as `| head`, is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _opened(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except PersistenceError as error:
        _complain(str(error))
        sys.exit(EXIT_NOT_OPENED)


def _entries(text: str | None) -> list[int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text, re.ASCII)
    if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
        raise click.BadParameter(f"{text!r} is not of the form A-B or A, as in 100-200", param_hint="--entry")
    return [int(match[1]), int(match[2] or match[1])]


def _complain(text: str) -> None:
    click.echo(f"pulsarbox: {clean(text)}", err=True)
