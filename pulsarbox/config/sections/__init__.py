"""The rows of the settings table, one module for each section of the configuration file.

`config.settings` joins them. May import `config.setting` and config's parsers of single values. Must not read a file,
the environment or another section.
"""
