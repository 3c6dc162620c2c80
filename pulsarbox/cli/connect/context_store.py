"""Storage of contexts: ``contexts.json`` in the user's configuration directory.

The current context is that of PULSARBOX_CONTEXT, or else of `pulsarbox context use`. Tokens stay in separate files, of
which only the paths are stored.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.terminal_text import clean

VARIABLE: Final = "PULSARBOX_CONTEXT"
FIELDS: Final = (
    *("url", "admin_url", "token_file", "auth_plugin", "auth_params"),
    *("tls_trust_cert_path", "tls_allow_insecure", "tls_enable_hostname_verification"),
    *("label", "label_color"),
)
"""Fields of a context, named like the options of `pulsarbox context add`."""


def path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file."""
    root = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".config"
    return Path(root) / "pulsarbox" / "contexts.json"


def load(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return ``{"current": name or None, "contexts": {name: {...}}}``. Raises Misused for an invalid file."""
    file = path(environ)
    try:
        found = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {"current": None, "contexts": {}}
    except (OSError, ValueError) as error:
        what = "fix it, or move it away and add contexts with `pulsarbox context add`"
        raise Misused(f"cannot read {file}: {error}; {what}") from None
    contexts = found.get("contexts") if isinstance(found, dict) else None
    if not isinstance(contexts, dict) or not all(isinstance(one, dict) for one in contexts.values()):
        raise Misused(f"{file} is not a file of contexts: move it away, and add contexts with `pulsarbox context add`")
    return {"current": found.get("current"), "contexts": contexts}


def save(document: dict[str, Any], environ: Mapping[str, str] = os.environ) -> None:
    """Write the file atomically, readable only by its owner."""
    file = path(environ)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        json.dump(document, out, indent=2)
        out.write("\n")
    new.replace(file)


def current(environ: Mapping[str, str] = os.environ) -> tuple[str, dict[str, Any]] | None:
    """Return the name and fields of the current context, None without any. Raises NotThere for an unknown name."""
    document = load(environ)
    name = environ.get(VARIABLE) or document["current"]
    if not name:
        return None
    if name not in document["contexts"]:
        source = f"{VARIABLE}: " if environ.get(VARIABLE) else ""
        raise NotThere(f"{source}context '{clean(name)}' does not exist; `pulsarbox context list` lists all contexts")
    return name, document["contexts"][name]
