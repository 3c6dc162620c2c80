"""Dynamic settings: changed at run time, stored with the data, and preferred to configuration files and options.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-brokers/#dynamic-broker-configuration.
"""

import logging
from dataclasses import replace
from typing import Any

from pulsarbox.broker.current_settings import CurrentSettings
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.plugins import Plugins
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.config.setting import ConfigError, setting_hint
from pulsarbox.config.settings import settings_by_name, settings_table
from pulsarbox.config.sources.pulsar_dynamic import PULSAR_DYNAMIC
from pulsarbox.errors import PreconditionFailed
from pulsarbox.plugins.registry import PluginError
from pulsarbox.storage.catalog import DYNAMIC, Catalog

log = logging.getLogger(__name__)


class DynamicConfiguration:
    """The dynamic settings of one box."""

    def __init__(
        self, given: Settings, current: CurrentSettings, catalog: Catalog, commits: GroupCommit, plugins: Plugins
    ) -> None:
        """``given``: the settings from configuration files and options."""
        self._given = given
        self._settings = current
        self._catalog = catalog
        self._commits = commits
        self._plugins = plugins

    @property
    def names(self) -> list[str]:
        """Settings that can be changed: those of pulsarbox, and Pulsar's that have no effect here."""
        return sorted(PULSAR_DYNAMIC | {row.name for row in settings_table() if row.dynamic})

    def values(self) -> dict[str, str]:
        """Return the changed settings, as the text that was provided."""
        return stored_values(self._catalog)

    def update(self, name: str, text: str, now: Now) -> None:
        """Change a setting, now and for every later start.

        Like Pulsar, accept any value for a setting of Pulsar; log a warning if the setting or its value has no effect
        here. Raises PreconditionFailed for a setting that is not dynamic, and for an invalid value of a pulsarbox
        setting.
        """
        self._check(name, "update")
        if name in PULSAR_DYNAMIC:
            settings = _with_any(self._settings.current, name, text)
        else:
            try:
                settings = _with(self._settings.current, name, text)
                if name == "compressionAtRest":
                    self._plugins.require_codec(text)
            except (ValueError, ConfigError, PluginError) as error:
                raise PreconditionFailed(f"Can't update {name}: {error}") from None
        self._put(self.values() | {name: text}, settings, now)

    def delete(self, name: str, now: Now) -> None:
        """Restore the value from files and options. Raises PreconditionFailed for a setting that is not dynamic."""
        self._check(name, "delete")
        left = {each: text for each, text in self.values().items() if each != name}
        row, settings = settings_by_name().get(name), self._settings.current
        if row is not None and row.dynamic:
            settings = replace(settings, **{name: getattr(self._given, name)})
        self._put(left, settings, now)

    def _check(self, name: str, what: str) -> None:
        row = settings_by_name().get(name)
        if name in PULSAR_DYNAMIC:
            return
        if row is None:
            raise PreconditionFailed(
                f"Can't {what} non-dynamic configuration: there is no setting {name}{setting_hint(name, self.names)}"
            )
        if not row.dynamic:
            raise PreconditionFailed(f"Can't {what} non-dynamic configuration: {name} is read only at startup")

    def _put(self, values: dict[str, str], settings: Settings, now: Now) -> None:
        self._commits.put_row(DYNAMIC, values or None)
        self._settings.apply(settings, now)


def stored_values(catalog: Catalog) -> dict[str, str]:
    """Return the changed settings that are stored with the data, as the text that was provided."""
    return dict(catalog.get(DYNAMIC) or {})


def with_stored(given: Settings, catalog: Catalog) -> Settings:
    """Return the settings in effect at a start: those stored with the data override those ``given``."""
    settings = given
    for name, text in stored_values(catalog).items():
        settings = _with_any(settings, name, text)
    return settings


def _with_any(settings: Settings, name: str, text: str) -> Settings:
    """Return the settings with a changed value; unchanged, with a warning, if the setting or value has no effect."""
    try:
        return _with(settings, name, text)
    except KeyError:
        log.warning("the dynamic setting %s is stored but has no effect in pulsarbox", name)
    except (ValueError, ConfigError) as error:
        log.warning("the dynamic setting %s is stored but has no effect: %s", name, error)
    return settings


def _with(settings: Settings, name: str, text: str) -> Settings:
    """Return the settings with a changed value.

    Raises KeyError for a setting that is not dynamic here, ValueError or ConfigError for an invalid value.
    """
    row = settings_by_name()[name]
    if not row.dynamic:
        raise KeyError(name)
    value: Any = row.parse(text)
    return replace(settings, **{name: value})
