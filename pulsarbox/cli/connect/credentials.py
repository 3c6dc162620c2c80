"""Credentials and trusted certificates of a command: options, environment, context, Pulsar's client.conf."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.connect.target import DEFAULT_ORIGIN, Target, current_context
from pulsarbox.client.credentials import Credentials

TOKEN_VARIABLE: Final = "PULSARBOX_TOKEN"
PLUGIN_VARIABLE: Final = "PULSARBOX_AUTH_PLUGIN"
PARAMS_VARIABLE: Final = "PULSARBOX_AUTH_PARAMS"

_TOKEN_PLUGINS: Final = ("token", "org.apache.pulsar.client.impl.auth.AuthenticationToken")
_TLS_PLUGINS: Final = ("tls", "org.apache.pulsar.client.impl.auth.AuthenticationTls")
_BASIC_PLUGINS: Final = ("basic", "org.apache.pulsar.client.impl.auth.AuthenticationBasic")


def credentials_for(options: dict[str, Any], file: dict[str, str], target: Target | None = None) -> Credentials:
    """Return credentials from the options, variables, current context, client.conf, or the local box, in that order.

    A context's credentials are only for the broker it names, not for one named by an option or a variable. A local box
    writes an operator secret into its data directory for users who can read it. Raises Misused.
    """
    is_meant = target is None or target.by_context or target.origin == DEFAULT_ORIGIN
    context = (current_context() if is_meant else None) or {}

    def said(name: str, key: str) -> str:
        """Return the value of the first source that has one."""
        variable = os.environ.get(f"PULSARBOX_{name.upper()}")
        return str(options.get(name) or variable or context.get(name) or file.get(key) or "")

    made = Credentials(
        trusted=said("tls_trust_cert_path", "tlsTrustCertsFilePath") or None,
        insecure=_yes(said("tls_allow_insecure", "tlsAllowInsecureConnection")),
        check_host=_yes(said("tls_enable_hostname_verification", "tlsEnableHostnameVerification")),
    )
    environment = {
        "token": os.environ.get(TOKEN_VARIABLE),
        "auth_plugin": os.environ.get(PLUGIN_VARIABLE),
        "auth_params": os.environ.get(PARAMS_VARIABLE),
    }
    conf = {"auth_plugin": file.get("authPlugin"), "auth_params": file.get("authParams")}
    for source in (options, environment, context, conf):
        found = _of(source, made)
        if found is not None:
            return found
    return made._replace(operator=target.operator) if target is not None and target.operator else made


def _of(source: Mapping[str, Any], made: Credentials) -> Credentials | None:
    """Return the credentials of one source, None without any. Raises Misused."""
    if source.get("token"):
        return _with_token(made, source["token"])
    if source.get("token_file"):
        return _with_token(made, f"file:{source['token_file']}")
    plugin, params = source.get("auth_plugin") or "", source.get("auth_params") or ""
    if plugin in _TOKEN_PLUGINS or (not plugin and params.startswith(("token:", "file:"))):
        return _with_token(made, params)
    if plugin in _TLS_PLUGINS:
        found = parameters_of(params)
        if not found.get("tlsCertFile") or not found.get("tlsKeyFile"):
            raise Misused("--auth-params: expected tlsCertFile:PATH,tlsKeyFile:PATH for tls")
        return made._replace(certificate=found["tlsCertFile"], key=found["tlsKeyFile"])
    if plugin in _BASIC_PLUGINS:
        found = parameters_of(_text_of(params) if params.startswith("file:") else params)
        if not found.get("userId") or "password" not in found:
            raise Misused('--auth-params: expected {"userId":"...","password":"..."} for basic')
        return made._replace(basic=f"{found['userId']}:{found['password']}")
    if plugin:
        raise Misused(f"--auth-plugin: unknown method {clean(plugin)}; expected token, tls or basic")
    return None


def _with_token(made: Credentials, text: str) -> Credentials:
    """Add a token. A token file is read again for each use."""
    token, named = read_token(text), text.strip()
    if named.startswith("file:"):
        return made._replace(token_file=_path(named))
    return made._replace(token=token)


def read_token(text: str) -> str:
    """Return the token in ``token:...``, ``file:...``, ``{"token":"..."}`` or a bare token. Raises Misused."""
    text = text.strip()
    if text.startswith("{"):
        text = parameters_of(text).get("token", "")
    if text.startswith("file:"):
        text = _text_of(text)
    text = text.removeprefix("token:").strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise Misused("invalid token: expected a form such as token:eyJ... or file:///path/to/token")
    return text


def parameters_of(text: str) -> dict[str, str]:
    """Parse authParams: ``key:value,key:value`` or JSON. Raises Misused."""
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise Misused(f"--auth-params: invalid JSON: {error}") from None
        return {str(key): str(value) for key, value in found.items()}
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _text_of(named: str) -> str:
    """Return the text of a file. Raises Misused."""
    path = _path(named)
    try:
        return Path(path).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"cannot read {path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None


def _path(named: str) -> str:
    return named.removeprefix("file:").removeprefix("//")


def _yes(text: str) -> bool:
    return text.lower() == "true"
