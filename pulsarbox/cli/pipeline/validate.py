"""``pulsarbox pipeline validate``: check a pipeline file without running it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.target import Target, admin_options
from pulsarbox.client.errors import NotConnected

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.declaration import PipelineStep
    from pulsarbox.spark.pipelines.definition import Pipeline

FILE: Final = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_SECONDS: Final = 30.0
_COLUMNS: Final = ("query", "kind", "inputs", "output", "deadLetter", "where")
_CUT: Final = {"query": 12, "inputs": 12, "output": 12, "deadLetter": 12, "where": 12}


@click.command()
@FILE
@click.option("--topics", is_flag=True, help="Also check input topics and schemas on the broker.")
@form_option
@admin_options
def validate(file: Path, topics: bool, output: OutputOptions, admin: Target) -> None:
    """Check the pipeline in FILE: imports, names, inputs and outputs, function signatures, cycles.

    With --topics, also checks on the broker that functions can read the schemas of their inputs and write to the
    schemas of their outputs, and reports missing topics. `run` creates missing input topics.

    Fields: query, kind (frame, function), inputs, output, deadLetter, where (file and line).

    \b
    Exit codes:
      1  the pipeline is invalid

    \b
    Examples:
      pulsarbox pipeline validate shop.py
      pulsarbox pipeline validate shop.py --topics -o json
    """
    from pulsarbox.spark.pipelines.definition import load

    pipeline = load(file)
    show(output, lambda: TableOutput(rows_of(pipeline), _COLUMNS, name="query", cut=_CUT, least=("kind",)))
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
        notify(each)
    if found:
        raise Failed(f"{len(found)} problem{'s' if len(found) > 1 else ''} in {file_of(pipeline)}")


def file_of(pipeline: "Pipeline") -> str:
    """Return the file name of a pipeline."""
    return Path(getattr(pipeline.module, "__file__", None) or pipeline.name).name


def rows_of(pipeline: "Pipeline") -> list[dict[str, Any]]:
    """Return one row per step."""
    return [_row(step) for step in pipeline.steps]


def _row(step: "PipelineStep") -> dict[str, Any]:
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
