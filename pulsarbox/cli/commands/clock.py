"""``pulsarbox clock``: show the clock of a box, and advance a virtual one."""

from datetime import UTC, datetime
from typing import Any, Final

import click

from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.terminal_text import OUTPUT, print_document
from pulsarbox.cli.connect.admin_request import ask
from pulsarbox.cli.connect.target import Target, admin_options
from pulsarbox.clock import in_words
from pulsarbox.times import duration

_PATH: Final = "/pulsarbox/v1/clock"


@click.group(cls=SuggestingGroup)
def clock() -> None:
    """Show the clock of a box, and advance it if it is virtual (`pulsarbox start --clock virtual`).

    This clock drives retention, delayed delivery and message ages, but not connections and their timeouts. Advancing
    it runs everything that falls due. It never moves back, and its offset is stored in the data directory.

    \b
    Examples:
      pulsarbox clock show
      pulsarbox clock advance 10d
      pulsarbox clock set 2030-01-01T00:00:00Z
    """


@clock.command()
@admin_options
@OUTPUT
def show(admin: Target, output: str) -> None:
    """Show the time of the box.

    \b
    Examples:
      pulsarbox clock show
      pulsarbox clock show -o json | jq .offset
    """
    _show(ask(admin, "GET", _PATH), output)


def _duration(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """Parse 10d, 1h30m or 250ms into milliseconds."""
    try:
        return duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@clock.command()
@click.argument("by", callback=_duration)
@admin_options
@OUTPUT
def advance(by: int, admin: Target, output: str) -> None:
    """Advance a virtual clock BY a duration.

    Units: weeks, days, hours, minutes, seconds and milliseconds (10d, 1h30m, 250ms). Returns once everything that
    falls due is done and on disk.

    \b
    Exit codes:
      0  advanced
      4  the clock of the box is not virtual
      6  the box is unreachable

    \b
    Examples:
      pulsarbox clock advance 10d
      pulsarbox clock advance 1h30m --data-dir mybox
    """
    _show(ask(admin, "POST", f"{_PATH}/advance", {"by": by}), output)


@clock.command("set")
@click.argument("instant")
@admin_options
@OUTPUT
def set_to(instant: str, admin: Target, output: str) -> None:
    """Advance a virtual clock to an INSTANT.

    INSTANT is an ISO 8601 time after the current time of the box; UTC if it has no time zone.

    \b
    Exit codes:
      0  advanced
      1  INSTANT is in the past or invalid
      4  the clock of the box is not virtual
      6  the box is unreachable

    \b
    Examples:
      pulsarbox clock set 2030-01-01T00:00:00Z
      pulsarbox clock set 2030-01-01
    """
    _show(ask(admin, "PUT", _PATH, {"to": instant}), output)


def _show(held: dict[str, Any], output: str) -> None:
    if output != "table":
        print_document(held, output)
        return
    rows = {"clock": held["mode"], "now": _instant(held["now"])}
    if held["mode"] == "virtual":
        rows |= {"real": _instant(held["real"]), "ahead": in_words(held["offset"])}
    for name, value in rows.items():
        click.echo(f"{name:<8} {value}")


def _instant(wall: int) -> str:
    return datetime.fromtimestamp(wall / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
