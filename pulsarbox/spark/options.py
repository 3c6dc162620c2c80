"""Options of ``spark.read``, ``readStream``, ``write`` and ``writeStream``, as a table, and their parser. Pure.

A row is a field of ``Options``: its name in Spark, aliases, type, default and meaning. The table in docs/spark.md is
generated from these rows.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final, NamedTuple

from pulsarbox.config.setting import did_you_mean
from pulsarbox.errors import PulsarBoxError
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
    Kind,
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
WITHOUT_EFFECT: Final = ("pulsar.reader.", "pulsar.admin.", "pulsar.client.", "pulsar.producer.")
"""Prefixes of Java client options of the existing Pulsar connector: ignored unless they have a row."""


class OptionError(ValueError):
    """Unknown or misused option; the message names it and the remedy."""


class Row(NamedTuple):
    """Description of an option, apart from its default."""

    name: str
    kind: Kind
    meaning: str
    used: tuple[str, ...] = ALL
    aliases: tuple[str, ...] = ()
    shown: str = ""
    """The default in words, if the value itself is not shown."""


PLACES: Final = places(EARLIEST, LATEST, SUBSCRIPTION)


def option(default: Any, name: str, kind: Kind, meaning: str, **more: Any) -> Any:
    """Declare a field of ``Options``: a row of the table."""
    return field(default=default, metadata={"row": Row(name, kind, meaning, **more)}, repr=kind is not SECRET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Parsed options, with defaults for the rest. Picklable; its repr leaves secrets out."""

    service_url: str = option(
        "",
        "service.url",
        TEXT,
        "Where the broker is, `pulsar://host:6650` or `pulsar+ssl://`.",
        shown="the box that runs on `data.dir`, else `pulsar://localhost:6650`",
    )
    admin_url: str = option(
        "",
        "admin.url",
        TEXT,
        "Its Admin API, `http://host:8080` or `https://`.",
        shown="of the box on `data.dir`, else the host of `service.url` with port 8080 (TLS: 8443)",
    )
    data_dir: str = option(
        "",
        "data.dir",
        TEXT,
        "The data directory of the box, where workers have it too: they read in place.",
        shown="what the box says, if that is an absolute path",
    )
    access: str = option(
        "auto",
        "access",
        one_of("auto", "mmap", "wire"),
        "`mmap`: read the files of the box in place, or fail. `wire`: by the Pulsar protocol. `auto`: in "
        "place where a worker finds the box's data directory, else by the protocol.",
        used=READS,
    )
    token: str = option("", "token", SECRET, "A token that proves who asks.")
    token_file: str = option("", "tokenFile", TEXT, "A file with the token, on every machine of the cluster.")
    auth_plugin: str = option(
        "",
        "pulsar.client.authPluginClassName",
        TEXT,
        "How to prove who asks: `token`, `basic`, `tls`, or a Java class of that name.",
    )
    auth_params: str = option(
        "",
        "pulsar.client.authParams",
        SECRET,
        "What that needs, as `token:...`. Spark's plans show it: prefer `token`.",
    )
    tls_trust: str = option(
        "",
        "pulsar.client.tlsTrustCertsFilePath",
        TEXT,
        "A PEM file with the certificates to trust.",
        shown="those of the system",
    )
    tls_insecure: bool = option(False, "pulsar.client.tlsAllowInsecureConnection", YES_OR_NO, "Trust whoever answers.")
    tls_check_host: bool = option(
        False, "pulsar.client.tlsHostnameVerificationEnable", YES_OR_NO, "The certificate must name the host."
    )
    admin_auth_plugin: str = option(
        "",
        "pulsar.admin.authPluginClassName",
        TEXT,
        "The same for the Admin API, where it is another way.",
        shown="as `pulsar.client`",
    )
    admin_auth_params: str = option(
        "", "pulsar.admin.authParams", SECRET, "The same for the Admin API.", shown="as `pulsar.client`"
    )
    admin_tls_trust: str = option(
        "",
        "pulsar.admin.tlsTrustCertsFilePath",
        TEXT,
        "The same for the Admin API.",
        shown="as `pulsar.client`",
    )
    admin_tls_insecure: bool | None = option(
        None,
        "pulsar.admin.tlsAllowInsecureConnection",
        YES_OR_NO,
        "The same for the Admin API.",
        shown="as `pulsar.client`",
    )
    admin_tls_check_host: bool | None = option(
        None,
        "pulsar.admin.tlsHostnameVerificationEnable",
        YES_OR_NO,
        "The same for the Admin API.",
        shown="as `pulsar.client`",
    )
    timeout_ms: int = option(
        120_000,
        "pollTimeoutMs",
        LENGTH,
        "How long an answer of the broker is waited for.",
    )

    topic: str = option(
        "",
        "topic",
        TOPIC,
        "The topic. To write: that of every row; without it, each row's `__topic`.",
    )
    topics: tuple[str, ...] = option((), "topics", TOPICS, "Several topics.", used=READS)
    topics_pattern: str = option(
        "",
        "topicsPattern",
        TEXT,
        "A pattern of topic names, as Pulsar's consumers take it: `tenant/namespace/regex`, or a regex for "
        "`public/default`. Topics that come later are read as well.",
        used=READS,
    )
    subscription: str = option(
        "",
        "subscription",
        TEXT,
        "A subscription that is acknowledged as a stream goes on, and from which "
        "`startingOffsets=subscription` starts.",
        used=READS,
        aliases=("predefinedSubscription",),
    )
    wait_for_topic: bool = option(
        False,
        "waitForTopic",
        YES_OR_NO,
        "Wait for topics that do not exist yet, up to `pollTimeoutMs`. A stream with `.schema(...)`, which need not "
        "know their columns, waits as long as it runs.",
        used=READS,
        aliases=("waitingForNonExistedTopic",),
    )

    starting_offsets: Asked = option(  # noqa: RUF009 - a word
        "",
        "startingOffsets",
        PLACES,
        "Where to start. In JSON a place `ledger:entry[:batch]`, `earliest`, `latest`, or the bytes of a "
        "`MessageIdData` for each topic or partition.",
        used=READS,
        shown="`earliest`; a stream: `latest`",
    )
    ending_offsets: Asked = option(  # noqa: RUF009 - a word
        LATEST, "endingOffsets", PLACES, "Where to end; what stands there is not read.", used=(BATCH,)
    )
    starting_time: int | None = option(
        None,
        "startingTime",
        TIME,
        "Start with the first message that was published then or later.",
        used=READS,
        aliases=("startingTimestamp",),
    )
    ending_time: int | None = option(
        None,
        "endingTime",
        TIME,
        "End before the first message that was published then or later.",
        used=(BATCH,),
        aliases=("endingTimestamp",),
    )
    read_compacted: bool = option(
        False,
        "readCompacted",
        YES_OR_NO,
        "The latest message of every key, as far as the topic is compacted.",
        used=(BATCH,),
    )

    isolation: str = option(
        "committed",
        "isolation",
        one_of("committed"),
        "What transactions have published is read when they are committed; there is no other way.",
        used=READS,
    )

    max_entries: int | None = option(
        None,
        "maxEntriesPerTrigger",
        COUNT,
        "So many messages a micro-batch, about: entries are not torn apart.",
        used=(STREAM,),
        aliases=("maxOffsetsPerTrigger",),
        shown="no limit",
    )
    max_bytes: int | None = option(
        None, "maxBytesPerTrigger", SIZE, "So many stored bytes a micro-batch, about.", used=READS, shown="no limit"
    )
    min_entries: int | None = option(
        None,
        "minEntriesPerTrigger",
        COUNT,
        "Wait for so many messages, or for `maxTriggerDelay`.",
        used=(STREAM,),
        aliases=("minOffsetsPerTrigger",),
        shown="no wait",
    )
    max_delay_ms: int = option(
        900_000,
        "maxTriggerDelay",
        LENGTH,
        "The longest wait for `minEntriesPerTrigger`.",
        used=(STREAM,),
        shown="`15m`",
    )
    batch_at_start: bool = option(
        False,
        "batchAtStart",
        YES_OR_NO,
        "A query begins with a micro-batch, whether anything is new or not: after a restart, Spark looks at timers of "
        "processing time only behind one.",
        used=(STREAM,),
    )
    min_partitions: int = option(
        1, "minPartitions", COUNT, "At least so many Spark partitions, as far as there are entries.", used=READS
    )
    max_partition_bytes: int = option(
        64 << 20,
        "maxBytesPerPartition",
        SIZE,
        "A Spark partition has about so many stored bytes at most.",
        used=READS,
        shown="`64m`",
    )

    columns: str = option(
        "basic",
        "columns",
        COLUMNS,
        "Which columns there are; `.schema(...)` chooses among all of them.",
        used=READS,
    )
    value_format: str = option(
        "auto",
        "valueFormat",
        one_of("auto", "bytes", "string", "json", "avro", "protobuf", "keyvalue"),
        "`auto`: columns by the topic's schema. `bytes`, `string`: one column `value`. `json`, `avro`: by the "
        "schema, or by `.schema(...)`. To write, also `protobuf` and `keyvalue`: by the topic's schema, made from the "
        "columns where there is none; `auto` then makes a primitive one of one column, else Avro.",
    )
    mode: str = option(
        "permissive",
        "mode",
        one_of("permissive", "failfast", "dropmalformed"),
        "A value that its schema cannot read: `permissive` leaves its columns null and puts its bytes into "
        "`_corrupt_record`, `failfast` ends the read, `dropmalformed` leaves the message out.",
        used=READS,
    )
    different_schemas: bool = option(
        False,
        "allowDifferentTopicSchemas",
        YES_OR_NO,
        "Give raw bytes whatever the schemas are, as `valueFormat=bytes`.",
        used=READS,
    )
    fail_on_data_loss: bool = option(
        True,
        "failOnDataLoss",
        YES_OR_NO,
        "Fail where messages that were to be read are gone or damaged; else go on with what there is.",
        used=READS,
    )
    pushdown: bool = option(
        False,
        "pushdown",
        YES_OR_NO,
        "Leave out partitions that a filter on topic, ledger or publish time excludes. Needs "
        "`spark.sql.python.filterPushdown.enabled=true`.",
        used=(BATCH,),
    )

    delivery: str = option(
        "exactly-once",
        "delivery",
        one_of("exactly-once", "at-least-once", "dedup"),
        "`exactly-once`: all of an epoch, or of a batch write, is published with one commit of the box, once. "
        "`at-least-once`: at once; again where a task is run again. `dedup`: at once, and the topics' deduplication "
        "drops what comes again, where partitions and the order of rows do not change.",
        used=(WRITE,),
    )
    keep: str = option(
        "",
        "keep",
        TEXT,
        "A durable subscription that keeps what is written: created before the first row of each topic that does not "
        "have it, from the earliest message on.",
        used=(WRITE,),
        shown="none: `topic` is looked at, and a warning says if the broker would not keep its rows",
    )
    sink_id: str = option(
        "",
        "sinkId",
        TEXT,
        "The name under which the box knows the last epoch of a stream.",
        used=(WRITE,),
        shown="the query's id, which is that of its checkpoint",
    )
    sink_namespace: str = option(
        "",
        "sinkNamespace",
        TEXT,
        "The namespace that the sink is in, `tenant/namespace`. It has to stay the same.",
        used=(WRITE,),
        shown="that of `topic`, else `public/default`",
    )
    sink_epoch: str = option(
        "continue",
        "sinkEpoch",
        one_of("continue", "reset"),
        "`reset`: take a `sinkId` over that another query has written, or go back behind its last epoch.",
        used=(WRITE,),
    )
    job_id: str = option(
        "",
        "jobId",
        TEXT,
        "The name of a batch write: a second one of that name publishes nothing.",
        used=(WRITE,),
        shown="none: each write publishes",
    )
    job_part: int = option(
        0,
        "jobPart",
        COUNT,
        "With `jobId`: which part of that job this write is, from 1 on. Parts are written in their order, each once.",
        used=(WRITE,),
        shown="none: all of it",
    )
    stage_timeout_ms: int = option(
        0,
        "stageTimeout",
        LENGTH,
        "From a task's first row to the commit: what takes longer is aborted.",
        used=(WRITE,),
        shown="a stream `10m`, a batch as long as the box allows",
    )
    dedup_partitions: int | None = option(
        None,
        "dedupPartitions",
        COUNT,
        "With `delivery=dedup`: how many partitions the frame has, now and after every restart.",
        used=(WRITE,),
        shown="none",
    )
    register_schema: bool = option(
        True,
        "registerSchema",
        YES_OR_NO,
        "Give a topic without a schema one, made from the columns.",
        used=(WRITE,),
    )
    router: str = option(
        "round-robin",
        "router",
        TEXT,
        "Which partition a row goes to: a routing plugin, built in or your own.",
        used=(WRITE,),
    )
    router_hashing: str = option(
        "java", "router.hashing", TEXT, "The hashing plugin of keys; `java` is what Java clients do.", used=(WRITE,)
    )
    router_options: str = option(
        "", "router.options", TEXT, "What that router takes, as `name=value,name=value`.", used=(WRITE,), shown="none"
    )
    plugins_dir: str = option(
        "",
        "pluginsDir",
        TEXT,
        "Where files with your own plugins are, on every machine of the cluster: routers, and codecs of what is read "
        "in place.",
        aliases=("router.pluginsDir",),
        shown="none",
    )
    batching: str = option(
        "key",
        "batching",
        one_of("key", "mixed", "none"),
        "`key`: a batch has messages of one key, as Key_Shared subscriptions need. `mixed`: of any, "
        "as Java clients do unless told otherwise; faster where every row has its own key. `none`: no "
        "batches.",
        used=(WRITE,),
    )
    batch_messages: int | None = option(
        None,
        "batchingMaxMessages",
        COUNT,
        "So many messages a batch at most.",
        used=(WRITE,),
        aliases=("pulsar.producer.batchingMaxMessages",),
        shown="1000",
    )
    compression: str = option(
        "none",
        "compression",
        one_of("none", "lz4", "zlib", "zstd", "snappy"),
        "Of batches and messages.",
        used=(WRITE,),
        aliases=("pulsar.producer.compressionType",),
    )

    @property
    def named(self) -> tuple[str, ...]:
        """The full names of the named topics; empty with a pattern."""
        return (self.topic,) if self.topic else self.topics


