"""Registry of plugins: discovery without importing, and loading.

Built-in plugins come first, and their names are reserved. If two others have the same name, the first one wins, in the
order of distributions, then files.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.plugins.contracts import API, KINDS

if TYPE_CHECKING:
    import ast

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_NAME_FORM: Final = "lower-case letters, digits, - and _, beginning with a letter"

_BUILT_IN: Final = {
    "routing": {
        "round-robin": "round_robin:RoundRobin",
        "single": "single:Single",
        "key": "key:ByKey",
        "consistent": "consistent:Consistent",
        "least-backlog": "least_backlog:LeastBacklog",
        "property": "by_property:ByProperty",
    },
    "hashing": {
        "java": "java_string:JavaString",
        "java-cpp": "java_string:JavaStringCpp",
        "boost": "boost:Boost",
        "murmur3": "murmur3:Murmur3",
        "xxhash": "xxh:XxHash",
        "crc32c": "crc32c:Crc32c",
    },
    "compression": {
        "none": "uncompressed:Uncompressed",
        "lz4": "lz4:Lz4",
        "zlib": "zlib:Zlib",
        "zstd": "zstd:Zstd",
        "snappy": "snappy:Snappy",
    },
}

_METHODS: Final = {
    "routing": (("open",), ("choose",), ("divide",)),
    "hashing": (("hash32",),),
    "compression": (("open", "trained", "train"),),
}
"""Required methods of each kind, as alternatives."""


NO_CLASS: Final = "it has no class Plugin"
"""Problem of a file without plugin."""


class PluginEntry(NamedTuple):
    """A discovered plugin that has not been imported."""

    kind: str
    name: str
    source: str
    """``built-in``, a distribution with its version, or the path of a file."""
    target: str
    """``module:Class``, or the path of a file, with ``:Class`` if the class is not ``Plugin``."""
    problem: str = ""
    """Why the plugin is unusable, as far as discovery can tell."""


class PluginError(Exception):
    """A plugin is unusable; the message gives the reason. ``trace``: a traceback, if the plugin raised."""

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason)
        self.trace = trace


def built_in(kind: str) -> tuple[str, ...]:
    """Return the names of the built-in plugins of a kind."""
    return tuple(_BUILT_IN[kind])


def find(directory: Path | None = None) -> list[PluginEntry]:
    """Return all plugins by kind, built-in ones first; ``directory`` holds plugin files."""
    found = [
        PluginEntry(kind, name, "built-in", f"pulsarbox.plugins.{kind}.{target}")
        for kind in KINDS
        for name, target in _BUILT_IN[kind].items()
    ]
    taken = {(each.kind, each.name): each.source for each in found}
    for each in [*_of_distributions(), *_of_files(directory)]:
        known = taken.setdefault((each.kind, each.name), each.source)
        problem = each.problem
        if known != each.source and not problem:
            problem = f"duplicate name: already used by {known}"
        found.append(each._replace(problem=problem))
    return sorted(found, key=lambda each: KINDS.index(each.kind) if each.kind in KINDS else len(KINDS))


def load(found: PluginEntry) -> Any:
    """Return an instance of a plugin that fits its contract. Raises PluginError, whatever the plugin does."""
    if found.problem:
        raise PluginError(found.problem)
    try:
        made = _class_of(found)()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # includes SystemExit: a plugin must not end the process
        raise PluginError(f"{type(error).__name__}: {error}", traceback.format_exc()) from None
    problem = misfit(found.kind, made)
    if not problem and made.name != found.name:
        problem = f"its attribute name is {made.name!r}"
    if problem:
        raise PluginError(problem)
    return made


def get(kind: str, name: str, directory: Path | None = None) -> Any:
    """Return the plugin with that name. Raises PluginError; for an unknown name, the message lists the known ones."""
    target = _BUILT_IN[kind].get(name)
    if target is not None:
        return load(PluginEntry(kind, name, "built-in", f"pulsarbox.plugins.{kind}.{target}"))
    return load(choose(find(directory), kind, name))


def choose(found: Iterable[PluginEntry], kind: str, name: str) -> PluginEntry:
    """Return the plugin of a kind and name. Raises PluginError; for an unknown name, the message lists the known
    ones."""
    of_kind = [each for each in found if each.kind == kind]
    named = [each for each in of_kind if each.name == name]
    if not named:
        names = ", ".join(each.name for each in of_kind)
        raise PluginError(f"unknown {kind} plugin {name!r}: expected one of {names}")
    return next((each for each in named if not each.problem), named[0])


def misfit(kind: str, plugin: object) -> str:
    """Return why an object does not fit the contract of a kind; empty if it does."""
    api, name = getattr(plugin, "api", None), getattr(plugin, "name", None)
    if not isinstance(api, int):
        return f"the attribute api is missing: set it to the version of the contract, api = {API[kind]}"
    if api != API[kind]:
        newer = "upgrade pulsarbox" if api > API[kind] else "upgrade the plugin"
        return f"it was written for version {api} of the {kind} contract, but this is version {API[kind]}: {newer}"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"invalid name {name!r}: expected {_NAME_FORM}"
    forms = _METHODS[kind]
    if not any(all(callable(getattr(plugin, method, None)) for method in form) for form in forms):
        wanted = " or ".join(", ".join(f"{method}()" for method in form) for form in forms)
        return f"it lacks the methods of a {kind} plugin: {wanted}"
    if kind == "compression":
        tag = getattr(plugin, "rest_tag", None)
        if tag is not None and not (isinstance(tag, bytes) and len(tag) == 4):
            return f"invalid rest_tag {tag!r}: expected four bytes or None"
    return ""


def file_of(found: PluginEntry) -> tuple[Path, str] | None:
    """Return the file and the class of a plugin in a file; None for an installed one."""
    if found.target.endswith(".py"):
        return Path(found.target), "Plugin"
    path, _, name = found.target.rpartition(":")
    return (Path(path), name) if path.endswith(".py") else None


def _class_of(found: PluginEntry) -> Any:
    file = file_of(found)
    if file is not None:
        value: Any = _module_of(file[0])
        name = file[1]
    else:
        module, _, name = found.target.partition(":")
        value = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


class _Source(SourceFileLoader):
    """Loader that compiles the current file. Python's bytecode cache compares size and whole seconds only, so a plugin
    changed twice within a second would load its old code."""

    def get_code(self, fullname: str) -> CodeType:
        """See SourceFileLoader."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _module_of(path: Path) -> Any:
    name = f"pulsarbox_plugin_{path.stem}"
    loader = _Source(name, str(path))
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # as an import does; dataclasses and pickle rely on it
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _of_distributions() -> Iterable[PluginEntry]:
    from importlib.metadata import entry_points  # deferred: slower than loading all built-in plugins

    for kind in KINDS:
        for entry in sorted(entry_points(group=f"pulsarbox.{kind}"), key=lambda each: (each.name, each.value)):
            of = entry.dist
            source = f"{of.name} {of.version}" if of is not None else "an entry point"
            problem = "" if NAME.fullmatch(entry.name) else f"invalid name: expected {_NAME_FORM}"
            yield PluginEntry(kind, entry.name, source, entry.value, problem)


