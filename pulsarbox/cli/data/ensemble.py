"""``pulsarbox storage members`` and its siblings: the data directories of a running box."""

import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.confirmation import confirm, yes_option
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.common.value_types import Seconds
from pulsarbox.cli.connect.admin_client import with_admin
from pulsarbox.cli.data.ensemble_text import member_row
from pulsarbox.config.replica_address import is_replica

if TYPE_CHECKING:
    from pulsarbox.cli.data.ensemble_wait import Waiting
    from pulsarbox.client.admin import Admin

EXIT_FOUND: Final = 1

_MEMBERS: Final = ("directory", "state", "used", "free", "entries", "why")
_WIDTHS: Final = {"directory": 20, "why": 18}
_FIELDS: Final = (
    *("directory", "state", "why", "since", "used", "free", "bytesUsed", "bytesFree", "ledgers", "entries", "errors"),
    *("commitErrors", "readErrors", "damaged", "sharesDeviceWith", "scrub", "queue", "oldestWriteSeconds"),
)
_CUT: Final = {"have": 16, "topic": 16}
_FRAGMENTS: Final = ("ledger", "first", "last", "have", "want", "topic")
_USED: Final = frozenset({"active", "full", "leaving"})

_WAIT = click.option("--wait", is_flag=True, help="Wait until it is done; show the progress on stderr.")
_WAIT_TIMEOUT = click.option(
    "--wait-timeout",
    type=Seconds(),
    help="Fail if it is not done after this time, such as 30s; implies --wait. The box continues.",
)
FORCE = click.option(
    "-f", "--force", is_flag=True, help="Accept the loss of entries, and fewer copies than configured."
)