def row(option: "Field[Any]") -> Row:
    """Return the row of a field of ``Options``."""
    found: Row = option.metadata["row"]
    return found


ROWS: Final = tuple(row(each) for each in fields(Options))
_BY_NAME: Final = {
    name.lower(): (each, name) for each in fields(Options) for name in (row(each).name, *row(each).aliases)
}
"""Field and canonical spelling, by lowercase name."""


def parse(given: Mapping[str, str], use: str) -> Options:
    """Parse the options given for ``use``. Names and most words are case-insensitive.

    Raises OptionError that names the option and the closest known one.
    """
    values: dict[str, Any] = {}
    named: dict[str, str] = {}
    for key, text in given.items():
        found, name = _BY_NAME.get(key.lower(), (None, ""))
        if found is None:
            _check_unknown(key, use)
            continue
        if not set(either(use)) & set(row(found).used):
            if key.lower().startswith(WITHOUT_EFFECT):  # ignored like the others with this prefix
                continue
            raise OptionError(f"option {name} is not for {_said(use)}, but for {_uses(row(found).used)}: leave it out")
        value = _value(name, row(found).kind, text)
        if values.get(found.name, value) != value:
            raise OptionError(f"options {named[found.name]} and {name} are the same one: give one of them")
        values[found.name], named[found.name] = value, name
    from pulsarbox.spark.options_validation import check_together

    options = Options(**values)
    check_together(options, set(values), use)
    return options


