"""Campaign that reads images of a disk after a power cut with the reader inside the JVM, and with Python's.

``python -m tests.spark_faults.image_reads --images 100`` (``make image-reads``) records lives of the whole core, which
seal, compress, pack and remove volumes. A third of the images are cut while entries of a mostly dead volume move. Each
image is read unmodified, then with a truncated volume, then after a recovery. Read are the entries whose messages had a
receipt before the cut. A row must have the payload that was sent with this position; where bytes are gone, the JVM must
hand over with a reason, and Python must raise its errors for them. After a recovery, the JVM must read all that Python
reads.

Progress on stderr, a summary on stdout. Exits with 1 if a row or an error was wrong.
"""

import argparse
import base64
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.spark.access.extractor import NotInPlace
from pulsarbox.spark.access.mapped_reader import Gone, MappedStore
from pulsarbox.spark.source.jvm_plan import jvm_plan
from pulsarbox.spark.topic_segments import Reach, TopicSegment
from pulsarbox.storage.lmdb.directory import read_identity
from tests.powercut.check import DATA
from tests.powercut.core_box import TOPICS, CoreBox, number_of
from tests.powercut.core_check import CoreStory
from tests.powercut.disk import APPLIED, DROPPED, MIXED, write_tree
from tests.powercut.images import Image, plan
from tests.powercut.marks import RECLAIMED, read_mark
from tests.powercut.record import Event, Op, RecorderError, compile_recorder, load
from tests.powercut.recording import CORE, beginning, moments, record_life, scratch_folder
from tests.spark_live.plan_reader import PlanReader
from tests.tools import build_jar

SOURCE: Final = Path(__file__).with_name("ImageRows.java")
STEPS: Final = 150
"""Enough for volumes with mostly dead entries, whose others are packed."""
IMAGES_OF_A_LIFE: Final = 25
PACKING_SHARE: Final = 3
"""One image in this many is cut while a volume is packed."""
PACKED: Final = "packed"
"""Kind of a reclaim step that moves the entries of mostly dead volumes."""
Answer = Callable[[bytes], str]
"""Returns the answer of ``ImageRows.java`` to a plan."""
Rows = dict[tuple[int, int], int]
"""Numbers of messages by ledger and entry."""
REPORTED: Final = (Gone, EntryDamaged, NotInPlace)
"""Errors that Python reports with the range of entries, or its directory."""


def by_jvm(answer_to: Answer, plan_bytes: bytes) -> tuple[str, list[int], dict[tuple[int, int], bytes]]:
    """Return why a read ended early, or nothing; the next entry of each segment; and payloads by position.

    A reason that begins with ``!`` is an error.
    """
    answer = answer_to(plan_bytes)
    if answer.startswith("!"):
        return answer.strip(), [], {}
    reason, rest, *found = answer.split("\t")
    rows: dict[tuple[int, int], bytes] = {}
    for each in found:
        ledger, entry, value = each.split(":")
        rows[int(ledger), int(entry)] = base64.b64decode(value)
    return reason, [int(each) for each in rest.split(",")], rows


def segments_of(story: CoreStory, instance: str, wanted: Container[tuple[int, int]]) -> list[TopicSegment]:
    """Return the runs of wanted entries with a receipt."""
    found: list[TopicSegment] = []
    for topic, places in sorted(story.receipted.items()):
        for ledger, entry in sorted(place for place in places if place in wanted):
            last = found[-1] if found else None
            if last is not None and (last.topic, last.ledger, last.last + 1) == (TOPICS[topic], ledger, entry):
                found[-1] = last._replace(last=entry, messages=last.messages + 1)
            else:
                found.append(TopicSegment(TOPICS[topic], ledger, entry, entry, 1, 0, instance=instance))
    return found


def by_python(path: Path, segments: Sequence[TopicSegment]) -> tuple[Rows, Counter[str], list[str]]:
    """Return what Python reads, the errors that it reports, and what is wrong."""
    rows: Rows = {}
    errors: Counter[str] = Counter()
    try:
        store = MappedStore(path, segments[0].instance)
    except NotInPlace as error:
        return rows, Counter({f"NotInPlace: {error}": 1}), []
    try:
        for segment in segments:
            at = segment.first
            while at <= segment.last:
                try:
                    found, at = store.read(segment.ledger, at, segment.last)
                    rows |= {(ledger, entry): number_of(body) for ledger, entry, body in found}
                except REPORTED as error:
                    errors[type(error).__name__] += 1
                    at += 1
    except Exception as error:
        return rows, errors, [f"Python raises {error!r}"]
    finally:
        store.close()
    return rows, errors, []


