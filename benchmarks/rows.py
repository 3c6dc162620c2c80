"""Rows of the benchmark: the drivers' jobs, and the figures to show."""

from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True)
class Figure:
    """One figure of a row."""

    key: str
    unit: str
    more_is_better: bool = False


RAW_DRIVER: Final = "benchmarks.drivers.raw_driver"
RAW_SUBSCRIPTIONS: Final = "benchmarks.drivers.raw_subscriptions"
RAW_SCRAPE: Final = "benchmarks.drivers.raw_scrape"
RAW_ADMIN: Final = "benchmarks.drivers.raw_admin"
RAW_KEPT: Final = "benchmarks.drivers.raw_kept"
RAW_TOP: Final = "benchmarks.drivers.raw_top"
RAW_DEDUP: Final = "benchmarks.drivers.raw_dedup"
RAW_PLUGINS: Final = "benchmarks.drivers.raw_plugins"
RAW_BACKUP: Final = "benchmarks.drivers.raw_backup"
RAW_COMPRESSING: Final = "benchmarks.drivers.raw_compressing"
RAW_TRANSACTIONS: Final = "benchmarks.drivers.raw_transactions"

RAW_COMPACTION: Final = "benchmarks.drivers.raw_compaction"
RAW_REPLAY: Final = "benchmarks.drivers.raw_replay"

COMMANDS: Final = "benchmarks.commands"

RATE: Final = Figure("rate", "msg/s", more_is_better=True)
IN_RATE: Final = Figure("in_rate", "msg/s in", more_is_better=True)
SHARE: Final = Figure("share", "of 1 topic", more_is_better=True)
OFFICIAL: Final = Figure("official", "msg/s official client", more_is_better=True)
RATIO: Final = Figure("ratio", "of official client", more_is_better=True)
BROKER: Final = Figure("broker_us", "us broker")
DRIVER: Final = Figure("driver_us", "us driver")
P50: Final = Figure("p50_ms", "ms p50")
P99: Final = Figure("p99_ms", "ms p99")
P999: Final = Figure("p999_ms", "ms p99.9")


@dataclass(frozen=True)
class Row:
    """One measurement. ``job`` is the driver's input (see driver/main.go), with defaults for size and pending."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    job: dict[str, Any] = field(default_factory=dict)
    raw: str = ""
    """Module that measures it, for drivers other than the main one."""
    share_of: str = ""
    """Row whose rate is the base of this one's ``share``."""

    def job_for(self, url: str, topic: str, scale: float) -> dict[str, Any]:
        job = {"url": url, "topic": topic, "size": 1024, "pending": 1000, "limit_seconds": 90.0, **self.job}
        messages = max(100, int(job["messages"] * scale))
        if "topics" in job:  # each gets at least one message
            job["topics"] = min(job["topics"], messages)
        return {**job, "messages": messages}


