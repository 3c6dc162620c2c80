"""``pulsarbox fault``: rules for injected faults in a box started with ``--faults``."""

from typing import Any, Final

import click

from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import BoundedInteger, Share
from pulsarbox.cli.connect.admin_request import ask
from pulsarbox.cli.connect.target import Target, admin_options

_PATH: Final = "/pulsarbox/v1/faults"
_ACTIONS: Final = ("error", "delay", "drop", "disconnect", "duplicate")


@click.group(cls=SuggestingGroup)
def fault() -> None:
    """Inject faults by rule, to test applications. The box must run with `--faults`.

    A rule selects commands of clients, how often to fire, and the action. Rules are evaluated in the order in which
    they were added; the first that fires applies.

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
@click.option("--command", multiple=True, help="Protocol command: send, ack, lookup, ...; repeatable.")
@click.option("--topic", help="Topic, or a pattern of full names: 'persistent://public/default/orders-*'.")
@click.option("--client", help="Pattern of client versions (Pulsar-CPP-v*), or host:port of a client.")
@click.option("--producer", help="Pattern of producer names.")
@click.option("--subscription", help="Pattern of subscription names.")
@click.option("--consumer", help="Pattern of consumer names.")
@click.option(
    "--at",
    type=click.Choice(["request", "answer"]),
    help="request: apply the action instead of the command. answer: execute it, apply the action to the response.",
)
@click.option("--error", help="For error: the Pulsar error. [default: UnknownError]")
@click.option("--delay", help="For delay: duration, such as 250ms or 2s.")
@click.option("--nth", type=BoundedInteger(1), help="Fire only on the Nth match.")
@click.option("--every", type=BoundedInteger(1), help="Fire on every Nth match.")
@click.option("--first", type=BoundedInteger(1), help="Fire on the first N matches only.")
@click.option("--probability", type=Share(), help="Fire with this probability per match, such as 10%.")
@click.option("--seed", type=BoundedInteger(0), help="Seed for --probability, for reproducible runs.")
@admin_options
@form_option
def add(action: str, admin: Target, output: OutputOptions, **options: Any) -> None:
    """Append a rule.

    \b
    ACTION:
      error       respond with an error of the Pulsar protocol
      delay       delay the command (or its response), and those that follow from the same producer or consumer
      drop        drop the command; with --at answer, execute it and drop the response
      disconnect  close the connection
      duplicate   send the response twice

    \b
    Exit codes:
      0  added
      2  the rule is invalid
      4  the box was started without --faults
      6  the box is unreachable

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
@form_option
def listing(admin: Target, output: OutputOptions) -> None:
    """List the rules, with counts of matches and of fired faults.

    \b
    Examples:
      pulsarbox fault list
      pulsarbox fault list -o json | jq '.[].fired'
    """
    _show(ask(admin, "GET", _PATH), output)


@fault.command()
@click.argument("number", type=BoundedInteger(1))
@admin_options
@form_option
def remove(number: int, admin: Target, output: OutputOptions) -> None:
    """Remove rule NUMBER, and show its final counts.

    \b
    Examples:
      pulsarbox fault remove 1
    """
    _show([ask(admin, "DELETE", f"{_PATH}/{number}")], output)


@fault.command()
@admin_options
def clear(admin: Target) -> None:
    """Remove all rules. Delayed commands and responses still arrive.

    \b
    Examples:
      pulsarbox fault clear
    """
    ask(admin, "DELETE", _PATH)
    notify("removed all fault rules")


def _show(rules: list[dict[str, Any]], output: OutputOptions) -> None:
    show(
        output,
        lambda: TableOutput(
            rules,
            _COLUMNS,
            name="id",
            shown=_with_selection,
            cut={"rule": 30},
            least=("matched",),
            fields=_FIRST,
            empty=_EMPTY,
        ),
    )


_COLUMNS: Final = ("id", "action", "fired", "matched", "rule")
_FIRST: Final = _COLUMNS[:-1]
_EMPTY: Final = "no fault rules; examples: pulsarbox fault add --help"


def _with_selection(rule: Row) -> Row:
    words = (f"{name}={_word(value)}" for name, value in rule.items() if name not in _FIRST)
    return rule | {"rule": " ".join(words)}


def _word(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
