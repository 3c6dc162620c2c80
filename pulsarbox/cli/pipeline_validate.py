"""``pulsarbox pipeline validate``: what a file declares, checked before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.exits import run
from pulsarbox.cli.output import Found, Output, form_option, show

if TYPE_CHECKING:
    from pulsarbox.spark.pipelines.declaring import Step
    from pulsarbox.spark.pipelines.definition import Pipeline

FILE: Final = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_COLUMNS: Final = ("query", "kind", "inputs", "output", "deadLetter", "where")


@click.command()
@FILE
@form_option
def validate(file: Path, output: Output) -> None:
    """Check what FILE declares: that it can be imported, names, inputs and outputs, what functions take, cycles.

    Fields: query, kind (frame, function), inputs, output, deadLetter, where (file and line).

    \b
    Examples:
      pulsarbox pipeline validate totals.py
      pulsarbox pipeline validate totals.py -o json
    """
    run(_validate, file, output)


def _validate(file: Path, output: Output) -> None:
    from pulsarbox.spark.pipelines.definition import load

    pipeline = load(file)
    show(output, lambda: Found(rows_of(pipeline), _COLUMNS, name="query"))


def rows_of(pipeline: "Pipeline") -> list[dict[str, Any]]:
    """A row a step."""
    return [_row(step) for step in pipeline.steps]


def _row(step: "Step") -> dict[str, Any]:
    from pulsarbox.spark.pipelines.declaring import Function

    selected = [each.get("topics") or f"regex:{each['topicsPattern']}" for each in step.reads().values()]
    return {
        "query": step.query,
        "kind": "function" if isinstance(step, Function) else "frame",
        "inputs": ",".join(selected).split(","),
        "output": str(step.writes()),
        "deadLetter": step.dead_letters if isinstance(step, Function) else None,
        "where": step.where,
    }
