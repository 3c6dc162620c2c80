"""Conformance checks of plugins: plain functions that yield a sentence for each problem.

``pulsarbox plugins doctor`` runs them, and the classes of ``pulsarbox.testing`` assert them. They expect a plugin with
the right attributes (``registry.misfit``), take at most a second if the plugin returns promptly, and are repeatable.
A plugin that may hang or end the process is checked in a child process (``probe``).
"""

from __future__ import annotations

from typing import Any, Final

from pulsarbox.plugins.conformance import compression, hashing, routing

CHECKS: Final[dict[str, dict[str, Any]]] = {
    "routing": routing.CHECKS,
    "hashing": hashing.CHECKS,
    "compression": compression.CHECKS,
}
"""Checks by plugin kind and check name; each check yields problems."""


def digest(kind: str, plugin: Any) -> str:
    """Return a digest of a plugin's decisions, equal in all processes. Empty for codecs, whose output may differ."""
    if kind == "hashing":
        return hashing.digest(plugin)
    return routing.digest(plugin) if kind == "routing" else ""


def problems(kind: str, plugin: Any) -> list[str]:
    """Return all problems of a plugin. No exception of the plugin escapes except KeyboardInterrupt."""
    found = []
    for respect, check in CHECKS[kind].items():
        try:
            found += [f"{respect}: {problem}" for problem in check(plugin)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # includes SystemExit
            found.append(f"{respect}: {type(error).__name__}: {error}")
    return found
