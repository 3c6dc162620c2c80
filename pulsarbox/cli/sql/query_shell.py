"""The shell of ``pulsarbox sql`` without a query: statements that end with a semicolon, and a few dot commands."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from pulsarbox.cli.common.exits import Failed, ending
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.common.text_table import table
from pulsarbox.cli.sql.column_sql import sql_type
from pulsarbox.cli.sql.query_session import QuerySession
from pulsarbox.errors import PulsarBoxError

_FIRST: Final = "sql> "
_NEXT: Final = "...> "
_HISTORY_LINES: Final = 1000
_HELP: Final = """\
.tables         list the topics
.schema TOPIC   list the columns of a topic
.help           show this help
.quit           leave; also Ctrl-D
Anything else is SQL, up to a semicolon at the end of a line."""
_WORDS: Final = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "HAVING", "JOIN", "USING", "DISTINCT", "count(*)",
    "AND", "BETWEEN", "INTERVAL", ".tables", ".schema", ".help", ".quit",
)  # fmt: skip


class QueryShell:
    """Reads statements from the terminal and runs them."""

    def __init__(self, session: QuerySession) -> None:
        self._session = session
        self._completion = Completion(session)

    def run(self) -> None:
        """Run until Ctrl-D or .quit."""
        click.echo("Enter .help for help. A query ends with a semicolon.", err=True)
        with _line_editing(self._completion):
            while (statement := self._read()) is not None:
                if statement:
                    self._run_one(statement)

    def _read(self) -> str | None:
        """Return a statement or dot command; empty after Ctrl-C, None at the end."""
        lines: list[str] = []
        while True:
            try:
                line = input(_NEXT if lines else _FIRST)
            except EOFError:
                click.echo()
                return None
            except KeyboardInterrupt:
                click.echo()
                return ""
            if not lines and line.strip().startswith("."):
                return None if line.strip() in (".quit", ".exit") else line.strip()
            lines.append(line)
            text = "\n".join(lines).strip()
            if not text or text.endswith(";"):
                return text.rstrip(";").strip()

    def _run_one(self, statement: str) -> None:
        try:
            if statement.startswith("."):
                self._command(statement)
            else:
                self._session.run(statement)
        except PulsarBoxError as error:
            ending(error).show()
        except Failed as error:
            error.show()
        except KeyboardInterrupt:
            notify("interrupted")

    def _command(self, statement: str) -> None:
        name, _, argument = statement.partition(" ")
        if name == ".help":
            click.echo(_HELP)
        elif name == ".tables":
            for topic in self._session.catalog.names():
                click.echo(clean(topic))
        elif name == ".schema" and argument.strip():
            self._show_columns(argument.strip().strip('"'))
        else:
            raise Failed(f"unknown command {statement}: .help lists the commands")

    def _show_columns(self, topic: str) -> None:
        fields = self._session.catalog.table(topic).columns.fields
        rows = [{"column": field["name"], "type": sql_type(field["type"])} for field in fields]
        for line in table(("column", "type"), rows):
            click.echo(line)
        self._completion.add(field["name"] for field in fields)


class Completion:
    """Completion of topics, columns that .schema listed, and words of SQL."""

    def __init__(self, session: QuerySession) -> None:
        self._session = session
        self._words: dict[str, None] = dict.fromkeys(_WORDS)
        self._topics: list[str] | None = None
        self._found: list[str] = []

    def add(self, words: Iterable[str]) -> None:
        """Offer more words."""
        self._words.update(dict.fromkeys(words))

    def complete(self, text: str, state: int) -> str | None:
        """Return a completion of ``text`` by its number. Called by readline, which ignores exceptions."""
        if state == 0:
            if self._topics is None:
                self._topics = self._names()
            folded = text.casefold()
            self._found = [each for each in (*self._topics, *self._words) if each.casefold().startswith(folded)]
        return self._found[state] if state < len(self._found) else None

    def _names(self) -> list[str]:
        try:
            return self._session.catalog.names()
        except (PulsarBoxError, Failed):  # completion is optional
            return []


@contextlib.contextmanager
def _line_editing(completion: Completion) -> Iterator[None]:
    """Enable line editing, completion and the history file, if Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = _history_file()
    readline.set_completer(completion.complete)
    readline.set_completer_delims(" \t\n,()=<>'")
    readline.parse_and_bind("tab: complete")
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        readline.set_history_length(_HISTORY_LINES)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            readline.write_history_file(path)


def _history_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "pulsarbox" / "sql_history"
