"""``pulsarbox start``: run the daemon in the foreground or background."""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.common.terminal_text import diagnose, notify
from pulsarbox.cli.process.setting_options import file_used, loaded_or_exit, overrides, settings_options
from pulsarbox.config.setting import OFF

if TYPE_CHECKING:
    from pulsarbox.config import Settings
    from pulsarbox.server.process.runtime_file import RuntimeFile


@click.command()
@settings_options
@click.option("--memory", is_flag=True, help="Keep all data in memory; it is lost at exit.")
@click.option("--detach", is_flag=True, help="Run in the background; wait until ready and print the URLs.")
@click.option(
    "--accept-loss-of",
    metavar="DIR",
    multiple=True,
    help="Start without this data directory even if acknowledged messages may be lost with it (several times).",
)
@click.option(
    "--log-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --detach: log file. [default: pulsarbox.log in the data directory; none with --memory]",
)
@click.option("--report-to", type=int, hidden=True)  # file descriptor read by the parent of a background start
@click.option("--log-to", type=click.Path(path_type=Path), hidden=True)  # the file behind stdout and stderr
def start(
    config_file: Path | None,
    memory: bool,
    detach: bool,
    accept_loss_of: tuple[str, ...],
    log_file: Path | None,
    report_to: int | None,
    log_to: Path | None,
    **options: Any,
) -> None:
    """Start a box in the foreground or, with --detach, in the background.

    Options take precedence over environment variables (PULSARBOX_<setting>), and these over the configuration file.
    SIGTERM and Ctrl-C shut the box down cleanly. Acknowledged messages are on disk even after a crash.

    \b
    Exit codes:
      0  stopped cleanly; with --detach: the box is ready
      1  failed to start, or failed while running; the last line has the reason
      2  an option or the configuration is invalid
      4  another process holds the data directory or a port; the error names it

    \b
    Examples:
      pulsarbox start
      pulsarbox start --data-dir mybox --port 0 --web-port 0
      pulsarbox start --detach && pulsarbox status
      pulsarbox start --memory
      pulsarbox start --init box.yaml
    """
    if memory and options["data_dir"] is not None:
        raise click.UsageError("--memory and --data-dir cannot be combined")
    if log_file is not None and not detach:
        raise click.UsageError("--log-file requires --detach; in the foreground, redirect stderr: 2> FILE")
    loaded = loaded_or_exit(config_file, overrides(options))
    source = str(file_used(config_file) or "the defaults")
    if detach:
        from pulsarbox.cli.process.detach import start_detached

        in_data = not memory and log_file is None
        if in_data:
            from pulsarbox.storage.format import PROCESS_LOG

            log_file = _home(loaded.settings) / PROCESS_LOG
        words = {"config": config_file, **options}
        given = [
            f"--{name.replace('_', '-')}" + ("" if value is True else f"={'off' if value == OFF else value}")
            for name, value in words.items()
            if value is not None
        ]
        given += [f"--accept-loss-of={path}" for path in accept_loss_of]
        sys.exit(start_detached(["start", *given, *(["--memory"] if memory else [])], log_file, in_data=in_data))
    notify(f"settings from {source}")
    if memory:
        notify("in memory: nothing is written to disk; all data is lost when this process exits")

    gc.disable()  # until it serves: the modules loaded now are never garbage
    try:
        from pulsarbox.server.daemon import run  # other commands skip the daemon's imports

        report = Teller(loaded.settings, source, report_to)
        more = {"accept_loss_of": accept_loss_of} if accept_loss_of else {}
        code: int = run(loaded.settings, report, memory=memory, log_file=log_to, **more)
    finally:
        gc.enable()
    sys.exit(code)


def _home(settings: "Settings") -> Path:
    """Return the directory of the small files of the box."""
    if not settings.dataDirectories:
        return Path(settings.dataDirectory)
    from pulsarbox.server.process.home_directory import home_directory

    return home_directory(settings)


class Teller:
    """Reporter to the terminal, and to the parent process of a background start."""

    def __init__(self, settings: "Settings", source: str, descriptor: int | None) -> None:
        self._settings = settings
        self._source = source
        self._descriptor = descriptor

    def serving(self, running: "RuntimeFile") -> None:
        """See Report. Prints the banner only into text logs at level info or debug."""
        if self._settings.logFormat == "text" and self._settings.logLevel in ("debug", "info"):
            from pulsarbox.cli.process.banner import banner

            diagnose(banner(running, self._settings, self._source))
        if self._descriptor is not None:
            from dataclasses import asdict, replace

            self._pass_on(asdict(replace(running, operator="")))

    def failed(self, reason: str) -> None:
        """See Report. The log already has the reason."""
        if self._descriptor is not None:
            self._pass_on({"failed": reason})

    def _pass_on(self, document: dict[str, Any]) -> None:
        import json

        assert self._descriptor is not None
        try:
            os.write(self._descriptor, json.dumps(document).encode() + b"\n")
            os.close(self._descriptor)
        except OSError:  # the parent no longer waits, which is no error
            pass
        self._descriptor = None
