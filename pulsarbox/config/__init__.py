"""The configuration: a table of settings, the sources of their values, and the documents generated from the table.

`sections` declares settings, `sources` reads values, `load` applies precedence, and `cross_checks` compares settings
with each other. May import protocol and plugins' contracts. Must not import the broker, the server or a command.
"""

from pulsarbox.config.load import Loaded, load
from pulsarbox.config.setting import ConfigError, Setting, Value
from pulsarbox.config.settings import Settings, settings_by_name, settings_table

__all__ = ["ConfigError", "Loaded", "Setting", "Settings", "Value", "load", "settings_by_name", "settings_table"]
