"""Click commands built from the tables: parse pulsar-admin's syntax and send the requests."""

import importlib
import shlex
import sys
from collections.abc import Callable
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused, run
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.process import completions
from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.printing import show
from pulsarbox.cli.pulsar_admin.table import Command, Parameter
from pulsarbox.cli.pulsar_admin.values import REPEATED, Value, collected
from pulsarbox.cli.pulsar_admin.version_option import version_option
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic

_SETTINGS = {"help_option_names": ["-h", "--help"]}


class AdminGroup(SuggestingGroup):
    """A group of pulsar-admin. Lists commands by the headings of its table, and builds only the called one."""

    def __init__(self, name: str, summary: str, hidden: bool, common: list[click.Option]) -> None:
        example = f"\n\n\b\nExamples:\n  pulsarbox admin {name} --help"
        super().__init__(
            name,
            help=summary + example,
            short_help=summary,
            hidden=hidden,
            params=[*version_option(set(), hidden=True)],
            context_settings=_SETTINGS,
        )
        self._common = common

    def list_commands(self, ctx: click.Context) -> list[str]:
        assert self.name
        return sorted(name for name, row in table.headings(self.name).items() if not row.hidden)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        assert self.name
        row = table.named(self.name, cmd_name)
        if row is not None and cmd_name not in self.commands:  # click asks twice for the command that it calls
            self.commands[cmd_name] = AdminCommand(table.command(self.name, row), self._common)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        assert self.name
        rows = table.headings(self.name)
        with formatter.section("Commands"):
            formatter.write_dl([(name, rows[name].summary) for name in self.list_commands(ctx)])


class AdminCommand(click.Command):
    """A command of pulsar-admin."""

    def __init__(self, command: Command, common: list[click.Option]) -> None:
        self.command = command
        own = [_parameter(command, one) for one in command.parameters]
        taken = {spelling for one in command.parameters for spelling in one.spellings}
        self.common = [option for option in common if not taken & set(option.opts)]
        if command.question and "force" not in {one.name for one in command.parameters}:
            own.append(click.Option(["force", "-f", "--force", "--yes"], is_flag=True, help="Skip the confirmation."))
        super().__init__(
            command.name,
            params=[*own, *self.common, *version_option(taken, hidden=True)],
            callback=self._called,
            help=_help(command),
            short_help=command.summary,
            hidden=command.hidden,
            context_settings=_SETTINGS,
        )
        self._words = {  # spellings without a dash, which picocli accepts as options
            word: next(one for one in parameter.spellings if one.startswith("-"))
            for parameter in command.parameters
            for word in parameter.spellings
            if not word.startswith("-")
        }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, _as_click_reads(self, args))
        except click.BadParameter as error:
            hint = _for_topics(self.command, args) if error.param and error.param.name == "namespace" else ""
            if not hint:
                raise
            raise click.BadParameter(f"{error.message}\nFor a topic: {hint}", ctx, error.param) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete its own options and values, and, after two dashes, the common options omitted from its help."""
        found: list[Any] = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("--"):
            from click.shell_completion import CompletionItem

            spelled = ((name, option) for option in self.common for name in option.opts if name.startswith(incomplete))
            found += [CompletionItem(name, help=option.help) for name, option in spelled]
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Also accepts the options of `pulsarbox admin`, such as --admin-url and --token.")

    def _called(self, **given: Any) -> None:
        run(self._done, given)

    def _done(self, given: dict[str, Any]) -> None:
        from pulsarbox.cli.pulsar_admin.connecting import session_for

        ctx = click.get_current_context()
        common = dict(ctx.obj or {})
        common |= {option.name: given[option.name] for option in self.common if given.get(option.name or "")}
        values = _current(self.command, {one.name: _value(one, given[one.name]) for one in self.command.parameters})
        self._check(values)
        if self.command.question and not given.get("force") and not _agreed(self.command.question):
            return
        if not self.command.calls:
            _step(self.command.run)(self.command, values)
            return
        with session_for(common) as session:
            if self.command.run:
                answer = _step(self.command.run)(session, self.command, values)
            else:
                from pulsarbox.cli.pulsar_admin.session import chosen

                answer = session.ask(chosen(self.command, values), values)
        show(self.command.printing, answer)

    def _check(self, values: dict[str, Any]) -> None:
        for one, other in self.command.either:
            if values[one] == values[other]:
                spelled = [_long(parameter) for parameter in self.command.parameters if parameter.name in (one, other)]
                raise Misused(f"specify exactly one of {' and '.join(spelled)}")


def _for_topics(command: Command, args: list[str]) -> str:
    """Return the equivalent command for a topic if a topic was given as namespace; empty without one."""
    if command.group != "namespaces" or not any(_is_topic(arg) for arg in args):
        return ""
    for group in ("topicPolicies", "topics"):
        if table.named(group, command.name) is not None:
            return shlex.join(["pulsarbox", "admin", group, command.name, *args])
    return ""


def _is_topic(text: str) -> bool:
    try:
        parse_topic(text)
    except PulsarBoxError:
        return False
    return "://" in text or text.count("/") == 2


def _step(run: str) -> Callable[..., Any]:
    """Return the function ``module.name`` of ``steps``."""
    module, _, name = run.partition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"pulsarbox.cli.pulsar_admin.steps.{module}"), name)
    return found


def _value(parameter: Parameter, given: Any) -> Any:
    if parameter.kind == "switch":
        return given or None
    return collected(parameter.base, given, parameter.default) if parameter.base in REPEATED else given


def _current(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with those of outdated spellings under the names of their options."""
    for old, name in command.old.items():
        value = values.pop(old)
        if values[name] is None:
            values[name] = value
    return values


