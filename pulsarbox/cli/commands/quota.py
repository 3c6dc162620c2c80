"""``pulsarbox quota``: limits of a topic and their usage; backlog quotas."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.policies import Subject
from pulsarbox.cli.common.confirmation import carry_out, dry_run_option
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.connect.admin_client import missing, short, suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.policy_values import QUOTA_ACTIONS, QUOTA_AGE, QUOTA_SIZE, quota_value

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_TOPIC: Final = click.argument("topic_name", metavar="TOPIC", shell_complete=completions.topics)
_SUBSCRIPTION: Final = click.argument("subscription", required=False, shell_complete=completions.subscriptions)
_NAME: Final = click.argument("name", metavar="TOPIC|TENANT/NAMESPACE", shell_complete=completions.topics)


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def quota() -> None:
    """Show and explain the limits of a topic; set backlog quotas.

    `set` and `unset` change the backlog quota of a topic, or of each topic of a namespace: size, age, or both. Set
    rates with `pulsarbox topic policy` and `pulsarbox ns policy`. `tenant/namespace` names a namespace; `orders` and
    `tenant/namespace/orders` name topics.

    \b
    Examples:
      pulsarbox quota show orders
      pulsarbox quota explain orders billing
      pulsarbox quota set orders --size 2G --then hold
      pulsarbox quota set acme/prod --age 1d --then evict
      pulsarbox quota unset orders
    """


def _size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    from pulsarbox.cli.pulsar_admin.values import size

    return _read(size, value, 0)


def _age(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    from pulsarbox.cli.pulsar_admin.values import seconds

    return _read(seconds, value, 1)  # an age of 0 is no limit


def _read(how: Any, value: str | None, least: int) -> int | None:
    if value is None:
        return None
    try:
        number: int = how(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if number < least:
        raise click.BadParameter(f"expected a limit of {least} or more; `pulsarbox quota unset` removes it")
    return number


@quota.command("set")
@_NAME
@click.option("--size", metavar="QUOTA_SIZE", callback=_size, help="Maximum backlog size in bytes: 2G, 500M.")
@click.option("--age", metavar="TIME", callback=_age, help="Maximum age of the oldest message: 1h, 7d.")
@click.option(
    "--then",
    type=click.Choice(tuple(QUOTA_ACTIONS)),
    required=True,
    help="Action at the limit: hold producers, refuse them, or evict the oldest messages from the backlog.",
)
@click.option("--exclude-delayed", is_flag=True, help="Do not count delayed messages. pulsarbox only.")
@dry_run_option
@with_admin
def set_quota(
    name: str, size: int | None, age: int | None, then: str, exclude_delayed: bool, dry_run: bool, admin: "Admin"
) -> None:
    """Set a backlog quota by size, by age, or both. Each has its own --then.

    \b
    Examples:
      pulsarbox quota set orders --size 2G --then hold
      pulsarbox quota set orders --age 1h --then refuse
      pulsarbox quota set acme/prod --size 10G --age 7d --then evict
    """
    if size is None and age is None:
        raise Misused("specify --size, --age, or both")
    subject = _subject(admin, name)
    made = partial(quota_value, QUOTA_ACTIONS[then], exclude_delayed=exclude_delayed)
    things = []
    if size is not None:
        body = made(size=size)
        things.append(("set the size quota of", subject.name, partial(subject.set_quota, QUOTA_SIZE, body)))
    if age is not None:
        body = made(seconds=age)
        things.append(("set the age quota of", subject.name, partial(subject.set_quota, QUOTA_AGE, body)))
    carry_out(things, dry_run=dry_run)


@quota.command()
@_NAME
@click.option("--size", is_flag=True, help="Remove only the size quota.")
@click.option("--age", is_flag=True, help="Remove only the age quota.")
@dry_run_option
@with_admin
def unset(name: str, size: bool, age: bool, dry_run: bool, admin: "Admin") -> None:
    """Remove the backlog quotas of a topic or a namespace. The values of the level above apply again.

    \b
    Examples:
      pulsarbox quota unset orders
      pulsarbox quota unset acme/prod --age
    """
    subject = _subject(admin, name)
    both = size == age
    things = []
    if size or both:
        things.append(("unset the size quota of", subject.name, partial(subject.unset_quota, QUOTA_SIZE)))
    if age or both:
        things.append(("unset the age quota of", subject.name, partial(subject.unset_quota, QUOTA_AGE)))
    carry_out(things, dry_run=dry_run)


def _subject(admin: "Admin", name: str) -> Subject:
    if "://" not in name and name.count("/") == 1:
        return Subject(admin, name)
    return Subject(admin, topic_named(name))


# Reading


@quota.command("show")
@_TOPIC
@_SUBSCRIPTION
@output_options
@with_admin
def show_quota(topic_name: str, subscription: str | None, output: OutputOptions, admin: "Admin") -> None:
    """Show the effective rates and backlog quotas of TOPIC, or of one SUBSCRIPTION.

    Fields: limit (publish, dispatch, subscribe, backlog size, backlog age), of (its scope), topic, subscription,
    allowed, used, setBy (topic, namespace, broker or a resource group), waiting (producers or subscriptions), held
    (throttled time in the last minute; "now" for an exceeded quota). Each partition has its own limits. A row
    "producer" is a producer that waits for a backlog quota or a publish rate, with its pending receipts and bytes, and
    the cause. Not supported against Apache
    Pulsar.

    \b
    Examples:
      pulsarbox quota show orders
      pulsarbox quota show orders billing --watch 1
      pulsarbox quota show orders --filter 'heldMillisLastMinute > 0' -o json
    """
    show(output, partial(_shown, admin, topic_named(topic_name), subscription))


def _shown(admin: "Admin", topic: TopicName, subscription: str | None) -> TableOutput:
    from pulsarbox.cli.commands.limits_text import COLUMNS, parts_of, rows_of

    stats, policies = _asked(admin, topic, subscription)
    found = [row for each, part in parts_of(topic, stats) for row in rows_of(each, part, policies, subscription)]
    return TableOutput(found, COLUMNS, name="limit")


@quota.command()
@_TOPIC
@_SUBSCRIPTION
@click.option("--watch", metavar="S", type=click.FloatRange(0.1), help="Repeat every S seconds until Ctrl-C.")
@with_admin
def explain(topic_name: str, subscription: str | None, watch: float | None, admin: "Admin") -> None:
    """Explain the limits of TOPIC: the value per level, the effective one, and its current usage.

    With SUBSCRIPTION, also shows the cause of its backlog, the time to drain it at current rates, and the limits of
    its delivery. Not supported against Apache Pulsar.

    \b
    Examples:
      pulsarbox quota explain orders
      pulsarbox quota explain orders billing
    """
    topic = topic_named(topic_name)
    show(OutputOptions("table", watch, None), partial(_explained, admin, topic, subscription))


def _explained(admin: "Admin", topic: TopicName, subscription: str | None) -> TableOutput:
    from pulsarbox.cli.commands.limits_text import explanation

    stats, policies = _asked(admin, topic, subscription)
    lines = explanation(topic, stats, policies, subscription)
    return TableOutput([{"name": str(topic), "lines": lines}], lines=lines)


def _asked(admin: "Admin", topic: TopicName, subscription: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the statistics, per partition if any, and the policies. Raises NotThere for a missing subscription."""
    with suggesting(admin, topic, subscription):
        partitions = admin.partitions(topic)
        stats = admin.stats(topic, partitions, each=bool(partitions))
        policies = admin.policies(topic)
    if subscription is not None and subscription not in stats["subscriptions"]:
        raise missing(admin, topic, subscription, f"no subscription '{subscription}' on {short(topic)}")
    return stats, policies
