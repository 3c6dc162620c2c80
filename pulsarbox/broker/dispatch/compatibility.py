"""Which consumers a subscription can have at the same time, stored or not."""

from pulsarbox.broker.consumer import Consumer
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