def _value(name: str, kind: Kind, text: str) -> Any:
    try:
        return kind.read(text)
    except (ValueError, PulsarBoxError) as error:
        shown = "" if kind is SECRET else f" = {text!r}"
        raise OptionError(f"option {name}{shown}: {error}") from None


def _check_unknown(key: str, use: str) -> None:
    folded = key.lower()
    if folded == "path":
        raise OptionError("a path is not for the format pulsarbox: give option topic, and load() or save() without one")
    if folded == "provider":  # Spark reads such a table without its options
        raise OptionError(
            "CREATE TABLE is not for the format pulsarbox, as tables of Spark's catalog do not keep the options of "
            "sources in Python: say CREATE TEMPORARY VIEW name USING pulsarbox OPTIONS (...)"
        )
    if folded in OF_SPARK or folded.startswith(WITHOUT_EFFECT) or folded == "subscriptionprefix":
        return
    names = [name for each in ROWS if set(either(use)) & set(each.used) for name in (each.name, *each.aliases)]
    nearest = did_you_mean(key, names, 0.5) or ". docs/spark.md lists them all"
    raise OptionError(f"there is no option {key!r} for {_said(use)}{nearest}")


def either(use: str) -> tuple[str, ...]:
    """Return the uses that ``use`` stands for."""
    return READS if use == READ else (use,)


def _said(use: str) -> str:
    return {READ: "spark.read", BATCH: "spark.read", STREAM: "spark.readStream"}.get(use, "write and writeStream")


def _uses(used: tuple[str, ...]) -> str:
    return " and ".join(_said(use) for use in used)
