"""``pulsarbox dlq``: list dead letter topics, group and process their messages."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.dlq_options import subscription_option
from pulsarbox.cli.common.dead_letter_groups import groups_output
from pulsarbox.cli.common.exits import Denied, Misused
from pulsarbox.cli.common.lazy_group import LazyCommand, LazyGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option, output_options, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import namespace_named, short, suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


_MORE: Final = {
    "show": LazyCommand(
        "pulsarbox.cli.commands.dead_letters.dlq_messages:show", "Show dead letters without acknowledging them."
    ),
    "export": LazyCommand(
        "pulsarbox.cli.commands.dead_letters.dlq_messages:export", "Write dead letters to stdout as JSON envelopes."
    ),
    "replay": LazyCommand(
        "pulsarbox.cli.commands.dead_letters.dlq_jobs:replay", "Republish dead letters, as a job of the box."
    ),
    "drop": LazyCommand(
        "pulsarbox.cli.commands.dead_letters.dlq_jobs:drop", "Acknowledge dead letters, as a job of the box."
    ),
}


@click.group(cls=LazyGroup, lazy_commands=_MORE, context_settings={"help_option_names": ["-h", "--help"]})
def dlq() -> None:
    """Inspect, group, replay, drop and export dead letters.

    `pulsarbox sub dead-letter` sets when the box moves a message to a dead letter topic.

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
def list_topics(namespace: str | None, output: OutputOptions, admin: "Admin") -> None:
    """List the dead letter and retry topics of NAMESPACE, by default of all namespaces.

    Includes topics that end with -DLQ or -RETRY, as clients name them, and topics to which the box has moved dead
    letters. Fields: name, topic (full name), messages (stored), size (bytes), subscriptions, backlogs (messages per
    subscription), lost (true: without subscription and retention, so new messages are dropped), last (last publish, ms
    since 1970). Not supported against Apache Pulsar.

    \b
    Examples:
      pulsarbox dlq list
      pulsarbox dlq list acme/prod --filter 'messages > 0' -o json
    """
    show(output, partial(_listed, admin, None if namespace is None else namespace_named(namespace)))


def _listed(admin: "Admin", namespace: str | None) -> TableOutput:
    rows: list[dict[str, Any]] = []
    found = [namespace] if namespace else _all_namespaces(admin)
    for each in found:
        with suggesting(admin, topic_named(f"{each}/-")):
            rows += [_row(topic) for topic in admin.dead_letter_topics(each)]
    return TableOutput(
        rows,
        ["name", "messages", "size", "subscriptions", "lost"],
        name="topic",
        titles={"name": "TOPIC"},
        shown=readable(sizes=("size",), times=("last",)),
        cut={"name": 20, "subscriptions": 13},
        least=("subscriptions", "size"),
        wide=("backlogs", "last"),
        fields=("name", "topic", "messages", "size", "subscriptions", "backlogs", "lost", "last"),
        empty="no dead letter topics; keep messages that fail: pulsarbox sub dead-letter TOPIC SUBSCRIPTION 3",
    )


def _all_namespaces(admin: "Admin") -> list[str]:
    from pulsarbox.client.admin import AdminRefused

    try:
        return [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
    except AdminRefused as error:
        if error.status != 403:
            raise
        raise Denied(f"{error}; specify one of your namespaces: `pulsarbox dlq list TENANT/NAMESPACE`") from error


def _row(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": short(told["topic"]),
        "topic": told["topic"],
        "messages": told["messages"],
        "size": told["size"],
        "subscriptions": sorted(told["backlogs"]),
        "backlogs": told["backlogs"],
        "lost": told["lost"],
        "last": told["lastPublishTime"],
    }


@dlq.command("groups")
@click.argument("name", metavar="TOPIC", shell_complete=completions.dead_letter_topics)
@subscription_option("Group the backlog of this subscription; default: the only one of TOPIC.")
@click.option("--stored", is_flag=True, help="Group all stored messages, acknowledged or not.")
@click.option("--filter", "which", metavar="E", help="Select matching messages; see `dlq replay`.")
@click.option("--limit", type=BoundedInteger(1, 1_000_000), help="Number of newest entries to read. [default: 10000]")
@form_option
@with_admin
def groups(
    name: str,
    subscription: str | None,
    stored: bool,
    which: str | None,
    limit: int | None,
    output: OutputOptions,
    admin: "Admin",
) -> None:
    """Group the dead letters of TOPIC by cause.

    The table has a row for each error in the properties of the messages (ignoring numbers and IDs), with their origin
    topic. -o wide adds a row for each shape of the payload. The other formats have one group per shape, with these
    fields: fingerprint (for --filter), count (messages), reason, origin, subscription (that gave up), shape, first and
    last (time of becoming dead letters, ms since 1970), sample (ID of the newest), sampleTopic. To replay all shapes of
    a reason, filter by it; to replay one shape, by its fingerprint. Not supported against Apache Pulsar.

    \b
    Exit codes:
      2  an option is invalid, or TOPIC has several subscriptions and none is named
      3  the topic or subscription does not exist

    \b
    Examples:
      pulsarbox dlq groups orders-billing-DLQ
      pulsarbox dlq groups orders-billing-DLQ -o wide
      pulsarbox dlq groups orders-billing-DLQ -s triage --limit 100000 -o json
      pulsarbox dlq replay orders-billing-DLQ --filter 'reason == "timeout after # s"' --dry-run
      pulsarbox dlq groups orders-billing-DLQ --filter 'publish_time > time("-1h")'
    """  # fmt: skip
    from pulsarbox.cli.commands.dead_letters.dlq_messages import only_subscription

    if stored and subscription is not None:
        raise Misused("--stored and -s cannot be combined: --stored reads all stored messages")
    if not stored and subscription is None:
        subscription = only_subscription(admin, name)
    query = {"subscription": subscription, "filter": which, "limit": None if limit is None else str(limit)}
    query = {field: text for field, text in query.items() if text is not None}
    show(output, partial(_grouped, admin, name, query, output))


def _grouped(admin: "Admin", name: str, query: dict[str, Any], output: OutputOptions) -> TableOutput:
    topic = topic_named(name)
    with suggesting(admin, topic, query.get("subscription")):
        found = admin.dead_letter_groups(topic, **query)
    if found["bounded"]:
        notify(f"read the newest {found['entries']:,} of {found['of']:,} entries; increase --limit to read more")
    return groups_output(found["groups"], output)
