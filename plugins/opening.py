"""A router opened for a producer, with what decides where it fails."""

from __future__ import annotations

from typing import Any

from pulsarbox.plugins.contracts import Choose, Producing
from pulsarbox.plugins.guard import Guard
from pulsarbox.plugins.registry import PluginError, get

INSTEAD = "round-robin"
"""What stands in for a router that fails."""


def opened(plugin: Any, producing: Producing, guard: Guard | None) -> Choose:
    """What chooses the partitions of a producer; ``guard``: of the plugin, None for a built-in one.

    Raises PluginError where the plugin does not choose partitions, or an option cannot be used.
    """
    choose = _open(plugin, producing)
    return choose if guard is None else guard.partitions(choose, _open(get("routing", INSTEAD), producing))


def _open(plugin: Any, producing: Producing) -> Choose:
    if not hasattr(plugin, "open"):
        raise PluginError(f"{plugin.name!r} chooses among consumers, not among partitions")
    try:
        choose: Choose = plugin.open(producing)
    except ValueError as error:
        raise PluginError(f"the route {plugin.name!r} cannot be opened: {error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"the route {plugin.name!r} cannot be opened: {type(error).__name__}: {error}") from None
    return choose
