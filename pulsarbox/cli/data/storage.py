"""``pulsarbox storage``: look into a data directory, whether a box runs on it or not. Nothing is ever written there."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.plugins.options import PLUGINS_DIR, plugins_directory
from pulsarbox.errors import PersistenceError

EXIT_DAMAGED: Final = 1
EXIT_NOT_OPENED: Final = 2

KINDS: Final = ("entry", "mark_delete", "acked", "batch_acked", "meta", "redelivered", "sequence", "rows")

_T = TypeVar("_T")

DIRECTORY = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for the eye, or one JSON document with names that stay.",
)


@click.group(cls=Group)
def storage() -> None:
    """Look into a data directory, whether a box runs on it or not.

    Everything is opened read-only and nothing is written. A damaged file cannot end these commands: what maps it is
    a process of its own. Exit codes: 0, 1 where damage was found, 2 where DIR cannot be opened.

    \b
    Examples:
      pulsarbox storage stat data
      pulsarbox storage check data
    """


@storage.command()
@DIRECTORY
@OUTPUT
@click.option("--topics", type=click.IntRange(0), default=10, show_default=True, help="How many of the largest topics.")
def stat(directory: Path, output: str, topics: int) -> None:
    """Show what is stored, what of it is alive, and what it takes on the disk.

    The volumes that are not sealed yet are read through for it.

    \b
    Examples:
      pulsarbox storage stat data
      pulsarbox storage stat data --topics 50
      pulsarbox storage stat data -o json | jq .lag.batches
    """
    from pulsarbox.storage.inspection.statistics import statistics

    document = _opened(lambda: statistics(directory, topics))
    if output == "json":
        _json(document)
        return
    from pulsarbox.cli.data.storage_text import show_statistics

    show_statistics(document)


@storage.command()
@DIRECTORY
@OUTPUT
@click.option("--quick", is_flag=True, help="Leave out the checksums of the entries' bodies.")
@PLUGINS_DIR
def check(directory: Path, output: str, quick: bool, plugins_dir: Path | None) -> None:
    """Verify everything: pages, batches, entries, index, tables of volumes, ledgers, subscriptions.

    One line a finding. Damage is something that is lost or cannot be relied on, a warning is anything else. On a
    running box, what was committed when the check began is verified. Ends with exit code 1 where there is damage.

    \b
    Examples:
      pulsarbox storage check data
      pulsarbox storage check data --quick
      pulsarbox storage check data -o json | jq '.findings[] | select(.severity == "damage")'
    """
    from pulsarbox.storage.inspection.check import check as examine

    plugins = plugins_directory(plugins_dir)
    report = _opened(lambda: examine(directory, quick=quick, progress=_progress, plugins=plugins))
    if output == "json":
        _json(report.document())
    else:
        from pulsarbox.cli.data.storage_text import show_findings

        show_findings(report.document())
    if report.damaged:
        sys.exit(EXIT_DAMAGED)


@storage.command()
@DIRECTORY
@click.option("--topic", metavar="NAME", help="Of this topic only: its entries, and its cursors' records.")
@click.option("--ledger", metavar="ID", type=click.IntRange(0), help="Of this ledger only.")
@click.option("--entry", metavar="A-B", help="Entries A to B only, or the entry A.")
@click.option("--kind", type=click.Choice(KINDS), help="Records of this kind only; `rows` are the checkpoint's.")
@click.option("--volume", metavar="NAME", help="Of this volume only, as `stat` names it.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="So many records at most.")
@click.option("--body", is_flag=True, help="The bytes of entries as base64, and the payload where it is text.")
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
    """Print records as JSON, one a line.

    An entry whose bytes do not match its checksum has "damaged": true; with --body its bytes are shown as they are,
    which is the way to save them. What cannot be read at all is told on stderr, and stepped over.

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
    except BrokenPipeError:  # `| head` has seen enough
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


def _json(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=2))


def _progress(name: str) -> None:
    click.echo(f"pulsarbox: checking {clean(name)}", err=True)


def _complain(text: str) -> None:
    click.echo(f"pulsarbox: {clean(text)}", err=True)
