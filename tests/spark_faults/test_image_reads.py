"""The checks of the campaign that reads images report planted faults of disks and of readers."""

import base64
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.spark.access.extractor import Entry
from pulsarbox.spark.access.mapped_reader import MappedStore
from pulsarbox.spark.source.jvm_plan import MAGIC
from pulsarbox.storage.entry_index import runs_of
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, RECORD_PREFIX, RecordKind
from pulsarbox.storage.lmdb.directory import DATA_FILE
from pulsarbox.storage.record import CHECKSUM_PREFIX
from pulsarbox.storage.record import MAGIC as ENTRY_MAGIC
from tests.powercut.check import DATA
from tests.powercut.core_box import number_of
from tests.powercut.core_check import CoreStory
from tests.powercut.core_workload import CoreWorkload
from tests.powercut.marks import RECLAIMED, SENT
from tests.powercut.record import Event, Op
from tests.powercut.test_powercut import Telling
from tests.spark_faults import image_reads
from tests.spark_faults.image_reads import REPORTED, Answer, compared, expected, of_jvm, segments_of
from tests.spark_live.plan_reader import PlanReader
from tests.tools import build_jar
from tests.tools.campaigns import short
from tests.tools.java import need_java

CHECKSUM = 15
"""Index of the checksum in ENTRY_HEADER."""
Place = tuple[int, int]
Bodies = dict[Place, bytes]


class Image:
    """Data directory that a life of the core has left."""

    def __init__(self, path: Path, story: CoreStory) -> None:
        self.path, self.story = path, story
        self.known = expected(story)

    def copy(self, to: Path) -> "Image":
        shutil.copytree(self.path, to)
        return Image(to, self.story)

    def wrong(self, answer_to: Answer) -> list[str]:
        """Return what the campaign reports."""
        return compared(answer_to, self.path, self.story, Counter())

    def rewrite(self, chosen: Callable[[Bodies], tuple[Place, bytes]]) -> Place:
        """Replace a body by another of its size, chosen from a volume's; all checksums are valid again."""
        volume = self._volume()
        with lmdb.open(str(volume), map_size=64 << 20, max_dbs=8) as env:
            log = env.open_db(b"log", create=False)
            with env.begin(db=log, write=True) as txn:
                values = {bytes(key): bytes(value) for key, value in txn.cursor()}
                bodies = {place: body for value in values.values() for place, _, body in entries_of(value)}
                place, body = chosen({each: bodies[each] for each in bodies if each in self.known})
                for key, value in values.items():
                    for found, at, before in entries_of(value):
                        if found == place:
                            assert len(body) == len(before) and body != before
                            txn.put(key, with_body(value, at, body))
        return place

    def truncate(self) -> None:
        """Delete the bytes of a volume."""
        (self._volume() / DATA_FILE).write_bytes(b"")

    def _volume(self) -> Path:
        return min((self.path / "volumes").iterdir())


def entries_of(value: bytes) -> Iterator[tuple[Place, int, bytes]]:
    """Yield position, offset and body of each entry of a batch."""
    for ledger, run in runs_of(value).items():
        for entry, at in enumerate(run.offsets, run.first_entry):
            _, _, header_size, body_size = RECORD_PREFIX.unpack_from(value, at)
            yield (ledger, entry), at, value[at + header_size : at + header_size + body_size]


def with_body(value: bytes, at: int, body: bytes) -> bytes:
    """Return a batch with another body of the entry at an offset, and with the checksums of entry and batch."""
    changed = bytearray(value)
    header = list(ENTRY_HEADER.unpack_from(value, at))
    header[CHECKSUM] = crc32c(body[CHECKSUM_PREFIX.size :])
    ENTRY_HEADER.pack_into(changed, at, *header)
    body_at = at + RECORD_PREFIX.unpack_from(value, at)[2]
    changed[body_at : body_at + len(body)] = CHECKSUM_PREFIX.pack(ENTRY_MAGIC, header[CHECKSUM]) + body[6:]
    batch = list(BATCH_HEADER.unpack_from(value))
    batch[4] = crc32c(covered(bytes(changed)))
    BATCH_HEADER.pack_into(changed, 0, *batch)
    return bytes(changed)


def covered(value: bytes) -> bytes:
    """Return the bytes that the checksum of a batch covers."""
    parts, at = [], BATCH_HEADER.size
    while at < len(value):
        kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(value, at)
        parts.append(value[at : at + header_size + (0 if kind == RecordKind.ENTRY else body_size)])
        at += header_size + body_size
    return b"".join(parts)


def flipped(bodies: Bodies) -> tuple[Place, bytes]:
    """Return a body with one wrong byte in its payload."""
    place, body = max(bodies.items())
    return place, body[:-1] + bytes([body[-1] ^ 1])


def swapped(bodies: Bodies) -> tuple[Place, bytes]:
    """Return for an entry the body of another one."""
    place, body = max(bodies.items())
    other = next(each for each in bodies.values() if len(each) == len(body) and each != body)
    return place, other


