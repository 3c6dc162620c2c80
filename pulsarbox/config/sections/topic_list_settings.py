"""Settings on topic lists and pattern subscriptions."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class TopicListSettings:
    """The part of ``Settings`` on topic lists, in the table [topics]."""

    enableBrokerSideSubscriptionPatternEvaluation: bool = setting(
        True,
        "Evaluates the patterns of pattern subscriptions in the broker. If false, clients receive all topic names of "
        "a namespace and filter them.",
        table="topics",
    )
    enableBrokerTopicListWatcher: bool = setting(
        True,
        "Notifies clients that support it (Java) of created and deleted topics at once; they otherwise poll every "
        "minute.",
        table="topics",
    )
    subscriptionPatternMaxLength: int = setting(
        50,
        "Maximum length of a pattern, without its domain, that the broker evaluates; longer ones are left to the "
        "clients.",
        table="topics",
        unit="characters",
        minimum=0,
    )
