"""``pulsarbox sub dead-letter``: the server-side dead letter policy of a subscription."""

import functools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.confirmation import carry_out, dry_run_option
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.terminal_text import clean, counted, notify
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import short, suggesting, topic_named, with_admin
from pulsarbox.names import TopicName

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_BATCHES: Final = "note: if consumers do not acknowledge by batch index, one rejected message moves its whole batch"
_NONE: Final = "none: clients handle their dead letters"


def _target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --to and --keep-for to a command, passed to it as API fields in ``given``."""

    @functools.wraps(command)
    def called(*args: Any, target: str | None, initial: str | None, **kwargs: Any) -> Any:
        said = {"deadLetterTopic": target, "initialSubscriptionName": initial}
        return command(*args, given={name: value for name, value in said.items() if value is not None}, **kwargs)

    to = click.option("--to", "target", metavar="TOPIC", help="Dead letter topic. [default: TOPIC-SUBSCRIPTION-DLQ]")
    keep_for = click.option(
        "--keep-for",
        "initial",
        metavar="NAME",
        help="Subscription to create on a dead letter topic without any; '' for none. [default: dead-letters]",
    )
    return to(keep_for(called))


@click.command("dead-letter")
@click.argument("topic_name", metavar="TOPIC")
@click.argument("subscription", metavar="SUBSCRIPTION")
@click.argument("count", metavar="[COUNT]", type=BoundedInteger(0), required=False)
@_target_options
@click.option("--unset", is_flag=True, help="Remove the policy.")
@dry_run_option
@output_options
@with_admin
def dead_letter(
    topic_name: str,
    subscription: str,
    count: int | None,
    given: dict[str, Any],
    unset: bool,
    dry_run: bool,
    output: OutputOptions,
    admin: "Admin",
) -> None:
    """Show, set or unset the server-side dead letter policy of a subscription.

    The box moves a message that is rejected, or lost with its consumer, more than COUNT times to the dead letter
    topic: exactly once, even across crashes, for clients in every language. Shared and Key_Shared subscriptions only;
    the others redeliver in order and count no redeliveries. Not supported against Apache Pulsar.

    Moves only the unacknowledged messages of a batch. Clients acknowledge single messages of a batch only if enabled:
    batch_index_ack_enabled=True in Python, enableBatchIndexAcknowledgment(true) in Java,
    EnableBatchIndexAcknowledgment in Go. Otherwise one rejected message in a batch of 100 yields 100 dead letters,
    as their property DEAD_LETTER_REASON states.

    Fields: topic, subscription, maxRedeliverCount, deadLetterTopic, initialSubscriptionName.

    \b
    Examples:
      pulsarbox sub dead-letter orders billing
      pulsarbox sub dead-letter orders billing 3
      pulsarbox sub dead-letter orders billing 3 --to failed-orders --keep-for triage
      pulsarbox sub dead-letter orders billing --unset
    """
    topic = topic_named(topic_name)
    if unset and (count is not None or given):
        raise Misused("--unset cannot be combined with other arguments")
    if given and count is None:
        raise Misused("specify the maximum redeliveries: `pulsarbox sub dead-letter TOPIC SUBSCRIPTION COUNT`")
    name = f"{subscription} on {short(topic)}"
    if unset:
        do = partial(_ask, admin, topic, subscription, "DELETE")
        carry_out([("unset the dead letter policy of subscription", name, do)], dry_run=dry_run)
    elif count is not None:
        do = partial(_ask, admin, topic, subscription, "POST", {"maxRedeliverCount": count} | given)
        carry_out([("set the dead letter policy of subscription", name, do)], dry_run=dry_run)
        notify(_BATCHES)
    else:
        show(output, partial(_shown, admin, topic, subscription))


def _ask(
    admin: "Admin", topic: TopicName, subscription: str, method: str, value: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    with suggesting(admin, topic, subscription):
        return admin.dead_letter_policy(topic, subscription, method, value)


def _shown(admin: "Admin", topic: TopicName, subscription: str) -> TableOutput:
    policy = _ask(admin, topic, subscription, "GET")
    row = {"topic": str(topic), "subscription": subscription, **(policy or {})}
    if policy is None:
        return TableOutput([row], name="subscription", lines=[_NONE])
    kept = policy["initialSubscriptionName"]
    lines = [
        f"redelivered  {counted(policy['maxRedeliverCount'], 'time')}",
        f"moved to     {clean(short(policy['deadLetterTopic']))}",
        f"kept for     {clean(kept)}, unless it has a subscription"
        if kept
        else "kept for     no subscription: not retained without one",
    ]
    return TableOutput([row], name="subscription", lines=lines)
