"""Apache Pulsar in a box: one process and one data directory that speak the Pulsar protocols."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulsarbox.config import ConfigError
    from pulsarbox.embed.box import PulsarBox
    from pulsarbox.embed.errors import BoxError
    from pulsarbox.embed.messages import Message
    from pulsarbox.embed.snapshot import Snapshot
    from pulsarbox.embed.testing import expect, having

__version__ = "0.1.0"

__all__ = ["BoxError", "ConfigError", "Message", "PulsarBox", "Snapshot", "__version__", "expect", "having"]

_HOMES = {
    "BoxError": "pulsarbox.embed.errors",
    "ConfigError": "pulsarbox.config",
    "PulsarBox": "pulsarbox.embed.box",
    "Snapshot": "pulsarbox.embed.snapshot",
    "Message": "pulsarbox.embed.messages",
    "expect": "pulsarbox.embed.testing",
    "having": "pulsarbox.embed.testing",
}
"""Exported names and their modules, imported on first use: ``import pulsarbox`` alone stays cheap."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pulsarbox' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
