"""Settings of the [throttling] table: limits on dispatch, publish and subscribe rates."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class ThrottleSettings:
    """The [throttling] part of ``Settings``."""

    dispatchThrottlingRateInMsg: int = setting(
        0,
        "Maximum messages a second dispatched to all consumers of persistent topics together; 0 or -1: no limit.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRateInByte: int = setting(
        0,
        "Maximum bytes a second dispatched to all consumers of persistent topics together; 0 or -1: no limit.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerTopicInMsg: int = setting(
        0,
        "Maximum messages a second dispatched to all subscriptions of a topic (of each partition) together; 0 or -1: "
        "no limit.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerTopicInByte: int = setting(
        0,
        "Maximum bytes a second dispatched to all subscriptions of a topic (of each partition) together; 0 or -1: no "
        "limit.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = setting(
        0,
        "Maximum messages a second dispatched to each subscription of a topic (of each partition); 0 or -1: no limit.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = setting(
        0,
        "Maximum bytes a second dispatched to each subscription of a topic (of each partition); 0 or -1: no limit.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRateRelativeToPublishRate: bool = setting(
        False,
        "Adds the publish rate of a topic to its topic and subscription dispatch rates, which then limit how fast a "
        "backlog shrinks.",
        table="throttling",
        dynamic=True,
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = setting(
        True,
        "Applies dispatch rates to subscriptions without a backlog as well, that is, with at most "
        "managedLedgerCursorBackloggedThreshold entries still to be sent.",
        table="throttling",
        dynamic=True,
    )
    managedLedgerCursorBackloggedThreshold: int = setting(
        1000,
        "Maximum number of entries still to be sent of a subscription that counts as being without a backlog; -1: any "
        "number. Used if dispatchThrottlingOnNonBacklogConsumerEnabled is false.",
        table="throttling",
        unit="entries",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = setting(
        False,
        "Counts a batch as one message in dispatch rates. Cannot be combined with preciseDispatcherFlowControl.",
        table="throttling",
        dynamic=True,
    )
    preciseDispatcherFlowControl: bool = setting(
        False,
        "Stops dispatch with the batch that exhausts a dispatch rate in messages. If false, as many entries are read "
        "as messages remain, and the excess is deducted from the following periods. Cannot be combined with "
        "dispatchThrottlingOnBatchMessageEnabled.",
        table="throttling",
        dynamic=True,
    )
    brokerPublisherThrottlingMaxMessageRate: int = setting(
        0,
        "Maximum messages a second accepted from all producers together; 0 or -1: no limit.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    brokerPublisherThrottlingMaxByteRate: int = setting(
        0,
        "Maximum bytes a second accepted from all producers together; 0 or -1: no limit.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    maxPublishRatePerTopicInMessages: int = setting(
        0,
        "Maximum messages a second that a topic (each partition) accepts from all its producers together; 0 or -1: no "
        "limit. Producers above the rate receive their receipts later.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    maxPublishRatePerTopicInBytes: int = setting(
        0,
        "Maximum bytes a second that a topic (each partition) accepts from all its producers together; 0 or -1: no "
        "limit.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    maxThrottledPublishMbytesPerConnection: int = setting(
        16,
        "Own setting. Space of one connection for stored messages whose receipts are held back by publish rates, "
        "counting 256 bytes in addition for each message. A producer that needs more than the remaining space is "
        "suspended: the broker drops its further messages, and closes it once its receipts are sent, so that its "
        "client sends them again; other producers on the connection are not affected. At four times this size the "
        "connection is no longer read.",
        table="throttling",
        unit="MiB",
        minimum=1,
        dynamic=True,
    )
    subscribeThrottlingRatePerConsumer: int = setting(
        0,
        "Maximum number of times that one consumer (by host, name and ID) may subscribe to a topic in a period; 0 or "
        "-1: no limit.",
        table="throttling",
        unit="times",
        minimum=-1,
        dynamic=True,
    )
    subscribeRatePeriodPerConsumerInSecond: int = setting(
        30,
        "Length of the period of subscribeThrottlingRatePerConsumer.",
        table="throttling",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
