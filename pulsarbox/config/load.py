"""Loading of the configuration, by increasing precedence: defaults, file, environment, command line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pulsarbox.config.setting import ConfigError, GivenValue, Value, setting_hint
from pulsarbox.config.settings import Settings, settings_by_name, settings_table
from pulsarbox.config.sources import kubernetes_variables, plain_names, properties_file, toml_file

ENVIRONMENT_PREFIX: Final = "PULSARBOX_"
PLAIN_NAMES_VARIABLE: Final = "PULSARBOX_PLAIN_NAMES"

# Variables with the prefix that are not settings.
OTHER_VARIABLES: Final = MappingProxyType(
    {
        "PULSARBOX_CONFIG": "Configuration file, as with `--config`.",
        "PULSARBOX_SERVICE_URL": "Service URL for `produce`, `consume` and similar commands, as with `--url`.",
        "PULSARBOX_ADMIN_URL": "Address of the Admin API for commands, as with `--admin-url`.",
        "PULSARBOX_PLAIN_NAMES": "`true`: variables named like a setting, with or without the prefix `PULSAR_PREFIX_`, "
        "configure it as well, as in Apache Pulsar's image. Set in the container image.",
        "PULSARBOX_CONTEXT": "Context for commands; overrides the selected one.",
        "PULSARBOX_TOKEN": "Token for commands: `token:eyJ...`, or `file:///path` of a file that holds it.",
        "PULSARBOX_AUTH_PLUGIN": "Authentication method of commands, as with `--auth-plugin`: token, tls or basic.",
        "PULSARBOX_AUTH_PARAMS": "Parameters of the authentication method, as with `--auth-params`.",
        "PULSARBOX_TLS_TRUST_CERT_PATH": "PEM file with the certificate authorities that commands trust, as with "
        "`--tls-trust-cert-path`.",
        "PULSARBOX_TLS_ALLOW_INSECURE": "`true`: commands do not verify the server's certificate, as with "
        "`--tls-allow-insecure`.",
        "PULSARBOX_TLS_ENABLE_HOSTNAME_VERIFICATION": "`true`: commands verify that the certificate matches the host "
        "name, as with `--tls-enable-hostname-verification`.",
    }
)

DEFAULT_ORIGIN: Final = "default"
COMMAND_LINE_ORIGIN: Final = "command line"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, with the origin of each setting's value."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]


def load(
    path: Path | None,
    overrides: Mapping[str, Value] = _NOTHING,
    environ: Mapping[str, str] = _NOTHING,
    origin: str = COMMAND_LINE_ORIGIN,
) -> Loaded:
    """Read ``path``, if any, and apply ``environ`` and then ``overrides`` (by setting name) on top.

    ``origin`` names the source of the overrides in messages.

    A file that ends in .conf or .properties is read as a Pulsar configuration file, any other as TOML. Raises
    ``ConfigError`` with the place, the key and what was expected.
    """
    from_file, warnings = _read_file(path) if path else ([], [])
    plain, more_warnings = plain_names.read(environ) if environ.get(PLAIN_NAMES_VARIABLE) == "true" else ([], [])
    layers = (from_file, plain, _read_environment(environ), _read_overrides(overrides, origin))
    values = {given.name: given for layer in layers for given in layer}
    origins = {row.name: DEFAULT_ORIGIN for row in settings_table()}
    origins |= {name: given.origin for name, given in values.items()}
    try:
        settings = Settings(**{name: given.value for name, given in values.items()})
    except ConfigError as error:  # conflicting settings: add the origin of the offending one
        raise ConfigError(origins[error.key], error.key, error.problem) from None
    return Loaded(settings, MappingProxyType(origins), (*warnings, *more_warnings))


def problems_of(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all (problems, warnings) of a configuration file, where ``load`` raises only the first problem.

    Raises ``ConfigError`` if the file cannot be read at all.
    """
    text = _text_of(path)
    warnings: list[str] = []
    if path.suffix in properties_file.SUFFIXES:
        given, warnings, problems = properties_file.read_all(path, text)
    else:
        try:
            given, problems = toml_file.read_all(path, text)
        except ConfigError as error:
            return (str(error),), ()
    try:
        Settings(**{each.name: each.value for each in given})
    except ConfigError as error:  # conflicting settings
        origins = {each.name: each.origin for each in given}
        if not problems or error.key in origins:  # not one of a default that an invalid value replaces
            problems = [*problems, ConfigError(origins.get(error.key, DEFAULT_ORIGIN), error.key, error.problem)]
    return tuple(map(str, problems)), tuple(warnings)


def _read_file(path: Path) -> tuple[Iterable[GivenValue], list[str]]:
    text = _text_of(path)
    if path.suffix in properties_file.SUFFIXES:
        return properties_file.read(path, text)
    return toml_file.read(path, text), []


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(str(path), "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "", f"is not UTF-8 (byte {error.start})") from None


def _read_environment(environ: Mapping[str, str]) -> list[GivenValue]:
    ours = (name for name in environ if name.startswith(ENVIRONMENT_PREFIX) and name not in OTHER_VARIABLES)
    return [_from_variable(name, environ[name]) for name in sorted(ours) if not _is_of_kubernetes(name, environ[name])]


def _is_of_kubernetes(variable: str, text: str) -> bool:
    """Return whether Kubernetes has set a variable because a Service is named ``pulsarbox``, or ``pulsarbox-...``."""
    return kubernetes_variables.describes_a_service(variable.removeprefix(ENVIRONMENT_PREFIX), text)


def _from_variable(variable: str, text: str) -> GivenValue:
    row = settings_by_name().get(variable.removeprefix(ENVIRONMENT_PREFIX))
    if row is None:
        hint = _nearest_variable(variable) or "; correct or unset it"
        raise ConfigError("environment", variable, f"no such setting{hint}")
    try:
        return GivenValue(row.name, row.parse(text), f"environment {variable}")
    except ValueError as error:
        raise ConfigError("environment", variable, str(error)) from None


def _nearest_variable(variable: str) -> str:
    """Return ``did_you_mean`` for a variable, compared without the prefix, which would make all variables similar."""
    known = [*settings_by_name(), *(name.removeprefix(ENVIRONMENT_PREFIX) for name in OTHER_VARIABLES)]
    hint = setting_hint(variable.removeprefix(ENVIRONMENT_PREFIX), known)
    return hint.replace("mean ", f"mean {ENVIRONMENT_PREFIX}").replace(" or ", f" or {ENVIRONMENT_PREFIX}")


def _read_overrides(overrides: Mapping[str, Value], origin: str) -> list[GivenValue]:
    return [_from_override(name, value, origin) for name, value in overrides.items()]


def _from_override(name: str, value: Value, origin: str) -> GivenValue:
    row = settings_by_name().get(name)
    if row is None:
        raise ConfigError(origin, name, f"no such setting{setting_hint(name, settings_by_name())}")
    try:
        return GivenValue(name, row.read(value), origin)
    except ValueError as error:
        raise ConfigError(origin, name, str(error)) from None
