"""The configuration: one table of settings, the places their values come from, and the documents made from it."""

from pulsarbox.config.load import Loaded, load
from pulsarbox.config.setting import ConfigError, Setting, Value
from pulsarbox.config.settings import Settings, settings_by_name, settings_table

__all__ = ["ConfigError", "Loaded", "Setting", "Settings", "Value", "load", "settings_by_name", "settings_table"]
