"""``pulsarbox dlq show`` and ``export``: the messages that dead letter topics have."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import End, Until
from pulsarbox.cli.connect.target import Target, service_and_late_admin_options
from pulsarbox.cli.messages.reading_options import form_options
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_ALL: Final = 1 << 62

_SUBSCRIPTION = click.option(
    "-s",
    "--subscription",
    metavar="SUB",
    shell_complete=completions.subscriptions,
    help="What this subscription has not acknowledged; by default that of the only one there is.",
)
_STORED = click.option("--stored", is_flag=True, help="All that is stored, acknowledged or not.")


@click.command()
@click.argument("topic", shell_complete=completions.topics)
@_SUBSCRIPTION
@_STORED
@click.option("-n", "--count", type=click.IntRange(1), default=10, show_default=True, help="At most so many messages.")
@form_options("table")
@service_and_late_admin_options
def show(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Show dead letters of TOPIC, decoded by their schema. Nothing is acknowledged.

    --filter knows, beside what `consume` knows: origin, origin_id, subscription, reason, replays and fingerprint.

    \b
    Exit codes:
      0    shown, or there is nothing to show
      2    an option cannot be used, or TOPIC has several subscriptions and none is named
      3    there is no such topic or subscription
      6, 7 the broker cannot be reached; the end was not reached

    \b
    Examples:
      pulsarbox dlq show orders-billing-DLQ
      pulsarbox dlq show orders-billing-DLQ --filter 'fingerprint == "a1b2c3d4e5f6"' -n 1 -o hex --no-decode
      pulsarbox dlq show orders-billing-DLQ -s triage -n 100 -o ndjson
    """
    _look(service, admin, topic, options)


@click.command()
@click.argument("topic", shell_complete=completions.topics)
@_SUBSCRIPTION
@_STORED
@click.option("-n", "--count", type=click.IntRange(1), help="At most so many messages. [all]")
@click.option("--filter", "expression", metavar="E", help="Only messages for which E holds: see `dlq show`.")
@click.option("--no-progress", is_flag=True, help="No line that says how far it is.")
@service_and_late_admin_options
def export(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Write dead letters of TOPIC to stdout, one JSON envelope a line: `pulsarbox produce -i ndjson` reads them back.

    Nothing is acknowledged. docs/cli.md has the fields of an envelope.

    \b
    Exit codes: as of `dlq show`

    \b
    Examples:
      pulsarbox dlq export orders-billing-DLQ > letters.ndjson
      pulsarbox dlq export orders-billing-DLQ --filter 'reason is not None' | jq .props
      pulsarbox dlq export orders-billing-DLQ | pulsarbox produce elsewhere -i ndjson
    """
    more = {"output": "ndjson", "line_format": None, "decode": False}
    _look(service, admin, topic, options | more | {"count": options["count"] or _ALL})


def _look(service: Target, admin: Callable[[], Target], topic: str, options: dict[str, Any]) -> None:
    from pulsarbox.cli.messages.peek_loop import peek_topic

    stored = options.pop("stored")
    if stored and options["subscription"] is not None:
        raise Misused("--stored shows what all subscriptions have, and have not: leave -s out")
    if not stored and options["subscription"] is None:
        from pulsarbox.client.admin import Admin

        target = admin()
        with Admin(target.hosts, secure=target.secure, credentials=target.credentials()) as client:
            options["subscription"] = only_subscription(client, topic)
    peek_topic(service, admin, topic, options | {"begin": None, "until": Until(End.END)})


def only_subscription(admin: "Admin", topic: str) -> str | None:
    """The one that is meant where none is named; None where there is none. Raises Misused where there are several."""
    from pulsarbox.cli.connect.admin_client import suggesting, topic_named
    from pulsarbox.names import COMPACTION_SUBSCRIPTION

    name = topic_named(topic)
    with suggesting(admin, name):
        names = [each for each in admin.subscriptions(name) if each != COMPACTION_SUBSCRIPTION]
    if len(names) > 1:
        raise Misused(f"{topic} has {', '.join(names)}: name one with -s, or take all that is --stored")
    return names[0] if names else None
