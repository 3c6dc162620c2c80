"""``pulsarbox doctor``: check this machine and configuration for running a box."""

import sys
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import ended_by_reader
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import clean, coloured, counted, notify
from pulsarbox.cli.process.setting_options import overrides, settings_options

EXIT_UNFIT: Final = 1

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@settings_options
@form_option
@ended_by_reader
def doctor(config_file: Path | None, output: OutputOptions, **options: Any) -> None:
    """Check this machine and suggest fixes.

    Each line is ok, warn or fail, for a box with the same options. Checks configuration, Python and packages, file
    limit, data directory, disk and sync times, ports, authentication and authorization, certificate, loopback, and
    terminal; of a running box also dead letters and the copies in several data directories. Writes a temporary file to
    the disk of the data directory and changes nothing else.

    \b
    Exit codes:
      0  no failure; warnings are possible
      1  a check failed
      2  an option is invalid

    \b
    Examples:
      pulsarbox doctor
      pulsarbox doctor --data-dir /mnt/fast/box --port 7000
      pulsarbox doctor -o json | jq '.checks[] | select(.state != "ok")'
    """
    from pulsarbox.cli.process.doctor_check import FAIL, WARN, Check
    from pulsarbox.cli.process.doctor_checks import all_checks

    found: list[Check] = []
    if output.form == "table":
        click.echo(f"{'STATE':<5} {'NAME':<14}  TEXT")
    for check in all_checks(config_file, overrides(options)):
        found.append(check)
        if output.form == "table":
            state = coloured(f"{check.state:<4}", fg=_COLOURS[check.state], bold=True)
            click.echo(f"{state}  {check.name:<14}  {clean(check.text)}")
            if check.advice:
                click.echo(f"{'':<22}what to do: {clean(check.advice)}")
    failures, warnings = (sum(check.state == state for check in found) for state in (FAIL, WARN))
    if output.form != "table":
        rows = [check._asdict() for check in found]
        document = {"fit": not failures, "checks": rows}
        show(
            output,
            lambda: TableOutput(
                rows, ("state", "name", "text", "advice"), document=document, cut={"text": 20, "advice": 20}
            ),
        )
    else:
        notify(f"{counted(len(found), 'check')}: {failures} fail, {warnings} warn")
    sys.exit(EXIT_UNFIT if failures else 0)