def stdin_is_terminal() -> bool:
    """Return whether stdin is a terminal, so that a question can be answered."""
    return sys.stdin.isatty()


def _agreed(question: str) -> bool:
    """Ask for confirmation. Raises Misused without a terminal."""
    if not stdin_is_terminal():
        raise Misused(f"{question} No terminal to confirm on: use --force")
    return str(
        click.prompt(f"{question} (Y/N)", prompt_suffix=" ", err=True, default="", show_default=False)
    ).strip().lower() in ("y", "yes")


def _long(parameter: Parameter) -> str:
    return max(parameter.spellings, key=len)


def _parameter(command: Command, parameter: Parameter) -> click.Parameter:
    kind = _type(parameter.kind)
    if not parameter.spellings:
        complete = completions.BY_NAME.get(parameter.name)
        return click.Argument(
            [parameter.name],
            type=kind,
            required=parameter.required,
            nargs=-1 if parameter.several else 1,
            metavar=f"[{parameter.name.upper()}]..." if parameter.several else parameter.name.upper(),
            shell_complete=complete,
        )
    spellings = [one for one in parameter.spellings if one.startswith("-")]
    text = table.option_help(command.group, command.name, parameter)
    if parameter.kind in ("flag", "switch"):
        return click.Option([parameter.name, *spellings], is_flag=True, help=text, hidden=parameter.hidden)
    several = parameter.base in REPEATED
    default: dict[str, Any] = {} if several or parameter.default is None else {"default": parameter.default}
    return click.Option(
        [parameter.name, *spellings],
        **default,
        type=kind,
        required=parameter.required,
        multiple=several,
        show_default=parameter.default is not None and not several,
        help=text,
        hidden=parameter.hidden,
        shell_complete=completions.BY_NAME.get(parameter.name) if parameter.kind == "text" else None,
        metavar=parameter.name.upper() if parameter.kind in ("text", "many") else None,
    )


def _type(kind: str) -> click.ParamType[Any] | None:
    if kind in ("flag", "switch"):
        return None
    base, _, words = kind.removesuffix(")").partition("(")
    if base == "choice":
        return click.Choice(words.split(","))
    return click.BOOL if base == "bool" else Value(base, tuple(words.split(",")) if words else ())


def _as_click_reads(command: AdminCommand, args: list[str]) -> list[str]:
    """Convert picocli syntax that click does not accept: ``-m=latest``, and options without a dash."""
    short = {one for option in command.params if isinstance(option, click.Option) for one in option.opts}
    made: list[str] = []
    for place, arg in enumerate(args):
        if arg == "--":
            return made + args[place:]
        name, mark, value = arg.partition("=")
        if arg in command._words:
            made.append(command._words[arg])
        elif mark and len(name) == 2 and name in short:
            made += [name, value]
        else:
            made.append(arg)
    return made


def _help(command: Command) -> str:
    words = [f"pulsarbox admin {command.group} {command.name}"]
    for one in command.parameters:
        if one.several:
            continue
        if not one.spellings:
            words.append(_EXAMPLES.get(one.name) or _EXAMPLES.get(one.base) or one.name.upper())
        elif one.required:
            words.append(f"{_short(one)} {_EXAMPLES.get(one.name) or _EXAMPLES.get(one.base) or one.name.upper()}")
    words += _MORE.get((command.group, command.name), ["--name orders"] if _needs_name(command) else [])
    if command.either:
        words.append(_short(next(one for one in command.parameters if one.name == command.either[0][0])))
    return f"{command.summary}\n\n\b\nExamples:\n  {' '.join(words)}"


_MORE: Final = {
    ("functions", name): ["--name totals --py totals.py --classname totals.Totals --inputs orders"]
    for name in ("create", "localrun", "update")
} | {
    ("sinks", "create"): ["--name archive --archive jdbc.nar --inputs orders"],
    ("sinks", "localrun"): ["--name archive --archive jdbc.nar --inputs orders"],
    ("sources", "create"): ["--name changes --archive debezium.nar --destination-topic-name changes"],
    ("sources", "localrun"): ["--name changes --archive debezium.nar --destination-topic-name changes"],
    ("functions", "download"): ["--name orders --destination-file orders.py"],
    ("functions", "trigger"): ["--name orders --trigger-value hello"],
    ("functions", "upload"): ["--source-file orders.py"],
}
"""Further words of the examples in the help."""


def _needs_name(command: Command) -> bool:
    return any(one.name == "name" and not one.required for one in command.parameters)


def _short(parameter: Parameter) -> str:
    return min((one for one in parameter.spellings if one.startswith("-")), key=len)


_EXAMPLES = {
    "topic": "orders",
    "namespace": "public/default",
    "seconds": "3h",
    "some_seconds": "3h",
    "minutes": "90",
    "retention_time": "3h",
    "retention_size": "10G",
    "millis": "1h",
    "bytes": "10G",
    "int": "4",
    "tenant": "public",
    "cluster": "standalone",
    "subscription": "billing",
    "role": "clerk",
    "actions": "produce,consume",
    "clusters": "standalone",
    "list": "one,two",
    "map": "key=value",
    "message_id": "12:34",
    "datetime": "2026-01-31T12:00:00Z",
    "package": "function://public/default/orders@1.0",
    "state": """'{"key": "count", "numberValue": 3}'""",
    "path": "orders.py",
}
"""Example values in the help, by name or kind."""
