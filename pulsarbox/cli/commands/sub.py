"""``pulsarbox sub``: the subscriptions of a topic."""

import shlex
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import click

from pulsarbox.cli.commands.dead_letters.sub_dead_letter import dead_letter
from pulsarbox.cli.commands.topic import pairs
from pulsarbox.cli.common.backlog_units import backlog_fields
from pulsarbox.cli.common.confirmation import (
    agree_to,
    carry_out,
    confirm,
    dry_run_option,
    is_pattern,
    matching,
    yes_option,
)
from pulsarbox.cli.common.exits import Failed, InTheWay, Misused
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.position_arguments import AT, PositionParam
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import clean, counted, notify
from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.cli.common.value_types import BoundedInteger, Seconds
from pulsarbox.cli.connect.admin_client import missing, short, subscription_named, suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions
from pulsarbox.names import TopicName

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_AGE_MAX: Final = 100 * 365 * 86_400
_TOPIC: Final = click.argument("topic_name", metavar="TOPIC", shell_complete=completions.topics)
_ONE: Final = click.argument("subscription", metavar="SUBSCRIPTION", shell_complete=completions.subscriptions)
_MANY: Final = click.argument(
    "names", metavar="SUBSCRIPTION...", nargs=-1, required=True, shell_complete=completions.subscriptions
)

_yes_to_skipping: Final = click.option(
    "--yes", is_flag=True, help="Skip the confirmation; required without a terminal if messages are skipped."
)
_yes_to_batches: Final = click.option(
    "--yes", is_flag=True, help="Skip the confirmation; required without a terminal if batches contain more messages."
)

END_OF_TIME: Final = 9_999_999_999_999
"""A publish time (ms since 1970) after that of any message: resets a cursor to the end of a topic."""


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def sub() -> None:
    """Create, delete, list, seek and clear subscriptions.

    \b
    Examples:
      pulsarbox sub list orders --filter 'backlog > 0'
      pulsarbox sub seek orders billing @-1h
      pulsarbox sub skip orders billing 10
      pulsarbox sub holes orders billing
      pulsarbox sub dead-letter orders billing 3
    """


sub.add_command(dead_letter)


@sub.command()
@_TOPIC
@_MANY
@click.option(
    "--at", "place", type=AT, default="latest", show_default=True, help="Start position, as POSITION of `sub seek`."
)
@click.option("--property", "properties", metavar="K=V", multiple=True, help="Subscription property; repeatable.")
@dry_run_option
@with_admin
def create(
    topic_name: str,
    names: tuple[str, ...],
    place: PositionParam,
    properties: tuple[str, ...],
    dry_run: bool,
    admin: "Admin",
) -> None:
    """Create durable subscriptions. Creates a missing TOPIC if the broker allows it.

    \b
    Examples:
      pulsarbox sub create orders billing
      pulsarbox sub create orders billing audit --at earliest
      pulsarbox sub create orders replay --at 12:345
    """
    topic, given = topic_named(topic_name), pairs(properties)
    make = partial(_create, admin, topic, place, given)
    named = map(subscription_named, names)
    things = [("created subscription", f"{name} on {short(topic)}", partial(make, name)) for name in named]
    carry_out(things, dry_run=dry_run)


def _create(admin: "Admin", topic: TopicName, place: PositionParam, properties: dict[str, str], name: str) -> None:
    from pulsarbox.client.admin import path_of_subscription

    path = path_of_subscription(place.of(topic), name)
    body = (place.body if place.time is None else PositionParam(word="latest").body) | (
        {"properties": properties} if properties else {}
    )
    with suggesting(admin, topic):
        admin.ask("PUT", path, body)
        if place.time is not None:
            admin.ask("POST", f"{path}/resetcursor/{place.time}")


