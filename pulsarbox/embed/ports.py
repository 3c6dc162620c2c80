"""Reuse of a box's ports when it is started again."""

from dataclasses import replace

from pulsarbox.config import Settings
from pulsarbox.server.process.runtime_file import RuntimeFile


def on_its_ports(settings: Settings, running: RuntimeFile) -> Settings:
    """Return the settings with the actual ports of a running box."""
    return replace(
        settings,
        brokerServicePort=running.port,
        webServicePort=running.web_port,
        brokerServicePortTls=running.tls_port,
        webServicePortTls=running.web_tls_port,
    )
