"""``pulsarbox quota``: limits and their usage; backlog quotas."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.policies import Subject
from pulsarbox.cli.common.confirmation import carry_out, dry_run_option
from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.scope_options import scope_options
from pulsarbox.cli.common.value_types import Seconds, ValueType
from pulsarbox.cli.connect.admin_client import missing, short, suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.policy_values import QUOTA_ACTIONS, QUOTA_AGE, QUOTA_SIZE, quota_value
from pulsarbox.protocol.policies.row import DEFAULT
from pulsarbox.protocol.policies.shapes import NO_LIMIT
from pulsarbox.protocol.policies.short_forms import OFF, UNLIMITED, QuotaForm
from pulsarbox.quantities import BYTES, SECONDS, InvalidText

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_TOPIC: Final = click.argument("topic_name", metavar="TOPIC", shell_complete=completions.topics)
_SUBSCRIPTION: Final = click.argument("subscription", required=False, shell_complete=completions.subscriptions)
_NAME: Final = click.argument(
    "name", metavar="TOPIC|TENANT/NAMESPACE", shell_complete=completions.topics_and_namespaces
)


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def quota() -> None:
    """List, show and explain limits; set backlog quotas.

    `set` and `unset` change the backlog quota of a topic, or of each topic of a namespace: size, age, or both. Set
    rates with `pulsarbox topic policy` and `pulsarbox ns policy`. `tenant/namespace` names a namespace; `orders` and
    `tenant/namespace/orders` name topics.

    \b
    Examples:
      pulsarbox quota list --filter 'share > 0.8'
      pulsarbox quota show orders
      pulsarbox quota explain orders billing
      pulsarbox quota set orders --size 2G --then hold
      pulsarbox quota set acme/prod --age 1d --then evict
      pulsarbox quota unset orders
    """


_Limit = int | str
"""The limit of a quota, NO_LIMIT for none, or DEFAULT to remove the quota."""


class QuotaLimit(ValueType):
    """The size or the age of a quota: an amount, off, unlimited or default."""

    def __init__(self, kind: str) -> None:
        self.name = "size" if kind == QUOTA_SIZE else "duration"
        self._quantity = BYTES if kind == QUOTA_SIZE else SECONDS
        self.examples = (*self._quantity.samples, OFF, DEFAULT)

    def parse(self, text: str) -> _Limit:
        """See ValueType.parse."""
        word = text.strip().lower()
        if word in (OFF, UNLIMITED):
            return NO_LIMIT
        if word == DEFAULT:
            return DEFAULT
        try:
            number = self._quantity.parse(text)
        except InvalidText as error:
            raise error.or_also(f", or {OFF} or {UNLIMITED}; or {DEFAULT}") from None
        if number < 1:
            raise ValueError(
                f"expected a limit of 1 or more, not '{text}'; for no limit, specify {OFF};"
                f" to remove the quota, specify {DEFAULT}"
            )
        return number


class QuotaAction(ValueType):
    """The action at the limit of a quota, by its word or its name in the Admin API."""

    name = "action"
    examples = tuple(QUOTA_ACTIONS)

    def parse(self, text: str) -> str:
        """See ValueType.parse."""
        found = QuotaForm(QUOTA_ACTIONS).action(text)
        if found is None:
            names = ", ".join(f"{word} ({name})" for word, name in QUOTA_ACTIONS.items())
            raise InvalidText(f"one of {names}", text)
        return found


@quota.command("set")
@_NAME
@click.option("--size", type=QuotaLimit(QUOTA_SIZE), help="Maximum backlog size: 2G, 500M, off, default.")
@click.option("--age", type=QuotaLimit(QUOTA_AGE), help="Maximum age of the oldest message: 1h, 7d, off, default.")
@click.option(
    "--then",
    metavar=f"[{'|'.join(QUOTA_ACTIONS)}]",
    type=QuotaAction(),
    help="Action at the limit: hold producers, refuse them, or evict the oldest messages from the backlog. Required"
    " with a limit.",
)
@click.option("--exclude-delayed", is_flag=True, help="Do not count delayed messages. pulsarbox only.")
@dry_run_option
@with_admin
def set_quota(
    name: str,
    size: _Limit | None,
    age: _Limit | None,
    then: str | None,
    exclude_delayed: bool,
    dry_run: bool,
    admin: "Admin",
) -> None:
    """Set a backlog quota by size, by age, or both. Each has its own --then.

    off and unlimited remove the limit, whatever the level above has; default removes the quota, as `quota unset`
    does.

    \b
    Examples:
      pulsarbox quota set orders --size 2G --then hold
      pulsarbox quota set orders --age 1h --then refuse
      pulsarbox quota set acme/prod --size 10G --age 7d --then evict
      pulsarbox quota set orders --size off --age default
    """
    limits = {kind: each for kind, each in ((QUOTA_SIZE, size), (QUOTA_AGE, age)) if each is not None}
    if not limits:
        raise Misused("specify --size, --age, or both")
    if then is None and any(each not in (DEFAULT, NO_LIMIT) for each in limits.values()):
        raise Misused(f"specify the action at the limit: --then {', '.join(QUOTA_ACTIONS)}")
    subject = _subject(admin, name)
    steps = [
        _setting(subject, kind, limit, then or QUOTA_ACTIONS["hold"], exclude_delayed) for kind, limit in limits.items()
    ]
    with _naming_namespace(admin, name):
        carry_out(steps, dry_run=dry_run)


def _setting(subject: Subject, kind: str, limit: _Limit, action: str, exclude_delayed: bool) -> Any:
    of = f"the {'size' if kind == QUOTA_SIZE else 'age'} quota of"
    if isinstance(limit, str):
        return f"unset {of}", subject.name, partial(subject.unset_quota, kind)
    limited = {"size": limit} if kind == QUOTA_SIZE else {"seconds": limit}
    return subject.quota_step(of, kind, quota_value(action, exclude_delayed=exclude_delayed, **limited))


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
    with _naming_namespace(admin, name):
        carry_out(things, dry_run=dry_run)


def _subject(admin: "Admin", name: str) -> Subject:
    return Subject(admin, name if _is_namespace(name) else topic_named(name))


def _is_namespace(name: str) -> bool:
    return "://" not in name and name.count("/") == 1


@contextlib.contextmanager
def _naming_namespace(admin: "Admin", name: str) -> Iterator[None]:
    """Append to the error of a missing topic that a namespace has this name."""
    from pulsarbox.client.admin import AdminRefused

    try:
        yield
    except NotThere as error:
        with contextlib.suppress(AdminRefused):
            if "/" not in name and f"public/{name}" in admin.namespaces("public"):
                hint = f"public/{name} is a namespace: specify tenant/namespace or a topic"
                raise NotThere(f"{error.message}; {hint}") from error
        raise


def _topic_of(name: str) -> TopicName:
    """Return a topic. Raises Misused for a namespace."""
    if _is_namespace(name):
        raise Misused(
            f"{name} is a namespace: specify a topic; `pulsarbox ns policy {name}` shows limits of a namespace"
        )
    return topic_named(name)


# Reading


@quota.command("list")
@output_options
@scope_options
@with_admin
def list_quotas(output: OutputOptions, scope: dict[str, str], admin: "Admin") -> None:
    """List the limits in effect and their use, of all topics, the fullest first.

    Requires a superuser or one of the viewerRoles. Tenant admins pass --tenant. Not supported against Apache Pulsar.

    Fields: scope (broker, resource group, namespace, topic, subscription), subject, topic, subscription, policy, used,
    limit, unit (of used and limit), share (1 is all), level (that sets it), held (throttled time in the last minute,
    ms), holding (throttled now), then (hold, refuse, evict), evictions, waiting (producers or consumers).

    \b
    Examples:
      pulsarbox quota list
      pulsarbox quota list --filter 'holding or held > 0' --watch
      pulsarbox quota list --filter 'share > 0.8 and scope == "topic"' -o json
      pulsarbox quota list --tenant shop
    """
    from pulsarbox.cli.commands.quota_list import limits_of_box

    show(output, partial(limits_of_box, admin, scope))


@quota.command("show")
@_TOPIC
@_SUBSCRIPTION
@output_options
@with_admin
def show_quota(topic_name: str, subscription: str | None, output: OutputOptions, admin: "Admin") -> None:
    """Show the effective rates and backlog quotas of TOPIC, or of one SUBSCRIPTION.

    `pulsarbox quota list` shows the limits of all topics.

    Fields: limit (publish, dispatch, subscribe, backlog size, backlog age), of (its scope), topic, subscription,
    allowed, used, setBy (topic, namespace, broker or a resource group), waiting (producers or subscriptions), held
    (throttled time in the last minute; "now" for an exceeded quota). Each partition has its own limits. A row
    "producer" is a producer that waits for a backlog quota or a publish rate, with its pending receipts and bytes, and
    the cause. Not supported against Apache Pulsar.

    \b
    Examples:
      pulsarbox quota show orders
      pulsarbox quota show orders billing --watch 1
      pulsarbox quota show orders --filter 'heldMillisLastMinute > 0' -o json
    """
    with _naming_namespace(admin, topic_name):
        show(output, partial(_shown, admin, _topic_of(topic_name), subscription))


def _shown(admin: "Admin", topic: TopicName, subscription: str | None) -> TableOutput:
    from pulsarbox.cli.commands.limits_text import COLUMNS, CUT, FIELDS, LEAST, WIDE, parts_of, rows_of

    stats, policies = _asked(admin, topic, subscription)
    found = [row for each, part in parts_of(topic, stats) for row in rows_of(each, part, policies, subscription)]
    return TableOutput(found, COLUMNS, name="limit", cut=CUT, least=LEAST, wide=WIDE, fields=FIELDS)


@quota.command()
@_TOPIC
@_SUBSCRIPTION
@click.option("--watch", type=Seconds(0.1), help="Repeat at this interval, such as 2s, until Ctrl-C.")
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
    topic = _topic_of(topic_name)
    with _naming_namespace(admin, topic_name):
        show(OutputOptions("table", watch, None), partial(_explained, admin, topic, subscription))


def _explained(admin: "Admin", topic: TopicName, subscription: str | None) -> TableOutput:
    from pulsarbox.cli.commands.key_blocked_text import naming_consumers
    from pulsarbox.cli.commands.limits_text import explanation

    stats, policies = _asked(admin, topic, subscription)
    if subscription is not None:
        named = naming_consumers(admin, topic, subscription, stats["subscriptions"][subscription])
        stats["subscriptions"][subscription] = named
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
