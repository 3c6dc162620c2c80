"""``pulsarbox topic``: topics."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.compaction import compact
from pulsarbox.cli.commands.policies import Subject, called, complete
from pulsarbox.cli.common.backlog_units import backlog_columns, backlog_fields
from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, is_pattern, matching, yes_option
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, output_options, show
from pulsarbox.cli.common.progress import CountLine
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import counted
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import (
    every_topic,
    missing,
    namespace_named,
    short,
    suggesting,
    topic_named,
    with_admin,
)
from pulsarbox.cli.process import completions
from pulsarbox.names import DOMAINS, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarbox.client.admin import Admin

_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=SuggestingGroup, context_settings=_SETTINGS)
def topic() -> None:
    """Create, delete, list and inspect topics.

    A topic is `orders`, `tenant/namespace/orders`, or a full name such as `persistent://public/default/orders`.

    \b
    Examples:
      pulsarbox topic create orders --partitions 4
      pulsarbox topic list --filter 'partitions > 0'
      pulsarbox topic stats orders --watch
      pulsarbox topic delete 'test-*'
    """


@topic.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option(
    "-p", "--partitions", type=BoundedInteger(1), metavar="N", help="Number of partitions. [default: not partitioned]"
)
@click.option("--property", "properties", metavar="K=V", multiple=True, help="Topic property; repeatable.")
@dry_run_option
@with_admin
def create(
    names: tuple[str, ...], partitions: int | None, properties: tuple[str, ...], dry_run: bool, admin: "Admin"
) -> None:
    """Create topics.

    \b
    Examples:
      pulsarbox topic create orders
      pulsarbox topic create orders payments --partitions 4
      pulsarbox topic create non-persistent://acme/prod/ticks --property owner=web
    """
    given = pairs(properties)
    topics = [topic_named(name) for name in names]
    made = f"created topic with {counted(partitions, 'partition')}" if partitions else "created topic"
    carry_out(
        [(made, short(each), partial(_create, admin, each, partitions, given)) for each in topics], dry_run=dry_run
    )


def pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse ``k=v`` options into a dict. Raises BadParameter."""
    wrong = [text for text in texts if "=" not in text[1:]]
    if wrong:
        raise click.BadParameter(f"expected name=value, not '{wrong[0]}'")
    return dict(text.split("=", 1) for text in texts)


def _create(admin: "Admin", name: TopicName, partitions: int | None, properties: dict[str, str]) -> None:
    from pulsarbox.client.admin import path_of

    with suggesting(admin, name):
        if partitions and not properties:
            admin.ask("PUT", f"{path_of(name)}/partitions", partitions)
        elif partitions:
            body = {"partitions": partitions, "properties": properties}
            kind = "application/vnd.partitioned-topic-metadata+json"
            admin.ask("PUT", f"{path_of(name)}/partitions", body, content_type=kind)
        else:
            admin.ask("PUT", path_of(name), properties or None)


