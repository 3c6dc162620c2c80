"""Schemas of Java classes, extracted by the pulsar-admin of a Pulsar installation."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.printing import pretty
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.cli.pulsar_admin.steps.local_runs import HOME_VARIABLE
from pulsarbox.cli.pulsar_admin.table import Command

_SECONDS: Final = 120.0
"""Limit of the extraction, which starts Java."""
_REASON_MAX: Final = 500


def extract(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Upload the schema of a Java class, or print it with --dry-run. Raises Failed if it cannot be extracted."""
    if values["type"].lower() not in ("avro", "json"):
        raise Misused(f"--type: expected avro or json, not '{clean(values['type'])}'")
    payload = extracted(values)
    if values["dry_run"]:
        click.echo(f"{values['topic']}\n{pretty(payload)}")
        return
    call = command.calls[0]
    session.ask(call._replace(body=payload), values)


def extracted(values: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that the pulsar-admin in PULSAR_HOME extracts, without contacting a broker."""
    done = _run(values)
    _, mark, text = done.stdout.partition("\n")
    try:
        found = json.loads(text) if mark and not done.returncode else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[0]
        raise Failed(f"pulsar-admin cannot extract the schema: {clean(reason[:_REASON_MAX])}")
    return found


def _run(values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    home = os.environ.get(HOME_VARIABLE)
    if not home:
        raise Misused(f"set {HOME_VARIABLE} to a Pulsar installation: only Java can read Java classes")
    program = Path(home, "bin", "pulsar-admin")
    words = ["-j", values["jar"], "-c", values["classname"], "-t", values["type"], "-n"]
    words += ["-a", "true" if values["always_allow_null"] else "false"]
    try:
        return subprocess.run(
            [str(program), "schemas", "extract", str(values["topic"]), *words],
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except OSError as error:
        raise Failed(f"cannot start {program}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{program} did not end within {_SECONDS:g} s") from None
