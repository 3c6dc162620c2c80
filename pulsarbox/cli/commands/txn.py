"""``pulsarbox txn``: transactions."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.stats_text import document_lines
from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.time_arguments import DURATION, Words, wall_now
from pulsarbox.cli.connect.admin_client import short, with_admin

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

Id = tuple[int, int]


def txn_id(text: str) -> Id:
    """Parse a transaction ID: ``0:17``, ``(0,17)`` as Pulsar prints it, or 17. Raises ValueError."""
    halves = text.strip().strip("()").replace(",", ":").split(":")
    if len(halves) == 1:
        halves = ["0", *halves]
    try:
        most, least = (int(each) for each in halves)
        if most < 0 or least < 0:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"invalid transaction {text!r}; expected a form such as 0:17, as in `pulsarbox txn list`"
        ) from None
    return most, least


ID: Final = Words("id", txn_id)


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def txn() -> None:
    """List, show and abort transactions. An open transaction blocks the readers of its topics.

    \b
    Examples:
      pulsarbox txn list
      pulsarbox txn list --open-for 1m
      pulsarbox txn abort 0:17
    """


@txn.command("list")
@click.option(
    "--open-for",
    "age",
    type=DURATION,
    default="0s",
    metavar="T",
    help="Show transactions open for at least T, such as 1m.",
)
@output_options
@with_admin
def list_transactions(age: float, output: OutputOptions, admin: "Admin") -> None:
    """List open transactions, oldest first.

    Fields: id, state, seconds (open for), timeout (ms after which it is aborted), owner (role that began it), topics
    (published to), subscriptions (acknowledged on: topic/subscription).

    \b
    Examples:
      pulsarbox txn list
      pulsarbox txn list --open-for 10m -o name
    """
    show(output, partial(_listed, admin, round(age * 1000)))


def _listed(admin: "Admin", age: int) -> TableOutput:
    rows = sorted((_row(each) for each in admin.transactions(age).values()), key=lambda row: int(row["opened"]))
    return TableOutput(
        rows,
        ["id", "state", "seconds", "owner", "topics", "subscriptions"],
        name="id",
        shown=readable(times=("opened", "timeout")),
        cut={"owner": 8, "topics": 14, "subscriptions": 14},
        least=("owner", "state"),
        wide=("opened", "timeout"),
        fields=("id", "state", "seconds", "opened", "timeout", "owner", "topics", "subscriptions"),
        empty="no open transactions",
    )


def _row(told: dict[str, Any]) -> dict[str, Any]:
    acked = told["ackedPartitions"]
    return {
        "id": _shown(txn_id(told["txnId"])),
        "state": told["status"],
        "seconds": max(wall_now() - told["openTimestamp"], 0) // 1000,
        "opened": told["openTimestamp"],
        "timeout": told["timeoutAt"],
        "owner": told.get("owner"),
        "topics": [short(topic) for topic in told["producedPartitions"]],
        "subscriptions": [f"{short(topic)}/{name}" for topic in acked for name in acked[topic]],
    }


def _shown(halves: Id) -> str:
    return f"{halves[0]}:{halves[1]}"


@txn.command("show")
@click.argument("txn_id", metavar="ID", type=ID)
@output_options
@with_admin
def show_transaction(txn_id: Id, output: OutputOptions, admin: "Admin") -> None:
    """Show an open or recently ended transaction. Fields as in `txn list`, and opened (ms since 1970).

    \b
    Examples:
      pulsarbox txn show 0:17
      pulsarbox txn show 17 -o json
    """
    show(output, partial(_one, admin, txn_id))


def _one(admin: "Admin", halves: Id) -> TableOutput:
    row = _row(admin.transaction(*halves))
    return TableOutput([row], name="id", lines=document_lines(row))


@txn.command()
@click.argument("txn_ids", metavar="ID...", nargs=-1, required=True, type=ID)
@yes_option
@dry_run_option
@with_admin
def abort(txn_ids: tuple[Id, ...], yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Abort transactions of any owner: drop their messages and redeliver what they acknowledged.

    Prompts for the ID on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox txn abort 0:17
      pulsarbox txn abort 0:17 0:19 --yes
    """
    names = [_shown(each) for each in txn_ids]
    what = f"abort transaction {names[0]}" if len(names) == 1 else f"abort {len(names)} transactions"
    confirm(what, names, yes=yes, dry_run=dry_run)
    doings = [partial(admin.abort_transaction, *each) for each in txn_ids]
    carry_out([("aborted transaction", name, do) for name, do in zip(names, doings, strict=True)], dry_run=dry_run)
