"""The settings in effect, for parts that read dynamic settings when they use them."""

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.clock import Now
from pulsarbox.config import Settings


class CurrentSettings:
    """The settings in effect. Dynamic settings change while the broker runs; the others stay as they are."""

    __slots__ = ("changed", "current")

    def __init__(self, settings: Settings) -> None:
        self.current = settings
        """The settings in effect. Do not keep a copy of a dynamic setting."""
        self.changed: Callbacks[Settings, Now] = Callbacks()
        """Called with the settings after each change."""

    def apply(self, settings: Settings, now: Now) -> None:
        """Replace the settings, and have the parts with derived values apply them."""
        self.current = settings
        self.changed(settings, now)
