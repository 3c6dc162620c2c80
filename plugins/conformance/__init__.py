"""Whether a plugin keeps its contract: plain functions that give what is wrong, as sentences.

They are what ``pulsarbox plugins doctor`` asks, and what the classes of ``pulsarbox.testing`` assert. They take plugins
that fit their contract from outside (``registry.misfit``), run for a second at the most where the plugin returns, and
give the same result each time. A plugin that may hang or end the process is asked in another one (``probe``).
"""

from __future__ import annotations

from typing import Any, Final

from pulsarbox.plugins.conformance import compression, hashing, routing

CHECKS: Final[dict[str, dict[str, Any]]] = {
    "routing": routing.CHECKS,
    "hashing": hashing.CHECKS,
    "compression": compression.CHECKS,
}
"""By kind and respect: a function that gives what is wrong there."""


def digest(kind: str, plugin: Any) -> str:
    """What a plugin decides, as one text: the same in each process. Empty for codecs, whose bytes may differ."""
    if kind == "hashing":
        return hashing.digest(plugin)
    return routing.digest(plugin) if kind == "routing" else ""


def problems(kind: str, plugin: Any) -> list[str]:
    """Everything that is wrong with a plugin; nothing it raises comes out of here but KeyboardInterrupt."""
    found = []
    for respect, check in CHECKS[kind].items():
        try:
            found += [f"{respect}: {problem}" for problem in check(plugin)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit among them
            found.append(f"{respect}: {type(error).__name__}: {error}")
    return found
