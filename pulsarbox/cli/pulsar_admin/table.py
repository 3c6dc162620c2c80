"""Reader of ``tables/``, the definitions of ``pulsarbox admin``: one text file per group of pulsar-admin.

A command is a block of lines, each introduced by a keyword::

    command NAME [hidden] [alias=NAME]...
    = one-line summary
    arg NAME KIND                                a required argument
    args NAME KIND                               any number of arguments
    opt NAME KIND[*][=DEFAULT] SPELLING... [hidden]   an option; * marks a required one
    old NAME KIND SPELLING...                    hidden spellings of the option NAME, used unless that is given
    like COMMAND                                 the arguments and options of another command of the group
    either NAME NAME                             exactly one of two options
    confirm QUESTION                             confirmation, skipped with --force
    call METHOD PATH [when NAME...]              an Admin API request; the first with all ``when`` options given is sent
    query KEY[?]=VALUE...                        query of the call above; ? omits the key if the option is not given
    body JSON | like COMMAND                     body of the call above, or the first body of another command
    plain                                        sends the body of the call above as text
    type MEDIA-TYPE                              media type of the body; JSON by default
    run MODULE.NAME                              a function in ``steps`` that executes the calls above
    print json | gson | lines | pairs | said TEXT    output format; without it, nothing is printed

In paths, ``{topic}`` stands for ``domain/tenant/namespace/name``, ``{topic.name}`` for the same without the domain,
``{namespace}`` for ``tenant/namespace``, ``{package}`` for ``type/tenant/namespace/name/version``, and
``{package.versions}`` for the same without the version. In queries and bodies, ``$name`` is the value of an option,
``$name/millis`` the same in another unit (``UNITS``), and ``!$name`` the negation of a flag. A body value that begins
with ``?`` omits its key if the option is not given. A ``switch`` is a flag that counts as not given without it. A
command without a call runs without a broker. Only the called command is parsed beyond its heading.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

GROUPS: Final = {
    "bookies": "Manage bookie racks.",
    "broker-stats": "Show metrics and load of a broker.",
    "brokers": "Manage brokers: health, version, dynamic settings.",
    "clusters": "Manage clusters.",
    "documents": "Print the reference of these commands.",
    "functions": "Manage Pulsar Functions.",
    "functions-worker": "Show and rebalance the functions workers.",
    "migration": "Migrate the metadata store of a cluster.",
    "namespaces": "Manage namespaces and their policies.",
    "ns-isolation-policy": "Manage namespace isolation policies.",
    "packages": "Manage packages: the code of functions, sources and sinks.",
    "proxy-stats": "Show the statistics of a Pulsar proxy.",
    "resource-quotas": "Manage resource quotas of bundles.",
    "resourcegroups": "Manage resource groups.",
    "schemas": "Manage topic schemas.",
    "sinks": "Manage Pulsar IO sinks.",
    "sources": "Manage Pulsar IO sources.",
    "tenants": "Manage tenants.",
    "topicPolicies": "Manage topic policies.",
    "topics": "Manage topics, subscriptions and messages.",
    "transactions": "Manage transactions.",
}
"""Groups and their summaries."""

OLD_GROUPS: Final = {
    "non-persistent": "Manage non-persistent topics (legacy; use topics).",
    "persistent": "Manage persistent topics (legacy; use topics).",
    "properties": "Manage tenants (legacy; use tenants).",
}
"""Groups that pulsar-admin accepts but hides."""

ALIASES: Final = {"sink": "sinks", "source": "sources"}
"""Other names of groups."""

_TABLES: Final = Path(__file__).with_name("tables")
_KIND: Final = re.compile(r"(?P<kind>\w+(\([^)]*\))?)(?P<required>\*?)(=(?P<default>.*))?")


class Parameter(NamedTuple):
    """An argument or option of a command."""

    name: str
    kind: str
    """A key of ``values.KINDS``, ``flag``, ``choice(a,b)``, or ``list(a,b)`` for a list of these words."""
    required: bool
    default: str | None
    """Default as typed on the command line."""
    spellings: tuple[str, ...]
    """Empty for an argument."""
    hidden: bool
    several: bool = False
    """Whether it is an argument that may be given any number of times."""

    @property
    def base(self) -> str:
        """The kind without its allowed words."""
        return self.kind.partition("(")[0]


class AdminRequest(NamedTuple):
    """A request to the Admin API."""

    method: str
    path: str
    query: tuple[tuple[str, bool, str], ...] = ()
    """Triples of key, whether to omit it if the option is not given, and value."""
    body: Any = None
    """JSON value with ``$name`` placeholders; None for no body."""
    plain: bool = False
    kind: str = "application/json"
    """Media type of the body."""
    when: tuple[str, ...] = ()
    """Options that must be given."""


class Heading(NamedTuple):
    """The first two lines of a command, for lists of commands."""

    name: str
    summary: str
    hidden: bool
    aliases: tuple[str, ...]
    text: str
    """All lines of the command."""


@dataclass(slots=True)
class Command:
    """A command of pulsar-admin."""

    group: str
    name: str
    summary: str
    hidden: bool
    aliases: tuple[str, ...]
    parameters: list[Parameter] = field(default_factory=list)
    calls: list[AdminRequest] = field(default_factory=list)
    either: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of options, exactly one of which must be given."""
    old: dict[str, str] = field(default_factory=dict)
    """Options with outdated spellings, and the options that they stand for."""
    question: str = ""
    """Confirmation question."""
    run: str = ""
    """``module.name`` of a function in ``steps``; empty to send just the call."""
    printing: str = ""
    """Output format: ``json``, ``gson``, ``lines``, ``pairs``, ``said ...`` or empty."""


