"""``pulsarbox client``: list and disconnect clients."""

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Misused, NotThere, ending
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.scope_options import scope_options
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.connect.admin_client import with_admin

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_COLUMNS: Final = (
    *("id", "kind", "address", "role", "version", "topic", "subscription", "name", "rate", "unacked", "cause"),
)
_LEAST: Final = ("version", "role", "address", "name", "rate", "unacked", "subscription")
_CUT: Final = {"topic": 14, "subscription": 10, "name": 8, "address": 12, "version": 8}
_WIDE: Final = ("permits", "bytes", "held", "causeText", "since")
_FIELDS: Final = (
    *("id", "kind", "address", "role", "version", "topic", "subscription", "name", "rate", "bytes", "unacked"),
    *("permits", "since", "producers", "consumers", "held", "cause", "causeText", "causeSince", "tls", "connection"),
)
_ASKED_AT_ONCE: Final = 100
_ID: Final = re.compile(r"[0-9]+(-[pc][0-9]+)?")
_SHOWN: Final = readable(sizes=("bytes", "held"), times=("since",), topics=("topic",))


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def client() -> None:
    """List the connections, producers and consumers of a box, and disconnect them.

    \b
    Examples:
      pulsarbox client list
      pulsarbox client kick 7-c3 --yes
    """


@client.command("list")
@output_options
@scope_options
@with_admin
def list_clients(output: OutputOptions, scope: dict[str, str], admin: "Admin") -> None:
    """List connections and their producers and consumers.

    Requires a superuser or one of the viewerRoles. Tenant admins pass --tenant and see the clients of its topics. Not
    supported against Apache Pulsar.

    Fields: id, kind (connection, producer, consumer), address, role (authenticated), version (of the client), topic,
    subscription, name, rate and bytes (per second over the last minute, in or out), unacked (of a consumer; for a
    producer, messages without a receipt), permits, since (ms since 1970), producers and consumers (of a connection),
    held (bytes whose receipts a publish rate delays), cause, causeText and causeSince (why a producer waits for
    receipts, a connection is not read, or a backlog quota holds or refuses its producer), tls, connection (its
    connection's id).

    \b
    Examples:
      pulsarbox client list
      pulsarbox client list --filter 'kind == "consumer" and unacked > 1000'
      pulsarbox client list --filter 'contains(version, "CPP")' -o json
      pulsarbox client list --filter 'cause == "unread"' -o json
      pulsarbox client list --tenant shop
    """
    show(output, partial(_listed, admin, scope))


def _listed(admin: "Admin", scope: dict[str, str]) -> TableOutput:
    return TableOutput(
        _rows(admin, scope),
        _COLUMNS,
        name="id",
        titles={"bytes": "BYTES/S", "causeText": "WHY"},
        shown=_SHOWN,
        cut=_CUT,
        least=_LEAST,
        wide=_WIDE,
        fields=_FIELDS,
        empty="no client is connected",
    )


def _rows(admin: "Admin", query: dict[str, str]) -> list[dict[str, Any]]:
    rows = admin.top_rows("clients", sort="since", order="asc", **query)
    return sorted(rows, key=lambda row: _place(row["id"]))


def _place(client_id: str) -> tuple[int, str, int]:
    """Sort key of a client ID: a connection comes before its producers and consumers."""
    connection, _, own = client_id.partition("-")
    return int(connection), own[:1], int(own[1:] or 0)


@client.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--filter", "filter_text", metavar="EXPRESSION", help="Disconnect all matching clients; fields as in `client list`."
)
@yes_option
@dry_run_option
@with_admin
def kick(ids: tuple[str, ...], filter_text: str | None, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Disconnect clients by ID or by filter.

    Takes the IDs of `client list`. Closing a connection closes all its producers and consumers; a single producer or
    consumer is closed with CLOSE_PRODUCER or CLOSE_CONSUMER. Clients reconnect automatically, and unacknowledged
    messages are redelivered. Requires a superuser. Not supported against Apache Pulsar.

    Prompts for the ID, or the number of clients, on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox client kick 7
      pulsarbox client kick 7-c3 9-p0 --yes
      pulsarbox client kick --filter 'kind == "connection" and startswith(address, "10.1.")' --dry-run
    """
    if bool(ids) == (filter_text is not None):
        raise Misused("specify client IDs or --filter, not both")
    if filter_text is not None:
        found = {row["id"]: row for row in _found(admin, filter_text)}
        ids = tuple(each for each, row in found.items() if each == row["connection"] or row["connection"] not in found)
    ids = tuple(map(_check_id, ids))
    what = f"disconnect {len(ids)} clients" if len(ids) > 1 else f"disconnect client {ids[0]}"
    confirm(what, list(ids), yes=yes, dry_run=dry_run)
    connected = set(ids) if filter_text is not None or not dry_run else _connected(admin, ids)
    things = [("kicked", each, partial(admin.kick, each)) for each in ids]
    carry_out(things, dry_run=dry_run, check=partial(_check_connected, connected))


def _check_id(client_id: str) -> str:
    """Return a client ID. Raises Misused for other text."""
    if _ID.fullmatch(client_id) is None:
        raise Misused(f"invalid client ID '{client_id}'; `pulsarbox client list` shows them, such as 7 or 7-c3")
    return client_id


def _connected(admin: "Admin", ids: Sequence[str]) -> set[str]:
    """Return the IDs of connected clients among some. Asked by ID, because pages of all may shift meanwhile."""
    found = set[str]()
    for at in range(0, len(ids), _ASKED_AT_ONCE):
        wanted = " or ".join(f'id == "{each}"' for each in ids[at : at + _ASKED_AT_ONCE])
        found |= {row["id"] for row in _rows(admin, {"filter": wanted})}
    return found


def _check_connected(connected: set[str], client_id: str) -> None:
    if client_id not in connected:
        raise NotThere(f"Client {client_id} not found: it is not connected")


def _found(admin: "Admin", filter_text: str) -> list[dict[str, Any]]:
    from pulsarbox.client.admin import AdminRefused

    try:
        rows = _rows(admin, {"filter": filter_text})
    except AdminRefused as error:
        if error.status == 400:
            raise click.BadParameter(str(error).removeprefix("filter: "), param_hint="--filter") from None
        raise ending(error) from None
    if not rows:
        raise NotThere(f"no client matches --filter: {filter_text}")
    return rows
