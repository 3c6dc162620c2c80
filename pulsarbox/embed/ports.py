"""The ports of a box that is started again: those that it has had."""

from dataclasses import replace

from pulsarbox.config import Settings
from pulsarbox.server.process.runtime_file import Running


def on_its_ports(settings: Settings, running: Running) -> Settings:
    """The settings with the ports on which the box has served, instead of any free ones."""
    return replace(
        settings,
        brokerServicePort=running.port,
        webServicePort=running.web_port,
        brokerServicePortTls=running.tls_port,
        webServicePortTls=running.web_tls_port,
    )
