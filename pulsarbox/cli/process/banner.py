"""Startup banner of a box."""

import resource
from pathlib import Path

from pulsarbox.cli.common.terminal_text import clean, megabytes
from pulsarbox.config import Settings
from pulsarbox.config.listeners import bound, is_loopback
from pulsarbox.server.process.runtime_file import RuntimeFile

_DOCS = Path(__file__).parents[3] / "docs"


def banner(running: RuntimeFile, settings: Settings, source: str) -> str:
    """Return the banner: service URLs, data directory, limits, settings, documentation, and warnings."""
    connections = str(settings.brokerMaxConnections) if settings.brokerMaxConnections else "not limited"
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    rows = {
        "pulsar": running.broker_urls,
        "http": running.web_urls,
        "data": running.data or "in memory: nothing is written to disk; all data is lost when this process exits",
        "limits": f"connections {connections}, open files {files},"
        f" message {megabytes(settings.maxMessageSize)} (maxMessageSize)",
        "settings": source,
        "docs": f"{_DOCS}, `pulsarbox --help`" if _DOCS.is_dir() else "`pulsarbox --help`",
    }
    if running.clock != "real":
        rows["clock"] = "virtual: advance it with `pulsarbox clock advance`"
    if running.faults:
        rows["faults"] = "injection enabled (`pulsarbox fault`): not for production"
    if settings.authenticationEnabled:
        rows["clients"] = f"must authenticate ({settings.authenticationProviders})"
    elif others := open_to_others(settings):
        rows["warning"] = (
            f"authentication is disabled, and the box listens on non-loopback addresses: {', '.join(others)}"
        )
    lines = [f"pulsarbox {running.version}, process {running.pid}"]
    return "\n".join([*lines, *(f"  {name:<9} {clean(value)}" for name, value in rows.items())])


def open_to_others(settings: Settings) -> list[str]:
    """Return the listen addresses that are not loopback."""
    hosts = [settings.bindAddress, *(address.host for address in bound(settings.bindAddresses))]
    return [host for host in dict.fromkeys(hosts) if not is_loopback(host)]
