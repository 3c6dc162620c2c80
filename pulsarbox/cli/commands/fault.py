"""``pulsarbox fault``: what goes wrong on purpose in a box that was started with ``--faults``."""

import json
from typing import Any, Final

import click

from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.terminal_text import OUTPUT, clean, say
from pulsarbox.cli.connect.admin_request import ask
from pulsarbox.cli.connect.target import Target, admin_options

_PATH: Final = "/pulsarbox/v1/faults"
_ACTIONS: Final = ("error", "delay", "drop", "disconnect", "duplicate")


@click.group(cls=Group)
def fault() -> None:
    """Inject faults by rule, to see how applications take them. The box must have been started with `--faults`.

    A rule says which commands of which clients it is about, how often it strikes, and what happens then. Rules are
    asked in the order in which they were added; the first that strikes decides.

    \b
    Examples:
      pulsarbox fault add error --command send --topic orders --nth 3 --error PersistenceError
      pulsarbox fault add delay --command ack --delay 2s --every 10
      pulsarbox fault add drop --command send --at answer --probability 0.01 --seed 7
      pulsarbox fault list
      pulsarbox fault clear
    """


@fault.command()
@click.argument("action", type=click.Choice(_ACTIONS))
@click.option("--command", multiple=True, help="Commands of the protocol: send, ack, lookup, ... May be repeated.")
@click.option("--topic", help="Topic, or a pattern of whole names: 'persistent://public/default/orders-*'.")
@click.option("--client", help="Pattern of the version that the client tells (Pulsar-CPP-v*), or its host:port.")
@click.option("--producer", help="Pattern of producer names.")
@click.option("--subscription", help="Pattern of subscription names.")
@click.option("--consumer", help="Pattern of consumer names.")
@click.option(
    "--at",
    type=click.Choice(["request", "answer"]),
    help="request: instead of carrying the command out. answer: it is carried out, this happens to its answer.",
)
@click.option("--error", help="With error: the Pulsar error, such as PersistenceError. UnknownError without it.")
@click.option("--delay", help="With delay: how long, such as 250ms or 2s.")
@click.option("--nth", type=click.IntRange(1), help="Only the Nth time that all else fits.")
@click.option("--every", type=click.IntRange(1), help="Every so many times.")
@click.option("--first", type=click.IntRange(1), help="Only the first so many times.")
@click.option("--probability", type=click.FloatRange(0, 1), help="So likely each time, from 0 to 1.")
@click.option("--seed", type=click.IntRange(0), help="Of the probability: the same seed draws the same.")
@admin_options
@OUTPUT
def add(action: str, admin: Target, output: str, **options: Any) -> None:
    """Add a rule, behind those that there are.

    \b
    ACTION:
      error       the client is told an error of the Pulsar protocol
      delay       the command (or its answer) waits; what follows from the same producer or consumer waits behind it
      drop        the command is lost (or, --at answer, its answer is: it was carried out)
      disconnect  the connection is closed
      duplicate   the answer comes twice

    \b
    Exit codes:
      0  it is added
      1  the rule makes no sense
      4  that box injects no faults: it was started without --faults
      6  no box answers

    \b
    Examples:
      pulsarbox fault add disconnect --command send --topic orders --nth 100
      pulsarbox fault add error --command lookup --first 3 --error ServiceNotReady
      pulsarbox fault add duplicate --command send --every 5
    """
    rule = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items() if value}
    if options["probability"] is not None:
        rule["probability"] = options["probability"]
    _show([ask(admin, "POST", _PATH, {"action": action, **rule})], output)


@fault.command("list")
@admin_options
@OUTPUT
def listing(admin: Target, output: str) -> None:
    """List the rules: what each is about, how often it fitted and how often it struck.

    \b
    Examples:
      pulsarbox fault list
      pulsarbox fault list -o json | jq '.[].fired'
    """
    _show(ask(admin, "GET", _PATH), output)


@fault.command()
@click.argument("number", type=click.IntRange(1))
@admin_options
@OUTPUT
def remove(number: int, admin: Target, output: str) -> None:
    """Take rule NUMBER away, and show what it had done.

    \b
    Examples:
      pulsarbox fault remove 1
    """
    _show([ask(admin, "DELETE", f"{_PATH}/{number}")], output)


@fault.command()
@admin_options
def clear(admin: Target) -> None:
    """Take all rules away. What they have delayed still comes.

    \b
    Examples:
      pulsarbox fault clear
    """
    ask(admin, "DELETE", _PATH)
    say("no faults are injected any more")


def _show(rules: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(rules, indent=2))
        return
    for rule in rules:
        words = " ".join(f"{name}={_word(value)}" for name, value in rule.items() if name not in _FIRST)
        counts = f"fired {rule['fired']} of {rule['matched']}"
        click.echo(f"{rule['id']:<4} {rule['action']:<10} {counts:<16} {clean(words)}".rstrip())


_FIRST: Final = ("id", "action", "fired", "matched")


def _word(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