@cache
def headings(group: str) -> dict[str, Heading]:
    """Return the commands of a group by name, in the order of the table."""
    text = (_TABLES / f"{group}.txt").read_text("utf-8")
    return {found.name: found for found in map(_heading, text.strip().split("\n\n"))}


def named(group: str, name: str) -> Heading | None:
    """Return the command with this name or alias, None without one."""
    rows = headings(group)
    return rows.get(name) or next((row for row in rows.values() if name in row.aliases), None)


def command(group: str, heading: Heading) -> Command:
    """Parse a command."""
    found = Command(group, heading.name, heading.summary, heading.hidden, heading.aliases)
    for line in heading.text.splitlines()[2:]:
        word, _, rest = line.partition(" ")
        _READERS[word](found, rest)
    return found


def option_help(group: str, name: str, parameter: Parameter) -> str:
    """Return the help text of an option."""
    texts = _option_texts()
    own = parameter.name.removesuffix("_old")
    for key in (f"{group} {name} {own}", f"{name} {own}", f"{group} * {own}", own):
        if key in texts:
            return texts[key]
    return ""


@cache
def _option_texts() -> dict[str, str]:
    lines = (_TABLES / "options.txt").read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def _heading(block: str) -> Heading:
    first, summary, *_ = block.splitlines()
    _, name, *marks = first.split()
    aliases = tuple(mark.removeprefix("alias=") for mark in marks if mark.startswith("alias="))
    return Heading(name, summary.removeprefix("= "), "hidden" in marks, aliases, block)


def _parameter(name: str, kind: str, spellings: list[str], several: bool = False) -> Parameter:
    match = _KIND.fullmatch(kind)
    assert match, f"invalid parameter kind {kind}"
    hidden = "hidden" in spellings
    return Parameter(
        name,
        match["kind"],
        bool(match["required"]) or not (spellings or several),
        match["default"],
        tuple(spelling for spelling in spellings if spelling != "hidden"),
        hidden,
        several,
    )


def _read_parameter(found: Command, rest: str) -> None:
    name, kind, *spellings = rest.split()
    found.parameters.append(_parameter(name, kind, spellings))


def _read_arguments(found: Command, rest: str) -> None:
    name, kind = rest.split()
    found.parameters.append(_parameter(name, kind, [], several=True))


def _read_old(found: Command, rest: str) -> None:
    name, kind, *spellings = rest.split()
    found.old[f"{name}_old"] = name
    found.parameters.append(_parameter(f"{name}_old", kind, [*spellings, "hidden"]))


def _read_like(found: Command, rest: str) -> None:
    other = _other(found, rest)
    found.parameters += other.parameters
    found.either += other.either
    found.old |= other.old


def _other(found: Command, name: str) -> Command:
    return command(found.group, headings(found.group)[name])


def _read_call(found: Command, rest: str) -> None:
    what, _, when = rest.partition(" when ")
    method, path = what.split()
    found.calls.append(AdminRequest(method, path, when=tuple(when.split())))


def _read_query(found: Command, rest: str) -> None:
    pairs = (part.split("=", 1) for part in rest.split())
    query = tuple((key.removesuffix("?"), key.endswith("?"), value) for key, value in pairs)
    found.calls[-1] = found.calls[-1]._replace(query=query)


def _read_body(found: Command, rest: str) -> None:
    name = rest.removeprefix("like ")
    body = json.loads(rest) if name == rest else next(call.body for call in _other(found, name).calls if call.body)
    found.calls[-1] = found.calls[-1]._replace(body=body)


def _read_plain(found: Command, rest: str) -> None:
    found.calls[-1] = found.calls[-1]._replace(plain=True)


def _read_kind(found: Command, rest: str) -> None:
    found.calls[-1] = found.calls[-1]._replace(kind=rest)


def _read_either(found: Command, rest: str) -> None:
    one, other = rest.split()
    found.either.append((one, other))


def _read_question(found: Command, rest: str) -> None:
    found.question = rest


def _read_run(found: Command, rest: str) -> None:
    found.run = rest


def _read_printing(found: Command, rest: str) -> None:
    found.printing = rest


_READERS: Final = {
    "arg": _read_parameter,
    "args": _read_arguments,
    "opt": _read_parameter,
    "old": _read_old,
    "like": _read_like,
    "either": _read_either,
    "confirm": _read_question,
    "call": _read_call,
    "query": _read_query,
    "body": _read_body,
    "plain": _read_plain,
    "type": _read_kind,
    "run": _read_run,
    "print": _read_printing,
}