def expected(story: CoreStory) -> Rows:
    """Return the messages with a receipt."""
    return {place: number for places in story.receipted.values() for place, number in places.items()}


def compared(
    answer_to: Answer, path: Path, story: CoreStory, counts: Counter[str], *, is_recovered: bool = False
) -> list[str]:
    """Read a directory both ways; return what is wrong. In a recovered one, the JVM must read what Python reads."""
    instance, known = read_identity(path).instance, expected(story)
    segments = segments_of(story, instance, known)
    if not segments:
        return []
    python, errors, wrong = by_python(path, segments)
    wrong += strange("Python", python, known)
    gone = len(known) - len(python)
    if gone and not errors and not wrong:
        wrong.append(f"{gone} entries are gone without an error")
    java = of_jvm(answer_to, path, segments, known)
    counts["rows that Python reports as gone"] += len(java.rows.keys() - python.keys())  # it opens whole files only
    counts.update({"reads": 1, "rows": len(java.rows), "gone": gone, "reported": bool(errors)})
    counts["handed over"] += bool(java.reason)
    wrong += java.wrong
    if gone and python:  # the JVM has ended at the first entry that is gone
        there = of_jvm(answer_to, path, segments_of(story, instance, python), known)
        counts["rows beside gone ones"] += len(there.rows)
        counts["handed over beside gone ones"] += bool(there.reason)
        wrong += there.wrong
        java = there
    if is_recovered and python and java.reason:
        wrong.append(f"the JVM hands over entries that Python reads: {java.reason}")
    return wrong


class JvmRead(NamedTuple):
    """Result of a read by the JVM."""

    reason: str
    """Why it ended early; empty if it did not."""
    rows: Rows
    wrong: list[str]


def of_jvm(answer_to: Answer, path: Path, segments: Sequence[TopicSegment], known: Rows) -> JvmRead:
    """Read segments inside the JVM."""
    made = jvm_plan(segments, Reach("", data_dir=str(path), access="mmap"), is_raw=True)
    reason, rest, found = by_jvm(answer_to, made)
    rows = {place: number_of(body) for place, body in found.items()}
    wrong = strange("the JVM", rows, known)
    if reason.startswith("!"):
        wrong.append(f"the JVM fails: {reason}")
    ended = [each for each, at in zip(segments, rest, strict=False) if at <= each.last]
    if ended and not reason:
        wrong.append("the JVM ends early without a reason")
    for segment, at in zip(segments, rest, strict=False):
        missing = [entry for entry in range(segment.first, at) if (segment.ledger, entry) not in rows]
        if missing:
            wrong.append(f"the JVM has no rows of {segment.ledger}:{missing[:3]}, which count as read")
    return JvmRead(reason, rows, wrong)


def strange(reader: str, rows: Rows, known: Rows) -> list[str]:
    """Return the rows that are not those sent."""
    return [
        f"{reader} reads {number} at {place}, not {known.get(place)}"
        for place, number in rows.items()
        if known.get(place) != number
    ]


def truncated(path: Path, dice: random.Random) -> bool:
    """Cut the end off a volume; return whether there is one."""
    found = sorted(each for name in ("volumes", "packed") for each in (path / name).rglob("*") if each.stat().st_size)
    found = [each for each in found if each.is_file() and not each.name.startswith("lock")]
    if not found:
        return False
    chosen = dice.choice(found)
    with chosen.open("r+b") as file:
        file.truncate(dice.randrange(chosen.stat().st_size))
    return True


def recovered(path: Path, story: CoreStory) -> bool:
    """Recover the directory, as a start of the box does; return whether that is possible."""
    try:
        box = CoreBox(path, story.options)
    except PersistenceError:
        return False
    box.lmdb.close()
    return True


class PackingStep(NamedTuple):
    """Events of a reclaim step that moves the entries of mostly dead volumes."""

    begin: int
    end: int
    """Number of the mark that reports it."""