ROWS: Final = (
    Row("publish-batched", "publish batched", (RATE, P50, P99),
        {"row": "publish", "messages": 200_000, "batched": True}),
    Row("publish-single", "publish single", (RATE, P50, P99), {"row": "publish", "messages": 60_000}),
    # One pending per producer: 1,000 in flight in total, as in the row above, or 10,000.
    Row("publish-1000-topics", "publish single, 1,000 topics", (RATE, P50, P99),
        {"row": "many", "messages": 60_000, "topics": 1_000, "pending": 1}),
    Row("publish-10000-topics", "publish single, 10,000 topics", (RATE, P50, P99),
        {"row": "many", "messages": 60_000, "topics": 10_000, "pending": 1, "limit_seconds": 300.0}),
    # 1,000 in flight over all producers, on one connection.
    Row("many-1", "bare protocol, single, 1 topic", (RATE, BROKER, DRIVER),
        {"row": "many", "messages": 60_000, "topics": 1}, raw=RAW_DRIVER),
    Row("many-1000", "bare protocol, single, 1,000 topics", (RATE, SHARE, BROKER, DRIVER),
        {"row": "many", "messages": 60_000, "topics": 1_000}, raw=RAW_DRIVER, share_of="many-1"),
    Row("many-10000", "bare protocol, single, 10,000 topics", (RATE, SHARE, BROKER, DRIVER),
        {"row": "many", "messages": 60_000, "topics": 10_000}, raw=RAW_DRIVER, share_of="many-1"),
    Row("roundtrip", "one in flight", (P50, P99), {"row": "roundtrip", "messages": 1500}),
    Row("paced-batched", "end to end, 10,000/s batched", (P50, P99, P999),
        {"row": "paced", "messages": 50_000, "rate": 10_000, "batched": True}),
    Row("paced-single", "end to end, 1,000/s single", (P50, P99, P999),
        {"row": "paced", "messages": 5_000, "rate": 1_000}),
    Row("catchup-batched", "catch-up batched, Exclusive", (RATE,),
        {"row": "catchup", "messages": 200_000, "batched": True}),
    Row("catchup-single", "catch-up single, Exclusive", (RATE, BROKER), {"row": "catchup", "messages": 60_000}),
    *(Row(f"catchup-{kind}{suffix}", f"catch-up single, {title}{number}", (RATE, BROKER),
          {"row": "catchup", "messages": 60_000, "type": kind, "keys": keys, "consumers": consumers})
      for kind, title, keys in (("shared", "Shared", 0), ("key_shared", "Key_Shared", 1000))
      for suffix, number, consumers in (("", "", 1), ("-4", ", 4 consumers", 4))),
    # 2 million entries, a million of them acknowledged, and half a million after them.
    Row("holes", "catch-up between acknowledged ranges",
        (RATE, Figure("share", "of contiguous", more_is_better=True),
         Figure("behind_share", "after the ranges", more_is_better=True), BROKER, Figure("plain_us", "us contiguous")),
        {"row": "holes", "messages": 2_000_000, "size": 100, "limit_seconds": 600.0}, raw=RAW_SUBSCRIPTIONS),
    Row("join-leave", "1,000 consumers join and leave",
        (Figure("seconds", "s"), Figure("max_ms", "ms max"), P99,
         Figure("quiet_ms", "ms before"), Figure("wrong", "out of order"), Figure("lost", "lost")),
        {"row": "join-leave", "messages": 1_000, "consumers": 1_000, "seconds": 10, "keys": 1000, "rate": 2000},
        raw=RAW_SUBSCRIPTIONS),
    # A producer, a subscription and a message each.
    Row("scrape", "/metrics with 10,000 topics",
        (Figure("seconds", "s"), Figure("mib", "MiB compressed"), Figure("stall_ms", "ms max receipt"), P50,
         Figure("quiet_max_ms", "ms max without"), Figure("quiet_p50_ms", "ms p50 without")),
        {"row": "scrape", "messages": 10_000, "topics": 10_000, "limit_seconds": 300.0}, raw=RAW_SCRAPE),
    Row("polled", "publish single while a client polls all statistics",
        (RATE, Figure("alone", "msg/s alone", more_is_better=True), Figure("share", "of alone", more_is_better=True),
         BROKER, Figure("alone_us", "us broker alone")),
        {"row": "polled", "messages": 800_000, "topics": 100, "limit_seconds": 300.0}, raw=RAW_SCRAPE),
    # A thousand topics: all statistics in one answer once a second, and those of single topics a hundred times a
    # second.
    *(Row(f"polled-1000{suffix}", f"publish single on 1 of 1,000 topics while a client polls {what}",
          (RATE, Figure("alone", "msg/s alone", more_is_better=True), Figure("share", "of alone", more_is_better=True),
           BROKER, Figure("alone_us", "us broker alone"), Figure("polls", "polls/s", more_is_better=True)),
          {"row": "polled", "messages": 800_000, "topics": 1_000, "poll": poll, "limit_seconds": 300.0}, raw=RAW_SCRAPE)
      for suffix, what, poll in (("", "all of them", "all"), ("-each", "them one by one", "each"))),
    # 50 rows twice a second: as `pulsarbox top` requests them, and with columns that are costly to compute.
    *(Row(f"top-10000{suffix}", f"live view of 10,000 subscriptions, twice a second{what}",
          (Figure("percent", "% of a core added"), Figure("watched_percent", "% watched"),
           Figure("quiet_percent", "% unwatched"), P50, Figure("max_ms", "ms max")),
          {"row": "top", "messages": 10_000, "topics": 10_000, "query": f"subscriptions?limit=50&{query}",
           "limit_seconds": 300.0}, raw=RAW_TOP)
      for suffix, what, query in (
          ("", "", "sort=backlog"),
          ("-filter", ", with a filter", "sort=outRate&filter=backlog%3E0%20and%20endswith(topic,%229%22)"),
          ("-cause", ", ordered by cause", "sort=cause"),
          ("-oldest", ", ordered by age", "sort=oldest"))),
    *(Row(f"admin-{clients}", f"Admin API, {title}",
          tuple(Figure(f"{phase}{key}", f"{unit} {said}", more_is_better=not key)
                for phase, said in (("stats", "GET stats"), ("put", "PUT topic"), ("delete", "DELETE topic"))
                for key, unit in (("", "/s"), ("_ms", "ms"), ("_us", "us broker"))),
          {"row": "admin", "messages": 2_000, "clients": clients, "limit_seconds": 120.0}, raw=RAW_ADMIN)
      for clients, title in ((1, "one connection"), (8, "8 connections"))),
    Row("admin-topics", "create, list and delete 10,000 topics, 8 connections",
        (Figure("create", "s create"), Figure("create_rate", "/s", more_is_better=True), Figure("list", "ms list"),
         Figure("delete", "s delete"), Figure("delete_rate", "/s", more_is_better=True)),
        {"row": "topics", "messages": 10_000, "topics": 10_000, "clients": 8, "limit_seconds": 300.0}, raw=RAW_ADMIN),
    # A backlog of a million entries expires and is then deleted, beside a publisher.
    Row("expiry", "receipts while a million entries expire and are deleted",
        (Figure("quiet_p99_ms", "ms p99 quiet"),
         *(Figure(f"{phase}_{key}", f"{unit} {phase}") for phase in ("expiry", "retention")
           for key, unit in (("p99_ms", "ms p99"), ("share", "x quiet,"), ("max_ms", "ms max"), ("s", "s")))),
        {"row": "expiry", "messages": 1_000_000, "size": 100, "limit_seconds": 400.0}, raw=RAW_KEPT),
    Row("compaction", "receipts while a million entries of 100,000 keys are compacted",
        (Figure("compaction_s", "s"), Figure("again_s", "s with 10 % more"), Figure("quiet_p99_ms", "ms p99 quiet"),
         P99, Figure("share", "x quiet,"), Figure("max_ms", "ms max"), Figure("again_p99_ms", "ms p99 again")),
        {"row": "compaction", "messages": 1_000_000, "keys": 100_000, "size": 100, "limit_seconds": 600.0},
        raw=RAW_COMPACTION),
    Row("replay", "receipts while a job replays dead letters",
        (RATE, Figure("quiet_p99_ms", "ms p99 quiet"), P99, Figure("share", "x quiet,"), Figure("max_ms", "ms max")),
        {"row": "replay", "messages": 100_000, "limit_seconds": 300.0}, raw=RAW_REPLAY),
    Row("policy", "policy change for a namespace of 10,000 topics",
        (Figure("answer_ms", "ms answer"), Figure("stall_ms", "ms max receipt"),
         Figure("quiet_max_ms", "ms max without"), P99, Figure("quiet_p99_ms", "ms p99 without"),
         Figure("share", "x p99")),
        {"row": "policy", "messages": 10_000, "topics": 10_000, "limit_seconds": 300.0}, raw=RAW_KEPT),
    # Two topics alternately. Clients in C++, Python and Go do not send the highest sequence ID of a batch.
    *(Row(f"dedup-{name}", f"deduplication, {title}",
          (RATE, Figure("without", "msg/s without", more_is_better=True),
           Figure("ratio", "of without", more_is_better=True), BROKER, Figure("without_us", "us broker without")),
          {"row": "dedup", "messages": messages, "batch": batch, "told": told, "limit_seconds": 300.0}, raw=RAW_DEDUP)
      for name, title, messages, batch, told in (
          ("single", "single", 240_000, 0, False), ("batched", "batches of 100, like Java", 800_000, 100, True),
          ("untold", "batches of 100, like C++", 800_000, 100, False))),
    # Begun, filled, receipted and committed; several concurrently on one connection.
    *(Row(f"txn-{inside}{suffix}", f"transactions of {what}, {together} at a time",
          (Figure("txns", "txn/s", more_is_better=True), P50, P99, BROKER),
          {"row": "transactions", "messages": messages, "inside": inside, "together": together},
          raw=RAW_TRANSACTIONS)
      for inside, what, together, suffix, messages in (
          (1, "one message", 1, "-alone", 1500), (1, "one message", 32, "", 20_000),
          (10, "ten messages", 32, "", 60_000), (100, "a hundred messages", 32, "", 200_000))),
    Row("txn-inside", "publish single inside one transaction",
        (RATE, Figure("without", "msg/s outside", more_is_better=True),
         Figure("ratio", "of outside", more_is_better=True), BROKER,
         Figure("without_us", "us broker outside")),
        {"row": "transactions", "messages": 240_000}, raw=RAW_TRANSACTIONS),
    # A box started by the driver, with and without a plugin alternately, whatever broker is measured.
    *(Row(f"plugin-{way}", f"with a plugin: {title}",
          (RATE, Figure("without", "msg/s built-in", more_is_better=True),
           Figure("ratio", "of built-in", more_is_better=True), BROKER, Figure("without_us", "us broker built-in")),
          {"row": "plugins", "way": way, "messages": 60_000, "size": 100, "limit_seconds": 300.0}, raw=RAW_PLUGINS)
      for way, title in (
          ("produce", "produce --route, 4 partitions"), ("http", "POST /topics, 4 partitions"),
          ("shared", "Shared, 4 consumers, sharedConsumerSelection"),
          ("hash", "Key_Shared, 4 consumers, keySharedHashing"),
          ("selector", "Key_Shared, 4 consumers, keySharedSelector"))),
    # A box started by the driver, with and without a backup alternately, whatever broker is measured.
    *(Row(f"backup-{way}", f"receipts during a backup that {title}",
          (Figure("quiet_p99_ms", "ms p99 alone"), P99, Figure("share", "x alone,"), Figure("max_ms", "ms max"),
           Figure("mib", "MiB backed up")),
          {"row": "backup", "way": way, "messages": 200_000, "limit_seconds": 300.0}, raw=RAW_BACKUP)
      for way, title in (("copy", "copies all volumes"), ("link", "links sealed volumes"))),
    # A store without a box. Read speeds are of bodies.
    *(Row(f"compressing-{name}", f"compression on disk, {kind}, zstd",
          (Figure("packing", "MB/s packed", more_is_better=True), Figure("bodies", "x smaller", more_is_better=True),
           *(Figure(f"{key}{suffix}", f"MB/s read {said}", more_is_better=True)
             for key, what in (("cold", "cold"), ("warm", "warm"), ("kept", "again, cached"))
             for suffix, said in (("_plain", f"{what}, plain"), ("", f"{what}, packed")))),
          {"row": "compressing", "kind": kind, "codec": "zstd", "messages": 10_000}, raw=RAW_COMPRESSING)
      for name, kind in (("telemetry", "telemetry"), ("orders", "JSON orders"), ("random", "random bytes"))),
    Row("fanout-single", "fan-out to 10 subscriptions, single", (RATE, IN_RATE),
        {"row": "fanout", "messages": 10_000, "subscriptions": 10}),
    Row("fanout", "fan-out to 10 subscriptions, batched", (RATE, IN_RATE),
        {"row": "fanout", "messages": 30_000, "subscriptions": 10, "batched": True}),
    # Our own commands against a loop of the official Python client, including start and exit.
    Row("command-start", "command start",
        tuple(Figure(f"{name}_{key}", f"{unit} {name}") for name in ("python", "version", "produce", "consume", "admin")
              for key, unit in (("ms", "ms"), ("cpu_ms", "ms cpu"))),
        {"row": "start", "messages": 1000, "runs": 10}, raw=COMMANDS),
    Row("command-produce", "produce: lines, 100 bytes", (RATE, OFFICIAL, RATIO),
        {"row": "produce", "messages": 300_000, "size": 100}, raw=COMMANDS),
    *(Row(f"command-consume-{form}{suffix}", f"consume -o {form}: {entries}, 100 bytes", (RATE, OFFICIAL, RATIO),
          {"row": "consume", "messages": messages, "size": 100, "form": form, "batched": batched}, raw=COMMANDS)
      for form in ("raw", "ndjson")
      for suffix, entries, batched, messages in (("", "batches", True, 300_000), ("-single", "single", False, 40_000))),
)  # fmt: skip

# Measured by bench.py itself, for a process that it knows.
START: Final = Row("start", "start to first acknowledged message", (Figure("seconds", "s"),))
MEMORY: Final = Row("memory", "memory at rest (PSS)", (Figure("mib", "MiB"),))
CPU: Final = Row("cpu", "processor at rest", (Figure("percent", "% of a core"),))