def waiting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --wait and --wait-timeout to a command, which gets ``wait`` as a Waiting."""

    @functools.wraps(command)
    def called(*args: Any, wait: bool, wait_timeout: float | None, **kwargs: Any) -> Any:
        from pulsarbox.cli.data.ensemble_wait import Waiting

        return command(*args, wait=Waiting(wait or wait_timeout is not None, wait_timeout), **kwargs)

    return _WAIT(_WAIT_TIMEOUT(called))


@click.command()
@output_options
@with_admin
def members(output: OutputOptions, admin: "Admin") -> None:
    """List the data directories of a running box, with their states.

    Fields: directory, state (active, joining, leaving, full, late, fenced, lost), why, since (ms since 1970), used and
    free (bytesUsed and bytesFree as text), ledgers, entries, errors (commitErrors and readErrors), damaged (entries
    found by scrubs), sharesDeviceWith, scrub, queue, oldestWriteSeconds. Requires a superuser.

    \b
    Examples:
      pulsarbox storage members
      pulsarbox storage members --watch
      pulsarbox storage members --filter 'state != "active"' -o name
    """
    show(
        output,
        lambda: TableOutput(
            [member_row(each) for each in _status(admin)["members"]],
            _MEMBERS,
            "directory",
            shown=readable(times=("since",)),
            cut=_WIDTHS,
            least=("entries",),
            wide=("since", "ledgers", "errors", "damaged", "sharesDeviceWith"),
            fields=_FIELDS,
        ),
    )


@click.command("under-replicated")
@click.option("--member", "member", metavar="DIR", default="", help="Only entries without a copy in DIR.")
@waiting
@output_options
@with_admin
def under_replicated(member: str, wait: "Waiting", output: OutputOptions, admin: "Admin") -> None:
    """List entries that have fewer copies than configured.

    Fields: ledger, first and last (entries), have (directories with a copy), want (number of copies), topic. Shows up
    to 1000 rows. With --wait, first waits until the box has restored all copies. Requires a superuser.

    \b
    Exit codes:
      0  every entry has its copies
      1  entries lack copies

    \b
    Examples:
      pulsarbox storage under-replicated
      pulsarbox storage under-replicated --wait
      pulsarbox storage under-replicated -o json | jq -r '.[].topic' | sort -u
    """
    from pulsarbox.cli.data import ensemble_wait

    if wait.wanted:
        ensemble_wait.wait(admin, ensemble_wait.repaired, ensemble_wait.repairing, wait.seconds)
    total = 0

    def look() -> TableOutput:
        nonlocal total
        found = _fragments(admin, member)
        total = found["total"]
        return TableOutput(
            found["fragments"],
            _FRAGMENTS,
            "ledger",
            shown=readable(topics=("topic",)),
            cut=_CUT,
            fields=_FRAGMENTS,
            empty="no entry lacks copies",
        )

    show(output, look)
    if total:
        notify(f"{total:,} fragments lack copies" if total > 1 else "1 fragment lacks copies")
        sys.exit(EXIT_FOUND)


def _fragments(admin: "Admin", member: str) -> dict[str, Any]:
    from urllib.parse import urlencode

    name = _named(_status(admin), member) if member else ""
    found: dict[str, Any] = admin.own(
        "/ensemble/under-replicated" + (f"?{urlencode({'member': name})}" if name else "")
    )
    return found


@click.command()
@click.argument("directory", metavar="DIR")
@waiting
@with_admin
def add(directory: str, wait: "Waiting", admin: "Admin") -> None:
    """Add DIR to the data directories of a running box.

    DIR is created if missing; otherwise it must be empty, or a former directory of this box. It is used once it has the
    metadata of the box; entries stored before stay where they are. The box remembers DIR; add it to dataDirectories as
    well. Requires a superuser.

    \b
    Exit codes:
      1  DIR cannot be used
      4  DIR is in use already, or the box has only dataDirectory

    \b
    Examples:
      pulsarbox storage add /disk4/pulsarbox
      pulsarbox storage add /disk4/pulsarbox --wait
    """
    from pulsarbox.cli.data import ensemble_wait

    name = _absolute(directory)
    admin.change_ensemble("POST", "/members", {"directory": name})
    if wait.wanted:
        ensemble_wait.wait(admin, ensemble_wait.joined(name), ensemble_wait.state_of(name), wait.seconds)
    _done("added" if wait.wanted else "adding", name, wait.wanted)


@click.command()
@click.argument("directory", metavar="DIR")
@waiting
@FORCE
@yes_option
@with_admin
def remove(directory: str, force: bool, wait: "Waiting", yes: bool, admin: "Admin") -> None:
    """Release DIR, after its entries were copied to the other directories.

    DIR is not written from now on, and released once the others have all entries; its files remain. A lost directory is
    released at once. Remove it from dataDirectories as well. Prompts for the name on a terminal; otherwise requires
    --yes. Requires a superuser.

    \b
    Exit codes:
      2  no terminal to confirm on and no --yes
      3  DIR is not a data directory of the box
      4  not confirmed, or DIR is the only directory in use

    \b
    Examples:
      pulsarbox storage remove /disk2/pulsarbox
      pulsarbox storage remove /disk2/pulsarbox --yes --wait
    """
    from pulsarbox.cli.data import ensemble_wait

    name = _named(_status(admin), directory)
    confirm(
        f"release the data directory {name}{', accepting the loss of entries' if force else ''}",
        [name],
        yes=yes,
        dry_run=False,
    )
    admin.change_ensemble("DELETE", "/members", query={"directory": name} | _forced(force))
    if wait.wanted:
        state = ensemble_wait.state_of(name)
        ensemble_wait.wait(admin, lambda found: ensemble_wait.member_of(found, name) is None, state, wait.seconds)
    _done("removed" if wait.wanted else "removing", name, wait.wanted)


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW", required=False)
@waiting
@FORCE
@yes_option
@with_admin
def replace(old: str, new: str | None, force: bool, wait: "Waiting", yes: bool, admin: "Admin") -> None:
    """Rebuild the entries of the data directory OLD in NEW, by default at the same path.

    NEW must be empty or missing. OLD leaves the box. Missing copies are written from the other directories. Prompts for
    the name on a terminal if OLD is still in use, or with --force; otherwise requires --yes then. Requires a superuser.

    \b
    Exit codes:
      1  NEW cannot be used
      2  no terminal to confirm on and no --yes
      3  OLD is not a data directory of the box
      4  not confirmed, or NEW is in use already

    \b
    Examples:
      pulsarbox storage replace /disk2/pulsarbox --wait
      pulsarbox storage replace /disk2/pulsarbox /disk4/pulsarbox
    """
    from pulsarbox.cli.data import ensemble_wait

    before = _status(admin)
    name = _named(before, old)
    target = name if new is None else _absolute(new)
    member = ensemble_wait.member_of(before, name)
    if force or (member is not None and member["state"] in _USED):
        reason = ", accepting the loss of entries" if force else ", which is in use"
        confirm(f"replace the data directory {name}{reason}", [name], yes=yes, dry_run=False)
    admin.change_ensemble("POST", "/replace", {"old": name, "new": target}, query=_forced(force))
    if wait.wanted:
        _wait_for_copies(admin, target, before, wait.seconds)
    _done("replaced" if wait.wanted else "replacing", f"{name} by {target}" if target != name else name, wait.wanted)


def _forced(force: bool) -> dict[str, str]:
    return {"force": "true"} if force else {}


def _wait_for_copies(admin: "Admin", name: str, before: dict[str, Any], seconds: float | None) -> None:
    from pulsarbox.cli.data import ensemble_wait

    joined, audited = ensemble_wait.joined(name), ensemble_wait.audited_after(before)

    def is_done(found: ensemble_wait.Document) -> bool:
        return joined(found) and audited(found) and ensemble_wait.repaired(found)

    ensemble_wait.wait(admin, is_done, ensemble_wait.state_of(name), seconds)


@click.command()
@click.argument("directories", metavar="[DIR]...", nargs=-1)
@waiting
@with_admin
def scrub(directories: tuple[str, ...], wait: "Waiting", admin: "Admin") -> None:
    """Verify the checksums of all entries now, of all data directories or those given.

    The box does so every ensembleScrubDays anyway. Damaged entries are copied again from another directory. Requires a
    superuser.

    \b
    Exit codes:
      1  with --wait: damaged entries were found
      3  DIR is not a data directory of the box
      4  DIR cannot be read

    \b
    Examples:
      pulsarbox storage scrub
      pulsarbox storage scrub /disk2/pulsarbox --wait
    """
    from pulsarbox.cli.data import ensemble_wait

    before = _status(admin)
    names = [_named(before, each) for each in directories]
    for body in [{"directory": each} for each in names] or [{}]:
        admin.change_ensemble("POST", "/scrub", body)
    names = names or [each["name"] for each in before["members"] if each["state"] in _USED]
    if not wait.wanted:
        _done("verifying", ", ".join(names), wait.wanted)
        return
    after = ensemble_wait.wait(
        admin, ensemble_wait.scrubbed(names, before), ensemble_wait.scrubbing(names), wait.seconds
    )
    found = _damaged(after, names) - _damaged(before, names)
    click.echo(f"verified {clean(', '.join(names))}: {found:,} damaged entries")
    if found:
        sys.exit(EXIT_FOUND)


def _damaged(document: Mapping[str, Any], names: list[str]) -> int:
    return sum(each["scrub"]["found"] for each in document["members"] if each["name"] in names)


def _status(admin: "Admin") -> dict[str, Any]:
    found: dict[str, Any] = admin.own("/ensemble")
    return found


def _named(document: dict[str, Any], text: str) -> str:
    """Return the name of a member as the box has it; the text itself if it has none such."""
    names = [each["name"] for each in document["members"] if each["name"] is not None]
    return next((name for name in names if text == name or _absolute(text) == _absolute(name)), text)


def _absolute(path: str) -> str:
    """Return a path from the root, or the address of a replica. Links are kept: the box may have been given one."""
    return path if is_replica(path) else str(Path(path).absolute())


def _done(verb: str, what: str, waited: bool) -> None:
    click.echo(f"{verb} {clean(what)}" + ("" if waited else "; `pulsarbox storage members` shows the state"))
