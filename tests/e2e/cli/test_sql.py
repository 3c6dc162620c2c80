"""``pulsarbox sql`` over a real box: schemas, partitions, offloaded and live messages, formats, errors."""

import csv
import io
import json
import re
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from pulsar import schema as kinds

from pulsarbox import PulsarBox
from pulsarbox.cli.common.exits import Failed, NotThere
from pulsarbox.cli.sql.database import Resources, bound, checked, opened
from pulsarbox.cli.sql.execution import running
from pulsarbox.cli.sql.query_dataset import ReadProgress
from pulsarbox.cli.sql.topic_table import TopicCatalog
from pulsarbox.spark.connect.target import in_place
from pulsarbox.spark.lakehouse.catalogs import opened as catalog_opened
from pulsarbox.spark.lakehouse.sink_options import parse_options
from pulsarbox.spark.offload.manifest import OffloadError
from pulsarbox.spark.offload.offloading import Offload
from pulsarbox.spark.offload.table_history import OffloadRoot, root_of
from pulsarbox.spark.offload.table_offload import TableOffload
from pulsarbox.spark.topic_segments import Reach
from tests.e2e.clients import connect, until
from tests.e2e.commands import called, run
from tests.e2e.commands import running as running_command
from tests.e2e.offloaded import asked, offload
from tests.e2e.terminal import RawTerminal, pulsarbox

Rows = list[dict[str, Any]]
Ask = Callable[..., Rows]


class Order(kinds.Record):  # type: ignore[misc] # no types
    """Record of the Avro and JSON topics."""

    id = kinds.Long()
    item = kinds.String()
    total = kinds.Double()


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBox]:
    keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    folder = tmp_path_factory.mktemp("sql")
    with PulsarBox(data_dir=folder / "data", process=True, managedLedgerMaxEntriesPerLedger=10, **keep) as box:
        yield box


@pytest.fixture(scope="module")
def client(box: PulsarBox) -> Iterator[Any]:
    made = connect(box.service_url)
    yield made
    made.close()


@pytest.fixture
def ask(box: PulsarBox, tmp_path: Path) -> Ask:
    """Run a query in this process; return its rows."""

    def rows(query: str, root: OffloadRoot | None = None, *, access: str = "auto", live: bool = True) -> Rows:
        reach = in_place(Reach(box.service_url, admin_url=box.admin_url, access=access))
        catalog = TopicCatalog(reach if live else None, root, lambda _: None)
        resources, progress = Resources("500MB", tmp_path / "spill", "UTC"), ReadProgress()
        tables = bound(checked(query), catalog.table, resources)
        with (
            opened(tables, catalog.reach, resources, progress) as database,
            running(database, query, progress) as found,
        ):
            found.schema()
            return [row for batch in found.batches() for row in batch.to_pylist(maps_as_pydicts="strict")]

    return rows


def publish(client: Any, topic: str, first: int, end: int, schema: Any = None) -> None:
    more = {} if schema is None else {"schema": schema}
    producer = client.create_producer(topic, batching_enabled=False, **more)
    for number in range(first, end):
        order = Order(id=number, item=f"item {number % 3}", total=number / 2)
        value = order if schema is not None else b'{"id": %d}' % number
        producer.send_async(value, lambda *_: None, partition_key=f"k{number % 4}", properties={"n": str(number)})
    producer.flush()
    producer.close()


def urls(box: PulsarBox) -> list[str]:
    return ["--url", box.service_url, "--admin-url", box.admin_url]


@pytest.mark.parametrize("access", ["mmap", "wire"])
@pytest.mark.parametrize("schema", [kinds.AvroSchema(Order), kinds.JsonSchema(Order)], ids=["avro", "json"])
def test_fields_and_metadata_are_columns(client: Any, ask: Ask, schema: Any, access: str) -> None:
    topic = f"typed-{type(schema).__name__}-{access}"
    publish(client, topic, 0, 25, schema)
    name = f'"{topic}"'
    assert ask(f"SELECT count(*) n, sum(id) ids, sum(total) total FROM {name}", access=access) == [
        {"n": 25, "ids": 300, "total": 150.0},
    ]  # fmt: skip
    [row] = ask(f"SELECT * FROM {name} WHERE id = 7", access=access)
    assert (row["item"], row["__key"], row["__messageProperties"]) == ("item 1", b"k3", {"n": "7"})
    assert row["__topic"] == f"persistent://public/default/{topic}" and row["__partition"] is None
    assert row["__publishTime"].tzinfo is not None and row["_corrupt_record"] is None
    last = ask(f"SELECT id, __ledgerId l, __entryId e FROM {name} ORDER BY __publishTime DESC, l DESC, e DESC LIMIT 1")
    assert last[0]["id"] == 24


