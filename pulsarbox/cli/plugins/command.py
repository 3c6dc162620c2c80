"""``pulsarbox plugins``: list, check, benchmark, create, enable and disable plugins."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import InTheWay, Misused, NotThere, run
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import OUTPUT, clean, coloured, notify, print_document
from pulsarbox.cli.common.value_types import Seconds
from pulsarbox.cli.connect.target import Target, admin_options, late_admin_options
from pulsarbox.cli.plugins.options import PLUGINS_DIR, plugins_directory
from pulsarbox.cli.process import completions
from pulsarbox.plugins.contracts import KINDS

_KIND: Final = click.option("--kind", type=click.Choice(KINDS), help="Plugin kind, if several kinds have the name.")
_NAME: Final = click.argument("name", shell_complete=completions.plugins())


_COLUMNS: Final = ("kind", "name", "source", "state", "problem")


@click.group(cls=SuggestingGroup)
def plugins() -> None:
    """List, check, benchmark, create, enable and disable plugins.

    Plugins implement routing, hashing or compression. They are built in, installed packages, or files in --plugins-dir.

    \b
    Examples:
      pulsarbox plugins list
      pulsarbox plugins new zones --kind routing
      pulsarbox plugins doctor --plugins-dir mine
    """


@plugins.command(name="list")
@click.option("--kind", type=click.Choice(KINDS), help="List only this kind.")
@PLUGINS_DIR
@late_admin_options
@form_option
def list_(admin: Callable[[], Target], kind: str | None, plugins_dir: Path | None, output: OutputOptions) -> None:
    """List the plugins found here, with their state in the running box. Imports none of them.

    Fields: kind, name, source, state, problem, and with a running box its cost and users.

    \b
    Examples:
      pulsarbox plugins list
      pulsarbox plugins list --kind hashing -o json | jq '.[].name'
    """
    from pulsarbox.cli.plugins.known_plugins import known

    found = [each for each in known(plugins_directory(plugins_dir), admin) if kind in (None, each["kind"])]
    show(
        output,
        lambda: TableOutput(found, _COLUMNS, cut={"source": 12, "problem": 16}, least=("source",), wide=("target",)),
    )


@plugins.command()
@_NAME
@_KIND
@PLUGINS_DIR
@late_admin_options
@form_option
def info(
    admin: Callable[[], Target], name: str, kind: str | None, plugins_dir: Path | None, output: OutputOptions
) -> None:
    """Show the plugin NAME: its source, its cost in the running box, and the subscriptions that use it.

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
        raise NotThere(f"no plugin '{name}'; `pulsarbox plugins list` lists the plugins")
    if output.form != "table":
        show(output, lambda: TableOutput(found, _COLUMNS, wide=("target",)))
        return
    for each in found:
        for field, value in each.items():
            if value not in ("", [], 0):
                click.echo(f"{field:<14}{clean(value if isinstance(value, str) else json.dumps(value))}")


