"""Compatibility checks between a subscription's consumers, for persistent and non-persistent topics."""

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
    """Raise ConsumerBusy if a consumer's type or Key_Shared policy differs from that of a connected one.

    The messages are those of AbstractSubscription in Pulsar 4.2.
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


def assign_slots(selector: StickyKeySelector[Consumer], consumer: Consumer, now: Now) -> Iterable[Consumer]:
    """Assign slots to a consumer and return the consumers that lost some to it.

    Raises ConsumerAssignError. If another consumer holds a requested range, its connection is checked for liveness: if
    it is dead, the next attempt succeeds.
    """
    try:
        return selector.add(consumer)
    except RangeConflict as conflict:
        if isinstance(conflict.holder, Consumer):
            conflict.holder.cnx.check_alive(now)
        raise


def refuse_second(present: Consumer, now: Now) -> NoReturn:
    """Check the present consumer's connection for liveness, and raise ConsumerBusy: the subscription is Exclusive."""
    present.cnx.check_alive(now)
    raise ConsumerBusy("Exclusive consumer is already connected")