def test_values_without_fields(client: Any, ask: Ask, box: PulsarBox, tmp_path: Path) -> None:
    producer = client.create_producer("texts", schema=kinds.StringSchema())
    producer.send("täxt")
    raw = client.create_producer("raw")
    for value in (b'{"id": 1}', b"\xff"):
        raw.send(value)
    definition = tmp_path / "pair.json"
    types = {"key.schema.type": "STRING", "value.schema.type": "INT64", "kv.encoding.type": "INLINE"}
    definition.write_text(json.dumps({"type": "KEY_VALUE", "schema": '{"key":"","value":""}', "properties": types}))
    run("schema", "upload", "pairs", str(definition), "--admin-url", box.admin_url)
    pair = client.create_producer("pairs")
    pair.send(struct.pack(">i3siq", 3, b"ann", 8, -5))
    pair.send(b"\0")
    assert ask("SELECT value FROM texts") == [{"value": "täxt"}]
    assert ask("SELECT value FROM raw") == [{"value": b'{"id": 1}'}, {"value": b"\xff"}]
    assert ask("SELECT decode(value) ->> 'id' id FROM raw LIMIT 1") == [{"id": "1"}]
    assert ask("SELECT key, value, _corrupt_record bad FROM pairs") == [
        {"key": "ann", "value": -5, "bad": None},
        {"key": None, "value": None, "bad": b"\0"},
    ]


def test_partitions_are_one_table(client: Any, ask: Ask, box: PulsarBox) -> None:
    run("topic", "create", "parted", "--partitions", "3", "--admin-url", box.admin_url)
    publish(client, "parted", 0, 40, kinds.AvroSchema(Order))
    found = ask("SELECT __partition p, count(*) n FROM parted GROUP BY ALL ORDER BY p")
    assert sum(row["n"] for row in found) == 40 and {row["p"] for row in found} <= {0, 1, 2}
    one = found[0]["p"]
    assert ask(f'SELECT count(*) n FROM "parted-partition-{one}"') == [{"n": found[0]["n"]}]
    assert ask(f"SELECT count(*) n FROM parted WHERE __partition = {one}") == [{"n": found[0]["n"]}]


def test_topics_are_joined(client: Any, ask: Ask) -> None:
    publish(client, "left_side", 0, 30, kinds.AvroSchema(Order))
    publish(client, "right-side", 20, 50, kinds.JsonSchema(Order))
    joined = 'left_side a JOIN "public/default/right-side" b USING (id)'
    query = f"SELECT count(*) n, min(a.id) low, max(b.id) high FROM {joined}"
    assert ask(query) == [{"n": 10, "low": 20, "high": 29}]
    assert ask(f"WITH x AS ({query}) SELECT n + (SELECT count(*) FROM left_side) n FROM x") == [{"n": 40}]


def test_filters_decide_what_is_read(client: Any, box: PulsarBox, tmp_path: Path) -> None:
    publish(client, "pruned", 0, 60, kinds.AvroSchema(Order))
    catalog = TopicCatalog(Reach(box.service_url, admin_url=box.admin_url), None, lambda _: None)
    resources = Resources("500MB", tmp_path / "spill", "UTC")

    def read(query: str) -> int:
        progress = ReadProgress()
        tables = bound(query, catalog.table, resources)
        with (
            opened(tables, catalog.reach, resources, progress) as database,
            running(database, query, progress) as found,
        ):
            found.schema()
            list(found.batches())
        return progress.rows

    ledger = catalog.table("pruned").segments[2].ledger
    assert read("SELECT * FROM pruned") == 60
    assert read(f"SELECT id FROM pruned WHERE __ledgerId = {ledger}") == 10
    assert read(f"SELECT id FROM pruned WHERE __ledgerId IN ({ledger}, {ledger + 1}) AND id > 3") == 20
    assert read("SELECT id FROM pruned WHERE __partition = 4") == 0


