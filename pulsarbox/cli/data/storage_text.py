"""Statistics and findings of a data directory as text."""

import sys
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pulsarbox.cli.common.terminal_text import clean, counted, megabytes

_WIDTH_OF_A_FILE = 200
_STYLES = {"damage": "bold red", "warning": "yellow"}


def show_statistics(document: dict[str, Any]) -> None:
    """Print the statistics of ``pulsarbox storage stat``."""
    console = _console()
    console.print(_facts(document))
    console.print()
    console.print(_volumes(document["volumes"]))
    for volume in document["volumes"]:
        if volume["unreadable"]:
            console.print(Text(clean(f"cannot read {volume['name']}: {volume['unreadable']}"), style="bold red"))
    if document["topics"]:
        console.print()
        console.print(_topics(document["topics"]))


def show_directories(document: dict[str, Any]) -> None:
    """Print the statistics of several data directories, one per line, and of all together."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("directory", overflow="fold")
    for name in ("log ends at", "entries", "live bytes", "on disk", "free"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in document["directories"]:
        totals, disk = each["totals"], each["disk"]
        row = (each["directory"], f"{each['last_position']:,}", f"{totals['entries']:,}")
        sizes = (totals["bytes"], disk["used"], disk["free"])
        table.add_row(*(Text(clean(cell)) for cell in (*row, *map(megabytes, sizes))))
    console, total = _console(), document["total"]
    console.print(table)
    for each in document["unreadable"]:
        console.print(Text(clean(f"{each['directory']}: {each['reason']}"), style="bold red"), soft_wrap=True)
    average = total["stored_entries"] / total["entries"] if total["entries"] else 0.0
    console.print(
        f"\ntotal   {total['entries']:,} entries, {megabytes(total['bytes'])}; {average:.2f} copies of each on average:"
        f" {megabytes(total['stored_bytes'])}, {megabytes(total['disk_used'])} on disk",
        soft_wrap=True,
    )
    copies = ", ".join(f"{entries:,} entries have {count}" for count, entries in total["copies"].items())
    console.print(f"copies  {copies or 'no entries'}", soft_wrap=True)


def show_findings_of_several(document: dict[str, Any]) -> None:
    """Print the findings of several data directories, each after its directory, and the summary of all."""
    console = _console()
    for each in document["directories"]:
        console.print(Text(clean(each["directory"]), style="bold"), soft_wrap=True)
        show_findings(each)
    for name in document["missing"]:
        console.print(Text(clean(f"{name}: not in use, or cannot be read"), style="yellow"), soft_wrap=True)
    console.print(Text("all directories", style="bold"))
    show_findings(document)


def show_findings(document: dict[str, Any]) -> None:
    """Print the findings of ``pulsarbox storage check``, one per line, and the summary."""
    console = _console()
    for finding in document["findings"]:
        line = Text(finding["severity"].upper(), style=_STYLES[finding["severity"]])
        where = finding["where"] + (f" ({finding['topic']})" if "topic" in finding else "")
        line.append(clean(f" {where}: {finding['what']}. What to do: {finding['advice']}"), style="default")
        console.print(line, soft_wrap=True)
    summary = document["summary"]
    verdict = f"{summary['damage']} damaged" if summary["damage"] else "no damage"
    console.print(
        Text(
            f"{verdict}, {counted(summary['warnings'], 'warning')}:"
            f" {counted(summary['environments'], 'environment')}, {counted(summary['batches'], 'batch', 'batches')},"
            f" {counted(summary['entries'], 'entry', 'entries')}, {counted(summary['ledgers'], 'ledger')}"
        ),
        soft_wrap=True,
    )


def _console() -> Console:
    # A file or a pipe has no width, and truncated text would be lost there.
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE)


def _facts(document: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    totals, disk, lag = document["totals"], document["disk"], document["lag"]
    created = datetime.fromtimestamp(document["created"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    live = f"live, held by process {document['pid'] or 'unknown'}" if document["live"] else "dead, no process holds it"
    rows = {
        "directory": document["directory"],
        "instance": f"{document['instance']}, format {document['format']}, created {created}",
        "state": live,
        "log": f"ends at batch {document['last_position']}, the checkpoint covers {document['checkpoint']}",
        "lag": f"{counted(lag['batches'], 'batch', 'batches')}, {megabytes(lag['bytes'])} to replay at startup",
        "topics": f"{totals['topics']:,}, and {totals['partitioned_topics']:,} partitioned ones of"
        f" {counted(totals['partitions'], 'partition')}; {counted(totals['subscriptions'], 'subscription')}",
        "stored": f"{counted(totals['entries'], 'entry', 'entries')}, {megabytes(totals['bytes'])} in"
        f" {counted(totals['ledgers'], 'ledger')}; {counted(totals['rows'], 'row')} in the checkpoint,"
        f" {totals['damaged_rows']:,} of them damaged",
        "transactions": f"{totals['open_transactions']:,} open; {totals['aborted_entries']:,} aborted entries;"
        f" {counted(totals['sinks'], 'sink')} with epochs",
        "packages": f"{totals['packages']:,}, {megabytes(totals['package_bytes'])}",
        "disk": f"{megabytes(disk['used'])} used (meta {megabytes(disk['meta'])}, volumes"
        f" {megabytes(disk['volumes'])}), {megabytes(disk['reserved'])} reserved, {megabytes(disk['free'])} free",
    }
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(clean(value)))
    return table


def _volumes(volumes: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("volume", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("positions", "on disk", "live entries", "live bytes", "live %", "ledgers"):
        table.add_column(name, justify="right", no_wrap=True)
    for volume in volumes:
        first, last = volume["first_position"], volume["last_position"]
        cells = (
            volume["name"],
            "unreadable" if volume["unreadable"] else volume["state"],
            f"{first}-{last}" if last else "none",
            megabytes(volume["disk_used"]),
            f"{volume['live_entries']:,}",
            megabytes(volume["live_bytes"]),
            f"{volume['live_percent']:.1f}",
            f"{volume['ledgers']:,}",
        )
        table.add_row(*(Text(clean(cell)) for cell in cells))
    return table


def _compressed(found: dict[str, Any]) -> str:
    if found["codec"] == "none":
        return f"{found['entries']:,} stored as received"
    dictionaries = len(found["dictionaries"])
    with_one = f", {dictionaries} dictionar{'y' if dictionaries == 1 else 'ies'}" if dictionaries else ""
    return f"{found['entries']:,} by {found['codec']}, {found['ratio']:.2f} times smaller{with_one}"


def _topics(topics: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("largest topics", overflow="fold")
    for name in ("ledgers", "entries", "bytes", "subscriptions", "compressed"):
        table.add_column(name, justify="right", no_wrap=True)
    for topic in topics:
        cells = (
            topic["name"],
            f"{topic['ledgers']:,}",
            f"{topic['entries']:,}",
            megabytes(topic["bytes"]),
            f"{topic['subscriptions']:,}",
            "; ".join(map(_compressed, topic["compressed"])),
        )
        table.add_row(*(Text(clean(cell)) for cell in cells))
    return table
