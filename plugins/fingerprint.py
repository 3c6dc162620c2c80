"""Fingerprints of plugins: a conformance result stays valid while the fingerprint is unchanged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from pulsarbox import __version__
from pulsarbox.plugins.contracts import API
from pulsarbox.plugins.registry import PluginEntry, file_of

_FILES_MAX: Final = 2_000
_BYTES_MAX: Final = 64 << 20
"""Limits beyond which a plugin has no fingerprint: reading it all would take as long as checking it."""


def fingerprint(found: PluginEntry) -> str | None:
    """Return a digest of a plugin's files and contract, the versions of Python and pulsarbox, and installed packages.

    None if it cannot be computed; the plugin must then be checked again.
    """
    said = sha256(repr((found.kind, found.name, found.target, API, __version__, sys.version)).encode())
    try:
        for name in sorted(_installed()):
            said.update(name.encode() + b"\0")
        total = 0
        for number, path in enumerate(sorted(_files(found))):
            body = path.read_bytes()
            total += len(body)
            if number >= _FILES_MAX or total > _BYTES_MAX:
                return None
            said.update(f"{path}\0{len(body)}\0".encode())
            said.update(body)
    except OSError:
        return None
    return said.hexdigest() if total else None


def _files(found: PluginEntry) -> Iterator[Path]:
    """Yield all files of the plugin's module or package, without importing it."""
    file = file_of(found)
    if file is not None:
        yield file[0]
        return
    spec = PathFinder.find_spec(found.target.partition(":")[0].partition(".")[0])
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin is not None:
            yield Path(spec.origin)
        return
    for folder in spec.submodule_search_locations:
        for path in Path(folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def _installed() -> Iterator[str]:
    """Yield the names of installed ``.dist-info`` directories, which contain distribution and version."""
    for folder in {path for path in sys.path if path}:
        if Path(folder).is_dir():
            yield from (each.name for each in Path(folder).glob("*.dist-info"))