def test_each_message_is_there_once_while_the_topic_is_offloaded(
    client: Any, ask: Ask, box: PulsarBox, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    history.mkdir()
    publish(client, "moving", 0, 55, kinds.AvroSchema(Order))
    query = "SELECT count(*) n, count(DISTINCT id) ids, min(id) low, max(id) high FROM moving"
    stop = threading.Event()

    def work() -> None:
        number = 55
        while not stop.is_set():
            publish(client, "moving", number, number + 15, kinds.AvroSchema(Order))
            number += 15
            Offload(asked(box, history, "moving", grace_ms=60_000), lambda _: None).round()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        counts: list[int] = []
        while len(counts) < 8 or counts[0] == counts[-1]:
            [row] = ask(query, history)
            assert row["n"] == row["ids"] == row["high"] + 1 and row["low"] == 0
            counts.append(row["n"])
    finally:
        stop.set()
        thread.join()
    files = ask(query, history, live=False)[0]["n"]
    assert counts == sorted(counts) and 0 < files <= ask(query, history)[0]["n"]
    assert ask("SELECT id FROM moving WHERE id IN (3, 54) ORDER BY id", history) == [{"id": 3}, {"id": 54}]


class Tables:
    """Offloads of topics into an Iceberg table."""

    def __init__(self, box: PulsarBox, folder: Path) -> None:
        self.place = f"iceberg:{folder / 'lake' / 'shop.sql'}"
        self.options = parse_options({"table": self.place.removeprefix("iceberg:")})
        self._box, self._folder = box, folder

    def offload(self, topic: str, problem: str = "", **more: Any) -> None:
        request = asked(self._box, self._folder, topic, roll_ms=0, **more)
        (done,) = TableOffload(request, self.options, lambda _: None).round()
        assert problem in done.problem and bool(done.problem) == bool(problem), done.problem

    def current(self) -> int:
        """Return the ID of the current snapshot."""
        with catalog_opened(self.options) as catalog:
            found = catalog.load_table("shop.sql").current_snapshot()
            assert found is not None
            return found.snapshot_id

    def roll(self, snapshot: int, *expired: int) -> None:
        """Set the current snapshot, after others have expired."""
        with catalog_opened(self.options) as catalog:
            table = catalog.load_table("shop.sql")
            if expired:
                table.maintenance.expire_snapshots().by_ids(list(expired)).commit()
            table.manage_snapshots().set_current_snapshot(snapshot).commit()


def test_a_table_that_was_rolled_back(client: Any, ask: Ask, box: PulsarBox, tmp_path: Path) -> None:
    """Each message is read once, or the query and the next offload fail, until a loss is accepted."""
    tables = Tables(box, tmp_path)
    snapshots = []
    for topic, first in (("rolled", 0), ("rolled-2", 0), ("rolled", 5), ("rolled", 10)):
        publish(client, topic, first, first + 5)
        tables.offload(topic)
        snapshots.append(tables.current())
    publish(client, "rolled", 15, 18)
    root = root_of(tables.place)
    query = "SELECT count(*) n, count(DISTINCT value) d FROM rolled"
    every = [{"n": 18, "d": 18}]
    assert ask(query, root) == every
    tables.roll(snapshots[2])
    assert ask(query, root) == every, "the box still has the removed ones"
    tables.roll(snapshots[1], snapshots[0], snapshots[3])
    for each in (root, root_of(f"{tables.place}@{snapshots[1]}")):
        with pytest.raises(OffloadError, match="may lack offloaded messages of persistent://public/default/rolled: "):
            ask(query, each)
    assert ask('SELECT count(*) n FROM "rolled-2"', root) == [{"n": 5}]
    tables.offload("rolled", "may lack offloaded messages of")
    tables.roll(snapshots[2])
    tables.offload("rolled")
    assert ask(query, root) == every == ask(query, root, live=False)
    tables.roll(snapshots[1])
    tables.offload("rolled", accept_loss=True)
    publish(client, "rolled", 18, 20)
    lost = [{"n": 7, "d": 7}]
    assert ask(query, root) == lost, "those in the table, and those published since"
    tables.offload("rolled")
    assert ask(query, root) == lost == ask(query, root, live=False)


def test_topics_in_a_table(client: Any, ask: Ask, box: PulsarBox, tmp_path: Path) -> None:
    """Rows of a table, without those that were deleted there, and later messages; as of a snapshot; by the command."""
    tables = Tables(box, tmp_path)
    publish(client, "tabled", 0, 5)
    tables.offload("tabled")
    publish(client, "tabled", 5, 20, kinds.AvroSchema(Order))
    tables.offload("tabled")
    publish(client, "tabled-2", 0, 3)
    tables.offload("tabled-2")
    publish(client, "tabled", 20, 22, kinds.AvroSchema(Order))
    root = root_of(tables.place)
    query = "SELECT id, item, _corrupt_record bad FROM tabled ORDER BY id NULLS FIRST, bad"
    found = ask(query, root)
    assert [row["bad"] for row in found[:5]] == [b'{"id": %d}' % number for number in range(5)]
    assert found[5:] == [{"id": at, "item": f"item {at % 3}", "bad": None} for at in range(5, 22)]
    assert ask("SELECT __key k FROM tabled WHERE id = 7", root) == [{"k": b"k3"}]
    assert ask('SELECT count(*) n, min(value) low FROM "tabled-2"', root) == [{"n": 3, "low": b'{"id": 0}'}]
    with catalog_opened(tables.options) as catalog:
        table = catalog.load_table("shop.sql")
        first = table.snapshots()[0].snapshot_id
        table.delete("id = 7")
    early = root_of(f"{tables.place}@{first}")
    assert ask("SELECT count(*) n FROM tabled", early, live=False) == [{"n": 5}]
    assert ask("SELECT count(*) n FROM tabled", early) == [{"n": 22}], "the box has the later ones"
    words = ("sql", "SELECT count(*) n, count(id) ids FROM tabled", "--history", tables.place, "-o", "json")
    assert json.loads(run(*words, *urls(box)).stdout) == [{"n": 21, "ids": 16}]
    assert json.loads(run(*words, "--no-live").stdout) == [{"n": 19, "ids": 14}]
    assert json.loads(run("sql", "SHOW TABLES", *words[2:], "--no-live").stdout) == [
        {"name": "tabled"},
        {"name": "tabled-2"},
    ]
    assert (
        "has no catalog.db"
        in run("sql", "SELECT 1 FROM t", "--no-live", "--history", f"iceberg:{tmp_path}/no/a.b", code=1).stderr.decode()
    )


@pytest.mark.campaign
def test_each_message_is_there_once_while_the_topic_is_offloaded_into_a_table(
    client: Any, ask: Ask, box: PulsarBox, tmp_path: Path
) -> None:
    tables = Tables(box, tmp_path)
    publish(client, "flowing", 0, 55, kinds.AvroSchema(Order))
    tables.offload("flowing")
    query = "SELECT count(*) n, count(DISTINCT id) ids, min(id) low, max(id) high FROM flowing"
    stop = threading.Event()

    def work() -> None:
        number = 55
        while not stop.is_set():
            publish(client, "flowing", number, number + 15, kinds.AvroSchema(Order))
            number += 15
            tables.offload("flowing", grace_ms=60_000)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        counts: list[int] = []
        while len(counts) < 40 or counts[0] == counts[-1]:
            [row] = ask(query, root_of(tables.place))
            assert row["n"] == row["ids"] == row["high"] + 1 and row["low"] == 0
            counts.append(row["n"])
    finally:
        stop.set()
        thread.join()
    assert counts == sorted(counts) and ask(query, root_of(tables.place), live=False)[0]["n"] > 55


def test_files_of_an_older_schema_are_read_as_the_current_one(
    client: Any, ask: Ask, box: PulsarBox, tmp_path: Path
) -> None:
    publish(client, "grown", 0, 5)
    assert offload(box, tmp_path, "grown", roll_ms=0) == [""]
    publish(client, "grown", 5, 8, kinds.JsonSchema(Order))
    found = ask("SELECT id, item, _corrupt_record bad FROM grown ORDER BY id NULLS FIRST", tmp_path)
    assert [row["id"] for row in found] == [None] * 5 + [5, 6, 7]
    assert found[0]["bad"] == b'{"id": 0}' and found[5] == {"id": 5, "item": "item 2", "bad": None}


def test_the_command_prints_and_writes_each_format(client: Any, box: PulsarBox, tmp_path: Path) -> None:
    publish(client, "printed", 0, 3, kinds.AvroSchema(Order))
    query = "SELECT id, item, __key FROM printed ORDER BY id"
    told = run("sql", query, *urls(box)).stdout.decode().splitlines()
    assert told[0].split() == ["id", "item", "__key"] and told[1].split() == ["0", "item", "0", "k0"]
    assert json.loads(called("sql", query, "-o", "json", *urls(box)).stdout)[2] == {
        "id": 2,
        "item": "item 2",
        "__key": "k2",
    }
    path = tmp_path / "x.parquet"
    called("sql", query, "--output-file", str(path), *urls(box))
    assert pq.read_table(path).to_pylist()[1] == {"id": 1, "item": "item 1", "__key": b"k1"}
    text = called("sql", "-o", "csv", "--bytes", "hex", *urls(box), stdin=query.encode()).stdout
    assert list(csv.reader(io.StringIO(text)))[1] == ["0", "item 0", "6b30"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["selec 1"], 2, "syntax error"),
        (["select nothing from printed2"], 3, "no topic 'printed2'"),
        (["select * from 'persistent://a/b'"], 2, "Invalid topic name"),
        (["copy (select 1) to '/tmp/x'"], 2, "COPY is refused"),
        (["select * from read_text('/etc/hostname')"], 2, "a query can read topics only"),
        (["select 1", "--no-live"], 2, "requires --history"),
        (["select 1", "--timezone", "Mars/Base"], 2, "unknown time zone"),
        (["select count(*) from x", "--follow"], 2, "--follow cannot run"),
        ([], 2, "no query"),
    ],
)
def test_errors_say_what_is_wrong(box: PulsarBox, words: list[str], code: int, said: str) -> None:
    assert said in called("sql", *words, *urls(box), code=code).stderr


