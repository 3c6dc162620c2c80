"""Confirmation and execution of changes: --dry-run, --yes, the typed name, and one report line per object."""

import functools
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Failed, InTheWay, Misused, NotThere, Partly, ending
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.errors import PulsarBoxError

_SECRETS: Final = ("--auth-params",)
_PATTERN: Final = frozenset("*?[")


def dry_run_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --dry-run to a command. A dry run ends with the command of the real run, on stderr."""

    @functools.wraps(command)
    def called(*args: Any, dry_run: bool, **kwargs: Any) -> Any:
        done = command(*args, dry_run=dry_run, **kwargs)
        if dry_run:
            notify(f"dry run: nothing was changed; for the real run: {real_run(sys.argv)}")
        return done

    return click.option("--dry-run", is_flag=True, help="Print the changes without making them.")(called)


def real_run(words: Sequence[str]) -> str:
    """Return a command line without --dry-run, quoted for a shell, with hidden credentials."""
    shown = ["pulsarbox"]
    for before, word in pairwise(words):
        option, given, _ = word.partition("=")
        if before in _SECRETS:
            shown.append("...")
        elif word != "--dry-run":
            shown.append(f"{option}=..." if given and option in _SECRETS else word)
    return " ".join(shlex.quote(word) for word in shown)


def yes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --yes to a command."""
    return click.option("--yes", is_flag=True, help="Skip the confirmation; required without a terminal.")(command)


def is_pattern(text: str) -> bool:
    """Return whether a name contains wildcards."""
    return not _PATTERN.isdisjoint(text)


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a pattern of * and ?. Raises NotThere if none does."""
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise NotThere(f"nothing matches '{pattern}'")
    return found


def confirm(what: str, names: list[str], *, yes: bool, dry_run: bool) -> None:
    """Ask on the terminal to confirm a destructive change, by typing the name, or the count if there are several.

    Raises Misused without --yes and without a terminal, InTheWay if the typed text does not match.
    """
    if yes or dry_run:
        return
    if not _can_ask():
        raise _unconfirmed(what)
    expected = names[0] if len(names) == 1 else str(len(names))
    subject = f"'{clean(expected)}'" if len(names) == 1 else f"{expected}, the number of them,"
    click.echo(f"This will {what}. It cannot be undone.", err=True)
    for name in names[:20] if len(names) > 1 else []:
        click.echo(f"  {clean(name)}", err=True)
    if len(names) > 20:
        click.echo(f"  ... and {len(names) - 20} more", err=True)
    click.echo(f"Type {subject} to continue: ", nl=False, err=True)
    typed = sys.stdin.readline().strip()
    if typed != expected:
        raise InTheWay("not confirmed: nothing was changed")


def agree_to(change: str, loss: str, *, yes: bool, dry_run: bool) -> None:
    """Ask a yes-or-no question on the terminal to confirm a change.

    ``loss`` describes messages that are not delivered; empty if there are none. Raises Misused for a loss without
    --yes and without a terminal, InTheWay for no.
    """
    if yes or dry_run:
        return
    if _can_ask():
        agree(f"{change}?")
    elif loss:
        raise _unconfirmed(loss)


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _unconfirmed(what: str) -> Misused:
    return Misused(f"this would {what}: without a terminal to confirm on, specify --yes (--dry-run shows the changes)")


def agree(question: str) -> None:
    """Ask a yes-or-no question on the terminal, for a change that can be undone. Raises InTheWay for no."""
    click.echo(f"{clean(question)} [y/N] ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InTheWay("not confirmed: nothing was changed")


def carry_out(
    things: Sequence[tuple[str, str, Callable[[], object]]],
    *,
    dry_run: bool,
    check: Callable[[str], object] = lambda name: None,
) -> None:
    """Run the actions in order. Each is a triple: past-tense verb phrase, object name, callable.

    A dry run calls ``check`` with each name instead, which raises what the action would raise for a missing object.
    Report successes on stdout and failures on stderr, and continue after a failure. Raises the failure of a single
    action; of several, Partly if some succeeded, otherwise the type of the first failure.
    """
    failures: list[Failed] = []
    for done, name, do in things:
        try:
            if dry_run:
                check(name)
            else:
                do()
        except (NotConnected, NoAnswer):
            raise
        except (PulsarBoxError, Failed) as error:
            failure = error if isinstance(error, Failed) else ending(error)
            failures.append(failure)
            if len(things) > 1:
                notify(f"{name}: {failure.message}")
        else:
            click.echo(f"{'would have ' if dry_run else ''}{done} {clean(name)}")
    if not failures:
        return
    if len(things) == 1:
        raise failures[0]
    if len(failures) < len(things):
        raise Partly(f"{len(failures)} of {len(things)} could not be {things[0][0].split()[0]}")
    raise type(failures[0])(f"none of {len(things)} could be {things[0][0].split()[0]}")
