"""The rows of the settings table, one file per section of the configuration file.

`config.settings` joins them. May import `config.setting` and the parsers of single values in config. Must not read a
file, the environment or another section.
"""