def test_a_missing_broker_is_said(tmp_path: Path) -> None:
    there = ["--url", "pulsar://127.0.0.1:1", "--admin-url", "http://127.0.0.1:1"]
    assert "cannot connect to pulsar://127.0.0.1:1" in called("sql", "select 1 from x", *there, code=6).stderr


def test_names_of_similar_topics_are_suggested(client: Any, ask: Ask) -> None:
    publish(client, "suggested", 0, 1)
    with pytest.raises(NotThere, match="did you mean suggested"):
        ask("SELECT 1 FROM sugested")
    with pytest.raises(Failed, match="no column nope; columns: value, __key"):
        ask("SELECT nope FROM suggested")


def test_follow_prints_new_rows_until_it_is_interrupted(client: Any, box: PulsarBox) -> None:
    publish(client, "followed", 0, 3, kinds.JsonSchema(Order))
    words = ("sql", "--follow", "SELECT id FROM followed WHERE id % 2 = 0", "-o", "ndjson", *urls(box))
    with running_command(*words) as process:
        try:
            assert process.stdout is not None
            found: list[bytes] = []
            reading = threading.Thread(target=lambda: found.append(process.stdout.readline()))  # type: ignore[union-attr]
            reading.start()
            number = 100

            def is_told() -> bool:
                nonlocal number
                publish(client, "followed", number, number + 1, kinds.JsonSchema(Order))
                number += 1
                return bool(found)

            until(is_told)
            assert int(json.loads(found[0])["id"]) >= 100
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()


