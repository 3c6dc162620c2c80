"""With what a command proves who asks, and whom it trusts: options, environment, context, Pulsar's client.conf."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.exits import Misused
from pulsarbox.cli.target import current_context
from pulsarbox.cli.text import clean
from pulsarbox.client.credentials import Credentials

TOKEN_VARIABLE: Final = "PULSARBOX_TOKEN"

_TOKEN_PLUGINS: Final = ("token", "org.apache.pulsar.client.impl.auth.AuthenticationToken")
_TLS_PLUGINS: Final = ("tls", "org.apache.pulsar.client.impl.auth.AuthenticationTls")
_BASIC_PLUGINS: Final = ("basic", "org.apache.pulsar.client.impl.auth.AuthenticationBasic")


def credentials_for(options: dict[str, Any], file: dict[str, str]) -> Credentials:
    """What the options say, else variables, else the context in use, else client.conf. Raises Misused."""
    context = current_context() or {}

    def said(name: str, key: str) -> str:
        """The option, the variable, the context's word or client.conf's, whichever is first."""
        variable = os.environ.get(f"PULSARBOX_{name.upper()}")
        return str(options.get(name) or variable or context.get(name) or file.get(key) or "")

    plugin, params = said("auth_plugin", "authPlugin"), said("auth_params", "authParams")
    token = options.get("token") or os.environ.get(TOKEN_VARIABLE) or _token_of_file(context.get("token_file"))
    made = Credentials(
        trusted=said("tls_trust_cert_path", "tlsTrustCertsFilePath") or None,
        insecure=_yes(said("tls_allow_insecure", "tlsAllowInsecureConnection")),
        check_host=_yes(said("tls_enable_hostname_verification", "tlsEnableHostnameVerification")),
    )
    if token:
        return replace(made, token=read_token(token))
    if plugin in _TOKEN_PLUGINS or (not plugin and params.startswith(("token:", "file:"))):
        return replace(made, token=read_token(params))
    if plugin in _TLS_PLUGINS:
        found = parameters_of(params)
        if not found.get("tlsCertFile") or not found.get("tlsKeyFile"):
            raise Misused("--auth-params: TLS needs tlsCertFile:PATH,tlsKeyFile:PATH")
        return replace(made, certificate=found["tlsCertFile"], key=found["tlsKeyFile"])
    if plugin in _BASIC_PLUGINS:
        found = parameters_of(params)
        if not found.get("userId") or "password" not in found:
            raise Misused('--auth-params: basic authentication needs {"userId":"...","password":"..."}')
        return replace(made, basic=f"{found['userId']}:{found['password']}")
    if plugin:
        raise Misused(f"--auth-plugin: {clean(plugin)} is not known here: token, tls and basic are")
    return made


def read_token(text: str) -> str:
    """A token out of ``token:...``, ``file:...``, ``{"token":"..."}`` or itself. Raises Misused."""
    text = text.strip()
    if text.startswith("{"):
        text = parameters_of(text).get("token", "")
    if text.startswith("file:"):
        text = _token_of_file(text.removeprefix("file://").removeprefix("file:")) or ""
    text = text.removeprefix("token:").strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise Misused("the token is no token: it looks like token:eyJ... or file:///path/to/token")
    return text


def parameters_of(text: str) -> dict[str, str]:
    """``key:value,key:value`` or JSON, as in authParams. Raises Misused."""
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise Misused(f"--auth-params: this is no JSON: {error}") from None
        return {str(key): str(value) for key, value in found.items()}
    pairs = (part.partition(":") for part in text.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _token_of_file(path: str | None) -> str | None:
    if not path:
        return None
    try:
        return Path(path).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"the token of {path} cannot be read: {error}") from None


def _yes(text: str) -> bool:
    return text.lower() == "true"
