"""``pulsarbox doctor``: whether this machine and this configuration are fit for a box."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.terminal_text import OUTPUT, clean, coloured, say
from pulsarbox.cli.process.setting_options import overrides, settings_options

EXIT_UNFIT: Final = 1

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@settings_options
@OUTPUT
def doctor(config_file: Path | None, output: str, **options: Any) -> None:
    """Check this machine for a box with the same options: each line ok, warn or fail, and what to do.

    Looked at: configuration, Python and packages, file limit, data directory, disk and its syncs, ports, how clients
    prove who they are, what a box that runs does with dead letters, loopback, terminal. A file is written to the data
    directory's disk for a moment, nothing else is changed.

    \b
    Exit codes:
      0  a box can run here; warnings may be worth a look
      1  something fails
      2  an option is wrong

    \b
    Examples:
      pulsarbox doctor
      pulsarbox doctor --data-dir /mnt/fast/box --port 7000
      pulsarbox doctor -o json | jq '.checks[] | select(.state != "ok")'
    """
    from pulsarbox.cli.process.doctor_checks import FAIL, WARN, Check, all_checks

    found: list[Check] = []
    for check in all_checks(config_file, overrides(options)):
        found.append(check)
        if output == "table":
            state = coloured(f"{check.state:<4}", fg=_COLOURS[check.state], bold=True)
            click.echo(f"{state}  {check.name:<13}  {clean(check.text)}")
            if check.advice:
                click.echo(f"{'':<21}what to do: {clean(check.advice)}")
    failures, warnings = (sum(check.state == state for check in found) for state in (FAIL, WARN))
    if output == "json":
        click.echo(json.dumps({"fit": not failures, "checks": [check._asdict() for check in found]}, indent=2))
    else:
        say(f"{len(found)} checks: {failures} fail, {warnings} warn")
    sys.exit(EXIT_UNFIT if failures else 0)