class PythonAnswers:
    """Python's reader in place of that in the JVM."""

    def answer(self, plan: bytes) -> str:
        """Return the answer to a plan, in the form of ``ImageRows.java``."""
        made = json.loads(plan[len(MAGIC) + 4 :])
        try:
            store = MappedStore(Path(made["directory"]), made["instance"])
        except REPORTED as error:
            return f"{error}\t{','.join(str(first) for *_, [first, _] in made['segments'])}"
        rest, reason, rows = [], "", []
        for _, _, ledger, _, _, [first, last] in made["segments"]:
            at = first
            try:
                while at <= last and not reason:
                    found, at = store.read(ledger, at, last)
                    rows += found
            except REPORTED as error:
                reason = str(error)
            rest.append(str(at))
        store.close()
        values = [f"{ledger}:{entry}:{base64.b64encode(body).decode()}" for ledger, entry, body in rows]
        return "\t".join([reason, ",".join(rest), *values])


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    path, story = tmp_path_factory.mktemp("image") / DATA, CoreStory()
    CoreWorkload(path, 3, Telling(story)).run(12)
    return Image(path, story)


@pytest.fixture(scope="module", params=short(["python", "jvm"], 1))
def answer_to(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answer]:
    if request.param == "python":
        yield PythonAnswers().answer
        return
    need_java()
    if build_jar.compiler() is None:
        pytest.skip("javac is missing")
    reader = PlanReader(image_reads.SOURCE, tmp_path_factory.mktemp("classes"), "-Xmx256m")
    yield reader.answer
    reader.close()


def test_an_image_without_a_fault_is_right(image: Image, answer_to: Answer) -> None:
    counts: Counter[str] = Counter()
    assert compared(answer_to, image.path, image.story, counts) == []
    assert counts["rows"] == len(image.known) > 10 and counts["gone"] == counts["handed over"] == 0


def test_a_wrong_byte_whose_checksums_are_valid_is_reported(image: Image, answer_to: Answer, tmp_path: Path) -> None:
    planted = image.copy(tmp_path / DATA)
    place = planted.rewrite(flipped)
    number = image.known[place]
    assert planted.wrong(answer_to) == [f"{name} reads -1 at {place}, not {number}" for name in ("Python", "the JVM")]


def test_an_entry_of_another_position_is_reported(image: Image, answer_to: Answer, tmp_path: Path) -> None:
    planted = image.copy(tmp_path / DATA)
    other: list[int] = []

    def body_of_another(bodies: Bodies) -> tuple[Place, bytes]:
        place, body = swapped(bodies)
        other.append(number_of(body))
        return place, body

    place = planted.rewrite(body_of_another)
    said = f"reads {other[0]} at {place}, not {image.known[place]}"
    assert planted.wrong(answer_to) == [f"Python {said}", f"the JVM {said}"]


@pytest.fixture
def cut(image: Image, tmp_path: Path) -> Image:
    """Return an image without the bytes of a volume."""
    planted = image.copy(tmp_path / DATA)
    planted.truncate()
    return planted


def test_bytes_that_are_gone_are_no_fault_of_readers(cut: Image, answer_to: Answer) -> None:
    counts: Counter[str] = Counter()
    assert compared(answer_to, cut.path, cut.story, counts) == []
    assert counts["gone"] > 0 and counts["reported"] == counts["handed over"] == 1


def test_a_python_reader_that_skips_what_is_gone_is_reported(cut: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MappedStore.read

    def skipping(self: MappedStore, ledger: int, first: int, last: int) -> tuple[list[Entry], int]:
        try:
            return honest(self, ledger, first, last)
        except REPORTED:
            return [], last + 1

    monkeypatch.setattr(MappedStore, "read", skipping)
    (said,) = cut.wrong(nothing)
    assert said.endswith(" entries are gone without an error")


def nothing(plan: bytes) -> str:
    """Answer that nothing could be read."""
    made = json.loads(plan[len(MAGIC) + 4 :])
    return f"gone\t{','.join(str(first) for *_, [first, _] in made['segments'])}"


@pytest.mark.parametrize(
    ("reason", "read", "said"),
    [
        ("", True, "which count as read"),
        ("gone", True, "which count as read"),
        ("", False, "the JVM ends early without a reason"),
        ("!error", False, "the JVM fails: !error"),
    ],
)
def test_a_jvm_that_skips_what_is_gone_is_reported(cut: Image, reason: str, read: bool, said: str) -> None:
    def answer_to(plan: bytes) -> str:
        made = json.loads(plan[len(MAGIC) + 4 :])
        return f"{reason}\t{','.join(str(last + 1 if read else first) for *_, [first, last] in made['segments'])}"

    segments = segments_of(cut.story, "", cut.known)
    found = of_jvm(answer_to, cut.path, [each._replace(instance="i") for each in segments], cut.known)
    assert found.rows == {} and found.wrong and all(said in each for each in found.wrong)


def test_a_jvm_that_hands_over_a_recovered_image_is_reported(image: Image) -> None:
    said = compared(nothing, image.path, image.story, Counter(), is_recovered=True)
    assert said == ["the JVM hands over entries that Python reads: gone"]
    assert image.wrong(nothing) == []


def mark(kind: str, **facts: str) -> Event:
    return Event(Op.MARK, data=json.dumps([kind, facts]).encode() + b"\n")


def test_cuts_are_before_in_and_after_packing() -> None:
    write = Event(Op.WRITE)
    events = [
        *(write, mark(SENT), write, write, mark(RECLAIMED, what="packed"), write),
        *(mark(RECLAIMED, what="sealed"), write, mark(RECLAIMED, what="packed"), write),
    ]
    steps = image_reads.packing_steps(events)
    assert steps == [(2, 4), (7, 8)]
    said = {cut: image_reads.moment_of(cut, steps).split()[1] for cut in range(len(events) + 1)}
    before, within, after = ([cut for cut in said if said[cut] == each] for each in ("before", "in", "after"))
    assert (before, within, after) == ([0, 1, 2], [3, 4, 8], [5, 6, 7, 9, 10])
