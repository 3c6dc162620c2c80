"""``pulsarbox status``: state of the box of a data directory, seen from outside."""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.terminal_text import OUTPUT, ago, clean, coloured, megabytes, notify, print_document
from pulsarbox.cli.common.value_types import Seconds
from pulsarbox.cli.process.box_lookup import box_options, directory_of
from pulsarbox.cli.process.lock_holder import bytes_on_disk, find, resident_bytes

if TYPE_CHECKING:
    import ssl

    from pulsarbox.server.process.runtime_file import RuntimeFile

EXIT_NOT_RUNNING: Final = 3

_HEALTH_PATH = "/admin/v2/brokers/health"
_HEALTH_SECONDS = 5.0
_HEALTH_BYTES_MAX = 4096
_COLOURS = {"running": "green", "starting": "yellow", "not running": "red"}


@click.command()
@box_options
@OUTPUT
@click.option(
    "--watch",
    metavar="[DURATION]",
    type=Seconds(0.1),
    is_flag=False,
    flag_value=2,
    help="Repeat at this interval (default 2s) until Ctrl-C. JSON output is one document per line.",
)
def status(
    config_file: Path | None, data_dir: str | None, memory: bool, pid: int | None, output: str, watch: float | None
) -> None:
    """Show whether a box is running, and where.

    Shows process, start time, version, URLs, memory, disk usage, copies in several data directories, last backup and
    health. Reads the data directory; only for health and copies, it connects to the box, over HTTP. For a box started
    with --memory, pass --memory.

    \b
    Exit codes (with --watch, of the last check):
      0  running or starting
      2  an option or the configuration is invalid
      3  not running
      5  the data directory belongs to another user

    \b
    Examples:
      pulsarbox status
      pulsarbox status --data-dir mybox -o json | jq -r .brokerUrl
      pulsarbox status --watch 1
      pulsarbox status --memory
    """
    directory = directory_of(config_file, data_dir, memory, pid)
    document = look(directory, memory)
    if document["state"] == "not running" and not memory and data_dir is None:
        from pulsarbox.server.process.memory_box_entry import entries

        if entries():
            notify("a box runs in memory: use `pulsarbox status --memory`")
    try:
        _show(document, output, watch)
        while watch is not None:
            from pulsarbox.cli.common.terminal import rest

            rest(watch)
            document = look(directory, memory)
            _show(document, output, watch)
    except KeyboardInterrupt:
        notify("stopped watching")
    except BrokenPipeError:  # the reader, such as `| head`, is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(EXIT_NOT_RUNNING if document["state"] == "not running" else 0)


def look(directory: Path, memory: bool = False) -> dict[str, Any]:
    """Return the current status. The keys are stable; unknown values are None."""
    from pulsarbox.server.process.runtime_file import read
    from pulsarbox.storage.backup.last import last_backup
    from pulsarbox.storage.format import ENSEMBLE

    found = find(directory)
    running = read(directory, found.pid) if found is not None else None
    state = "not running" if found is None else "starting" if running is None else "running"
    pid = found.pid or None if found is not None else None
    return {
        "state": state,
        "pid": pid,
        "since": None if running is None else running.started,
        "version": None if running is None else running.version,
        "brokerUrl": None if running is None else running.broker_url,
        "webUrl": None if running is None else running.web_url,
        "port": None if running is None else running.port,
        "webPort": None if running is None else running.web_port,
        "brokerUrlTls": None if running is None else running.broker_url_tls,
        "webUrlTls": None if running is None else running.web_url_tls,
        "tlsPort": None if running is None else running.tls_port,
        "webTlsPort": None if running is None else running.web_tls_port,
        "memoryBytes": resident_bytes(pid) if pid is not None and found is not None and found.confirmed else None,
        "embedded": None if running is None else running.embedded,
        "clock": None if running is None else running.clock,
        "faults": None if running is None else running.faults,
        "data": None if memory else str(directory.absolute()),
        "dataBytes": bytes_on_disk(directory) if directory.is_dir() and not memory else None,
        "ensemble": None if running is None or not (directory / ENSEMBLE).exists() else _ensemble_of(running),
        "lastBackup": None if memory else last_backup(directory),
        "health": None if running is None else _health_of(running),
    }


