"""Selectors from plugins, with a built-in fallback: every slot always has a connected consumer.

If the plugin fails, a built-in selector, kept up to date with the same consumers, answers instead. Ordering does not
depend on the plugin: the dispatcher treats all slots as moved whenever a consumer joins or leaves.
"""

from typing import Any

from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector, slot_from_zero
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.plugins.contracts import KeyDivision, Selector
from pulsarbox.plugins.guard import Guard, PluginFailed


class PluggedSelector:
    """Plugin selector of one subscription; see StickyKeySelector."""

    slot = staticmethod(slot_from_zero)

    def __init__(self, plugin: KeyDivision, guard: Guard, instead: StickyKeySelector[Consumer]) -> None:
        self._plugin = plugin
        self._guard = guard
        self._instead = instead
        self._present: dict[Consumer, None] = {}
        """Connected consumers in order of arrival."""
        self._made: Selector | None = None
        """The plugin's selector; None if not created yet or out of date: the next change rebuilds it from scratch."""

    def add(self, consumer: Consumer) -> list[Consumer]:
        """See StickyKeySelector.add. All other consumers may have lost slots."""
        self._instead.add(consumer)
        others = list(self._present)
        self._present[consumer] = None
        self._report("add", consumer)
        return others

    def remove(self, consumer: Consumer) -> list[Consumer]:
        """See StickyKeySelector.remove. All remaining consumers may have lost slots."""
        self._instead.remove(consumer)
        if consumer in self._present:
            del self._present[consumer]
            self._report("remove", consumer)
        return list(self._present)

    def select(self, slot: int) -> Consumer | None:
        """See StickyKeySelector.select."""
        if self._made is not None and self._present:
            try:
                found: Consumer = self._guard.decided(self._made.select, slot, fits=self._is_here)
                return found
            except PluginFailed:
                pass
        return self._instead.select(slot)

    def ranges(self) -> dict[Consumer, list[tuple[int, int]]]:
        """See StickyKeySelector.ranges. Empty: a plugin answers slot by slot, and 65,535 calls would be too slow."""
        return {}

    def _is_here(self, found: Any) -> bool:
        return any(found is each for each in self._present)

    def _report(self, what: str, consumer: Consumer) -> None:
        made, self._made = self._made, None
        try:
            if made is not None:
                self._guard.decided(getattr(made, what), consumer)
            else:
                made = self._guard.decided(self._plugin.divide)
                for each in self._present:
                    self._guard.decided(made.add, each)
            self._made = made
        except PluginFailed:
            pass  # the built-in selector answers until the next change
