"""``pulsarbox plugins``: which there are, whether they are good, what they cost; writing one, switching one off."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import InTheWay, Misused, NotThere, run
from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.terminal_text import OUTPUT, clean, coloured, say
from pulsarbox.cli.connect.target import Target, admin_options, late_admin_options
from pulsarbox.cli.plugins.options import PLUGINS_DIR, plugins_directory
from pulsarbox.cli.process import completions
from pulsarbox.plugins.contracts import KINDS

_KIND: Final = click.option("--kind", type=click.Choice(KINDS), help="Where plugins of several kinds have the name.")
_NAME: Final = click.argument("name", shell_complete=completions.plugins())


@click.group(cls=Group)
def plugins() -> None:
    """Plugins for routing, hashing and compression: those that are built in, installed, or files of --plugins-dir.

    \b
    Examples:
      pulsarbox plugins list
      pulsarbox plugins new zones --kind routing
      pulsarbox plugins doctor --plugins-dir mine
    """


@plugins.command(name="list")
@click.option("--kind", type=click.Choice(KINDS), help="Those of one kind.")
@PLUGINS_DIR
@late_admin_options
@OUTPUT
def list_(admin: Callable[[], Target], kind: str | None, plugins_dir: Path | None, output: str) -> None:
    """List the plugins that this Python finds, and what a box that runs says of them. None of them is imported.

    \b
    Examples:
      pulsarbox plugins list
      pulsarbox plugins list --kind hashing -o json | jq '.[].name'
    """
    from pulsarbox.cli.plugins.known_plugins import known

    found = [each for each in known(plugins_directory(plugins_dir), admin) if kind in (None, each["kind"])]
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    from pulsarbox.cli.common.output import table

    rows = [{name: clean(str(each[name])) for name in ("kind", "name", "source", "state", "problem")} for each in found]
    for line in table(("kind", "name", "source", "state", "problem"), rows):
        click.echo(line)


@plugins.command()
@_NAME
@_KIND
@PLUGINS_DIR
@late_admin_options
@OUTPUT
def info(admin: Callable[[], Target], name: str, kind: str | None, plugins_dir: Path | None, output: str) -> None:
    """Show what is known of the plugin NAME: where it is, what it has cost a box that runs, who goes by it.

    \b
    Examples:
      pulsarbox plugins info murmur3
      pulsarbox plugins info zones -o json
    """
    from pulsarbox.cli.plugins.known_plugins import known

    found = [
        each
        for each in known(plugins_directory(plugins_dir), admin)
        if each["name"] == name and kind in (None, each["kind"])
    ]
    if not found:
        raise NotThere(f"there is no plugin '{name}': `pulsarbox plugins list` shows those that there are")
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    for each in found:
        for field, value in each.items():
            if value not in ("", [], 0):
                click.echo(f"{field:<14}{clean(value if isinstance(value, str) else json.dumps(value))}")


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completions.plugins())
@click.option("--all", "everything", is_flag=True, help="Those that are built in as well.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="And the codecs that entries in there need.")
@PLUGINS_DIR
@OUTPUT
def doctor(
    names: tuple[str, ...], everything: bool, data_dir: Path | None, plugins_dir: Path | None, output: str
) -> None:
    """Load plugins in a process of their own, one by one, and check them: those named, or all that are not built in.

    Nothing that they do there harms anybody: processor time and memory are bounded. With --data-dir, whether the
    codecs are there that entries on the disk are compressed with: a box does not start without them.

    \b
    Exit codes:
      0  all is well
      1  one of them should not be used
      3  there is none of that name

    \b
    Examples:
      pulsarbox plugins doctor
      pulsarbox plugins doctor zones --plugins-dir mine
      pulsarbox plugins doctor --all -o json
      pulsarbox plugins doctor --data-dir data
    """
    from pulsarbox.cli.plugins.known_plugins import diagnosed
    from pulsarbox.plugins.registry import find

    there = find(plugins_directory(plugins_dir))
    wanted = [each for each in there if (each.name in names if names else everything or each.source != "built-in")]
    for name in names:
        if all(each.name != name for each in wanted):
            raise NotThere(f"there is no plugin '{name}': `pulsarbox plugins list` shows those that there are")
    found = []
    for each in wanted:
        found.append(diagnosed(each))
        if output == "table":
            _say_of(found[-1])
    for one in _needed(data_dir, plugins_dir):
        found.append(one)
        if output == "table":
            _say_of(one)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif not found:
        say("there are no plugins but those that are built in: --all checks these")
    sys.exit(1 if any(each["problems"] for each in found) else 0)


@plugins.command()
@click.argument("plugin", metavar="NAME|FILE", shell_complete=completions.plugins())
@PLUGINS_DIR
@OUTPUT
def test(plugin: str, plugins_dir: Path | None, output: str) -> None:
    """Check one plugin, by name or as a file, respect by respect; where it raised something, show where.

    \b
    Exit codes:
      0  it keeps its contract
      1  it does not
      3  there is no such plugin

    \b
    Examples:
      pulsarbox plugins test mine/zones.py
      pulsarbox plugins test zones -o json
    """
    from pulsarbox.cli.plugins.known_plugins import diagnosed, respects, the_one

    found = diagnosed(the_one(plugin, plugins_directory(plugins_dir)))
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        sys.exit(1 if found["problems"] else 0)
    for respect, problem in respects(found):
        state = coloured("fail" if problem else "ok  ", fg="red" if problem else "green", bold=True)
        click.echo(f"{state}  {respect:<16}{clean(problem)}".rstrip())
    for line in found["trace"].splitlines():
        say(line)
    sys.exit(1 if found["problems"] else 0)


@plugins.command()
@click.argument("plugin", metavar="NAME|FILE", shell_complete=completions.plugins())
@click.option(
    "--seconds", type=click.FloatRange(0.01), default=1.0, show_default=True, help="How long to measure each."
)
@PLUGINS_DIR
@OUTPUT
def bench(plugin: str, seconds: float, plugins_dir: Path | None, output: str) -> None:
    """Measure a plugin beside a built-in one: nanoseconds a call, or MB/s. It is loaded into this process.

    \b
    Examples:
      pulsarbox plugins bench zones
      pulsarbox plugins bench mine/fnv.py --seconds 0.2 -o json
    """
    from pulsarbox.cli.plugins.bench import measured
    from pulsarbox.cli.plugins.known_plugins import the_one
    from pulsarbox.plugins.registry import PluginError

    try:
        rows = measured(the_one(plugin, plugins_directory(plugins_dir)), seconds)
    except PluginError as error:
        raise Misused(str(error)) from None
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['what']:<34}{row['plugin']:<16}{row['value']:>12,.1f} {row['unit']}")


@plugins.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="What it is for.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where it goes; else a directory of its name here.")
def new(name: str, kind: str, directory: Path | None) -> None:
    """Write a complete distribution for a plugin NAME that works: entry point, module, tests, README, CI.

    \b
    Exit codes:
      0  it is written
      2  the name is no name for a plugin
      4  the directory is there, and not empty

    \b
    Examples:
      pulsarbox plugins new zones --kind routing
      pulsarbox plugins new fnv --kind hashing --directory work/fnv
    """
    from pulsarbox.cli.plugins.new import write

    place = directory or Path(name)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InTheWay(f"{place} is there already: name another place with --directory")
    try:
        written = write(name, kind, place)
    except ValueError as error:
        raise Misused(str(error)) from None
    for path in written:
        click.echo(path)
    say(f"next: pip install -e {place} && pytest {place} && pulsarbox plugins test {name}")


@plugins.command()
@_NAME
@_KIND
@PLUGINS_DIR
@admin_options
def enable(admin: Target, name: str, kind: str | None, plugins_dir: Path | None) -> None:
    """Let a box use the plugin NAME again, one that failed too often too. It holds at once, and after restarts.

    \b
    Exit codes:
      0  it is enabled
      2  it is built in, or plugins of several kinds have the name
      3  there is none of that name
      5  who asks may not: it takes a superuser
      6  the box is unreachable

    \b
    Examples:
      pulsarbox plugins enable zones
    """
    from pulsarbox.cli.plugins.known_plugins import switched

    run(switched, admin, name, kind, plugins_directory(plugins_dir), on=True)


@plugins.command()
@_NAME
@_KIND
@PLUGINS_DIR
@admin_options
def disable(admin: Target, name: str, kind: str | None, plugins_dir: Path | None) -> None:
    """Keep a box from using the plugin NAME: the built-in way takes its place. It holds at once, and after restarts.

    A hash that Key_Shared subscriptions go by cannot be disabled. One that is disabled, and that keySharedHashing or a
    subscription's property names, is told to those who subscribe: they are refused.

    \b
    Exit codes:
      0  it is disabled
      2  it is built in, or plugins of several kinds have the name
      3  there is none of that name
      4  subscriptions go by it
      5  who asks may not: it takes a superuser
      6  the box is unreachable

    \b
    Examples:
      pulsarbox plugins disable zones
      pulsarbox plugins disable zones --kind routing --admin-url http://localhost:8080
    """
    from pulsarbox.cli.plugins.known_plugins import switched

    run(switched, admin, name, kind, plugins_directory(plugins_dir), on=False)


def _needed(data_dir: Path | None, plugins_dir: Path | None) -> list[dict[str, Any]]:
    if data_dir is None:
        return []
    from pulsarbox.cli.plugins.needed_codecs import needed
    from pulsarbox.errors import PersistenceError

    try:
        return needed(data_dir, plugins_directory(plugins_dir))
    except PersistenceError as error:
        raise Misused(str(error)) from None


def _say_of(found: dict[str, Any]) -> None:
    state = coloured("fail" if found["problems"] else "ok  ", fg="red" if found["problems"] else "green", bold=True)
    click.echo(f"{state}  {found['kind']} {found['name']} ({clean(found['source'])})")
    for problem in found["problems"]:
        click.echo(f"      {clean(problem)}")
