"""Configurations of functions, sinks and sources, from options and YAML files."""

from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.session import body_of
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.names import PACKAGE_TYPES

_COMPONENT: Final = {
    "tenant": str, "namespace": str, "name": str, "className": str, "producerConfig": dict, "secrets": dict,
    "parallelism": int, "processingGuarantees": str, "resources": dict, "runtimeFlags": str,
    "customRuntimeOptions": str, "batchBuilder": str, "logTopic": str,
}  # fmt: skip
_CONSUMING: Final = {
    "inputs": list, "topicsPattern": str, "inputSpecs": dict, "maxMessageRetries": int, "deadLetterTopic": str,
    "retainOrdering": bool, "retainKeyOrdering": bool, "autoAck": bool, "timeoutMs": int, "cleanupSubscription": bool,
}  # fmt: skip
FIELDS: Final[dict[str, dict[str, type]]] = {
    "functions": {
        **_COMPONENT, **_CONSUMING, "customSerdeInputs": dict, "customSchemaInputs": dict, "customSchemaOutputs": dict,
        "inputTypeClassName": str, "output": str, "outputSchemaType": str, "outputTypeClassName": str,
        "outputSerdeClassName": str, "forwardSourceMessageProperty": bool, "userConfig": dict, "runtime": str,
        "subName": str, "fqfn": str, "windowConfig": dict, "jar": str, "py": str, "go": str, "functionType": str,
        "maxPendingAsyncRequests": int, "exposePulsarAdminClientEnabled": bool, "skipToLatest": bool,
        "subscriptionPosition": str,
    },
    "sinks": {
        **{name: kind for name, kind in _COMPONENT.items() if name not in ("producerConfig", "batchBuilder")},
        **_CONSUMING, "sourceSubscriptionName": str, "sourceSubscriptionPosition": str, "topicToSerdeClassName": dict,
        "topicToSchemaType": dict, "topicToSchemaProperties": dict, "configs": dict,
        "negativeAckRedeliveryDelayMs": int, "sinkType": str, "archive": str, "transformFunction": str,
        "transformFunctionClassName": str, "transformFunctionConfig": str,
    },
    "sources": {
        **_COMPONENT, "topicName": str, "serdeClassName": str, "schemaType": str, "configs": dict, "sourceType": str,
        "archive": str, "batchSourceConfig": dict,
    },
}  # fmt: skip
"""Fields of a configuration file of Pulsar 4.2 and their types, by group."""

DEFAULT_RESOURCES: Final = {"cpu": 1.0, "ram": 1 << 30, "disk": 10 << 30}
"""Resources that pulsar-admin adds to those given: cores, and bytes."""
_BLANK: Final = ("batchBuilder", "resources", "sourceSubscriptionName", "subName", "windowConfig")
"""Fields that are omitted if they are blank or empty."""
_NESTED: Final = ("resources", "windowConfig")
"""Fields whose parts have options of their own."""
_YAML_MAX: Final = 1 << 20
"""Bytes of a configuration file: YAML parsers need much memory."""


def configured(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration in the file, changed by the options. Raises Misused."""
    file = values[f"{command.group.removesuffix('s')}_config_file"]
    config = from_file(file, FIELDS[command.group]) if file else {}
    for name, own in given(command, values).items():
        value = {**(config.get(name) or {}), **own} if name in _NESTED else own
        if not (name in _BLANK and _is_blank(value)):
            config[name] = value
    if config.get("resources"):
        config["resources"] = {**DEFAULT_RESOURCES, **config["resources"]}
    return config


def _is_blank(value: str | dict[str, Any]) -> bool:
    return not (value.strip() if isinstance(value, str) else value)


def given(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that the options set, by the body of ``create``."""
    create = table.command(command.group, table.headings(command.group)["create"])
    found: dict[str, Any] = body_of(create.calls[0], values)
    if "inputSpecs" in found:
        found["inputSpecs"] = {topic: _spec(topic, spec) for topic, spec in found["inputSpecs"].items()}
    return found


def _spec(topic: str, spec: Any) -> dict[str, Any]:
    """Rename ``isRegexPattern``, the spelling on the command line, to that of the Admin API. Raises Misused."""
    if not isinstance(spec, dict):
        raise Misused(f"--input-specs: {clean(topic)}: expected a JSON object")
    return {"regexPattern" if name == "isRegexPattern" else name: value for name, value in spec.items()}


def from_file(file: str, fields: dict[str, type]) -> dict[str, Any]:
    """Read a configuration in YAML or JSON, without its null fields. Raises Misused."""
    import yaml

    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_YAML_MAX + 1)
        found = yaml.safe_load(text.decode()) if len(text) <= _YAML_MAX else None
    except OSError as error:
        raise Misused(f"cannot read {file}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Misused(f"{file}: invalid YAML: {' '.join(str(error).split())}") from None
    if len(text) > _YAML_MAX:
        raise Misused(f"{file}: larger than {_YAML_MAX} bytes")
    if not isinstance(found, dict):
        raise Misused(f"{file}: expected fields such as name: orders")
    return {name: _checked(file, name, value, fields) for name, value in found.items() if value is not None}


def _checked(file: str, name: Any, value: Any, fields: dict[str, type]) -> Any:
    kind = fields.get(name)
    if kind is None:
        raise Misused(f"{file}: unknown field '{clean(str(name))}'; expected one of {', '.join(sorted(fields))}")
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Misused(f"{file}: {name}: expected {_WORDS[kind]}, not '{clean(str(value)[:40])}'")
    return value


_WORDS: Final = {str: "text", dict: "a map", list: "a list", int: "an integer", bool: "true or false"}


def is_url(text: str | None) -> bool:
    """Return whether the code is named by a URL or a package, which the worker downloads itself."""
    return bool(text) and str(text).startswith(
        ("http://", "https://", "file:", *(f"{kind}://" for kind in PACKAGE_TYPES))
    )


def check_file(option: str, path: str) -> None:
    """Raise Misused unless the file with the code exists."""
    if not Path(path).is_file():
        raise Misused(f"{option}: there is no file {clean(path)}")
