"""Shell completion of the values of options and arguments, by their names.

Parameters with choices, paths, or a completer where they are declared are not listed here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from pulsarbox.cli.process import completions
from pulsarbox.cli.process.completions import Complete, words

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=", "in", "and", "or")
_CALLS: Final = ("matches(", "startswith(", "endswith(", "contains(", "lower(", "len(", "time(")
_MESSAGE_MORE: Final = ("props.", "json.", "redelivery")
_LAST: Final = re.compile(r"[^\s(),]*\Z")
_COMPARED: Final = re.compile(r"""([A-Za-z_]+)\s*[=!]=\s*(["']?)([^"'\s]*)\Z""")
_VALUES: Final = re.compile(r"([A-Za-z_]+) \(([a-z-]+(?:, [a-z-]+)+)\)")
_FIELDS: Final = re.compile(r"Fields?(?: with --status)?: (.*?)\.(?:\s|\Z)", re.DOTALL)
_PARENTHESES: Final = re.compile(r"\([^()]*\)")


def complete_values(path: str, command: click.Command) -> None:
    """Give the parameters of a command their completers. ``path``: its words, such as ``sub seek``."""
    for parameter in command.params:
        found = completer_of(path, parameter)
        if found is not None and not has_completion(parameter):
            parameter._custom_shell_complete = found  # click takes a completer only in the constructor


def completer_of(path: str, parameter: click.Parameter) -> Any:
    """Return the completer of a parameter in this module, None without any."""
    key = key_of(parameter)
    return _OF_COMMANDS.get(f"{path} {key}", _OF_ALL.get(key))


def has_completion(parameter: click.Parameter) -> bool:
    """Return whether click completes a parameter without this module, or it has no value."""
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        return True
    plain = click.ParamType.shell_complete
    return parameter._custom_shell_complete is not None or type(parameter.type).shell_complete is not plain


def key_of(parameter: click.Parameter) -> str:
    """Return the name of a parameter in the help: ``--filter``, ``TOPIC``."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return re.sub(r"[\[\].]", "", parameter.make_metavar(click.Context(click.Command("c"))))


# Files


def _path(kind: str) -> Any:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type=kind)]

    return complete


FILES: Final = _path("file")
DIRECTORIES: Final = _path("dir")


# Filters


def filter_words(
    incomplete: str,
    fields: Iterable[str],
    calls: Iterable[str] = _CALLS,
    values: Mapping[str, Iterable[str]] | None = None,
) -> list[str]:
    """Return continuations of a filter: names and functions, operators after a name or a value, or values of a name."""
    compared = _COMPARED.search(incomplete)
    if compared is not None and compared[1] in (values or {}):
        head, quote, word = incomplete[: compared.start(2)], compared[2] or '"', compared[3]
        return [f"{head}{quote}{each}{quote}" for each in (values or {})[compared[1]] if each.startswith(word)]
    last = _LAST.search(incomplete)
    assert last is not None, "the expression matches the empty text"
    head, word = incomplete[: last.start()], last[0]
    before = head.split()
    is_after_value = bool(before) and before[-1] not in _OPERATORS and before[-1] != "not" and head[-1:] != "("
    candidates = _OPERATORS if is_after_value else (*fields, *calls)
    return [head + each for each in candidates if each.startswith(word)]


def fields_of(command: click.Command) -> list[str]:
    """Return the fields of a command's rows, as its help lists them."""
    found = _FIELDS.search(command.help or "")
    text = _PARENTHESES.sub("", found[1]) if found else ""
    return [
        name for part in re.split(r"[,;:]|\b(?:and|also)\b", text) if re.fullmatch(r"[A-Za-z_]+", name := part.strip())
    ]


def values_of(command: click.Command) -> dict[str, Sequence[str]]:
    """Return the values of fields that a command's help lists in parentheses, and the kinds of events."""
    found = _FIELDS.search(command.help or "")
    values: dict[str, Sequence[str]] = {
        name: words.split(", ") for name, words in _VALUES.findall(" ".join(found[1].split()) if found else "")
    }
    if command.name == "events":
        from pulsarbox.broker.events import KINDS

        values["kind"] = tuple(KINDS)
    return values


def _of_rows(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return filter_words(incomplete, fields_of(context.command), values=values_of(context.command))


def _of_messages(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pulsarbox.protocol.dead_letters.message_filter import NAMES

    return filter_words(incomplete, (*NAMES, *_MESSAGE_MORE))


def _of_clients(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pulsarbox.cli.commands.client import list_clients

    return filter_words(incomplete, fields_of(list_clients), values=values_of(list_clients))


def _view_fields(context: click.Context) -> list[str]:
    from pulsarbox.tui.views import VIEWS

    view = VIEWS.get(str(context.params.get("view")), VIEWS["subscriptions"])  # the overview sorts its backlogs
    return [column.key for column in view.columns]


def _of_view(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return filter_words(incomplete, _view_fields(context), ())


def _sorts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _view_fields(context) if name.startswith(incomplete)]


# Objects of the box and of this machine


def _ids(find: Callable[["Admin"], Iterable[object]]) -> Complete:
    return completions.asking(lambda admin, given, incomplete: map(str, find(admin)))


def _transactions(admin: "Admin") -> Iterable[str]:
    from pulsarbox.cli.commands.txn import txn_id

    return [":".join(map(str, txn_id(each["txnId"]))) for each in admin.transactions().values()]


def _schema_versions(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    from pulsarbox.names import parse_topic

    topic = parse_topic(str(given["topic"]))
    found = admin.ask("GET", f"/schemas/{topic.tenant}/{topic.namespace_local}/{topic.local}/schemas")
    return [str(each["version"]) for each in found["getSchemaResponses"]]


def _members(admin: "Admin") -> Iterable[str]:
    return [each["name"] for each in admin.own("/ensemble")["members"]]


def _contexts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pulsarbox.cli.common.exits import Failed
    from pulsarbox.cli.connect.context_store import load

    try:
        return [name for name in load()["contexts"] if name.startswith(incomplete)]
    except Failed:
        return []


def _pipelines(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pulsarbox.spark.pipelines.run_options import state_home
    from pulsarbox.spark.pipelines.state import known

    pipeline = context.params.get("name")
    found = known(context.params.get("state") or state_home(), pipeline)
    names = dict.fromkeys(each.pipeline if pipeline is None else each.query for each in found)
    return [name for name in names if name.startswith(incomplete)]


def _backups(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pathlib import Path

    from pulsarbox.errors import PulsarBoxError
    from pulsarbox.storage.backup.repository import Repository

    directory = Path(context.params.get("directory") or ".")
    try:
        names = Repository(directory).names()
    except (OSError, PulsarBoxError):
        return []
    return [name for name in names if name.startswith(incomplete)]


_DURATIONS: Final = words("1s", "10s", "1m", "10m", "1h", "1d", "7d")
_AGO: Final = words("-10m", "-1h", "-8h", "-1d")
_SIZES: Final = words("1M", "10M", "100M", "1G", "10G")
_COLORS: Final = words("red", "darkred", "darkorange", "darkgreen", "darkblue", "purple")
_FORMATS: Final = words("%v\\n", "%k\\t%v\\n", "%T{%F %T} %k %v\\n", "%v{json .id}\\n")
_PLACES: Final = completions.POSITIONS

_OF_ALL: Final[Mapping[str, Any]] = {
    "--after": _DURATIONS, "--before": _AGO, "--delay": _DURATIONS, "--every": _DURATIONS,
    "--expires": words("1h", "1d", "30d", "1y"), "--grace": _DURATIONS, "--idle": _DURATIONS,
    "--open-for": _DURATIONS, "--roll": _DURATIONS, "--since": _AGO, "--slide": _DURATIONS, "--window": _DURATIONS,
    "--trigger": words("1 second", "10 seconds", "1 minute"), "--keep-for": _DURATIONS, "BY": _DURATIONS,
    "--from": _PLACES, "--until": words("end", "30s", "5m", "@-1h", "@+5m"), "--at": _PLACES, "--through": _PLACES,
    "--memory": _SIZES, "--file-size": _SIZES, "--filter": _of_rows,
    "--label-color": _COLORS, "--namespace": completions.namespaces, "--tenant": completions.tenants,
    "--subscription": completions.subscriptions, "SUBSCRIPTION": completions.subscriptions,
    "--topic": completions.topics, "TOPIC": completions.topics,
    "--to": completions.topics, "--auth-plugin": words("token", "tls", "basic"),
    "--algorithm": words("RS256", "RS384", "RS512", "ES256", "ES384", "ES512"),
    "--timezone": words("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"),
    "--master": words("local[*]", "local[2]", "spark://", "k8s://"), "--member": _ids(_members),
    "--log-level": words("debug", "info", "warning", "error"),
    "--url": words("pulsar://localhost:6650", "pulsar+ssl://localhost:6651"),
    "--admin-url": words("http://localhost:8080", "https://localhost:8443"),
    "--auth-params": words("token:", "tlsCertFile:", "file:"),
    "--host": words("127.0.0.1", "0.0.0.0", "localhost"), "--serve-host": words("127.0.0.1", "localhost"),
    "--listen": words("127.0.0.1:6660", "0.0.0.0:6660"), "--cluster": _ids(lambda admin: admin.clusters()),
    "--data-dir": DIRECTORIES, "--parquet": DIRECTORIES, "--history": DIRECTORIES, "--token-file": FILES,
    "--token-key": FILES, "--private-key": FILES, "--public-key": FILES, "--tls-cert": FILES, "--tls-key": FILES,
    "--tls-trust-cert-path": FILES, "--file": FILES, "--init": FILES, "FILE": FILES, "PATH": FILES,
    "--backup": _backups,
}  # fmt: skip
"""Completers by the name of the parameter, of every command."""


def _jobs(*states: str) -> Complete:
    return _ids(lambda admin: (each["id"] for each in admin.jobs() if not states or each["state"] in states))


def _fault_commands(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pulsarbox.broker.faults.rule import COMMAND_NAMES

    return [each for each in sorted(COMMAND_NAMES) if each.startswith(incomplete)]


def _fault_errors(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from pulsarbox.protocol.PulsarApi_pb2 import ServerError

    return [each for each in ServerError.DESCRIPTOR.values_by_name if each.startswith(incomplete)]


_MEMBER: Final = _ids(_members)
_OF_COMMANDS: Final[Mapping[str, Any]] = {
    **{f"context {name} NAME": _contexts for name in ("remove", "show", "use")},
    "job show ID": _jobs(),
    "job pause ID": _jobs("running"),
    "job resume ID": _jobs("paused", "tripped"),
    "job cancel ID": _jobs("running", "paused", "tripped"),
    **{f"txn {name} ID": _ids(_transactions) for name in ("show", "abort")},
    **{f"storage {name}": _MEMBER for name in ("remove DIR", "replace OLD", "scrub DIR")},
    **{f"storage {name}": DIRECTORIES for name in ("add DIR", "replace NEW")},
    **{f"{name} --filter": _of_messages for name in ("consume", "peek", "tap", "pipeline dlq-triage")},
    **{f"dlq {name} --filter": _of_messages for name in ("show", "export", "replay", "drop", "groups")},
    "client kick ID": _ids(lambda admin: (each["id"] for each in admin.top_rows("clients"))),
    "client kick --filter": _of_clients,
    "fault remove NUMBER": _ids(lambda admin: (each["id"] for each in admin.own("/faults"))),
    "fault add --command": _fault_commands,
    "fault add --error": _fault_errors,
    "schema show --version": completions.asking(_schema_versions),
    "pipeline reset PIPELINE": _pipelines,
    "pipeline reset QUERY": _pipelines,
    "pipeline export --to": DIRECTORIES,
    "token create --to": FILES,
    "dlq list NAMESPACE": completions.namespaces,
    "pipeline backfill --format": words("parquet", "csv", "json", "delta", "iceberg", "pulsarbox"),
    **{f"{name} --format": _FORMATS for name in ("consume", "peek", "tap", "dlq show", "produce")},
    "sql QUERY": words("SELECT * FROM ", "SHOW TABLES", "DESCRIBE "),
    "backup remove NAME": _backups,
    "top --at": _AGO,
    "top --size": words("80x24", "120x40", "160x50"),
    "top --filter": _of_view,
    "top --sort": _sorts,
    "topic create TOPIC": None,
    "produce --at": words("@+10m", "@+1h", "@+1d"),
    "consume --from": words("earliest", "latest", "-10", "@-1h"),
    "peek --from": words("earliest", "latest", "-10", "@-1h"),
    "clock set INSTANT": words("2030-01-01T00:00"),
    "produce --event-time": words("-1h", "-1d"),
}
"""Completers of single commands, which precede those above; None for names of new objects."""
