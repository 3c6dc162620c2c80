"""Data of ``pulsarbox plugins``: the local registry, a running box, and probes in a separate process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.common.exits import Failed, InTheWay, Misused, NotThere
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.target import Target
from pulsarbox.client.admin import Admin, AdminRefused, quoted
from pulsarbox.errors import PulsarBoxError
from pulsarbox.plugins.conformance import CHECKS
from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.project import declared_in
from pulsarbox.plugins.registry import NO_CLASS, PluginEntry, choose, find

_PATIENCE_SECONDS: Final = 10.0
"""Timeout for a busy box, such as a starting one. A closed port fails at once."""
_SETTING: Final = "/brokers/configuration"
_MAY_NOT: Final = (401, 403)
_UNUSABLE: Final = ("missing", "not asked any more")
"""States of plugins that the box does not use because of an error."""


def known(directory: Path | None, admin: Callable[[], Target]) -> list[dict[str, Any]]:
    """Return every plugin, local ones first, with its state in the box if one answers."""
    rows = {}
    for each in find(directory):
        row = {**each._asdict(), "state": "broken" if each.problem else ""}
        rows[each.kind, each.name, each.source] = row
    for said in _of_a_box(admin):
        mine = [row for (kind, name, _), row in rows.items() if (kind, name) == (said["kind"], said["name"])]
        for row in mine:
            if not row["problem"]:
                row.update(said | {"problem": _problem(said)})
        if not mine:
            key = (said["kind"], said["name"], "the box")
            rows[key] = {"kind": said["kind"], "name": said["name"], "source": "the box", "target": "", "problem": ""}
            rows[key] |= said | {"problem": _problem(said)}
    return list(rows.values())


def _problem(said: dict[str, Any]) -> str:
    """Return why the box does not use a plugin; empty if it does."""
    return str(said.get("lastError", "")) if said["state"] in _UNUSABLE else ""


def _of_a_box(admin: Callable[[], Target]) -> list[dict[str, Any]]:
    try:
        with _admin(admin()) as asked:
            return asked.plugins()
    except AdminRefused as error:
        if error.status in _MAY_NOT:  # otherwise it is Apache Pulsar
            notify(f"plugin states of the box are not shown: {error}")
    except (PulsarBoxError, Failed):
        pass  # no box runs
    return []


def _admin(target: Target) -> Admin:
    return Admin(target.hosts, _PATIENCE_SECONDS, secure=target.secure, credentials=target.credentials())


def the_one(name: str, directory: Path | None) -> PluginEntry:
    """Return the plugin with that name or file. Raises NotThere, or Misused if several kinds have the name."""
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise NotThere(f"file {name} does not exist")
        found = [each for each in find(path.parent) if each.target == str(path)]
        if not found:
            raise Misused(f"{name} is ignored: plugin file names do not begin with _")
        declared = declared_in(path) if found[0].problem == NO_CLASS else []
        if len(declared) > 1:
            names = ", ".join(each.name for each in declared)
            raise Misused(f"{name} has several plugins ({names}): install its package, and specify one by its name")
        if declared:
            return declared[0]
        if found[0].problem == NO_CLASS:
            remedy = "rename its class to Plugin, or declare it in the pyproject.toml of its package"
            return found[0]._replace(problem=f"{name} has no class Plugin: {remedy}")
        return found[0]._replace(problem="" if "duplicate name" in found[0].problem else found[0].problem)
    there = find(directory)
    kinds = sorted({each.kind for each in there if each.name == name})
    if not kinds:
        from pulsarbox.config.setting import did_you_mean

        hint = did_you_mean(name, {each.name for each in there})
        raise NotThere(f"no plugin '{name}'{hint}; `pulsarbox plugins list` lists the plugins")
    if len(kinds) > 1:
        raise Misused(f"'{name}' is a plugin of several kinds ({', '.join(kinds)}): specify its file")
    return choose(there, kinds[0], name)


def diagnosed(found: PluginEntry) -> dict[str, Any]:
    """Probe a plugin and return the result of its checks."""
    report = probe(found)
    return {
        "kind": found.kind,
        "name": found.name,
        "source": found.source,
        "usable": report.usable,
        "problems": report.problems,
        "trace": report.trace,
    }


def respects(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each check with its problem, empty if passed."""
    if not found["usable"]:
        for problem in found["problems"]:
            yield "loading", problem
        return
    yield "loading", ""
    for respect in (*CHECKS[found["kind"]], "processes"):
        wrong = [each.partition(": ")[2] for each in found["problems"] if each.startswith(f"{respect}: ")]
        yield respect, "; ".join(wrong)


def switched(target: Target, name: str, kind: str | None, directory: Path | None, *, on: bool) -> None:
    """Enable or disable a plugin of a box. Raises InTheWay for a hash in use by subscriptions."""
    with _admin(target) as admin:
        told = {(each["kind"], each["name"]): each for each in admin.plugins()}
        there = {(each.kind, each.name) for each in find(directory) if each.source != "built-in"}
        wanted = sorted(each for each in {*told, *there} if each[1] == name and kind in (None, each[0]))
        if not wanted and any(each.name == name for each in find(None)):
            raise Misused(f"'{name}' is built in: only plugins can be enabled and disabled")
        if not wanted:
            raise NotThere(f"no plugin '{name}' to enable or disable; `pulsarbox plugins list` lists the plugins")
        if len(wanted) > 1:
            raise Misused(
                f"'{name}' is a plugin of several kinds ({', '.join(kind for kind, _ in wanted)}): specify --kind"
            )
        (each,) = wanted
        topics = [f"{of['topic']} ({of['subscription']})" for of in told.get(each, {}).get("subscriptions", [])]
        if topics and not on:
            raise InTheWay(
                f"Key_Shared subscriptions use '{name}': {', '.join(topics)}; assign them another hash first"
            )
        said = f"{each[0]}:{name}"
        given = admin.ask("GET", f"{_SETTING}/values").get("pluginsDisabled", "")
        off = {word.strip() for word in given.split(",") if word.strip()}
        off = off - {said} if on else off | {said}
        if off:
            admin.ask("POST", f"{_SETTING}/pluginsDisabled/{quoted(','.join(sorted(off)))}")
        else:
            admin.ask("DELETE", f"{_SETTING}/pluginsDisabled")
    notify(f"the {each[0]} plugin {name} is {'enabled' if on else 'disabled'}")