@plugins.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completions.plugins())
@click.option("--all", "everything", is_flag=True, help="Include built-in plugins.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Also check the codecs required by this data directory."
)
@PLUGINS_DIR
@form_option
def doctor(
    names: tuple[str, ...], everything: bool, data_dir: Path | None, plugins_dir: Path | None, output: OutputOptions
) -> None:
    """Check the named plugins, by default all that are not built in.

    Loads each plugin in a separate process with bounded CPU time and memory. With --data-dir, also checks that the
    codecs of compressed entries are available; a box does not start without them.

    \b
    Exit codes:
      0  no problems
      1  a plugin has problems
      3  the plugin does not exist

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
            raise NotThere(f"no plugin '{name}'; `pulsarbox plugins list` lists the plugins")
    found = []
    for each in wanted:
        found.append(diagnosed(each))
        if output.form == "table":
            _say_of(found[-1])
    for one in _needed(data_dir, plugins_dir):
        found.append(one)
        if output.form == "table":
            _say_of(one)
    if output.form != "table":
        show(output, lambda: TableOutput(found, ("kind", "name", "source", "problems")))
    elif not found:
        notify("only built-in plugins are installed; --all checks them")
    sys.exit(1 if any(each["problems"] for each in found) else 0)


@plugins.command()
@click.argument("plugin", metavar="NAME|FILE", shell_complete=completions.plugins())
@PLUGINS_DIR
@OUTPUT
def test(plugin: str, plugins_dir: Path | None, output: str) -> None:
    """Test one plugin, by name or file, against its contract. Shows the traceback of an exception.

    \b
    Exit codes:
      0  the plugin conforms to its contract
      1  the plugin does not conform
      3  the plugin does not exist

    \b
    Examples:
      pulsarbox plugins test mine/zones.py
      pulsarbox plugins test zones -o json
    """
    from pulsarbox.cli.plugins.known_plugins import diagnosed, respects, the_one

    found = diagnosed(the_one(plugin, plugins_directory(plugins_dir)))
    if output != "table":
        print_document(found, output)
        sys.exit(1 if found["problems"] else 0)
    for respect, problem in respects(found):
        state = coloured("fail" if problem else "ok  ", fg="red" if problem else "green", bold=True)
        click.echo(f"{state}  {respect:<16}{clean(problem)}".rstrip())
    for line in found["trace"].splitlines():
        notify(line)
    sys.exit(1 if found["problems"] else 0)


@plugins.command()
@click.argument("plugin", metavar="NAME|FILE", shell_complete=completions.plugins())
@click.option("--seconds", type=Seconds(0.01), default="1s", show_default=True, help="Duration of each measurement.")
@PLUGINS_DIR
@form_option
def bench(plugin: str, seconds: float, plugins_dir: Path | None, output: OutputOptions) -> None:
    """Benchmark a plugin against a built-in one, in nanoseconds per call or MB/s. Loads it into this process.

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
    show(output, lambda: TableOutput(rows, ("what", "plugin", "value", "unit"), name="what", cut={"plugin": 8}))


@plugins.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Plugin kind.")
@click.option("--directory", type=click.Path(path_type=Path), help="Target directory. [default: ./NAME]")
def new(name: str, kind: str, directory: Path | None) -> None:
    """Create a complete working package for a plugin NAME: entry point, module, tests, README, CI.

    \b
    Exit codes:
      0  created
      2  the name is invalid
      4  the directory exists and is not empty

    \b
    Examples:
      pulsarbox plugins new zones --kind routing
      pulsarbox plugins new fnv --kind hashing --directory work/fnv
    """
    from pulsarbox.cli.plugins.new import write

    place = directory or Path(name)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InTheWay(f"{place} already exists: choose another place with --directory")
    try:
        written = write(name, kind, place)
    except ValueError as error:
        raise Misused(str(error)) from None
    for path in written:
        click.echo(path)
    module = next(path for path in written if path.suffix == ".py" and path.parent == place)
    notify(f"next: pulsarbox plugins test {module}; pip install -e {place} && pytest {place}")


@plugins.command()
@_NAME
@_KIND
@PLUGINS_DIR
@admin_options
def enable(admin: Target, name: str, kind: str | None, plugins_dir: Path | None) -> None:
    """Enable the plugin NAME in a box, even after too many failures. Takes effect at once and persists.

    \b
    Exit codes:
      0  enabled
      2  the plugin is built in, or several kinds have the name
      3  the plugin does not exist
      5  not authorized: requires a superuser
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
    """Disable the plugin NAME in a box, in favour of the built-in implementation. Takes effect at once and persists.

    A hash in use by Key_Shared subscriptions cannot be disabled. If keySharedHashing or a subscription's property names
    a disabled hash, subscribing is rejected.

    \b
    Exit codes:
      0  disabled
      2  the plugin is built in, or several kinds have the name
      3  the plugin does not exist
      4  subscriptions use the plugin
      5  not authorized: requires a superuser
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
