"""Opening of a router for a producer, with a fallback for failures."""

from __future__ import annotations

from typing import Any

from pulsarbox.plugins.contracts import Choose, Producing
from pulsarbox.plugins.guard import Guard
from pulsarbox.plugins.registry import PluginError, get

INSTEAD = "round-robin"
"""Fallback of a failing router."""


def opened(plugin: Any, producing: Producing, guard: Guard | None) -> Choose:
    """Open a router for a producer; ``guard`` is the plugin's, or None for a built-in router.

    Raises PluginError if the plugin does not select partitions, or if an option is invalid.
    """
    choose = _open(plugin, producing)
    return choose if guard is None else guard.partitions(choose, _open(get("routing", INSTEAD), producing))


def _open(plugin: Any, producing: Producing) -> Choose:
    if not hasattr(plugin, "open"):
        raise PluginError(f"{plugin.name!r} selects consumers, not partitions")
    try:
        choose: Choose = plugin.open(producing)
    except ValueError as error:
        raise PluginError(f"cannot open the router {plugin.name!r}: {error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"cannot open the router {plugin.name!r}: {type(error).__name__}: {error}") from None
    return choose
