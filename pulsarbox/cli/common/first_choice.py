"""The choice that `pulsarbox` offers on a terminal, without arguments."""

import sys
from typing import Final, NamedTuple

import click


class Offer(NamedTuple):
    """A command, and what it is for."""

    command: str
    purpose: str
    """At most 27 characters: the line fits a terminal of 60 columns."""


START: Final = Offer("start --detach", "start a box, data in ./data")
WATCH: Final = Offer("top", "watch the running box")
TOUR: Final = Offer("tour", "see a sample in five steps")
HELP: Final = Offer("--help", "list all commands")


def is_offered() -> bool:
    """Return whether a user can choose: not in a script, a pipe or a file."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def offers(running: bool) -> tuple[Offer, ...]:
    """Return what is offered; the first is the default. Watching requires a running box."""
    return (WATCH, TOUR, START, HELP) if running else (TOUR, START, HELP)


_QUIT: Final = "q"


def chosen_words(running: bool | None = None) -> list[str] | None:
    """Ask on stderr, and return the arguments of the chosen command; None to quit.

    Raises click.Abort for Ctrl-C and end of input.

    ``running``: whether a box runs; None to look for one.
    """
    offered = offers(box_runs() if running is None else running)
    click.echo("Apache Pulsar in a box: one process, one data directory.\n", err=True)
    if WATCH not in offered:
        click.echo("No box is running here.\n", err=True)
    for number, offer in enumerate(offered, 1):
        click.echo(f"  {number}  pulsarbox {offer.command:<15} {offer.purpose}", err=True)
    click.echo(f"  {_QUIT}  quit\n", err=True)
    numbers = click.Choice([*(str(number) for number in range(1, len(offered) + 1)), _QUIT], case_sensitive=False)
    chosen = click.prompt("Choose", type=numbers, default="1", show_choices=False, err=True)
    if chosen == _QUIT:
        return None
    return offered[int(chosen) - 1].command.split()


def box_runs() -> bool:
    """Return whether `pulsarbox top` would reach a box."""
    from pulsarbox.cli.connect.target import is_served

    return is_served()
