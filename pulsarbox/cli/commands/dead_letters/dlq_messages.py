"""``pulsarbox dlq show`` and ``export``: the messages of dead letter topics."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.dlq_options import subscription_option
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.position_options import End, Until
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.target import Target, service_and_late_admin_options
from pulsarbox.cli.messages.reading_options import form_options
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_ALL: Final = 1 << 62

_SUBSCRIPTION = subscription_option("Read the backlog of this subscription; default: the only one of TOPIC.")
_STORED = click.option("--stored", is_flag=True, help="Read all stored messages, acknowledged or not.")


@click.command()
@click.argument("topic", shell_complete=completions.dead_letter_topics)
@_SUBSCRIPTION
@_STORED
@click.option(
    "-n", "--count", type=BoundedInteger(1), default=10, show_default=True, help="Maximum number of messages."
)
@form_options("table")
@service_and_late_admin_options
def show(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Show dead letters of TOPIC without acknowledging them.

    Decodes payloads by their schema. Besides the fields of `consume --filter`, --filter supports origin, origin_id,
    subscription, reason, replays and fingerprint.

    \b
    Exit codes:
      0    success, even without messages
      2    an option is invalid, or TOPIC has several subscriptions and none is named
      3    the topic or subscription does not exist
      6, 7 the broker is unreachable; the end was not reached in time

    \b
    Examples:
      pulsarbox dlq show orders-billing-DLQ
      pulsarbox dlq show orders-billing-DLQ --filter 'fingerprint == "a1b2c3d4e5f6"' -n 1 -o hex --no-decode
      pulsarbox dlq show orders-billing-DLQ -s triage -n 100 -o ndjson
    """
    _look(service, admin, topic, options)


@click.command()
@click.argument("topic", shell_complete=completions.dead_letter_topics)
@_SUBSCRIPTION
@_STORED
@click.option("-n", "--count", type=BoundedInteger(1), help="Maximum number of messages. [default: all]")
@click.option("--filter", "expression", metavar="E", help="Select matching messages; see `dlq show`.")
@click.option("--no-progress", is_flag=True, help="Do not show progress.")
@service_and_late_admin_options
def export(service: Target, admin: Callable[[], Target], topic: str, **options: Any) -> None:
    """Write dead letters of TOPIC to stdout, one JSON envelope per line.

    `pulsarbox produce -i ndjson` reads them back. Acknowledges nothing. docs/cli.md lists the fields of an envelope.

    \b
    Exit codes: as for `dlq show`

    \b
    Examples:
      pulsarbox dlq export orders-billing-DLQ > letters.ndjson
      pulsarbox dlq export orders-billing-DLQ --filter 'reason is not None' | jq .props
      pulsarbox dlq export orders-billing-DLQ | pulsarbox produce elsewhere -i ndjson
    """
    more = {"output": "ndjson", "line_format": None, "decode": False, "color": "never"}
    _look(service, admin, topic, options | more | {"count": options["count"] or _ALL})


def _look(service: Target, admin: Callable[[], Target], topic: str, options: dict[str, Any]) -> None:
    from pulsarbox.cli.messages.loops.peek_loop import peek_topic

    stored = options.pop("stored")
    if stored and options["subscription"] is not None:
        raise Misused("--stored and -s cannot be combined: --stored reads all stored messages")
    if not stored and options["subscription"] is None:
        from pulsarbox.client.admin import Admin

        target = admin()
        with Admin(target.hosts, secure=target.secure, credentials=target.credentials()) as client:
            options["subscription"] = only_subscription(client, topic)
    peek_topic(service, admin, topic, options | {"begin": None, "until": Until(End.END)}, dead_letters=True)


def only_subscription(admin: "Admin", topic: str) -> str | None:
    """Return the only subscription of a topic, None without any. Raises Misused if there are several."""
    from pulsarbox.cli.connect.admin_client import suggesting, topic_named
    from pulsarbox.names import COMPACTION_SUBSCRIPTION

    name = topic_named(topic)
    with suggesting(admin, name):
        names = [each for each in admin.subscriptions(name) if each != COMPACTION_SUBSCRIPTION]
    if len(names) > 1:
        raise Misused(
            f"{topic} has several subscriptions: {', '.join(names)}; select one with -s, or all messages with --stored"
        )
    return names[0] if names else None
