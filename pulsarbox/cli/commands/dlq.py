"""``pulsarbox dlq``: the topics that dead letters are in, what they have in common, and what is done with them."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Denied, Misused
from pulsarbox.cli.common.lazy_group import LazyCommand, LazyGroup
from pulsarbox.cli.common.output import Found, Output, form_option, output_options, show
from pulsarbox.cli.common.terminal_text import say
from pulsarbox.cli.connect.admin_client import namespace_named, short, suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


_MORE: Final = {
    "show": LazyCommand("pulsarbox.cli.commands.dlq_messages:show", "Show dead letters; nothing changes."),
    "export": LazyCommand(
        "pulsarbox.cli.commands.dlq_messages:export", "Write dead letters as envelopes that produce reads."
    ),
    "replay": LazyCommand("pulsarbox.cli.commands.dlq_jobs:replay", "Put dead letters back, as a job in the box."),
    "drop": LazyCommand("pulsarbox.cli.commands.dlq_jobs:drop", "Acknowledge dead letters, as a job in the box."),
}


@click.group(cls=LazyGroup, lazy_commands=_MORE, context_settings={"help_option_names": ["-h", "--help"]})
def dlq() -> None:
    """Dead letters: which topics have them, why they failed, and back again. When the box moves a message there,
    `sub dead-letter` says.

    \b
    Examples:
      pulsarbox dlq list
      pulsarbox dlq groups orders-billing-DLQ
      pulsarbox dlq replay orders-billing-DLQ --dry-run
    """


@dlq.command("list")
@click.argument("namespace", metavar="[NAMESPACE]", required=False)
@output_options
@with_admin
def list_topics(namespace: str | None, output: Output, admin: "Admin") -> None:
    """List the topics for dead letters, and for messages to be tried again, of NAMESPACE or of all.

    Topics are for that where they end with -DLQ or -RETRY, as clients call them, or where the box has moved dead
    letters there. Fields: topic, messages (stored), size (bytes), subscriptions, backlogs (messages of each
    subscription), lost (true: it has no subscription and no retention, so what comes is dropped), last (when something
    came last, ms since 1970). Of a box only.

    \b
    Examples:
      pulsarbox dlq list
      pulsarbox dlq list acme/prod --filter 'messages > 0' -o json
    """
    show(output, partial(_listed, admin, None if namespace is None else namespace_named(namespace)))


def _listed(admin: "Admin", namespace: str | None) -> Found:
    rows: list[dict[str, Any]] = []
    found = [namespace] if namespace else _all_namespaces(admin)
    for each in found:
        with suggesting(admin, topic_named(f"{each}/-")):
            rows += [_row(topic) for topic in admin.dead_letter_topics(each)]
    return Found(rows, ["topic", "messages", "size", "subscriptions", "lost"], name="topic")


def _all_namespaces(admin: "Admin") -> list[str]:
    from pulsarbox.client.admin import Refused

    try:
        return [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
    except Refused as error:
        if error.status != 403:
            raise
        raise Denied(f"{error}; name one of your namespaces: `pulsarbox dlq list TENANT/NAMESPACE`") from error


def _row(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "topic": short(told["topic"]),
        "messages": told["messages"],
        "size": told["size"],
        "subscriptions": sorted(told["backlogs"]),
        "backlogs": told["backlogs"],
        "lost": told["lost"],
        "last": told["lastPublishTime"],
    }


@dlq.command("groups")
@click.argument("name", metavar="TOPIC", shell_complete=completions.topics)
@click.option(
    "-s",
    "--subscription",
    metavar="SUB",
    shell_complete=completions.subscriptions,
    help="What this subscription has not acknowledged; by default that of the only one there is.",
)
@click.option("--stored", is_flag=True, help="All that is stored, acknowledged or not.")
@click.option("--filter", "which", metavar="E", help="Only messages for which E holds: see `dlq replay`.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), help="Look at so many of the newest entries. [10000]")
@form_option
@with_admin
def groups(
    name: str,
    subscription: str | None,
    stored: bool,
    which: str | None,
    limit: int | None,
    output: Output,
    admin: "Admin",
) -> None:
    """Group the dead letters of TOPIC by why they failed: what their properties say of an error, without the numbers
    and ids in it, where they come from, and what their payload looks like.

    Fields: fingerprint (for --filter), count (messages), reason, origin, subscription (that gave up), shape, first and
    last (when they became dead letters, ms since 1970), sample (the id of the newest), sampleTopic. Of a box only.

    \b
    Exit codes:
      2  an option cannot be used, or TOPIC has several subscriptions and none is named
      3  there is no such topic or subscription

    \b
    Examples:
      pulsarbox dlq groups orders-billing-DLQ
      pulsarbox dlq groups orders-billing-DLQ -s triage --limit 100000 -o json
      pulsarbox dlq groups orders-billing-DLQ --filter 'publish_time > time("-1h")'
    """  # fmt: skip
    from pulsarbox.cli.commands.dlq_messages import only_subscription

    if stored and subscription is not None:
        raise Misused("--stored shows what all subscriptions have, and have not: leave -s out")
    if not stored and subscription is None:
        subscription = only_subscription(admin, name)
    query = {"subscription": subscription, "filter": which, "limit": None if limit is None else str(limit)}
    show(output, partial(_grouped, admin, name, {field: text for field, text in query.items() if text is not None}))


def _grouped(admin: "Admin", name: str, query: dict[str, str]) -> Found:
    topic = topic_named(name)
    with suggesting(admin, topic, query.get("subscription")):
        found = admin.dead_letter_groups(topic, **query)
    if found["bounded"]:
        say(f"of the newest {found['entries']:,} of {found['of']:,} entries: --limit looks at more")
    rows = [
        each | {"origin": short(each["origin"]) if each["origin"] else "", "sampleTopic": short(each["sampleTopic"])}
        for each in found["groups"]
    ]
    return Found(rows, ["fingerprint", "count", "reason", "origin", "shape", "sample"], name="fingerprint")
