"""Environment variables with the plain names of settings, as used by scripts for Apache Pulsar's image.

``authenticationEnabled=true`` and ``PULSAR_PREFIX_authenticationEnabled=true`` are equivalent; the prefixed one wins.
Source: Pulsar documentation, "Run Pulsar in Docker: environment variables".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pulsarbox.config.setting import ConfigError, GivenValue, did_you_mean
from pulsarbox.config.settings import settings_by_name
from pulsarbox.config.sources.environment_overlay import DEFAULT_PREFIX

_LIKE_A_SETTING: Final = re.compile(r"[a-z]+(?:[A-Z][A-Za-z0-9]*)+")
"""Settings are in camelCase, unlike the operating system's variables, which are in capitals."""


def read(environ: Mapping[str, str]) -> tuple[list[GivenValue], list[str]]:
    """Return the settings that the environment gives by their plain names, and a warning for each unknown one.

    An empty value is ignored, except for a port, which it disables. Raises ``ConfigError`` for an invalid value.
    """
    given, warnings = {}, []
    for variable, name in _names(environ):
        row, text = settings_by_name().get(name), environ[variable].strip()
        if row is None:
            hint = did_you_mean(name, settings_by_name(), cutoff=0.85)
            warnings.append(f"environment: {variable}: no such setting, so it has no effect{hint}")
        elif text or row.facts.empty is not None:
            try:
                given[name] = GivenValue(name, row.parse(text), f"environment {variable}")
            except ValueError as error:
                raise ConfigError("environment", variable, str(error)) from None
    return list(given.values()), warnings


def _names(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (variable, setting) pairs: plain names first, so that prefixed ones win."""
    for variable in sorted(environ):
        if _LIKE_A_SETTING.fullmatch(variable) or variable in settings_by_name():
            yield variable, variable
    for variable in sorted(environ):
        if variable.startswith(DEFAULT_PREFIX) and len(variable) > len(DEFAULT_PREFIX):
            yield variable, variable.removeprefix(DEFAULT_PREFIX)
