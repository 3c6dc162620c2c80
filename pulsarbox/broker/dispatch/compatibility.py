"""Which consumers a subscription can have at the same time, stored or not."""

from collections.abc import Iterable
from typing import NoReturn

from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector
from pulsarbox.broker.dispatch.selectors.sticky_ranges import RangeConflict
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.errors import ConsumerBusy
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe


def check_compatible(
    present: Consumer, present_type: CommandSubscribe.SubType, consumer: Consumer, sub_type: CommandSubscribe.SubType
) -> None:
    """Raises ConsumerBusy where a consumer asks for another type, or for keys on other terms, than one that is here.

    The texts are those of AbstractSubscription of Pulsar 4.2.
    """
    if sub_type != present_type:
        names = CommandSubscribe.SubType.Name
        raise ConsumerBusy(
            f"Subscription is of different type. Active subscription type of '{names(present_type)}' is different than"
            f" the connecting consumer's type '{names(sub_type)}'."
        )
    if sub_type != CommandSubscribe.Key_Shared:
        return
    here, wanted = present.key_shared, consumer.key_shared
    if here.mode is not wanted.mode:
        raise ConsumerBusy(
            f"Subscription is of different type. Active subscription key_shared mode of '{here.mode.name}' is different"
            f" than the connecting consumer's key_shared mode '{wanted.mode.name}'."
        )
    if here.allow_out_of_order != wanted.allow_out_of_order:
        allowed = "allows out of order delivery while the connecting consumer does not allow it."
        forbidden = "does not allow out of order delivery while the connecting consumer allows it."
        text = allowed if here.allow_out_of_order else forbidden
        raise ConsumerBusy(f"Subscription is of different type. Active subscription {text}")


def take_slots(selector: StickyKeySelector[Consumer], consumer: Consumer, now: Now) -> Iterable[Consumer]:
    """Give a consumer its slots; those that lost some to it.

    Raises ConsumerAssignError. Where another consumer has a range that this one wants, that one's connection is asked
    for a sign of life: if it has gone, the next attempt succeeds.
    """
    try:
        return selector.add(consumer)
    except RangeConflict as conflict:
        if isinstance(conflict.holder, Consumer):
            conflict.holder.cnx.check_alive(now)
        raise


def refuse_second(present: Consumer, now: Now) -> NoReturn:
    """Raises ConsumerBusy: an Exclusive subscription has its consumer, which is asked for a sign of life."""
    present.cnx.check_alive(now)
    raise ConsumerBusy("Exclusive consumer is already connected")
