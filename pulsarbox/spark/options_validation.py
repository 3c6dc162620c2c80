"""Checks across options: combinations that contradict each other are rejected by name. Pure."""

from dataclasses import fields
from typing import Final

from pulsarbox.spark.options import (
    ALL,
    BATCH,
    EARLIEST,
    READS,
    SUBSCRIPTION,
    WRITE,
    OptionError,
    SparkOptions,
    either,
    row,
)

_APART: Final = (
    (("topic", "topics", "topics_pattern"), READS),
    (("starting_offsets", "starting_time"), READS),
    (("ending_offsets", "ending_time"), (BATCH,)),
    (("token", "token_file", "auth_params"), ALL),
)
"""Groups of mutually exclusive options, with the uses that they apply to."""


def check_together(options: SparkOptions, given: set[str], use: str) -> None:
    """Reject contradicting options; ``given`` holds the names of the fields that were set. Raises OptionError."""
    names = {each.name: row(each).name for each in fields(SparkOptions)}
    for together, uses in _APART:
        both = [names[each] for each in together if each in given]
        if set(either(use)) & set(uses) and len(both) > 1:
            raise OptionError(f"options {' and '.join(both)} conflict: set only one of them")
    if use == WRITE:
        _check_sink(options, given)
    if options.timeout_ms < 1:
        raise OptionError(
            "option pollTimeoutMs = 0: the timeout must be positive. Set milliseconds, or a duration such as 5s"
        )
    if either(use)[0] in READS:
        _check_read(options)
    if options.data_dir and options.access == "wire":
        raise OptionError("access=wire does not read in place: remove data.dir, or set service.url instead")


def _check_read(options: SparkOptions) -> None:
    if not (options.named or options.topics_pattern):
        raise OptionError(
            "no topic to read: set one of the options topic, topics and topicsPattern. (A table whose columns CREATE "
            "TABLE lists has no options: create it without columns, or SELECT ... FROM orders WITH (topic = 'orders').)"
        )
    for topic in (*options.named, options.topics_pattern):
        if topic.startswith("non-persistent://"):
            raise OptionError(f"{topic}: non-persistent topics store no messages; only persistent topics can be read")
    if options.starting_time is not None and options.ending_time is not None:
        if options.ending_time < options.starting_time:
            raise OptionError("endingTime is before startingTime: swap them")
    if SUBSCRIPTION in (options.starting_offsets, options.ending_offsets) and not options.subscription:
        raise OptionError("offsets of a subscription require the option subscription, its name")
    if options.max_entries and options.min_entries and options.min_entries > options.max_entries:
        raise OptionError(
            "minEntriesPerTrigger is greater than maxEntriesPerTrigger: no micro-batch can have as many messages"
        )
    if options.value_format in ("protobuf", "keyvalue"):
        raise OptionError(
            f"valueFormat={options.value_format} is only for writing: when reading, `auto` follows the topic's schema"
        )
    if options.read_compacted and options.starting_offsets not in ("", EARLIEST):
        raise OptionError("readCompacted reads a topic from its beginning: remove startingOffsets")
    if options.different_schemas and options.value_format not in ("auto", "bytes"):
        raise OptionError(
            f"allowDifferentTopicSchemas returns bytes, valueFormat={options.value_format} does not: remove one of them"
        )


def _check_sink(options: SparkOptions, given: set[str]) -> None:
    names = {each.name: row(each).name for each in fields(SparkOptions)}
    for only, delivery in _ONLY_WITH.items():
        if only in given and options.delivery != delivery:
            raise OptionError(f"option {names[only]} requires delivery={delivery}, not {options.delivery}: remove it")
    if options.sink_epoch == "reset" and not options.sink_id:
        raise OptionError("sinkEpoch=reset applies to an existing sinkId: set sinkId")
    if options.sink_id and options.job_id:
        raise OptionError("sinkId is for writeStream, jobId for write: set only one of them")
    if options.job_part and not options.job_id:
        raise OptionError("jobPart is a part of a job: set jobId to the job's name")
    if options.sink_namespace.count("/") != bool(options.sink_namespace):
        raise OptionError(
            f"option sinkNamespace = {options.sink_namespace!r}: expected tenant/namespace, such as public/default"
        )
    if options.batching == "none" and "batch_messages" in given:
        raise OptionError("options batching=none and batchingMaxMessages conflict: set only one of them")
    if options.topic.startswith("non-persistent://") and options.delivery != "at-least-once":
        raise OptionError(f"delivery={options.delivery} requires a persistent topic: use delivery=at-least-once")
    if options.value_format in ("bytes", "string") and "register_schema" in given:
        raise OptionError(f"registerSchema applies to columns, not to valueFormat={options.value_format}: remove it")


_ONLY_WITH: Final = {
    "sink_id": "exactly-once",
    "sink_namespace": "exactly-once",
    "sink_epoch": "exactly-once",
    "job_id": "exactly-once",
    "job_part": "exactly-once",
    "stage_timeout_ms": "exactly-once",
}
"""Options that apply to one delivery mode only."""