def ends(seen: bytes, text: bytes) -> bool:
    """Tell whether the output ends with the text, but for control sequences such as those of bracketed paste."""
    return re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]", b"", seen).endswith(text)


def test_the_shell_runs_statements_and_lists_topics(client: Any, box: PulsarBox, tmp_path: Path) -> None:
    publish(client, "shelled", 0, 3, kinds.JsonSchema(Order))
    shell = RawTerminal(pulsarbox("sql", *urls(box)), tmp_path)

    def answered(line: bytes, *expected: bytes, prompt: bytes = b"sql> ") -> None:
        """Send a line, and wait for its output and the next prompt: Ctrl-C before a prompt discards typed input."""
        before = len(shell.seen)
        shell.send(line)
        shell.until(lambda seen: all(text in seen[before:] for text in expected) and ends(seen, prompt))

    try:
        answered(b"", b"sql> ")
        answered(b".schema shelled\n", b"__publishTime", b"TIMESTAMPTZ")
        answered(b"select sum(id) * 1000 as result\n", prompt=b"...> ")
        answered(b"from shelled;\n", b"3000")
        answered(b"selec;\n", b"syntax error")
        shell.send(b"half a statement")
        # input() does not notice a signal that arrives just before it waits for the next key.
        shell.until(lambda seen: ends(seen, b"half a statement") and psutil.Process(shell.pid).status() == "sleeping")
        answered(b"\x03", b"\n")
        answered(b".tables\n", b"\r\nshelled\r\n")
        shell.send(b".quit\n")
        assert shell.wait() == 0
    finally:
        shell.hang_up()


