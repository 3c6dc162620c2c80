"""Plugins of a package that is not installed, as its pyproject.toml declares them."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pulsarbox.plugins.contracts import KINDS
from pulsarbox.plugins.registry import PluginEntry

_DEPTH: Final = 4
"""Directories above a file to look for its pyproject.toml: src/package/module.py needs three."""


def declared_in(path: Path) -> list[PluginEntry]:
    """Return the plugins that the package around a file declares as classes of that file. Imports nothing."""
    document = _project(path)
    return [] if document is None else list(_entries(document, path))


def _project(path: Path) -> dict[str, Any] | None:
    for folder in list(path.absolute().parents)[:_DEPTH]:
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                return tomllib.loads(file.read_text("utf-8"))
            except (OSError, ValueError):
                return None
    return None


def _entries(document: dict[str, Any], path: Path) -> Iterator[PluginEntry]:
    groups = _table(_table(document, "project"), "entry-points")
    for kind in KINDS:
        for name, target in _table(groups, f"pulsarbox.{kind}").items():
            module, _, found = str(target).partition(":")
            if found and module.rpartition(".")[2] in (path.stem, path.parent.name if path.stem == "__init__" else ""):
                yield PluginEntry(kind, name, str(path), f"{path}:{found}")


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
