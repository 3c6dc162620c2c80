"""The selector that a Key_Shared subscription has."""

from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.dispatch.selectors.consistent_hashing import ConsistentHashingSelector
from pulsarbox.broker.dispatch.selectors.hash_range import HashRangeSelector
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMode
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector
from pulsarbox.broker.dispatch.selectors.sticky_ranges import StickyRangesSelector
from pulsarbox.config import Settings


def make_selector(mode: KeySharedMode, settings: Settings) -> StickyKeySelector[Consumer]:
    """A selector without consumers, for a mode that the first consumer asked for."""
    if mode is KeySharedMode.STICKY:
        return StickyRangesSelector()
    if settings.subscriptionKeySharedUseConsistentHashing:
        return ConsistentHashingSelector(settings.subscriptionKeySharedConsistentHashingReplicaPoints)
    return HashRangeSelector()
