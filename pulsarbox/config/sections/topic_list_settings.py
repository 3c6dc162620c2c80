"""The settings of lists of topics, as pattern subscriptions ask for them."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class TopicListSettings:
    """Those of ``Settings`` about the lists of topics that clients ask for and watch; they stand in [topics]."""

    enableBrokerSideSubscriptionPatternEvaluation: bool = setting(
        True,
        "Whether the box matches the patterns of pattern subscriptions. If not, clients are given all names of a "
        "namespace, and choose.",
        table="topics",
    )
    enableBrokerTopicListWatcher: bool = setting(
        True,
        "Whether clients that can (Java) are told at once of topics that come and go, instead of asking every minute.",
        table="topics",
    )
    subscriptionPatternMaxLength: int = setting(
        50,
        "The longest pattern that the box matches, without its domain; longer ones are left to the clients.",
        table="topics",
        unit="characters",
        minimum=0,
    )