def _of_files(directory: Path | None) -> Iterable[PluginEntry]:
    if directory is None or not directory.is_dir():
        return
    for path in sorted(directory.glob("*.py")):
        if not path.name.startswith("_"):
            yield _of_file(path)


def _of_file(path: Path) -> PluginEntry:
    """Read a plugin's declaration from a file without executing it."""
    import ast

    said: dict[str, Any] = {}
    problem = NO_CLASS
    try:
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and node.name == "Plugin":
                said, problem = _said(node), ""
    except (SyntaxError, ValueError) as error:
        problem = f"not valid Python: {error}"
    except OSError as error:
        problem = f"cannot read the file: {error.strerror}"
    kind, name = said.get("kind", ""), said.get("name", path.stem)
    if not problem and kind not in KINDS:
        problem = f"invalid kind = {kind!r} in class Plugin: expected one of {', '.join(KINDS)}"
    return PluginEntry(str(kind), str(name), str(path), str(path), problem)


def _said(node: ast.ClassDef) -> dict[str, Any]:
    import ast

    said = {}
    for each in node.body:
        targets: list[ast.expr] = []
        if isinstance(each, ast.Assign):
            targets = each.targets
        elif isinstance(each, ast.AnnAssign):
            targets = [each.target]
        else:
            continue
        if isinstance(each.value, ast.Constant):
            said.update({target.id: each.value.value for target in targets if isinstance(target, ast.Name)})
    return said
