"""The selector that a Key_Shared subscription has."""

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
"""Setting of the broker, and property of a subscription that goes before it."""


def _ring(settings: Settings) -> StickyKeySelector[Consumer]:
    return ConsistentHashingSelector(settings.subscriptionKeySharedConsistentHashingReplicaPoints)


def _ranges(settings: Settings) -> StickyKeySelector[Consumer]:
    return HashRangeSelector()


SELECTORS: Final[dict[str, Callable[[Settings], StickyKeySelector[Consumer]]]] = {
    "consistentHashing": _ring,
    "hashRange": _ranges,
}
"""The built-in ones that decide for themselves who has which slots."""


def make_selector(mode: KeySharedMode, settings: Settings) -> StickyKeySelector[Consumer]:
    """A built-in selector without consumers, for a mode that the first consumer asked for."""
    if mode is KeySharedMode.STICKY:
        return StickyRangesSelector()
    return (_ring if settings.subscriptionKeySharedUseConsistentHashing else _ranges)(settings)
