"""The choice that `pulsarbox` offers on a terminal, without arguments."""

import sys
from typing import Final, NamedTuple

import click


class Offer(NamedTuple):
    """A command, and what it is for."""

    command: str
    purpose: str


OFFERS: Final = (
    Offer("start --detach", "start a box in the background, with its data in ./data"),
    Offer("top", "watch the box that is running"),
    Offer("tour", "see sample traffic in a temporary box, in five steps"),
    Offer("--help", "list all commands"),
)


def is_offered() -> bool:
    """Return whether a user can choose: not in a script, a pipe or a file."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def chosen_words() -> list[str]:
    """Ask on stderr, and return the arguments of the chosen command. Raises click.Abort for Ctrl-C and end of input."""
    click.echo("Apache Pulsar in a box: one process, one data directory, one command.\n", err=True)
    for number, offer in enumerate(OFFERS, 1):
        click.echo(f"  {number}  pulsarbox {offer.command:<15} {offer.purpose}", err=True)
    click.echo("", err=True)
    numbers = click.Choice([str(number) for number in range(1, len(OFFERS) + 1)])
    chosen = click.prompt("Choose", type=numbers, default="3", show_choices=False, err=True)
    return OFFERS[int(chosen) - 1].command.split()
