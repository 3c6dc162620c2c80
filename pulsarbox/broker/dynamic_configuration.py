"""Settings that are changed while the box runs: kept with the data, before what files and options say.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-brokers/#dynamic-broker-configuration.
"""

import logging
from dataclasses import replace
from typing import Any

from pulsarbox.broker.core import Core
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.config.setting import ConfigError, did_you_mean
from pulsarbox.config.settings import settings_by_name, settings_table
from pulsarbox.errors import PreconditionFailed
from pulsarbox.plugins.registry import PluginError
from pulsarbox.storage.catalog import DYNAMIC

log = logging.getLogger(__name__)


class DynamicConfiguration:
    """The dynamic settings of one box."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._given = core.settings
        """What files and options say."""
        settings = self._given
        for name, text in self.values().items():
            try:
                settings = _with(settings, name, text)
            except (KeyError, ValueError, ConfigError) as error:
                log.warning("the dynamic setting %s = %s is left out: %s", name, text, error)
        core.apply(settings)

    @property
    def names(self) -> list[str]:
        """The settings that can be changed."""
        return sorted(row.name for row in settings_table() if row.dynamic)

    def values(self) -> dict[str, str]:
        """Those that were changed, as the texts that were given."""
        return dict(self._core.catalog.get(DYNAMIC) or {})

    def update(self, name: str, text: str, now: Now) -> None:
        """Change a setting, now and for good. Raises PreconditionFailed where it cannot be, or not to this."""
        self._check(name, "update")
        try:
            settings = _with(self._core.settings, name, text)
            if name == "compressionAtRest":
                self._core.plugins.require_codec(text)
        except (ValueError, ConfigError, PluginError) as error:
            raise PreconditionFailed(f"Can't update {name}: {error}") from None
        self._put(self.values() | {name: text}, settings, now)

    def delete(self, name: str, now: Now) -> None:
        """Go by what files and options say again. Raises PreconditionFailed where it is no dynamic setting."""
        self._check(name, "delete")
        left = {each: text for each, text in self.values().items() if each != name}
        self._put(left, replace(self._core.settings, **{name: getattr(self._given, name)}), now)

    def _check(self, name: str, what: str) -> None:
        row = settings_by_name().get(name)
        if row is None:
            raise PreconditionFailed(
                f"Can't {what} non-dynamic configuration: there is no setting {name}{did_you_mean(name, self.names)}"
            )
        if not row.dynamic:
            raise PreconditionFailed(f"Can't {what} non-dynamic configuration: {name} is read at the start of the box")

    def _put(self, values: dict[str, str], settings: Settings, now: Now) -> None:
        self._core.commits.put_row(DYNAMIC, values or None)
        self._core.apply(settings, now)


def _with(settings: Settings, name: str, text: str) -> Settings:
    """Raises KeyError for an unknown name, ValueError or ConfigError for a value that does not do."""
    value: Any = settings_by_name()[name].parse(text)
    return replace(settings, **{name: value})