def _ensemble_of(running: "RuntimeFile") -> dict[str, Any] | None:
    """Return the status of several data directories, with a ``summary``; only that if the box does not answer."""
    from pulsarbox.cli.data.ensemble_text import summary
    from pulsarbox.cli.process.running_box import ensemble_of
    from pulsarbox.errors import PulsarBoxError

    try:
        document = ensemble_of(running)
    except PulsarBoxError as error:
        return {"summary": f"unknown: {error}"}
    return None if document is None else {"summary": summary(document), **document}


def _health_of(running: "RuntimeFile") -> str:
    if running.web_port >= 0:
        return health(running.host, running.web_port)
    from pulsarbox.client.credentials import Credentials

    try:
        context = Credentials(pinned=running.certificate).tls()
    except OSError as error:
        return f"unknown: cannot read {running.certificate}: {error}"
    return health(running.host, running.web_tls_port, context)


def health(host: str, port: int, tls: "ssl.SSLContext | None" = None) -> str:
    """Return ``ok``, or the problem. Uses a plain socket, because importing an HTTP client dominates the run time."""
    import socket

    question = f"GET {_HEALTH_PATH} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n"
    answer = b""
    try:
        plain = socket.create_connection((host, port), timeout=_HEALTH_SECONDS)
        with plain if tls is None else tls.wrap_socket(plain) as connection:
            connection.sendall(question.encode())
            while len(answer) < _HEALTH_BYTES_MAX and (part := connection.recv(_HEALTH_BYTES_MAX)):
                answer += part
    except TimeoutError:
        return f"no response within {_HEALTH_SECONDS:g} s"
    except OSError as error:
        if getattr(error, "reason", "") == "TLSV13_ALERT_CERTIFICATE_REQUIRED":
            return "unknown: requires a client certificate (tlsRequireTrustedClientCertOnConnect)"
        return f"no response: {error.strerror or error}"
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        return "no HTTP response"
    text = body.decode(errors="replace").strip()
    return text if words[1] == b"200" else f"HTTP {words[1].decode(errors='replace')}: {_reason(text)}"


def _reason(text: str) -> str:
    """Return the reason of a Pulsar error response, or the text itself."""
    try:
        return str(json.loads(text)["reason"])
    except (ValueError, TypeError, KeyError):
        return text


def _show(document: dict[str, Any], output: str, watch: float | None) -> None:
    if output != "table":
        if watch is not None and output == "json":
            click.echo(json.dumps(document))
        else:
            print_document(document, output)
        return
    if watch is not None and sys.stdout.isatty():
        click.clear()
    for name, value in _rows(document).items():
        text = clean(value)
        click.echo(f"{name:<8} {coloured(text, fg=_COLOURS[value]) if value in _COLOURS else text}")
    if watch is not None and not sys.stdout.isatty():
        click.echo()


def _both(document: dict[str, Any], name: str) -> str:
    return ", ".join(url for url in (document[name], document[f"{name}Tls"]) if url)


def _rows(document: dict[str, Any]) -> dict[str, str]:
    rows = {"state": document["state"]}
    if document["pid"] is not None:
        rows["process"] = str(document["pid"]) + (", a program that embeds the box" if document["embedded"] else "")
    if document["since"] is not None:
        rows["since"] = datetime.fromtimestamp(document["since"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        rows |= {"version": document["version"], "pulsar": _both(document, "brokerUrl")}
        rows["http"] = _both(document, "webUrl")
    if document["memoryBytes"] is not None:
        rows["memory"] = megabytes(document["memoryBytes"])
    size = document["dataBytes"]
    if document["data"] is None:
        rows["data"] = "in memory: nothing is written to disk"
    else:
        told = "which does not exist" if size is None else f"{megabytes(size)} on disk"
        rows["data"] = f"{document['data']}, {told}"
    if document["ensemble"] is not None:
        rows["copies"] = document["ensemble"]["summary"]
    last = document["lastBackup"]
    if last is not None:
        rows["backup"] = f"{ago(last['time'])}, up to batch {last['position']}, in {last['directory']}"
    if document["clock"] == "virtual":
        rows["clock"] = "virtual (`pulsarbox clock show`)"
    if document["faults"]:
        rows["faults"] = "injection enabled (`pulsarbox fault list`)"
    if document["health"] is not None:
        rows["health"] = document["health"]
    return rows