@sub.command()
@_TOPIC
@_MANY
@click.option("-f", "--force", is_flag=True, help="Delete even with connected consumers, and disconnect them.")
@yes_option
@dry_run_option
@with_admin
def delete(topic_name: str, names: tuple[str, ...], force: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Delete subscriptions. A name may be a pattern of * and ?.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox sub delete orders billing
      pulsarbox sub delete orders 'test-*' --force --yes
    """
    topic = topic_named(topic_name)
    found = _meant(admin, topic, names)
    what = f"delete {len(found)} subscriptions" if len(found) > 1 else f"delete subscription {found[0]}"
    confirm(f"{what} of {short(topic)}", found, yes=yes, dry_run=dry_run)
    _each(admin, topic, found, "deleted subscription", partial(_delete, admin, topic, force), dry_run)


def _delete(admin: "Admin", topic: TopicName, force: bool, name: str) -> None:
    from pulsarbox.client.admin import path_of_subscription

    admin.ask("DELETE", path_of_subscription(topic, name), force=str(force).lower())


def _meant(admin: "Admin", topic: TopicName, names: tuple[str, ...]) -> list[str]:
    """Return the subscriptions that match names or patterns. Raises NotThere."""
    with suggesting(admin, topic):
        there = admin.subscriptions(topic)
    found: dict[str, None] = {}
    for name in names:
        if name not in there and not is_pattern(name):
            raise missing(admin, topic, name, f"no subscription '{name}' on {short(topic)}")
        found |= dict.fromkeys([name] if name in there else matching(name, there))
    return list(found)


def _each(
    admin: "Admin", topic: TopicName, names: list[str], done: str, do: Callable[[str], Any], dry_run: bool
) -> None:
    def one(name: str) -> None:
        with suggesting(admin, topic, name):
            do(name)

    carry_out([(done, f"{name} on {short(topic)}", partial(one, name)) for name in names], dry_run=dry_run)


@sub.command("list")
@_TOPIC
@output_options
@with_admin
def list_subscriptions(topic_name: str, output: OutputOptions, admin: "Admin") -> None:
    """List the subscriptions of TOPIC.

    Fields: name, topic, type, durable, consumers, backlog (messages), backlog_entries (a batch is one entry),
    backlog_unit, backlog_bytes, unacked, rate_out and rate_acked (messages per second), rate_dropped and dropped
    (messages of a non-persistent topic, per second and in total), rate_chunks (chunks per second), ranges
    (acknowledged beyond the first gap), expired, seconds_to_drain (at current rates, -1: never; pulsarbox only), why
    (cause of no delivery; pulsarbox only, not for partitioned topics), dead_letters (messages moved by the box),
    properties. Apache Pulsar counts only entries: backlog is then in entries, as shown by backlog_unit and the column
    title.

    \b
    Examples:
      pulsarbox sub list orders
      pulsarbox sub list orders --filter 'backlog > 0 and consumers == 0' -o name
    """
    show(output, partial(_listed, admin, topic_named(topic_name)))


def _listed(admin: "Admin", topic: TopicName) -> TableOutput:
    from pulsarbox.cli.commands import stats_text
    from pulsarbox.cli.common.backlog_units import backlog_columns

    with suggesting(admin, topic):
        stats = admin.stats(topic, admin.partitions(topic))
    rows = [stats_text.subscription_row(*each) for each in stats_text.named(topic, stats)]
    backlogs = backlog_columns(rows)
    return TableOutput(
        rows,
        ["name", *stats_text.columns_with(backlogs)],
        titles={**backlogs.titles, "seconds_to_drain": "DRAINS IN", "backlog_bytes": "BACKLOG SIZE"},
        shown=stats_text.shown_subscription,
        cut={"name": 12},
        least=stats_text.LEAST,
        wide=stats_text.WIDE,
        fields=stats_text.FIELDS,
        empty=f"no subscriptions on {short(topic)}; create one: pulsarbox sub create {short(topic)} billing",
    )


@sub.command()
@_TOPIC
@_ONE
@output_options
@with_admin
def stats(topic_name: str, subscription: str, output: OutputOptions, admin: "Admin") -> None:
    """Show one subscription: its backlog, its consumers, and the cause if nothing is delivered.

    Other output formats print the Admin API response.

    \b
    Examples:
      pulsarbox sub stats orders billing
      pulsarbox sub stats orders billing --watch 1
    """
    show(output, partial(_stats, admin, topic_named(topic_name), subscription, output.width))


def _stats(admin: "Admin", topic: TopicName, name: str, width: int | None) -> TableOutput:
    from pulsarbox.cli.commands.key_blocked_text import naming_consumers
    from pulsarbox.cli.commands.stats_text import subscription_lines

    with suggesting(admin, topic, name):
        found = admin.stats(topic, admin.partitions(topic))["subscriptions"].get(name)
        if found is None:
            raise missing(admin, topic, name, f"no subscription '{name}' on {short(topic)}")
    row = {"name": name, "topic": str(topic), **found}
    lines, hidden = subscription_lines(topic, name, naming_consumers(admin, topic, name, found), width)
    if words := redelivery_words(topic, name, _redeliveries(admin, topic, name) if found["msgBacklog"] else {}):
        lines += ["", words]
    return TableOutput([row], lines=lines, hidden=hidden)


def _redeliveries(admin: "Admin", topic: TopicName, name: str) -> dict[str, Any]:
    """Return the first 1,000 redelivery counts of a subscription and their total; nothing from other brokers."""
    from pulsarbox.client.admin import AdminRefused, quoted
    from pulsarbox.names import PERSISTENT

    if topic.domain != PERSISTENT:
        return {}
    path = f"/places/{quoted(topic.tenant, topic.namespace_local, topic.local)}"
    try:
        found: dict[str, Any] = admin.own(f"{path}?{urlencode({'subscription': name})}")
    except AdminRefused:  # Apache Pulsar, a partitioned topic, or not authorized to consume
        return {}
    return found


def redelivery_words(topic: TopicName, name: str, found: dict[str, Any]) -> str:
    """Return how many messages were redelivered, and the command that shows them; empty for none."""
    count = found.get("redeliveredTotal", 0)
    if not count:
        return ""
    most = max((each["count"] for each in found["redelivered"]), default=0)
    among = "" if count <= len(found["redelivered"]) else f" among the first {len(found['redelivered']):,}"
    times = f"up to {most:,} times" if most > 1 else "once"
    command = f"pulsarbox peek {shlex.quote(short(topic))} -s {shlex.quote(name)} --filter 'redelivery > {most // 4}'"
    return clean(f"{counted(count, 'message')} redelivered {times}{among}: {command}")


@sub.command()
@_TOPIC
@_ONE
@click.argument("place", metavar="POSITION", type=AT, shell_complete=completions.POSITIONS)
@_yes_to_skipping
@dry_run_option
@with_admin
def seek(topic_name: str, subscription: str, place: PositionParam, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Reset a subscription to a position. Disconnects its consumers, which reconnect and resume there.

    Reports before and after it how many messages are delivered again, and how many are skipped, and asks to continue
    on a terminal. Without a terminal, a seek that skips messages requires --yes. The preview counts every message of a
    batch, and the messages of all partitions. It is exact unless consumers acknowledge or producers publish meanwhile.
    Apache Pulsar has no preview.

    POSITION is earliest, latest, a time (-1h, @-1h, @2026-11-21T10:00: the first message published at or after it), or
    a message ID: ledger:entry, ledger:entry:partition, ledger:entry:partition:index.

    \b
    Exit codes:
      1  the backlog contradicts the preview, and consumers have not received the difference
      3  the topic or the subscription does not exist
      4  not confirmed

    \b
    Examples:
      pulsarbox sub seek orders billing -1h --dry-run
      pulsarbox sub seek orders billing earliest
      pulsarbox sub seek orders billing @-30m --yes
      pulsarbox sub seek orders billing 12:345
    """
    from pulsarbox.cli.commands.seek_preview import contradiction, preview, preview_words, skipped_by

    topic = topic_named(topic_name)
    before = _backlog_or_missing(admin, topic, subscription)
    expected = preview(admin, topic, subscription, place)
    notify(preview_words(expected, place))
    which, skipped = f"subscription {subscription} on {short(topic)}", skipped_by(expected, place)
    loss = "" if skipped == 0 else f"skip {'the backlog' if skipped is None else messages(skipped)} of {which}"
    agree_to(f"Reset {which} to {place}", loss, yes=yes, dry_run=dry_run)

    def reset() -> None:
        with suggesting(admin, topic, subscription):
            _seek(admin, topic, place, subscription)

    carry_out([("reset", f"{which} to {place}", reset)], dry_run=dry_run)
    if not dry_run:
        after = _backlog(admin, topic, subscription)
        notify(seek_words(before, after))
        if problem := contradiction(expected, before, after):
            raise Failed(f"{which} {problem}")


def _backlogs(admin: "Admin", topic: TopicName) -> dict[str, dict[str, Any]]:
    """Return the backlog of each subscription, as ``backlog_fields``."""
    with suggesting(admin, topic):
        found = admin.stats(topic, admin.partitions(topic))["subscriptions"]
    return {name: backlog_fields([each]) for name, each in found.items()}


def expiry_words(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return what an expiry did to a backlog, in words."""
    expired = max(before["backlog"] - after["backlog"], 0)
    words = f"{expired:,} expired" if expired else "no change"
    return f"backlog {before['backlog']:,} before, {after['backlog']:,} now ({after['backlog_unit']}): {words}"


def _backlog(admin: "Admin", topic: TopicName, name: str) -> dict[str, Any] | None:
    """Return ``backlog_fields`` of a subscription, and the messages ``delivered`` so far; None if it does not exist."""
    with suggesting(admin, topic, name):
        found = admin.stats(topic, admin.partitions(topic))["subscriptions"].get(name)
    return None if found is None else {**backlog_fields([found]), "delivered": found.get("msgOutCounter", 0)}


def _backlog_or_missing(admin: "Admin", topic: TopicName, name: str) -> dict[str, Any]:
    """Return the backlog as ``_backlog``. Raises NotThere."""
    found = _backlog(admin, topic, name)
    if found is None:
        raise missing(admin, topic, name, f"no subscription '{name}' on {short(topic)}")
    return found


def seek_words(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """Return what a seek did to a backlog, in words."""
    if before is None or after is None:
        return "the backlog is unknown"
    change, unit = after["backlog"] - before["backlog"], after["backlog_unit"]
    words = f"{change:,} are delivered again" if change > 0 else f"{-change:,} are skipped" if change else "no change"
    return f"backlog {before['backlog']:,} before, {after['backlog']:,} now ({unit}): {words}"


def _seek(admin: "Admin", topic: TopicName, place: PositionParam, name: str) -> None:
    from pulsarbox.client.admin import path_of_subscription

    target = place.of(topic)
    path = path_of_subscription(target, name) + "/resetcursor"
    if place.time is not None:
        admin.ask("POST", f"{path}/{place.time}")
    elif not admin.partitions(target):
        admin.ask("POST", path, place.body)
    elif place.word:
        admin.ask("POST", f"{path}/{0 if place.word == 'earliest' else END_OF_TIME}")
    else:
        raise Misused(f"{short(topic)} is partitioned: the message ID requires a partition, as in 12:345:0")


@sub.command()
@_TOPIC
@_ONE
@click.argument("count", metavar="N", type=BoundedInteger(1))
@_yes_to_batches
@dry_run_option
@with_admin
def skip(topic_name: str, subscription: str, count: int, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Skip the next N entries of a subscription: messages, or batches of messages.

    Acknowledges them without delivery. As in Pulsar, a batch counts as one. Reports how many messages were skipped; if
    batches contain more than N, asks to continue on a terminal, and otherwise requires --yes. For a partitioned topic,
    name the partition. Apache Pulsar has no preview.

    \b
    Examples:
      pulsarbox sub skip orders billing 1
      pulsarbox sub skip orders billing 5 --dry-run
      pulsarbox sub skip orders-partition-0 billing 100 --yes
    """
    from pulsarbox.cli.commands.seek_preview import amount_words, messages_in

    topic = topic_named(topic_name)
    _one_partition(admin, topic, subscription, count)
    before = _backlog_or_missing(admin, topic, subscription)
    entries = min(count, before["backlog_entries"])
    inside = messages_in(admin, topic, subscription, count)
    which, amount = f"subscription {subscription} on {short(topic)}", amount_words(entries, inside)
    if inside is not None and inside > count:
        agree_to(f"Skip {amount} of {which}", f"skip {amount} of {which}", yes=yes, dry_run=dry_run)
    _each(
        admin, topic, [subscription], f"skipped {amount} of subscription", partial(_skip, admin, topic, count), dry_run
    )
    if not dry_run:
        notify(seek_words(before, _backlog(admin, topic, subscription)))


def _one_partition(admin: "Admin", topic: TopicName, name: str, count: int) -> None:
    """Raise Misused for a partitioned topic: entries are skipped in one partition."""
    if admin.partitions(topic):
        one = short(topic.partition(0))
        raise Misused(
            f"{short(topic)} is partitioned: skip messages of one partition with "
            f"`pulsarbox sub skip {one} {name} {count}`, or all with `pulsarbox sub clear {short(topic)} {name}`"
        )


def _skip(admin: "Admin", topic: TopicName, count: int, name: str) -> None:
    from pulsarbox.client.admin import path_of_subscription

    admin.ask("POST", path_of_subscription(topic, name, "skip", str(count)))


@sub.command()
@_TOPIC
@_MANY
@yes_option
@dry_run_option
@with_admin
def clear(topic_name: str, names: tuple[str, ...], yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Clear the backlog of subscriptions. A name may be a pattern of * and ?.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox sub clear orders billing
      pulsarbox sub clear orders '*' --yes
    """
    topic = topic_named(topic_name)
    found = _meant(admin, topic, names)
    what = f"{len(found)} subscriptions" if len(found) > 1 else f"subscription {found[0]}"
    confirm(f"drop the backlog of {what} of {short(topic)}", found, yes=yes, dry_run=dry_run)
    _each(admin, topic, found, "cleared subscription", partial(_clear, admin, topic), dry_run)


def _clear(admin: "Admin", topic: TopicName, name: str) -> None:
    from pulsarbox.client.admin import path_of_subscription

    admin.ask("POST", path_of_subscription(topic, name, "skip_all"))


@sub.command()
@_TOPIC
@click.argument("names", metavar="[SUBSCRIPTION...]", nargs=-1, shell_complete=completions.subscriptions)
@click.option("--older", "age", type=Seconds(1, _AGE_MAX), help="Expire messages published longer ago: 1h, 30m, 3600.")
@click.option("--through", "place", type=AT, metavar="ID", help="Expire messages up to and including this one.")
@yes_option
@dry_run_option
@with_admin
def expire(
    topic_name: str,
    names: tuple[str, ...],
    age: float | None,
    place: PositionParam | None,
    yes: bool,
    dry_run: bool,
    admin: "Admin",
) -> None:
    """Expire old messages of the named subscriptions, by default of all subscriptions of TOPIC.

    Reports for each subscription how many messages expire, before the confirmation and in a dry run, and the backlog
    before and after it. Apache Pulsar has no such preview.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox sub expire orders billing --older 1d
      pulsarbox sub expire orders --older 2h30m --yes
      pulsarbox sub expire orders billing --through 12:345
    """
    if (age is None) == (place is None):
        raise Misused("specify either --older or --through")
    if place is not None and (place.id is None):
        raise Misused("--through: expected a message ID, ledger:entry")
    topic = topic_named(topic_name)
    found = _meant(admin, topic, names or ("*",))
    before = _backlogs(admin, topic)
    _show_expiry(admin, topic, found, age, place)
    which = f"subscription {found[0]}" if len(found) == 1 else f"{len(found)} subscriptions"
    confirm(f"drop old messages of {which} of {short(topic)}", found, yes=yes, dry_run=dry_run)
    _each(admin, topic, found, "expired messages of subscription", partial(_expire, admin, topic, age, place), dry_run)
    after = {} if dry_run else _backlogs(admin, topic)
    for name in found:
        if name in before and name in after:
            notify(f"{name} on {short(topic)}: {expiry_words(before[name], after[name])}")


def _show_expiry(
    admin: "Admin", topic: TopicName, names: list[str], age: float | None, place: PositionParam | None
) -> None:
    """Report how many messages of each subscription would expire, if the broker can tell."""
    from pulsarbox.cli.commands.seek_preview import expiring, preview

    until = PositionParam(time=wall_now() - round((age or 0) * 1000)) if place is None else place.after
    for name in names:
        with suggesting(admin, topic, name):
            found = preview(admin, topic, name, until)
        if found is not None:
            notify(f"{name} on {short(topic)}: {expiring(found):,} of {found['before']:,} messages expire")


def _expire(admin: "Admin", topic: TopicName, age: float | None, place: PositionParam | None, name: str) -> None:
    from pulsarbox.client.admin import AdminRefused, path_of_subscription

    target = topic if place is None else place.of(topic)
    path = path_of_subscription(target, name, "expireMessages")
    try:
        if place is not None:
            admin.ask("POST", path, place.body)
        else:
            assert age is not None
            admin.ask("POST", f"{path}/{int(age)}")
    except AdminRefused as error:
        if error.status != 409:
            raise
        if place is not None:
            raise InTheWay(f"nothing expired in {name}: no message is that old or has that ID") from error
        notify(f"{name} has no backlog")  # nothing to expire


@sub.command()
@_TOPIC
@_ONE
@output_options
@with_admin
def holes(topic_name: str, subscription: str, output: OutputOptions, admin: "Admin") -> None:
    """Show unacknowledged entries that precede acknowledged ones.

    A hole is a range of messages that a consumer holds, rejected, or never acknowledged. Fields: name, topic, first
    and last (ledger:entry), entries. Covers all partitions. A broker reports up to 10,000 acknowledged ranges.

    \b
    Examples:
      pulsarbox sub holes orders billing
      pulsarbox sub holes orders billing -o json | jq 'map(.entries) | add'
    """
    show(output, partial(_holes, admin, topic_named(topic_name), subscription))


def _holes(admin: "Admin", topic: TopicName, name: str) -> TableOutput:
    from pulsarbox.cli.commands.holes import holes_of

    rows = []
    with suggesting(admin, topic, name):
        count = admin.partitions(topic)
        for each in [topic.partition(i) for i in range(count)] or [topic]:
            stats = admin.internal_stats(each)
            if name in stats.get("cursors", {}):
                rows += [{"name": name, "topic": str(each), **hole} for hole in holes_of(stats, name)]
            elif not count:
                raise missing(admin, topic, name, f"no subscription '{name}' on {short(topic)}")
        if count and name not in admin.subscriptions(topic):
            raise missing(admin, topic, name, f"no subscription '{name}' on {short(topic)}")
    columns = [*(["topic"] if count else []), "first", "last", "entries"]
    return TableOutput(
        rows, columns, name="first", cut={"topic": 16}, fields=["first", "last", "entries"], empty=_NO_HOLES
    )


_NO_HOLES: Final = "no holes: no acknowledged entry follows an unacknowledged one"
