"""Preflight checks of a pipeline against the broker: topics that will be created, and incompatible schemas."""

from typing import Final

from pulsarbox.client.admin import Admin, AdminRefused, path_of
from pulsarbox.names import parse_topic
from pulsarbox.spark.pipelines.declaration import PATTERN, Function, PipelineStep
from pulsarbox.spark.pipelines.definition import Pipeline
from pulsarbox.spark.pipelines.query_progress import inputs_of

_READABLE: Final = {
    "bytes": None,
    "text": ("NONE", "BYTES", "STRING", "JSON"),
    "json": ("NONE", "BYTES", "STRING", "JSON"),
}
"""Schema types that a function can read, by its ``value`` option; None for any."""
_WRITABLE: Final = ("NONE", "BYTES", "STRING", "JSON")


def missing(pipeline: Pipeline, admin: Admin) -> list[str]:
    """Return warnings about input topics that do not exist and that no step writes, in case of a misspelled name:
    ``run`` creates them. Each has the step and its line. Raises the broker's errors."""
    written = {str(each.writes()) for each in pipeline.steps}
    written |= {each.dead_letters for each in pipeline.steps if isinstance(each, Function) and each.dead_letters}
    return [
        str(step.wrong(f"{topic} does not exist yet: `run` creates it, if the name is correct"))
        for step in pipeline.steps
        for topic in _named(step)
        if topic not in written and not _exists(admin, topic)
    ]


def problems(pipeline: Pipeline, admin: Admin) -> list[str]:
    """Return incompatible schemas, each with the step and its line. Raises the broker's errors."""
    found: list[str] = []
    for step in pipeline.steps:
        if not isinstance(step, Function):
            continue
        for topic in _named(step):
            found += _reading(step, topic, schema_of(admin, topic))
        if step.writes().kind == "topic":
            found += _writing(step, schema_of(admin, step.writes().place))
    return found


def _named(step: PipelineStep) -> list[str]:
    return [topic for topic in inputs_of(step) if not topic.startswith(PATTERN)]


def _reading(step: Function, topic: str, schema: str) -> list[str]:
    readable = _READABLE[step.value]
    if readable is None or schema in readable:
        return []
    return [str(step.wrong(f"{topic} has the schema {schema}, which value={step.value} cannot read: use a frame"))]


def _writing(step: PipelineStep, schema: str) -> list[str]:
    if schema in _WRITABLE:
        return []
    output = step.writes()
    return [str(step.wrong(f"{output} has the schema {schema}: a function writes bytes, text or JSON; use a frame"))]


def _exists(admin: Admin, topic: str) -> bool:
    name = parse_topic(topic)
    if admin.partitions(name):
        return True
    base = str(name)
    return base in admin.topics(name.namespace, name.domain)


def schema_of(admin: Admin, topic: str) -> str:
    """Return the type of a topic's schema; ``NONE`` if it has none or does not exist."""
    name = parse_topic(topic)
    try:
        found = admin.ask("GET", f"/schemas{path_of(name, 'schema').removeprefix(f'/{name.domain}')}")
    except AdminRefused as error:
        if error.status != 404:
            raise
        return "NONE"
    return str(found["type"])
