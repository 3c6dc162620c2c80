"""``pulsarbox pipeline validate``: what a file declares, checked before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.common.output import Found, Output, form_option, show
from pulsarbox.cli.common.terminal_text import say
from pulsarbox.cli.connect.target import Target, admin_options
from pulsarbox.client.errors import NotConnected

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.declaration import Step
    from pulsarbox.spark.pipelines.definition import Pipeline

FILE: Final = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_SECONDS: Final = 30.0
_COLUMNS: Final = ("query", "kind", "inputs", "output", "deadLetter", "where")


@click.command()
@FILE
@click.option("--topics", is_flag=True, help="Ask the broker, too: whether inputs exist, and what their schemas are.")
@form_option
@admin_options
def validate(file: Path, topics: bool, output: Output, admin: Target) -> None:
    """Check what FILE declares: that it can be imported, names, inputs and outputs, what functions take, cycles.

    With --topics the broker is asked as well: whether functions can read values of the schemas that topics have, and
    may write to topics that have one. It also says which topics do not exist yet: `run` makes those that are read.

    Fields: query, kind (frame, function), inputs, output, deadLetter, where (file and line).

    \b
    Exit codes:
      1  something is wrong with it

    \b
    Examples:
      pulsarbox pipeline validate shop.py
      pulsarbox pipeline validate shop.py --topics -o json
    """
    from pulsarbox.spark.pipelines.definition import load

    pipeline = load(file)
    show(output, lambda: Found(rows_of(pipeline), _COLUMNS, name="query"))
    if topics:
        _ask(pipeline, admin)


def _ask(pipeline: "Pipeline", admin: Target) -> None:
    from pulsarbox.client.admin import Admin
    from pulsarbox.spark.pipelines.preflight import missing, problems

    with Admin(admin.hosts, _SECONDS, secure=admin.secure, credentials=admin.credentials()) as client:
        try:
            absent, found = missing(pipeline, client), problems(pipeline, client)
        except NotConnected as error:
            raise admin.unreachable(str(error)) from error
    for each in (*absent, *found):
        say(each)
    if found:
        raise Failed(f"{len(found)} thing{'s are' if len(found) > 1 else ' is'} wrong with {file_of(pipeline)}")


def file_of(pipeline: "Pipeline") -> str:
    """The file that a pipeline is, for people."""
    return Path(getattr(pipeline.module, "__file__", None) or pipeline.name).name


def rows_of(pipeline: "Pipeline") -> list[dict[str, Any]]:
    """A row a step."""
    return [_row(step) for step in pipeline.steps]


def _row(step: "Step") -> dict[str, Any]:
    from pulsarbox.spark.pipelines.declaration import Function

    selected = [each.get("topics") or f"regex:{each['topicsPattern']}" for each in step.reads().values()]
    return {
        "query": step.query,
        "kind": "function" if isinstance(step, Function) else "frame",
        "inputs": ",".join(selected).split(","),
        "output": str(step.writes()),
        "deadLetter": step.dead_letters if isinstance(step, Function) else None,
        "where": step.where,
    }