def packing_steps(events: Sequence[Event]) -> list[PackingStep]:
    """Return the packing steps of a life. One begins after the mark before that of its end."""
    found, begin = [], 0
    for number, event in enumerate(events):
        if event.op == Op.MARK:
            kind, facts, _ = read_mark(event.data)
            if kind == RECLAIMED and facts["what"] == PACKED:
                found.append(PackingStep(begin, number))
            begin = number + 1
    return found


def moment_of(cut: int, steps: Sequence[PackingStep]) -> str:
    """Return whether a cut is before, in or after the packing of a life, for the summary."""
    if any(step.begin < cut <= step.end for step in steps):
        return "cut in packing"
    return "cut after packing" if any(cut > step.end for step in steps) else "cut before packing"


def in_packing(steps: Sequence[PackingStep], count: int, dice: random.Random) -> list[Image]:
    """Return images that are cut in packing steps."""
    found = []
    for _ in range(count if steps else 0):
        step = dice.choice(steps)
        cut = dice.randint(step.begin + 1, step.end)
        found.append(Image(cut, dice.choice((DROPPED, APPLIED, MIXED)), dice.getrandbits(32)))
    return found


def images_of(
    folder: Path, library: Path, seed: int, images: int, counts: Counter[str]
) -> Iterator[tuple[Image, Any, CoreStory]]:
    """Record a life; yield images of it, as trees, with the receipts before the cut."""
    log = folder / f"{CORE}-{seed}.log"
    record_life(library, log, seed, STEPS)
    events = load(log)
    told = [read_mark(event.data) for event in events if event.op == Op.MARK]
    counts.update(facts["what"] for kind, facts, _ in told if kind == RECLAIMED)
    steps, dice = packing_steps(events), random.Random(seed)
    chosen = in_packing(steps, -(-images // PACKING_SHARE), dice)
    chosen = sorted(chosen + plan(beginning(log).disk, events, images - len(chosen), dice).images)
    for image, moment in zip(chosen, moments(log, None, chosen), strict=True):
        assert isinstance(moment.story, CoreStory)
        counts[moment_of(image.cut, steps)] += 1
        yield image, moment.disk.image(image.kind, random.Random(image.dice)), moment.story


def check(
    answer_to: Answer, tree: Any, story: CoreStory, folder: Path, dice: random.Random, counts: Counter[str]
) -> list[str]:
    """Read an image unmodified, with a truncated volume, and recovered; return what is wrong."""
    wrong: list[str] = []
    for number, kind in enumerate(("unmodified", "truncated", "recovered")):
        root = folder / str(number)
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        write_tree(tree, root)
        path = root / DATA
        if not (path / "INSTANCE").exists():
            counts["without a box"] += 1
            return wrong
        if (kind == "truncated" and not truncated(path, dice)) or (kind == "recovered" and not recovered(path, story)):
            counts[f"not {kind}"] += 1
            continue
        found = compared(answer_to, path, story, counts, is_recovered=kind == "recovered")
        wrong += [f"{kind}: {each}" for each in found]
    return wrong


def campaign(folder: Path, images: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Read images; return counts, and what was wrong. Raises RecorderError."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    dice = random.Random(seed)
    library = compile_recorder(folder)
    classes = folder / "classes"
    classes.mkdir()
    jvm = PlanReader(SOURCE, classes, "-Xmx256m")
    try:
        while counts["images"] < images and not wrong:
            share = min(IMAGES_OF_A_LIFE, images - counts["images"])
            life = seed + counts["lives"]
            for image, tree, story in images_of(folder, library, life, share, counts):
                with tempfile.TemporaryDirectory(prefix="pulsarbox-images-", dir=scratch_folder()) as scratch:
                    found = check(jvm.answer, tree, story, Path(scratch), dice, counts)
                wrong += [f"life {life}, {image}: {each}" for each in found]
                counts["images"] += 1
            counts["lives"] += 1
            print(json.dumps(counts), file=sys.stderr, flush=True)
    finally:
        jvm.close()
    return counts, wrong


def main(words: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(words)
    if build_jar.compiler() is None:
        print("javac is missing: install a JDK", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="pulsarbox-image-reads-") as folder:
            counts, wrong = campaign(Path(folder), arguments.images, arguments.seed)
    except RecorderError as error:
        print(error, file=sys.stderr)
        return 2
    print(", ".join(f"{name} {number}" for name, number in counts.items()) + f"; wrong {len(wrong)}")
    for each in wrong[:20]:
        print(f"WRONG {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
