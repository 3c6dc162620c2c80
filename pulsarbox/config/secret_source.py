"""Sources of keys and passwords: a file, a URL, an environment variable, or inline base64."""

import os
from base64 import b64decode
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes


def read_from(named: str) -> bytes:
    """Return the secret that a setting or option names: a file, a ``file:`` or ``data:`` URL, base64, or ``env:NAME``.

    The environment variable holds one of the other forms. Raises ValueError without revealing the content.
    """
    named = named.strip()
    if named.startswith("env:"):
        variable = named.removeprefix("env:")
        named = os.environ.get(variable, "").strip()
        if not named or named.startswith("env:"):
            raise ValueError(f"environment variable {variable} holds no value")
    try:
        if named.startswith("data:"):
            head, comma, data = named.partition(",")
            if not comma:
                raise ValueError("invalid data: URL; expected data:;base64,...")
            return b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
        path = _path(named)
        return b64decode(named, validate=True) if path is None else path.read_bytes()
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}") from None
    except ValueError as error:
        if str(error).startswith("invalid data: URL"):
            raise
        raise ValueError("it is neither an existing file nor base64") from None


def path_of(named: str) -> Path | None:
    """Return the path of the named file, which may change later; None if no file is named."""
    named = named.strip()
    if named.startswith("env:"):
        named = os.environ.get(named.removeprefix("env:"), "").strip()
    return None if named.startswith("data:") else _path(named)


def _path(named: str) -> Path | None:
    if named.startswith("file:"):
        return Path(unquote(named.removeprefix("file:").removeprefix("//")))
    path = Path(named)
    try:
        # A missing file is distinguished from base64 by its directory, which must exist.
        return path if path.exists() or (path.parent != Path(path.anchor) and path.parent.is_dir()) else None
    except (OSError, ValueError):  # not a valid file name, as for long base64 keys
        return None
