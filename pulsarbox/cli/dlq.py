"""``pulsarbox dlq``: the topics that dead letters are in."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.admin import namespace_named, short, suggesting, topic_named, with_admin
from pulsarbox.cli.lazy import Group
from pulsarbox.cli.output import Found, Output, output_options, show

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def dlq() -> None:
    """Look at the topics that dead letters are in. When the box moves a message there, `sub dead-letter` says.

    \b
    Examples:
      pulsarbox dlq list
      pulsarbox dlq list --filter lost
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
    found = [namespace] if namespace else [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
    for each in found:
        with suggesting(admin, topic_named(f"{each}/-")):
            rows += [_row(topic) for topic in admin.dead_letter_topics(each)]
    return Found(rows, ["topic", "messages", "size", "subscriptions", "lost"], name="topic")


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
