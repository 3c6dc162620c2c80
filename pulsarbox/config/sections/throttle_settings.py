"""The rows of the settings table that limit rates: of what is dispatched, published, and of subscribing."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class ThrottleSettings:
    """See ``settings.Settings``, of which these are a part."""

    dispatchThrottlingRateInMsg: int = setting(
        0,
        "Messages that the box sends a second to all consumers of persistent topics together; 0 or -1: any number.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRateInByte: int = setting(
        0,
        "Bytes that the box sends a second to all consumers of persistent topics together; 0 or -1: any number.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerTopicInMsg: int = setting(
        0,
        "Messages that the subscriptions of a topic (of each partition) are sent a second together; 0 or -1: any "
        "number.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerTopicInByte: int = setting(
        0,
        "Bytes that the subscriptions of a topic (of each partition) are sent a second together; 0 or -1: any number.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = setting(
        0,
        "Messages that each subscription of a topic (of each partition) is sent a second; 0 or -1: any number.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = setting(
        0,
        "Bytes that each subscription of a topic (of each partition) is sent a second; 0 or -1: any number.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingRateRelativeToPublishRate: bool = setting(
        False,
        "Whether what is published to a topic comes on top of the two rates above that are the topic's and the "
        "subscription's: they then say how fast a backlog goes down.",
        table="throttling",
        dynamic=True,
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = setting(
        True,
        "Whether dispatch rates hold for subscriptions without a backlog too; without one are those of which at "
        "most managedLedgerCursorBackloggedThreshold entries are still to be sent.",
        table="throttling",
        dynamic=True,
    )
    managedLedgerCursorBackloggedThreshold: int = setting(
        1000,
        "Entries that may be still to be sent of a subscription that counts as being without a backlog; -1: any "
        "number. It matters where dispatchThrottlingOnNonBacklogConsumerEnabled is false.",
        table="throttling",
        unit="entries",
        minimum=-1,
        dynamic=True,
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = setting(
        False,
        "Whether dispatch rates count a batch as one message. Not together with preciseDispatcherFlowControl.",
        table="throttling",
        dynamic=True,
    )
    preciseDispatcherFlowControl: bool = setting(
        False,
        "Whether a dispatch rate in messages stops with the batch that uses it up. If not, as many entries are "
        "read as messages are left, and what they hold beyond is taken off the next periods. Not together with "
        "dispatchThrottlingOnBatchMessageEnabled.",
        table="throttling",
        dynamic=True,
    )
    brokerPublisherThrottlingMaxMessageRate: int = setting(
        0,
        "Messages that the box takes a second from all producers together; 0 or -1: any number.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    brokerPublisherThrottlingMaxByteRate: int = setting(
        0,
        "Bytes that the box takes a second from all producers together; 0 or -1: any number.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    maxPublishRatePerTopicInMessages: int = setting(
        0,
        "Messages that a topic (each partition) takes a second from its producers together; 0 or -1: any number. "
        "A producer beyond it gets its receipts later.",
        table="throttling",
        unit="messages",
        minimum=-1,
        dynamic=True,
    )
    maxPublishRatePerTopicInBytes: int = setting(
        0,
        "Bytes that a topic (each partition) takes a second from its producers together; 0 or -1: any number.",
        table="throttling",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    maxThrottledPublishMbytesPerConnection: int = setting(
        16,
        "Own setting. Room of one connection for messages that are stored and whose receipts publish rates hold back, "
        "in MiB, with 256 bytes for each message. A producer that holds back more than the room that is left is "
        "suspended: the broker drops its further messages, and closes it once its receipts have left, so that its "
        "client sends them again; others on the connection notice nothing. At four times the room the connection is "
        "not read.",
        table="throttling",
        unit="MiB",
        minimum=1,
        dynamic=True,
    )
    subscribeThrottlingRatePerConsumer: int = setting(
        0,
        "How often one consumer (by its host, name and id) may subscribe to a topic in a period; 0 or -1: any number.",
        table="throttling",
        unit="times",
        minimum=-1,
        dynamic=True,
    )
    subscribeRatePeriodPerConsumerInSecond: int = setting(
        30,
        "That period.",
        table="throttling",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