@topic.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=completions.topics)
@click.option("-f", "--force", is_flag=True, help="Delete even with connected clients, and disconnect them.")
@yes_option
@dry_run_option
@with_admin
def delete(names: tuple[str, ...], force: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Delete topics with all their messages and subscriptions.

    A name may be a pattern of * and ? within a namespace.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Exit codes:
      4  clients are connected (use --force), or not confirmed
      8  some topics were deleted, others not

    \b
    Examples:
      pulsarbox topic delete orders
      pulsarbox topic delete 'test-*' --dry-run
      pulsarbox topic delete orders payments --force --yes
    """
    topics = [each for name in names for each in _meant(admin, name)]
    what = f"delete {len(topics)} topics" if len(topics) > 1 else f"delete topic {short(topics[0])}"
    confirm(f"{what} with all messages and subscriptions", [short(each) for each in topics], yes=yes, dry_run=dry_run)
    things = [("deleted topic", short(each), partial(_delete, admin, each, force)) for each in topics]
    carry_out(things, dry_run=dry_run)


def _meant(admin: "Admin", text: str) -> list[TopicName]:
    """Return the named topic, or the topics of a namespace that match a pattern. Raises NotThere."""
    found = topic_named(text)
    if not is_pattern(found.local):
        if found.base == found and str(found) not in every_topic(admin, found.namespace, found.domain):
            raise missing(admin, found, None, f"no topic '{short(found)}'")
        return [found]
    with suggesting(admin, found):
        names = [topic_named(each) for each in _whole(admin, found.namespace, found.domain)]
    by_name = {each.local: each for each in names}
    return [by_name[each] for each in matching(found.local, by_name)]


def _whole(admin: "Admin", namespace: str, domain: str) -> dict[str, int]:
    """Return the topics of a namespace with their partition counts, without the partitions themselves."""
    partitioned = admin.partitioned_topics(namespace, domain)
    found = dict.fromkeys(partitioned, 0)
    for name in admin.topics(namespace, domain):
        base = str(topic_named(name).base)
        if base in found:
            found[base] += 1
        else:
            found[name] = 0
    return dict(sorted(found.items()))


def _delete(admin: "Admin", name: TopicName, force: bool) -> None:
    from pulsarbox.client.admin import path_of

    part = "/partitions" if name.base == name and admin.partitions(name) else ""
    with suggesting(admin, name):
        admin.ask("DELETE", f"{path_of(name)}{part}", force=str(force).lower())


@topic.command("list")
@click.argument("namespace", default="public/default", shell_complete=completions.namespaces)
@click.option("--all", "everywhere", is_flag=True, help="List the topics of all namespaces of all tenants.")
@click.option("--partitions", "expand", is_flag=True, help="List each partition separately.")
@click.option("--system", is_flag=True, help="List system topics, which are hidden otherwise.")
@click.option("--stats", is_flag=True, help="Include rates and backlogs. Takes a request per topic.")
@output_options
@with_admin
def list_topics(
    namespace: str, everywhere: bool, expand: bool, system: bool, stats: bool, output: OutputOptions, admin: "Admin"
) -> None:
    """List the topics of NAMESPACE, by default public/default.

    Fields: name, topic (full name), namespace, domain, partitions; with --stats also rate_in and rate_out (messages
    per second), storage (bytes), producers, subscriptions, backlog (messages, summed over subscriptions),
    backlog_entries and backlog_unit (as in `pulsarbox sub list`).

    \b
    Examples:
      pulsarbox topic list
      pulsarbox topic list acme/prod -o name
      pulsarbox topic list --all --stats --filter 'backlog > 1000' --watch
      pulsarbox topic list pulsar/system --system
    """
    names = _system if system else _single if expand else _whole
    show(output, partial(_listed, admin, None if everywhere else namespace_named(namespace), names, stats))


def _single(admin: "Admin", namespace: str, domain: str) -> dict[str, int]:
    """Return the topics of a namespace, each partition separately."""
    return dict.fromkeys(admin.topics(namespace, domain), 0)


def _system(admin: "Admin", namespace: str, domain: str) -> dict[str, int]:
    """Return the system topics of a namespace, each partition separately."""
    return dict.fromkeys(admin.system_topics(namespace, domain), 0)


def _listed(
    admin: "Admin", namespace: str | None, names_of: "Callable[[Admin, str, str], dict[str, int]]", stats: bool
) -> TableOutput:
    namespaces = [namespace] if namespace else [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
    rows: list[Row] = []
    for each in namespaces:
        for domain in DOMAINS:
            with suggesting(admin, topic_named(f"{domain}://{each}/-")):
                names = names_of(admin, each, domain)
            rows += [_row(name, partitions) for name, partitions in names.items()]
    columns = ["name", "partitions"]
    empty = f"no topics{f' in {namespace}' if namespace else ''}; create one: pulsarbox topic create orders"
    if stats:
        rows = _all_with_numbers(admin, rows)
        backlogs = backlog_columns(rows)
        columns += ["rate_in", "rate_out", "storage", "producers", "subscriptions", *backlogs.names]
        return TableOutput(
            rows,
            columns,
            name="topic",
            titles=backlogs.titles,
            shown=_SHOWN,
            cut=_CUT,
            least=_LEAST,
            wide=_WIDE,
            fields=(*_FIELDS, *_STATS_FIELDS),
            empty=empty,
        )
    elsewhere = dict.fromkeys(_STATS_FIELDS, "--stats")
    return TableOutput(
        rows, columns, name="topic", cut=_CUT, wide=_WIDE, fields=_FIELDS, elsewhere=elsewhere, empty=empty
    )


_CUT: Final = {"name": 20}
_LEAST: Final = ("partitions", "producers", "subscriptions", "storage", "rate_out", "backlog_entries", "rate_in")
_WIDE: Final = ("namespace", "domain", "topic")
_FIELDS: Final = ("name", "topic", "namespace", "domain", "partitions")
_STATS_FIELDS: Final = (
    *("rate_in", "rate_out", "storage", "producers", "subscriptions"),
    *("backlog", "backlog_entries", "backlog_unit"),
)
_SHOWN: Final = readable(sizes=("storage",))


def _row(name: str, partitions: int) -> Row:
    found = topic_named(name)
    return {
        "name": short(found),
        "topic": name,
        "namespace": found.namespace,
        "domain": found.domain,
        "partitions": partitions,
    }


def _all_with_numbers(admin: "Admin", rows: Sequence[Row]) -> list[Row]:
    """Add statistics to rows, with a request for each, which takes seconds for thousands of topics."""
    found, line = list[Row](), CountLine("reading:", "topic", len(rows))
    try:
        for row in rows:
            if (numbered := _with_numbers(admin, row)) is not None:
                found.append(numbered)
            line.add()
    finally:
        line.clear()
    return found


def _with_numbers(admin: "Admin", row: Row) -> Row | None:
    """Add statistics to a row. Return None if the topic has been deleted meanwhile."""
    from pulsarbox.client.admin import AdminRefused

    try:
        stats = admin.stats(topic_named(row["topic"]), row["partitions"])
    except AdminRefused as error:
        if error.status == 404:
            return None
        raise
    subscriptions = stats["subscriptions"]
    return row | {
        "rate_in": stats["msgRateIn"],
        "rate_out": stats["msgRateOut"],
        "storage": stats["storageSize"],
        "producers": len(stats["publishers"]),
        "subscriptions": len(subscriptions),
        **backlog_fields(subscriptions.values()),
    }


@topic.command()
@click.argument("name", metavar="TOPIC", shell_complete=completions.topics)
@output_options
@with_admin
def stats(name: str, output: OutputOptions, admin: "Admin") -> None:
    """Show the statistics of TOPIC: rates, storage, producers, subscriptions, and causes of no delivery.

    Other output formats print the Admin API response, summed over partitions. Rates are averages over the last
    minute. Backlogs are in messages: backlogMessages in the other formats, besides msgBacklog, which counts entries as
    in Apache Pulsar.

    \b
    Examples:
      pulsarbox topic stats orders
      pulsarbox topic stats orders --watch 1
      pulsarbox topic stats orders -o json | jq .subscriptions.billing.backlogMessages
    """
    show(output, partial(_stats, admin, topic_named(name), output.width))


def _stats(admin: "Admin", name: TopicName, width: int | None) -> TableOutput:
    from pulsarbox.cli.commands.stats_text import topic_lines

    with suggesting(admin, name):
        partitions = admin.partitions(name)
        found = admin.stats(name, partitions)
    lines, hidden = topic_lines(name, partitions, found, width)
    return TableOutput([{"topic": str(name), **found}], lines=lines, hidden=hidden, name="topic")


@topic.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=completions.topics)
@dry_run_option
@with_admin
def unload(names: tuple[str, ...], dry_run: bool, admin: "Admin") -> None:
    """Unload topics from memory. Clients are disconnected and reconnect; no data is lost.

    \b
    Examples:
      pulsarbox topic unload orders
      pulsarbox topic unload 'acme/prod/*'
    """
    topics = [each for name in names for each in _meant(admin, name)]
    carry_out([("unloaded topic", short(each), partial(_unload, admin, each)) for each in topics], dry_run=dry_run)


def _unload(admin: "Admin", name: TopicName) -> None:
    from pulsarbox.client.admin import path_of

    with suggesting(admin, name):
        admin.ask("PUT", f"{path_of(name)}/unload")


@topic.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=completions.topics)
@yes_option
@dry_run_option
@with_admin
def terminate(names: tuple[str, ...], yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Terminate topics: reject new messages permanently, and keep the stored ones.

    Disconnects producers. Consumers get the remaining messages; Java and Rust clients are notified after acknowledging
    all of them.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox topic terminate orders
      pulsarbox topic terminate 'acme/prod/2025-*' --yes
    """
    topics = [each for name in names for each in _meant(admin, name)]
    what = f"terminate {len(topics)} topics" if len(topics) > 1 else f"terminate topic {short(topics[0])}"
    confirm(f"{what} permanently", [short(each) for each in topics], yes=yes, dry_run=dry_run)
    things = [("terminated topic", short(each), partial(_terminate, admin, each)) for each in topics]
    carry_out(things, dry_run=dry_run)


def _terminate(admin: "Admin", name: TopicName) -> None:
    from pulsarbox.client.admin import path_of

    part = "/partitions" if name.base == name and admin.partitions(name) else ""
    with suggesting(admin, name):
        admin.ask("POST", f"{path_of(name)}/terminate{part}")


@topic.command()
@click.argument("name", metavar="TOPIC", shell_complete=completions.topics)
@click.argument("policies", metavar="[POLICY [VALUE]]...", nargs=-1, shell_complete=complete)
@click.option("--unset", is_flag=True, help="Remove the policies; the values of the level above apply.")
@dry_run_option
@output_options
@with_admin
def policy(
    name: str, policies: tuple[str, ...], unset: bool, dry_run: bool, output: OutputOptions, admin: "Admin"
) -> None:
    """Show the effective policies of TOPIC and the level that sets each; show, set or unset POLICY.

    Policies of a partitioned topic apply to all its partitions. VALUE as for `pulsarbox ns policy`.

    \b
    Examples:
      pulsarbox topic policy orders
      pulsarbox topic policy orders max-producers 3
      pulsarbox topic policy orders retention 7d,10G backlog-quota 100M,hold
      pulsarbox topic policy orders dispatch-rate 100/s,5MB/s
      pulsarbox topic policy orders max-producers default
      pulsarbox topic policy orders --unset retention dispatch-rate
    """
    called(Subject(admin, topic_named(name)), policies, unset=unset, dry_run=dry_run, output=output)


@topic.command()
@click.argument("name", metavar="TOPIC", shell_complete=completions.topics)
@click.argument("count", metavar="[N]", type=BoundedInteger(1), required=False)
@dry_run_option
@output_options
@with_admin
def partitions(name: str, count: int | None, dry_run: bool, output: OutputOptions, admin: "Admin") -> None:
    """Show the partitions of TOPIC, or increase their number to N. It cannot be decreased.

    Fields: name, topic, partition, rate_in, rate_out, storage, backlog (messages), backlog_entries, backlog_unit.

    \b
    Examples:
      pulsarbox topic partitions orders
      pulsarbox topic partitions orders 8
    """
    found = topic_named(name)
    if count is None:
        show(output, partial(_partitions, admin, found))
    else:
        carry_out(
            [(f"grown to {counted(count, 'partition')}:", short(found), partial(_grow, admin, found, count))],
            dry_run=dry_run,
        )


def _grow(admin: "Admin", name: TopicName, count: int) -> None:
    from pulsarbox.client.admin import path_of

    with suggesting(admin, name):
        admin.ask("POST", f"{path_of(name)}/partitions", count)


def _partitions(admin: "Admin", name: TopicName) -> TableOutput:
    with suggesting(admin, name):
        count = admin.partitions(name)
        if not count:
            admin.stats(name, 0)  # raises if the topic does not exist
        parts: dict[str, Any] = admin.stats(name, count)["partitions"] if count else {}
    numbered = sorted((topic_named(each).partition_index, each) for each in parts)
    rows = [
        {
            "name": short(each),
            "topic": each,
            "partition": number,
            "rate_in": parts[each]["msgRateIn"],
            "rate_out": parts[each]["msgRateOut"],
            "storage": parts[each]["storageSize"],
            **backlog_fields(parts[each]["subscriptions"].values()),
        }
        for number, each in numbered
    ]
    backlogs = backlog_columns(rows)
    columns = ["name", "rate_in", "rate_out", "storage", *backlogs.names]
    return TableOutput(
        rows,
        columns,
        name="topic",
        titles=backlogs.titles,
        shown=_SHOWN,
        cut=_CUT,
        least=_LEAST,
        wide=["partition", "topic"],
        fields=_PARTITION_FIELDS,
        empty=f"{short(str(name))} is not partitioned",
    )


_PARTITION_FIELDS: Final = (
    *("name", "topic", "partition", "rate_in", "rate_out", "storage", "backlog", "backlog_entries", "backlog_unit"),
)

topic.add_command(compact)
