"""``pulsarbox pipeline offload``: offload closed ledgers to Parquet with a manifest; verify and release them."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import EXIT_TERMINATED, Failed, Interrupted, Misused, Partly, run
from pulsarbox.cli.common.output import OutputOptions, Row, TableOutput, form_option, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.time_arguments import DURATION, Words, moment
from pulsarbox.cli.connect.target import Target, service_and_admin_options
from pulsarbox.cli.pipeline.option_values import checked, topics_there
from pulsarbox.cli.pipeline.options import options_of, reached
from pulsarbox.cli.pipeline.work_bar import OffloadBar
from pulsarbox.cli.process import completions
from pulsarbox.errors import PulsarBoxError

if TYPE_CHECKING:
    from pulsarbox.spark.offload.object_path import ObjectPath
    from pulsarbox.spark.offload.offloading import Done, Offload, OffloadRequest

_TABLE: Final = "iceberg:"
_COLUMNS: Final = ("topic", "ledgers", "rows", "bytes", "problem")
_VERIFIED: Final = ("topic", "ledgers", "rows", "bytes", "compared", "gaps", "problems")


def _table(rows: list[Row], columns: Sequence[str]) -> TableOutput:
    cut = {"topic": 16, "problem": 16, "problems": 16}
    return TableOutput(rows, columns, name="topic", shown=readable(sizes=("bytes",)), cut=cut, least=("ledgers",))


def _size(text: str) -> int:
    from pulsarbox.cli.pulsar_admin.values import size

    number: int = size(text)
    if number < 0:
        raise ValueError(f"{text!r} is negative; 0 merges no files")
    return number


@click.command()
@click.argument("names", metavar="[TOPIC]...", nargs=-1, shell_complete=completions.topics)
@click.option(
    "--to", "directory", metavar="DIR", required=True, type=click.Path(file_okay=False),
    help="Target directory, s3://BUCKET/PREFIX, or table: iceberg:DIR/NAMESPACE.TABLE.",
)  # fmt: skip
@click.option(
    "--catalog", metavar="NAME", default="", help="Catalog of iceberg:NAMESPACE.TABLE in pyiceberg's settings."
)
@click.option("--pattern", metavar="P", default="", help="Offload all matching topics: tenant/namespace/regex.")
@click.option("--before", metavar="TIME", default="", help="Offload only ledgers closed before: -7d, 2026-11-21T10:00.")
@click.option(
    "--roll", "roll_ms", metavar="DURATION", type=DURATION,
    help="Close current ledgers older than DURATION (0s: at once), to offload them too.",
)  # fmt: skip
@click.option("--follow", is_flag=True, help="Keep offloading newly closed ledgers until SIGTERM or Ctrl-C.")
@click.option(
    "--every",
    metavar="DURATION",
    type=DURATION,
    default="10s",
    show_default=True,
    help="With --follow: interval between rounds.",
)
@click.option(
    "--hold/--no-hold", default=True, show_default=True,
    help="Retain ledgers until they are offloaded, by a durable subscription on each topic.",
)  # fmt: skip
@click.option(
    "--grace", metavar="DURATION", type=DURATION, default="10m", show_default=True,
    help="Retain offloaded ledgers and merged files for this long, for queries in progress.",
)  # fmt: skip
@click.option(
    "--file-size", "file_bytes", metavar="SIZE", type=Words("size", _size), default="128M", show_default=True,
    help="Merge small files into files of up to SIZE; 0: one file per ledger.",
)  # fmt: skip
@click.option("--accept-loss", is_flag=True, help="Record missing or damaged data in the target and continue.")
@click.option("--verify", is_flag=True, help="Read all files again and compare them with the manifest, without a box.")
@click.option("--compare", is_flag=True, help="With --verify: compare with the data still on the box, too.")
@click.option("--release", is_flag=True, help="Delete the subscriptions of --hold and exit.")
@form_option
@service_and_admin_options
def offload(names: tuple[str, ...], output: OutputOptions, service: Target, admin: Target, **given: Any) -> None:
    """Offload closed ledgers of TOPICs to Parquet files, and merge small ones.

    `pulsarbox.spark.table` reads these files and the messages after them. Ledgers are offloaded in order, once they
    are immutable: not the current ledger (--roll closes it), and none with an open transaction in it or before it.
    Each file is read back before its entry in the manifest, _manifest.jsonl in the topic's directory. A rerun resumes.
    A table gets whole ledgers in one snapshot each time; `pulsarbox.spark.table` and `pulsarbox sql` do not read it.
    Endpoint and credentials of S3 are those of the AWS tools, such as AWS_ENDPOINT_URL and AWS_ACCESS_KEY_ID.
    With --verify and --release, no TOPIC means all topics in DIR. Not supported against Apache Pulsar. Requires
    `pip install 'pulsarbox[spark]'`, but no Java.

    \b
    Exit codes:
      1  offloading or verification failed
      3  the topic does not exist
      8  some topics failed, others did not

    \b
    Examples:
      pulsarbox pipeline offload orders --to /data/history
      pulsarbox pipeline offload --pattern 'public/default/.*' --to /data/history --before -7d --follow
      pulsarbox pipeline offload orders --to /data/history --roll 10m --follow
      pulsarbox pipeline offload --to /data/history --verify --compare
      pulsarbox pipeline offload orders --to s3://backups/history
      pulsarbox pipeline offload orders --to iceberg:lake/shop.orders --follow
    """
    run(_offload, names, output, (service, admin), given)


def _offload(topics: tuple[str, ...], output: OutputOptions, box: tuple[Target, Target], given: dict[str, Any]) -> None:
    verify, compare, release, follow = (given.pop(name) for name in ("verify", "compare", "release", "follow"))
    every, pattern = given.pop("every"), given["pattern"]
    if topics and pattern:
        raise Misused("TOPIC and --pattern cannot be combined")
    if compare and not verify:
        raise Misused("--compare requires --verify")
    if sum((verify, release, follow)) > 1:
        raise Misused("--verify, --release and --follow cannot be combined")
    if given["roll_ms"] is not None and not given["hold"]:
        raise Misused("--roll requires --hold: without it, retention may delete a ledger as soon as it is closed")
    if not (topics or pattern or verify or release):
        raise Misused("specify TOPIC or --pattern")
    if given["directory"].startswith(_TABLE):
        if verify:
            raise Misused("--verify is for files: count the rows of a table with any engine that reads Iceberg")
        _to_table(topics, output, box, given, every if follow else None, release=release)
        return
    if given.pop("catalog"):
        raise Misused("--catalog requires --to iceberg:NAMESPACE.TABLE")
    with _in_words(given["directory"]), topics_there(), reached(*box):
        from pulsarbox.spark.offload.object_path import place_of
        from pulsarbox.spark.offload.offloading import Offload

        given["directory"] = directory = place_of(given["directory"])
        if verify:
            _verify(directory, topics, pattern, options_of(*box) if compare else None, output)
        elif release:
            _release(directory, topics, pattern, options_of(*box))
        else:
            asked = _asked(topics, options_of(*box), given)
            _Rounds(partial(Offload, asked), output, "the manifest lists", every if follow else None).run()


def _to_table(
    topics: tuple[str, ...],
    output: OutputOptions,
    box: tuple[Target, Target],
    given: dict[str, Any],
    every: int | None,
    *,
    release: bool,
) -> None:
    """Offload into an Iceberg table, or release its topics."""
    from pulsarbox.spark.lakehouse.sink_options import TableOptions
    from pulsarbox.spark.lakehouse.table_place import parse

    place, catalog, pattern = given.pop("directory"), given.pop("catalog"), given["pattern"]
    with checked():
        table = TableOptions(parse(place.removeprefix(_TABLE)), catalog)
    warehouse = table.place.warehouse
    if catalog and warehouse:
        raise Misused(f"--catalog: table {table.place} is in the catalog of its directory")
    if release and warehouse and not Path(warehouse).is_dir():
        raise Misused(f"--to {place}: the directory does not exist")
    with _in_words(place), topics_there(), reached(*box):
        from pulsarbox.spark.offload.table_offload import TableOffload, release_table
        from pulsarbox.spark.offload.verifying import choice

        if release:
            for topic in release_table(table, options_of(*box), choice(topics, pattern)):
                notify(f"{topic}: no longer held")
            return
        asked = _asked(topics, options_of(*box), {**given, "directory": Path(warehouse or ".")})
        _Rounds(partial(TableOffload, asked, table), output, "the table has", every).run()


@contextmanager
def _in_words(directory: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise Failed(f"{error}. Install it with: pip install 'pulsarbox[spark]'") from None
    except OSError as error:
        why = f"cannot use {error.filename or directory}: {error.strerror or error}"
        raise Failed(f"{why}; fix this, or choose another directory with --to") from error
    except ValueError as error:
        raise Misused(str(error)) from error


def _asked(topics: tuple[str, ...], box: dict[str, str], given: dict[str, Any]) -> "OffloadRequest":
    from pulsarbox.spark.offload.offloading import OffloadRequest

    grace = given.pop("grace")
    if given["before"]:
        moment(given["before"])  # evaluated again in each round; checked here to fail early
    return OffloadRequest(box=box, topics=topics, grace_ms=grace, **given)


class _Rounds:
    """Offload rounds, until interrupted."""

    def __init__(
        self,
        offload: "Callable[..., Offload]",
        output: OutputOptions,
        where: str,
        every: int | None,
    ) -> None:
        """``offload``: makes the offloader, from receivers of reports, of stop requests, and of progress.

        ``where``: for messages. ``every``: milliseconds between rounds; None: one round.
        """
        self._signal = 0
        self._stop = threading.Event()
        self._output = output
        self._every = every
        self._done = f"stopped; {where} all offloaded ledgers"
        self._bar = OffloadBar(output.is_table, keep_lines=every is not None)
        self._offload = offload(self._bar.notify, self._stop.is_set, progress=self._bar)

    def run(self) -> None:
        """Run one round, or rounds until interrupted. Raises Failed, Partly, Interrupted."""
        before = {number: signal.signal(number, self._came) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            done = self._once() if self._every is None else self._again(self._every)
        finally:
            self._bar.end()
            for number, handler in before.items():
                signal.signal(number, handler)
        self._end(done, follows=self._every is not None)

    def _came(self, number: int, frame: object) -> None:
        if self._stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._signal = number
        self._stop.set()

    def _once(self) -> "list[Done]":
        done = self._offload.round()
        show(self._output, lambda: _table([each._asdict() for each in done], _COLUMNS))
        return done

    def _again(self, every: int) -> "list[Done]":
        done: list[Done] = []
        said: set[str] = set()
        while not self._stop.is_set():
            try:
                done = self._offload.round()
                problems = {_told(each) for each in done if each.problem}
            except (PulsarBoxError, ValueError) as error:  # a restarting box, or a topic not created yet
                problems = {str(error)}
            for each in sorted(problems - said):
                notify(f"{each}. Retrying every {every / 1000:g} s")
            said = problems
            self._stop.wait(every / 1000)
        notify(self._done)
        return done

    def _end(self, done: "list[Done]", *, follows: bool) -> None:
        failed = [each for each in done if each.problem]
        if self._signal and not follows:
            ending = Interrupted(f"{self._done}, and the next run resumes there")
            if self._signal == signal.SIGTERM:
                ending.exit_code = EXIT_TERMINATED  # type: ignore[misc] # of this one only
            raise ending
        if failed:
            _fail([_told(each) for each in failed], of=len(done))


def _told(done: "Done") -> str:
    return done.problem if done.problem.startswith(done.topic) else f"{done.topic}: {done.problem}"


def _fail(problems: list[str], of: int) -> None:
    raise (Partly if len(problems) < of else Failed)("\n".join(problems))


def _verify(
    directory: "Path | ObjectPath",
    topics: tuple[str, ...],
    pattern: str,
    box: dict[str, str] | None,
    output: OutputOptions,
) -> None:
    from pulsarbox.spark.offload.verifying import choice, verify

    bar = OffloadBar(output.is_table)
    found = list(verify(directory, choice(topics, pattern), box, bar.notify, bar))
    if not found:
        raise Failed(f"nothing has been offloaded to {directory}{' for these topics' if topics or pattern else ''}")
    show(output, lambda: _table([each._asdict() for each in found], _VERIFIED))
    problems = [problem for each in found for problem in each.problems]
    if problems:
        wrong = [each for each in found if each.problems]
        raise (Partly if len(wrong) < len(found) else Failed)("\n".join(problems))


def _release(directory: "Path | ObjectPath", topics: tuple[str, ...], pattern: str, box: dict[str, str]) -> None:
    from pulsarbox.spark.offload.offloading import release
    from pulsarbox.spark.offload.verifying import choice

    if isinstance(directory, Path) and not directory.is_dir():
        raise Misused(f"--to {directory}: the directory does not exist")
    for topic in release(directory, box, choice(topics, pattern)):
        notify(f"{topic}: no longer held")
