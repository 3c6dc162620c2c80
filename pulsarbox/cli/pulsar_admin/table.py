"""The commands of ``pulsarbox admin`` as they stand in ``tables/``: one text file for each group of pulsar-admin.

A command is a block of lines; each begins with a word that says what it is::

    command NAME [hidden] [alias=NAME]...
    = what it does, in one line
    arg NAME KIND                                an argument, required
    opt NAME KIND[*][=DEFAULT] SPELLING... [hidden]   an option; * is required
    either NAME NAME                             exactly one of the two options
    confirm QUESTION                             is asked first, unless --force is given
    call METHOD PATH [when NAME...]              the first whose options are all given is asked of the Admin API
    query KEY[?]=VALUE...                        of the call above; ? leaves it out where the option is not given
    body JSON                                    of the call above
    plain                                        the body of the call above is text
    type MEDIA-TYPE                              what it is sent as, where that is not JSON in general
    run MODULE.NAME                              a function in ``steps`` does it, with the calls above
    print json | lines | pairs | said TEXT       how the answer is printed; without it nothing is

In paths ``{topic}`` stands for ``domain/tenant/namespace/name``, ``{topic.name}`` for the same without the domain,
``{namespace}`` for ``tenant/namespace``; in queries and bodies ``$name`` is the value of an option, ``$name/millis``
the same in other units (``UNITS``), ``!$name`` the contrary of a flag, and a value of a body that begins with ``?``
leaves its key out where the option is not given. Only the command that is called is read further than its first line.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

GROUPS: Final = {
    "bookies": "Racks of bookies.",
    "broker-stats": "Metrics and load of a broker.",
    "brokers": "Brokers: health, version, dynamic settings.",
    "clusters": "Clusters.",
    "namespaces": "Namespaces and their policies.",
    "ns-isolation-policy": "Which brokers serve which namespaces.",
    "resource-quotas": "Resources of bundles.",
    "resourcegroups": "Resource groups.",
    "schemas": "Schemas of topics.",
    "tenants": "Tenants.",
    "topicPolicies": "Policies of topics.",
    "topics": "Topics, subscriptions, messages.",
    "transactions": "Transactions.",
}
"""The groups by name, each with its line in the help."""

OLD_GROUPS: Final = {
    "non-persistent": "Topics that are not persistent (old name of topics).",
    "persistent": "Persistent topics (old name of topics).",
    "properties": "Tenants (old name of tenants).",
}
"""Groups that pulsar-admin knows and does not show."""

LEFT_OUT: Final = {
    "documents": "writes the documentation of pulsar-admin",
    "functions": "Pulsar Functions need workers: here pipelines run on Spark",
    "functions-worker": "Pulsar Functions need workers: here pipelines run on Spark",
    "migration": "moves the metadata of a cluster between stores, which a box has none of",
    "packages": "keeps the code of Pulsar Functions",
    "proxy-stats": "asks a Pulsar proxy, not a broker",
    "sinks": "Pulsar IO needs workers: here pipelines run on Spark",
    "sources": "Pulsar IO needs workers: here pipelines run on Spark",
}
"""Groups of pulsar-admin that are not here, each with the reason."""

LEFT_OUT_COMMANDS: Final = {("schemas", "extract"): "it reads Java classes out of a jar"}
"""Commands of pulsar-admin that are not here, each with the reason."""

_TABLES: Final = Path(__file__).with_name("tables")
_KIND: Final = re.compile(r"(?P<kind>\w+(\([^)]*\))?)(?P<required>\*?)(=(?P<default>.*))?")


class Parameter(NamedTuple):
    """An argument or an option of a command."""

    name: str
    kind: str
    """A key of ``values.KINDS``, ``flag``, ``choice(a,b)``, or ``list(a,b)`` for a list of some words."""
    required: bool
    default: str | None
    """As it would be typed."""
    spellings: tuple[str, ...]
    """Empty for an argument."""
    hidden: bool

    @property
    def base(self) -> str:
        """The kind without the words that it takes."""
        return self.kind.partition("(")[0]


class Call(NamedTuple):
    """What is asked of the Admin API."""

    method: str
    path: str
    query: tuple[tuple[str, bool, str], ...] = ()
    """Keys, whether they are left out where the option is not given, and values."""
    body: Any = None
    """What JSON says, with ``$name`` where values go; None is no body."""
    plain: bool = False
    kind: str = "application/json"
    """The media type that the body is sent as."""
    when: tuple[str, ...] = ()
    """The options that must be given."""


class Heading(NamedTuple):
    """The first lines of a command: what a list of commands says."""

    name: str
    summary: str
    hidden: bool
    aliases: tuple[str, ...]
    text: str
    """All lines."""


@dataclass(slots=True)
class Command:
    """A command of pulsar-admin."""

    group: str
    name: str
    summary: str
    hidden: bool
    aliases: tuple[str, ...]
    parameters: list[Parameter] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    either: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of flags of which exactly one must be given."""
    question: str = ""
    """What is asked before it is done."""
    run: str = ""
    """``module.name`` of a function in ``steps``; empty where the call is all."""
    printing: str = ""
    """``json``, ``lines``, ``pairs``, ``said ...`` or nothing."""


@cache
def headings(group: str) -> dict[str, Heading]:
    """The commands of a group by name, in the order of the table."""
    text = (_TABLES / f"{group}.txt").read_text("utf-8")
    return {found.name: found for found in map(_heading, text.strip().split("\n\n"))}


def named(group: str, name: str) -> Heading | None:
    """The command that is called by this name or alias."""
    rows = headings(group)
    return rows.get(name) or next((row for row in rows.values() if name in row.aliases), None)


def command(group: str, heading: Heading) -> Command:
    """All of a command."""
    found = Command(group, heading.name, heading.summary, heading.hidden, heading.aliases)
    for line in heading.text.splitlines()[2:]:
        word, _, rest = line.partition(" ")
        _READERS[word](found, rest)
    return found


def option_help(group: str, name: str, parameter: Parameter) -> str:
    """The line of an option in the help."""
    texts = _option_texts()
    for key in (f"{group} {name} {parameter.name}", f"{name} {parameter.name}", parameter.name):
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


def _parameter(name: str, kind: str, spellings: list[str]) -> Parameter:
    match = _KIND.fullmatch(kind)
    assert match, f"{kind} is no kind"
    hidden = "hidden" in spellings
    return Parameter(
        name,
        match["kind"],
        bool(match["required"]) or not spellings,
        match["default"],
        tuple(spelling for spelling in spellings if spelling != "hidden"),
        hidden,
    )


def _read_parameter(found: Command, rest: str) -> None:
    name, kind, *spellings = rest.split()
    found.parameters.append(_parameter(name, kind, spellings))


def _read_call(found: Command, rest: str) -> None:
    what, _, when = rest.partition(" when ")
    method, path = what.split()
    found.calls.append(Call(method, path, when=tuple(when.split())))


def _read_query(found: Command, rest: str) -> None:
    pairs = (part.split("=", 1) for part in rest.split())
    query = tuple((key.removesuffix("?"), key.endswith("?"), value) for key, value in pairs)
    found.calls[-1] = found.calls[-1]._replace(query=query)


def _read_body(found: Command, rest: str) -> None:
    found.calls[-1] = found.calls[-1]._replace(body=json.loads(rest))


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
    "opt": _read_parameter,
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
