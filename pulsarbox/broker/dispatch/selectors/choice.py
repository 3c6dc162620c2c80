"""The built-in selectors of Key_Shared subscriptions."""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.dispatch.selectors.consistent_hashing import ConsistentHashingSelector
from pulsarbox.broker.dispatch.selectors.hash_range import HashRangeSelector
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMode
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector
from pulsarbox.broker.dispatch.selectors.sticky_ranges import StickyRangesSelector
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.config import Settings

PROPERTY: Final = "keySharedSelector"
"""Broker setting, and the subscription property that overrides it."""


def _ring(settings: Settings) -> StickyKeySelector[Consumer]:
    return ConsistentHashingSelector(settings.subscriptionKeySharedConsistentHashingReplicaPoints)


def _ranges(settings: Settings) -> StickyKeySelector[Consumer]:
    return HashRangeSelector()


SELECTORS: Final[dict[str, Callable[[Settings], StickyKeySelector[Consumer]]]] = {
    "consistentHashing": _ring,
    "hashRange": _ranges,
}
"""Built-in selectors that assign slots themselves."""


def make_selector(mode: KeySharedMode, settings: Settings) -> StickyKeySelector[Consumer]:
    """Return an empty built-in selector for the mode that the first consumer requested."""
    if mode is KeySharedMode.STICKY:
        return StickyRangesSelector()
    return (_ring if settings.subscriptionKeySharedUseConsistentHashing else _ranges)(settings)