def test_a_terminal_shows_the_first_rows(box: PulsarBox, tmp_path: Path) -> None:
    shown = RawTerminal(pulsarbox("sql", "select range from range(5000)", *urls(box)), tmp_path)
    assert shown.wait() == 0
    seen = shown.until(lambda seen: b"--limit 0" in seen)
    assert b"only the first 1,000 rows are shown" in seen and b"\r\n  999\r\n" in seen and b"1000\r\n" not in seen


def test_ctrl_c_ends_a_query(client: Any, box: PulsarBox, tmp_path: Path) -> None:
    publish(client, "endless", 0, 30, kinds.AvroSchema(Order))
    query = "SELECT sum(a.range) FROM range(100000000) a, range(100000000), endless"
    shown = RawTerminal(pulsarbox("sql", query, *urls(box)), tmp_path)
    try:
        shown.until(lambda seen: b" live messages read" in seen)  # the query is running
        shown.send(b"\x03")
        assert shown.wait() == 130
        assert shown.seen.rpartition(b"\r\x1b[K")[2] == b"pulsarbox: interrupted\r\n"
    finally:
        shown.close()


def test_a_stopped_box_is_read_from_its_directory(tmp_path: Path) -> None:
    directory, history = tmp_path / "data", tmp_path / "history"
    keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    with PulsarBox(data_dir=directory, process=True, managedLedgerMaxEntriesPerLedger=10, **keep) as box:
        client = connect(box.service_url)
        publish(client, "kept", 0, 25, kinds.AvroSchema(Order))
        assert offload(box, history, "kept") == [""]
        run("topic", "create", "kept-parts", "--partitions", "2", "--admin-url", box.admin_url)
        publish(client, "kept-parts", 0, 9, kinds.JsonSchema(Order))
        client.close()

    def rows(query: str, *more: str) -> Any:
        return json.loads(called("sql", query, "--data-dir", str(directory), "-o", "json", *more).stdout)

    query = "SELECT count(*) n, count(DISTINCT id) ids, max(item) item FROM kept"
    assert rows(query) == [{"n": 25, "ids": 25, "item": "item 2"}] == rows(query, "--history", str(history))
    assert rows('SELECT count(*) n, count(__partition) p FROM "kept-parts"') == [{"n": 9, "p": 9}]
    assert rows("SHOW TABLES") == [{"name": "kept"}, {"name": "kept-parts"}]
    files = ("--no-live", "--history", str(history))
    assert json.loads(called("sql", "SELECT count(*) n FROM kept", "-o", "json", *files).stdout) == [{"n": 20}]
    said = called("sql", "SELECT 1 FROM keptt", "--data-dir", str(directory), code=3).stderr
    assert "no topic 'keptt'; did you mean kept?" in said
    missing = called("sql", "SELECT 1 FROM kept", "--data-dir", str(tmp_path / "no"), code=6).stderr
    assert "no box is running" in missing
