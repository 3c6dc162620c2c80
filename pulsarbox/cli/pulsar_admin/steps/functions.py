"""Commands for functions: their configuration, code, state and triggers."""

import base64
import json
import time
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.pulsar_admin.printing import compact, gson
from pulsarbox.cli.pulsar_admin.session import Session, chosen
from pulsarbox.cli.pulsar_admin.steps.component_config import check_file, configured, is_url
from pulsarbox.cli.pulsar_admin.steps.components import NAMESPACE, TENANT, split_name, whole_name
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.client.transport.multipart import Part

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
TEXT: Final = "text/plain"
BUILT_IN: Final = "builtin://"
_WATCH_SECONDS: Final = 1.0
_STATE: Final = ("key", "stringValue", "byteValue", "numberValue", "version")
_CODES: Final = ("jar", "py", "go")
"""Fields of the code, in the order of their precedence."""


def create(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create a function from its configuration and code."""
    config = function_config(command, values)
    check_code(config)
    send(session, command, config, "functionConfig", _code(config))


def update(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Update the configuration of a function, and its code if given."""
    config = function_config(command, values)
    send(session, command, config, "functionConfig", _code(config), bool(values["update_auth_data"]))


def send(
    session: Session,
    command: Command,
    config: dict[str, Any],
    part: str,
    code: str | None,
    update_auth_data: bool | None = None,
) -> None:
    """Send a configuration with its code: the URL of it, a file, or none for built-in code."""
    parts = [Part("url", str(code), TEXT)] if is_url(code) else []
    parts.append(Part(part, compact(config), JSON))
    if update_auth_data is not None:
        parts.append(Part("updateOptions", compact({"updateAuthData": update_auth_data}), JSON))
    if code and not is_url(code) and not code.startswith(BUILT_IN):
        parts.append(Part("data", Path(code), BYTES))
    session.send_form(command.calls[0], config, parts)


def function_config(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a function, with the defaults of pulsar-admin. Raises Misused."""
    if values["jar"] and values["function_type"]:
        raise Misused("--jar and --function-type cannot be combined")
    config = configured(command, values)
    if values["fqfn"]:
        config |= split_name(values["fqfn"])
    kind = values["function_type"] or config.get("functionType")
    if kind:
        config["jar"] = BUILT_IN + kind
    config.setdefault("name", config.get("className", "").rpartition(".")[2])
    if not config["name"]:
        raise Misused("specify --name, --fqfn or --classname")
    return {**_DEFAULTS, **config, "tenant": config.get("tenant") or TENANT, "namespace": _namespace(config)}


_DEFAULTS: Final = {
    "outputSchemaType": "",
    "forwardSourceMessageProperty": True,
    "subscriptionPosition": "Latest",
}


def _namespace(config: dict[str, Any]) -> str:
    return config.get("namespace") or NAMESPACE


def check_code(config: dict[str, Any]) -> None:
    """Raise Misused unless the function has code, a class if it needs one, and files that exist."""
    codes = {name: str(config[name]) for name in _CODES if config.get(name)}
    if len(codes) != 1:
        raise Misused("specify exactly one of --jar, --py, --go and --function-type")
    name, code = codes.popitem()
    if name != "go" and not code.startswith(BUILT_IN) and not config.get("className"):
        raise Misused("specify --classname, the class or module of the function")
    if not is_url(code) and not code.startswith(BUILT_IN):
        check_file(f"--{name}", code)


def _code(config: dict[str, Any]) -> str | None:
    return next((str(config[name]) for name in _CODES if config.get(name)), None)


def state(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Return a value of the state; with --watch, print it each second, also while it does not exist."""
    made = whole_name(values)
    while values["watch"]:
        try:
            click.echo(gson(_shown(session.ask(command.calls[0], made))))
        except NotThere as error:
            notify(error.message)
        time.sleep(_WATCH_SECONDS)
    return _shown(session.ask(command.calls[0], made))


def _shown(found: Any) -> Any:
    """Return a value of the state with its bytes as numbers from -128 to 127, as in pulsar-admin."""
    if not isinstance(found, dict) or not isinstance(found.get("byteValue"), str):
        return found
    try:
        data = base64.b64decode(found["byteValue"], validate=True)
    except ValueError:
        return found
    return {**found, "byteValue": [byte - 256 if byte > 127 else byte for byte in data]}


def put_state(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set a value of the state from a JSON object."""
    made = whole_name(values)
    found = _state(values["state"])
    session.send_form(command.calls[0], {**made, "key": found["key"]}, [Part("state", compact(found), JSON)])


def _state(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misused(f"--state: invalid JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("key"), str) or not found["key"]:
        raise Misused('--state: expected a value such as {"key": "count", "numberValue": 3}')
    unknown = [name for name in found if name not in _STATE]
    if unknown:
        raise Misused(f"--state: unknown field '{clean(unknown[0])}'; expected one of {', '.join(_STATE)}")
    return found


def trigger(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Send a value to a function and print what it returns."""
    made = whole_name(values)
    text, file = values["trigger_value"], values["trigger_file"]
    if text is None and file is None:
        raise Misused("specify --trigger-value or --trigger-file")
    parts = [Part("dataStream", Path(file), BYTES)] if file is not None else []
    if text is not None:
        parts.append(Part("data", text, TEXT))
    if values["topic"]:
        parts.append(Part("topic", values["topic"], TEXT))
    click.echo(clean(session.send_form(command.calls[0], made, parts).text))


def upload(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Upload a file to a path of the worker's storage."""
    if not values["source_file"]:
        raise Misused("specify --source-file")
    parts = [Part("data", Path(values["source_file"]), BYTES), Part("path", values["path"], TEXT)]
    session.send_form(command.calls[0], values, parts)


def download(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Download the code of a function, or a path of the worker's storage."""
    made = values if values["path"] else whole_name(values)
    if not values["destination_file"]:
        raise Misused("specify --destination-file")
    made = {**made, "transform_function": bool(values["transform_function"])}
    session.download(chosen(command, made), made, values["destination_file"])
