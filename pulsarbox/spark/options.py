"""Options of ``spark.read``, ``readStream``, ``write`` and ``writeStream``, as a table, and their parser. Pure.

A row is a field of ``SparkOptions``: its name in Spark, aliases, type, default and meaning. The table in
docs/spark.md is generated from these rows.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final, NamedTuple

from pulsarbox.config.setting import did_you_mean
from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.connector_options import PRODUCER, READER, remedy
from pulsarbox.spark.option_types import (
    COLUMNS,
    COUNT,
    LENGTH,
    SECRET,
    SIZE,
    TEXT,
    TIME,
    TOPIC,
    TOPICS,
    YES_OR_NO,
    Asked,
    OptionType,
    one_of,
    places,
)

BATCH: Final = "batch"
STREAM: Final = "stream"
WRITE: Final = "write"
READS: Final = (BATCH, STREAM)
READ: Final = "read"
"""A batch or a stream read, before it is known which."""
ALL: Final = (BATCH, STREAM, WRITE)
"""Uses of an option: ``read``, ``readStream``, and ``write`` or ``writeStream``."""

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
SUBSCRIPTION: Final = "subscription"

OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "path"})
"""Spark's own options that it passes to sources and sinks; ``path`` is rejected by name."""
SESSION_PARALLELISM: Final = "session.parallelism"
"""Option that the jar adds (``jvm/PulsarboxSource.java``): the default of ``parallelism``."""
_OF_THE_OTHER: Final = {READ: PRODUCER, BATCH: PRODUCER, STREAM: PRODUCER, WRITE: READER}
"""Prefix of the existing connector's options that do not concern a use: programs share one set for reads and writes."""


class OptionError(ValueError):
    """Unknown or misused option; the message names it and the remedy."""


class OptionRow(NamedTuple):
    """Description of an option, apart from its default."""

    name: str
    kind: OptionType
    meaning: str
    used: tuple[str, ...] = ALL
    aliases: tuple[str, ...] = ()
    shown: str = ""
    """The default in words, if the value itself is not shown."""


PLACES: Final = places(EARLIEST, LATEST, SUBSCRIPTION)


def option(default: Any, name: str, kind: OptionType, meaning: str, **more: Any) -> Any:
    """Declare a field of ``SparkOptions``: a row of the table."""
    return field(default=default, metadata={"row": OptionRow(name, kind, meaning, **more)}, repr=kind is not SECRET)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Parsed options, with defaults for the rest. Picklable; its repr leaves secrets out."""

    service_url: str = option(
        "",
        "service.url",
        TEXT,
        "URL of the broker: `pulsar://host:6650` or `pulsar+ssl://`.",
        shown="the box running on `data.dir`, else `pulsar://localhost:6650`",
    )
    admin_url: str = option(
        "",
        "admin.url",
        TEXT,
        "URL of its Admin API: `http://host:8080` or `https://`.",
        shown="that of the box on `data.dir`, else the host of `service.url` with port 8080 (TLS: 8443)",
    )
    data_dir: str = option(
        "",
        "data.dir",
        TEXT,
        "Data directory of the box, if workers can access it: they read it in place.",
        shown="as reported by the box, if an absolute path",
    )
    access: str = option(
        "auto",
        "access",
        one_of("auto", "mmap", "wire"),
        "`mmap`: read the box's files in place, or fail. `wire`: read over the Pulsar protocol. `auto`: in place if a "
        "worker can access the box's data directory, else over the protocol.",
        used=READS,
    )
    token: str = option("", "token", SECRET, "Authentication token.")
    token_file: str = option("", "tokenFile", TEXT, "File with the token, on every machine of the cluster.")
    auth_plugin: str = option(
        "",
        "pulsar.client.authPluginClassName",
        TEXT,
        "Authentication method: `token`, `basic`, `tls`, or the corresponding Java class.",
    )
    auth_params: str = option(
        "",
        "pulsar.client.authParams",
        SECRET,
        "Parameters of that method, such as `token:...`. Spark's plans show them: prefer `token`.",
    )
    tls_trust: str = option(
        "",
        "pulsar.client.tlsTrustCertsFilePath",
        TEXT,
        "PEM file with the trusted certificates.",
        shown="those of the system",
    )
    tls_insecure: bool = option(
        False, "pulsar.client.tlsAllowInsecureConnection", YES_OR_NO, "Accept any server certificate."
    )
    tls_check_host: bool = option(
        False, "pulsar.client.tlsHostnameVerificationEnable", YES_OR_NO, "Require the certificate to name the host."
    )
    admin_auth_plugin: str = option(
        "",
        "pulsar.admin.authPluginClassName",
        TEXT,
        "Authentication method for the Admin API, if different.",
        shown="as `pulsar.client`",
    )
    admin_auth_params: str = option(
        "", "pulsar.admin.authParams", SECRET, "Parameters of that method.", shown="as `pulsar.client`"
    )
    admin_tls_trust: str = option(
        "",
        "pulsar.admin.tlsTrustCertsFilePath",
        TEXT,
        "PEM file with the trusted certificates for the Admin API.",
        shown="as `pulsar.client`",
    )
    admin_tls_insecure: bool | None = option(
        None,
        "pulsar.admin.tlsAllowInsecureConnection",
        YES_OR_NO,
        "Accept any certificate of the Admin API.",
        shown="as `pulsar.client`",
    )
    admin_tls_check_host: bool | None = option(
        None,
        "pulsar.admin.tlsHostnameVerificationEnable",
        YES_OR_NO,
        "Require the Admin API's certificate to name the host.",
        shown="as `pulsar.client`",
    )
    timeout_ms: int = option(
        120_000,
        "pollTimeoutMs",
        LENGTH,
        "How long to wait for a response of the broker.",
    )

    topic: str = option(
        "",
        "topic",
        TOPIC,
        "The topic. When writing: the topic of all rows; if unset, each row names its own in `__topic`.",
    )
    topics: tuple[str, ...] = option((), "topics", TOPICS, "Several topics.", used=READS)
    topics_pattern: str = option(
        "",
        "topicsPattern",
        TEXT,
        "Pattern of topic names, as for Pulsar's consumers: `tenant/namespace/regex`, or a regex for "
        "`public/default`. Includes topics created later.",
        used=READS,
    )
    subscription: str = option(
        "",
        "subscription",
        TEXT,
        "Subscription to acknowledge as a stream progresses; `startingOffsets=subscription` starts from it.",
        used=READS,
        aliases=("predefinedSubscription",),
    )
    wait_for_topic: bool = option(
        False,
        "waitForTopic",
        YES_OR_NO,
        "Wait for topics that do not exist yet, up to `pollTimeoutMs`. A stream with `.schema(...)`, which does not "
        "need their columns, waits without limit.",
        used=READS,
        aliases=("waitingForNonExistedTopic",),
    )

    starting_offsets: Asked = option(  # noqa: RUF009 - a word
        "",
        "startingOffsets",
        PLACES,
        "Where to start. As JSON, one position per topic or partition: `ledger:entry[:batch]`, `earliest`, `latest`, "
        "or the bytes of a `MessageIdData`.",
        used=READS,
        shown="`earliest`; streams: `latest`",
    )
    ending_offsets: Asked = option(  # noqa: RUF009 - a word
        LATEST, "endingOffsets", PLACES, "Where to end, exclusive.", used=(BATCH,)
    )
    starting_time: int | None = option(
        None,
        "startingTime",
        TIME,
        "Start at the first message published at or after this time.",
        used=READS,
        aliases=("startingTimestamp",),
    )
    ending_time: int | None = option(
        None,
        "endingTime",
        TIME,
        "End before the first message published at or after this time.",
        used=(BATCH,),
        aliases=("endingTimestamp",),
    )
    read_compacted: bool = option(
        False,
        "readCompacted",
        YES_OR_NO,
        "Read only the latest message of each key, as far as the topic is compacted.",
        used=(BATCH,),
        aliases=("pulsar.reader.readCompacted",),
    )

    isolation: str = option(
        "committed",
        "isolation",
        one_of("committed"),
        "Transactional messages are read once committed; no other level is supported.",
        used=READS,
    )

    max_entries: int | None = option(
        None,
        "maxEntriesPerTrigger",
        COUNT,
        "Approximate limit of messages per micro-batch: entries are not split.",
        used=(STREAM,),
        aliases=("maxOffsetsPerTrigger",),
        shown="no limit",
    )
    max_bytes: int | None = option(
        None,
        "maxBytesPerTrigger",
        SIZE,
        "Approximate limit of stored bytes per micro-batch.",
        used=READS,
        shown="no limit",
    )
    min_entries: int | None = option(
        None,
        "minEntriesPerTrigger",
        COUNT,
        "Wait for this many messages, or for `maxTriggerDelay`.",
        used=(STREAM,),
        aliases=("minOffsetsPerTrigger",),
        shown="no wait",
    )
    max_delay_ms: int = option(
        900_000,
        "maxTriggerDelay",
        LENGTH,
        "Longest wait for `minEntriesPerTrigger`.",
        used=(STREAM,),
        shown="`15m`",
    )
    batch_at_start: bool = option(
        False,
        "batchAtStart",
        YES_OR_NO,
        "Start each query with a micro-batch, even without new messages: after a restart, Spark fires processing-time "
        "timers only after a micro-batch.",
        used=(STREAM,),
    )
    min_partitions: int = option(
        1, "minPartitions", COUNT, "Minimum number of Spark partitions, if there are enough entries.", used=READS
    )
    max_partition_bytes: int = option(
        64 << 20,
        "maxBytesPerPartition",
        SIZE,
        "Approximate limit of stored bytes per Spark partition.",
        used=READS,
        shown="`64m`",
    )
    parallelism: int = option(
        8,
        "parallelism",
        COUNT,
        "Number of tasks that run at a time. A larger read has that many Spark partitions, or a multiple of it.",
        used=READS,
        shown="that of the session with the jar, else 8",
    )

    columns: str = option(
        "basic",
        "columns",
        COLUMNS,
        "Columns of the frame; `.schema(...)` can select any column.",
        used=READS,
    )
    value_format: str = option(
        "auto",
        "valueFormat",
        one_of("auto", "bytes", "string", "json", "avro", "protobuf", "keyvalue"),
        "`auto`: columns from the topic's schema. `bytes`, `string`: one column `value`. `json`, `avro`: columns from "
        "the schema or from `.schema(...)`. When writing, also `protobuf` and `keyvalue`. Values follow the topic's "
        "schema; if it has none, one is created from the columns: `auto` creates a primitive schema for a single "
        "column, else Avro.",
    )
    mode: str = option(
        "permissive",
        "mode",
        one_of("permissive", "failfast", "dropmalformed"),
        "Handling of values that do not match their schema. `permissive`: null columns, and the bytes in "
        "`_corrupt_record`. `failfast`: fail the read. `dropmalformed`: skip the message.",
        used=READS,
    )
    different_schemas: bool = option(
        False,
        "allowDifferentTopicSchemas",
        YES_OR_NO,
        "Return raw bytes whatever the schemas are, like `valueFormat=bytes`.",
        used=READS,
    )
    fail_on_data_loss: bool = option(
        True,
        "failOnDataLoss",
        YES_OR_NO,
        "Fail if messages to be read are gone or damaged; `false` skips them.",
        used=READS,
    )
    pushdown: bool = option(
        False,
        "pushdown",
        YES_OR_NO,
        "Skip partitions that a filter on topic, ledger or publish time excludes. Requires "
        "`spark.sql.python.filterPushdown.enabled=true`.",
        used=(BATCH,),
    )

    delivery: str = option(
        "exactly-once",
        "delivery",
        one_of("exactly-once", "at-least-once"),
        "`exactly-once`: an epoch or a batch write is published once, with a single commit of the box. "
        "`at-least-once`: rows are published immediately, and again if a task is rerun.",
        used=(WRITE,),
    )
    keep: str = option(
        "",
        "keep",
        TEXT,
        "Durable subscription that retains the written messages. Created at the earliest message, before the first "
        "row, for each topic that lacks it.",
        used=(WRITE,),
        shown="none: `topic` is checked, with a warning if the broker would not retain its rows",
    )
    sink_id: str = option(
        "",
        "sinkId",
        TEXT,
        "Name under which the box stores the last epoch of a stream.",
        used=(WRITE,),
        shown="the query's ID, from its checkpoint",
    )
    sink_namespace: str = option(
        "",
        "sinkNamespace",
        TEXT,
        "Namespace of the sink, `tenant/namespace`. Must not change.",
        used=(WRITE,),
        shown="that of `topic`, else `public/default`",
    )
    sink_epoch: str = option(
        "continue",
        "sinkEpoch",
        one_of("continue", "reset"),
        "`reset`: take over a `sinkId` that another query has written, or go back to before its last epoch.",
        used=(WRITE,),
    )
    job_id: str = option(
        "",
        "jobId",
        TEXT,
        "Name of a batch write: a second write with the same name publishes nothing.",
        used=(WRITE,),
        shown="none: every write publishes",
    )
    job_part: int = option(
        0,
        "jobPart",
        COUNT,
        "With `jobId`: number of this part of the job, from 1. Parts are written in order, each once.",
        used=(WRITE,),
        shown="none: the whole job",
    )
    stage_timeout_ms: int = option(
        0,
        "stageTimeout",
        LENGTH,
        "Longest time from a task's first row to the commit; a longer write is aborted.",
        used=(WRITE,),
        shown="streams: `10m`; batch writes: the box's maximum",
    )
    register_schema: bool = option(
        True,
        "registerSchema",
        YES_OR_NO,
        "Register a schema, made from the columns, for a topic without one.",
        used=(WRITE,),
    )
    router: str = option(
        "round-robin",
        "router",
        TEXT,
        "Routing plugin that selects the partition of each row, built in or custom.",
        used=(WRITE,),
    )
    router_hashing: str = option(
        "java", "router.hashing", TEXT, "Hashing plugin for keys; `java` matches Java clients.", used=(WRITE,)
    )
    router_options: str = option(
        "", "router.options", TEXT, "Options of the router: `name=value,name=value`.", used=(WRITE,), shown="none"
    )
    plugins_dir: str = option(
        "",
        "pluginsDir",
        TEXT,
        "Directory with custom plugins, on every machine of the cluster: routers, and codecs for reading in place.",
        aliases=("router.pluginsDir",),
        shown="none",
    )
    batching: str = option(
        "key",
        "batching",
        one_of("key", "mixed", "none"),
        "`key`: a batch has messages of a single key, as Key_Shared subscriptions require. `mixed`: of any keys, as "
        "Java clients do by default; faster if every row has a different key. `none`: no batches.",
        used=(WRITE,),
    )
    batch_messages: int | None = option(
        None,
        "batchingMaxMessages",
        COUNT,
        "Maximum number of messages per batch.",
        used=(WRITE,),
        aliases=("pulsar.producer.batchingMaxMessages",),
        shown="1000",
    )
    compression: str = option(
        "none",
        "compression",
        one_of("none", "lz4", "zlib", "zstd", "snappy"),
        "Compression of batches and messages.",
        used=(WRITE,),
        aliases=("pulsar.producer.compressionType",),
    )

    @property
    def named(self) -> tuple[str, ...]:
        """The full names of the named topics; empty with a pattern."""
        return (self.topic,) if self.topic else self.topics


def row(option: "Field[Any]") -> OptionRow:
    """Return the row of a field of ``SparkOptions``."""
    found: OptionRow = option.metadata["row"]
    return found


ROWS: Final = tuple(row(each) for each in fields(SparkOptions))
_BY_NAME: Final = {
    name.lower(): (each, name) for each in fields(SparkOptions) for name in (row(each).name, *row(each).aliases)
}
"""Field and canonical spelling, by lowercase name."""
SECRETS: Final = frozenset(name.lower() for each in ROWS if each.kind is SECRET for name in (each.name, *each.aliases))
"""Lowercase names of the options that are neither shown nor stored."""


def parse(given: Mapping[str, str], use: str) -> SparkOptions:
    """Parse the options given for ``use``. Names and most words are case-insensitive.

    Raises OptionError that names the option and the closest known one.
    """
    values: dict[str, Any] = {}
    named: dict[str, str] = {}
    for key, text in _with_session(given).items():
        found, name = _BY_NAME.get(key.lower(), (None, ""))
        if found is None:
            _check_unknown(key, use)
            continue
        if not set(either(use)) & set(row(found).used):
            if key.lower().startswith(_OF_THE_OTHER[use]):
                continue
            raise OptionError(f"option {name} applies to {_uses(row(found).used)}, not to {_said(use)}: remove it")
        value = _value(name, row(found).kind, text)
        if values.get(found.name, value) != value:
            raise OptionError(
                f"options {named[found.name]} and {name} are the same option, with different values: remove one"
            )
        values[found.name], named[found.name] = value, name
    from pulsarbox.spark.options_validation import check_together

    options = SparkOptions(**values)
    check_together(options, set(values), use)
    return options


def _with_session(given: Mapping[str, str]) -> dict[str, str]:
    """Replace what the jar reports of the session by the option that it is the default of."""
    options = dict(given)
    told = options.pop(SESSION_PARALLELISM, None)
    if told is not None and not any(key.lower() == "parallelism" for key in options):
        options["parallelism"] = told
    return options


def of_use(given: Mapping[str, str], use: str) -> dict[str, str]:
    """Return the options without those that only apply to other uses."""
    known = {key: _BY_NAME.get(key.lower(), (None, ""))[0] for key in given}
    return {key: given[key] for key, found in known.items() if found is None or set(either(use)) & set(row(found).used)}


def _value(name: str, kind: OptionType, text: str) -> Any:
    try:
        return kind.read(text)
    except (ValueError, PulsarBoxError) as error:
        shown = "" if kind is SECRET else f" = {text!r}"
        raise OptionError(f"option {name}{shown}: {error}") from None


def _check_unknown(key: str, use: str) -> None:
    folded = key.lower()
    if folded == "path":
        raise OptionError(
            "the format pulsarbox does not support paths: set option topic, and call load() or save() without a path"
        )
    if folded in OF_SPARK or folded.startswith(_OF_THE_OTHER[use]):
        return
    if instead := remedy(key):
        raise OptionError(f"option {key} of the existing connector has no effect: {instead}")
    names = [name for each in ROWS if set(either(use)) & set(each.used) for name in (each.name, *each.aliases)]
    nearest = did_you_mean(key, names, 0.5) or "; docs/spark.md lists all options"
    raise OptionError(f"unknown option {key!r} for {_said(use)}{nearest}")


def either(use: str) -> tuple[str, ...]:
    """Return the uses that ``use`` stands for."""
    return READS if use == READ else (use,)


def _said(use: str) -> str:
    return {READ: "spark.read", BATCH: "spark.read", STREAM: "spark.readStream"}.get(use, "write and writeStream")


def _uses(used: tuple[str, ...]) -> str:
    return " and ".join(_said(use) for use in used)
