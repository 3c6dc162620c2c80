"""Campaign with several data directories: each round breaks one of three under load, beside ``kill -9``.

``make crash-directories N=25``. A round breaks a directory, kills the box before, after, during or not at all, restarts
it with the directory broken, and mends the directory again. Before the next round, the box must report that no entry
lacks a copy. At the end, the clients' history is checked as in ``tests.crash.run``.

With permission to mount, each directory is an ext4 file system in a file, so that it can be full or immutable. Without
it, these faults are left out: root ignores file modes, hence the immutable flag in place of ``chmod 000``.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from tests.crash.run import (
    DELAYED,
    LAYOUT,
    RATE,
    Clients,
    Run,
    judge,
    leave,
    note,
    plan,
    say,
    spread,
    window,
    worker_command,
)
from tests.tools.box import PULSARBOX, BoxError, BoxProcess

COUNT: Final = 3
FILE_SYSTEM_BYTES: Final = 400 << 20
FLIPS_MAX: Final = 8
LIFE_SECONDS: Final = (0.2, 1.0)
WHOLE_SECONDS: Final = 120.0
RETURN_SECONDS: Final = 10.0
"""Time for a directory to return by itself, before it is replaced."""
UNNOTICED_SECONDS: Final = 5.0
"""A disk that was full for an instant leads to no audit: so long after it, the last audit counts."""
PAYLOADS: Final = tuple(f"{name} ".encode() for _, names, _ in LAYOUT for name in names)
SETTINGS: Final = {
    "managedLedgerDefaultEnsembleSize": 3,
    "managedLedgerDefaultWriteQuorum": 2,
    "managedLedgerDefaultAckQuorum": 2,
    "journalVolumeSizeMbytes": 4,
    "journalCheckpointMbytes": 1,
    "journalMaxBatchMbytes": 1,
    "journalSegmentMbytes": 1,
    "maxMessageSize": 200_000,
    "ensembleRepairMbytesPerSecond": 0,
    "ensembleScrubMbytesPerSecond": 0,
}


@dataclass
class DirectoryRun(Run):
    """Results of a run."""

    faults: Counter[str] = field(default_factory=Counter)
    whole_seconds: list[float] = field(default_factory=list)
    """From mending a directory to the audit that finds no entry without its copies."""
    copied_bytes: int = 0
    """Restored copies, as reported at the end of each round."""
    damaged: int = 0
    """Damaged runs that the scrubs found."""


class Place:
    """One data directory: the path, and what is below it."""

    def __init__(self, folder: Path, *, mounted: bool) -> None:
        self.folder = folder
        self.path = folder / "data"
        self.mounted = mounted

    @property
    def ballast(self) -> Path:
        return self.folder / "ballast"


@contextlib.contextmanager
def places(folder: Path, *, mount: bool) -> Iterator[list[Place]]:
    """Provide the directories, on file systems of their own if these can be mounted."""
    made = []
    try:
        for number in range(1, COUNT + 1):
            at = folder / f"disk-{number}"
            at.mkdir()
            made.append(Place(at, mounted=mount and _mount(folder / f"disk-{number}.img", at)))
        yield made
    finally:
        for each in made:
            if each.mounted:
                subprocess.run(["chattr", "-R", "-i", str(each.folder)], capture_output=True, check=False)
                subprocess.run(["umount", "--lazy", str(each.folder)], capture_output=True, check=False)


def _mount(image: Path, at: Path) -> bool:
    """Mount a new file system; return whether it worked."""
    with image.open("wb") as file:
        file.truncate(FILE_SYSTEM_BYTES)
    commands = ["mkfs.ext4", "-q", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(at)]
    with contextlib.suppress(OSError):
        return all(subprocess.run(each, capture_output=True, check=False).returncode == 0 for each in commands)
    return False


# Faults: each breaks a place, and returns the function that mends it.

Mend = Callable[[], None]


def is_removed(place: Place, dice: random.Random) -> Mend:
    """Remove the directory, as ``rm -rf`` does."""
    shutil.rmtree(place.path, ignore_errors=True)
    shutil.rmtree(place.path, ignore_errors=True)  # the box may have added a file meanwhile
    return lambda: None


def is_a_file(place: Place, dice: random.Random) -> Mend:
    """Put a file where the directory was; it returns with its old content."""
    aside = place.folder / "aside"
    place.path.rename(aside)
    place.path.write_text("not a directory\n")

    def mend() -> None:
        place.path.unlink()
        aside.rename(place.path)

    return mend


def is_immutable(place: Place, dice: random.Random) -> Mend:
    """Refuse all changes, also through open files.

    Lock files are left out: the kernel ends a process that writes to an immutable file through a map. A file system
    that becomes read-only has no such effect.
    """
    paths = [str(each) for each in (place.path, *place.path.rglob("*")) if each.name != "lock.mdb"]
    subprocess.run(["chattr", "+i", *paths], capture_output=True, check=False)

    def mend() -> None:
        subprocess.run(["chattr", "-R", "-i", str(place.path)], capture_output=True, check=False)

    return mend


def is_full(place: Place, dice: random.Random) -> Mend:
    """Fill the file system."""
    with contextlib.suppress(OSError), place.ballast.open("wb", buffering=0) as ballast:
        size = 1 << 20
        while size:
            try:
                ballast.write(bytes(size))
            except OSError:
                size //= 2

    return place.ballast.unlink


def has_flipped_bits(place: Place, dice: random.Random) -> Mend:
    """Flip bits in the payloads of some stored messages."""
    files = sorted(place.path.rglob("data.mdb"))
    for _ in range(dice.randint(1, FLIPS_MAX)):
        with contextlib.suppress(FileNotFoundError), dice.choice(files).open("r+b") as file:
            _flip(file.fileno(), dice)
    return lambda: None


def _flip(file: int, dice: random.Random) -> None:
    data = os.pread(file, os.fstat(file).st_size, 0)
    mark = dice.choice(PAYLOADS)
    found = data.find(mark, dice.randrange(len(data) or 1))
    if found >= 0:
        at = found + len(mark)  # a digit of its number
        os.pwrite(file, bytes([data[at] ^ 1 << dice.randrange(8)]), at)


Fault = Callable[[Place, random.Random], Mend]
FAULTS: Final[tuple[Fault, ...]] = (is_removed, is_a_file, has_flipped_bits)
FAULTS_OF_MOUNTED: Final[tuple[Fault, ...]] = (is_immutable, is_full)


class Storage:
    """The data directories as the box reports them."""

    def __init__(self, box: BoxProcess) -> None:
        self._box = box

    def status(self) -> dict[str, Any]:
        return self._ask("GET", "")

    def replace(self, old: Path, new: Path) -> None:
        self._ask("POST", "/replace", {"old": str(old), "new": str(new)})

    def scrub(self, path: Path) -> None:
        self._ask("POST", "/scrub", {"directory": str(path)})

    def await_whole(self, path: Path, before: dict[str, Any], fault: Fault) -> dict[str, Any]:
        """Wait until all directories are active and an audit finds all copies; replace ``path`` if it does not return.

        ``before`` is the status before the fault. Returns the last status. Raises BoxError.
        """
        begin = time.monotonic()
        found, replaced, looks = before, False, 0
        while time.monotonic() - begin < WHOLE_SECONDS:
            found = self.status()
            passed = time.monotonic() - begin
            looks = looks + 1 if _is_whole(found, fault, passed) and _is_noticed(found, before, path, fault) else 0
            if looks == 2:  # what a scrub found is listed a moment later
                return found
            stays_away = {each["name"]: each["state"] for each in found["members"]}.get(str(path)) in ("lost", "fenced")
            # A directory that was removed never returns by itself.
            if stays_away and not replaced and (fault is is_removed or passed > RETURN_SECONDS):
                replaced = True
                with contextlib.suppress(BoxError):  # it returns at this moment
                    self.replace(path, path)
            time.sleep(0.1)
        raise BoxError(f"copies are not complete after {WHOLE_SECONDS:g} s: {json.dumps(found)}")

    def _ask(self, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self._box.web_url}/pulsarbox/v1/ensemble{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                found: dict[str, Any] = json.load(response)
                return found
        except urllib.error.HTTPError as error:
            raise BoxError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        except OSError as error:
            ended = None if self._box.process is None else self._box.process.poll()
            raise BoxError(f"{method} {path}: {error}; exit code {ended}:\n{self._box.said()}") from error


def _is_whole(found: dict[str, Any], fault: Fault, passed: float) -> bool:
    """Return whether all directories are active, and no entry lacked a copy in an audit after the last change."""
    members = found["members"]
    active = all(each["state"] == "active" for each in members) and len(members) == COUNT
    audited = found["audited"] > 0 and not found["underReplicated"]["fragments"]
    changed = max(each["since"] for each in members)
    is_brief = fault is is_full and passed > UNNOTICED_SECONDS
    return active and audited and (found["audited"] >= changed or is_brief)


def _is_noticed(found: dict[str, Any], before: dict[str, Any], path: Path, fault: Fault) -> bool:
    """Return whether a removed directory is another member now, and one with flipped bits was scrubbed."""
    was, now = (
        next((each for each in document["members"] if each["name"] == str(path)), None) for document in (before, found)
    )
    if was is None or now is None:
        return False
    if fault is is_removed:
        return bool(now["id"] != was["id"])
    return fault is not has_flipped_bits or bool(now["scrub"]["finished"] > was["scrub"]["finished"])


class Rounds:
    """The rounds of a campaign."""

    def __init__(
        self,
        box: BoxProcess,
        made: Sequence[Place],
        dice: random.Random,
        run: DirectoryRun,
        first: Sequence[Fault] = (),
    ) -> None:
        """``first`` are the faults of the first rounds; the others are drawn."""
        self._box = box
        self._first = first
        self._places = made
        self._dice = dice
        self._run = run
        self._storage = Storage(box)
        self.notes: list[dict[str, Any]] = []
        self._counted = 0, 0
        """Bytes of copies and damaged runs of this process of the box that are counted."""

    def round(self, number: int) -> None:
        """Break a directory, and mend it."""
        dice = self._dice
        place = dice.choice(self._places)
        fault = dice.choice([*FAULTS, *(FAULTS_OF_MOUNTED if place.mounted else ())])
        if number < len(self._first):
            fault = self._first[number]
        how = dice.choice(("killed before", "killed after", "killed at once", "not killed"))
        time.sleep(dice.uniform(*LIFE_SECONDS))
        before = self._storage.status()
        if how == "killed before":
            self._kill()
        mend = fault(place, dice)
        if how == "killed after":
            time.sleep(dice.uniform(0, 1.0))
        if how != "not killed":
            self._kill()
            self._run.start_seconds.append(self._box.start())
        note(self.notes, "ready")
        time.sleep(dice.uniform(*LIFE_SECONDS))
        mend()
        begin = time.monotonic()
        self._recover(place, fault, before)
        self._run.whole_seconds.append(time.monotonic() - begin)
        self._run.faults[fault.__name__.replace("_", " ")] += 1
        said = f"{place.folder.name} {fault.__name__.replace('_', ' ')}, {how}"
        say(f"{number + 1}: {said}; complete again after {self._run.whole_seconds[-1]:.1f} s")

    def _recover(self, place: Place, fault: Fault, before: dict[str, Any]) -> None:
        if fault is has_flipped_bits:
            self._storage.scrub(place.path)
        found = self._storage.await_whole(place.path, before, fault)
        self._run.copied_bytes += found["repair"]["bytesDone"] - self._counted[0]
        self._run.damaged += sum(each["scrub"]["found"] for each in found["members"]) - self._counted[1]
        self._counted = found["repair"]["bytesDone"], sum(each["scrub"]["found"] for each in found["members"])

    def _kill(self) -> None:
        if self._box.process is not None:
            self._box.kill()
            note(self.notes, "killed")
            self._run.kills += 1
            self._counted = 0, 0


def command_of(paths: Sequence[Path]) -> list[str]:
    """Return the command of a box with these data directories."""
    settings = SETTINGS | {"dataDirectories": ",".join(map(str, paths))}
    words = list(PULSARBOX)
    at = words.index("--data-dir")
    return ["env", *(f"PULSARBOX_{name}={value}" for name, value in settings.items()), *words[:at], *words[at + 2 :]]


def crash(
    folder: Path,
    rounds: int,
    seed: int,
    worker: str = "auto",
    rate: int = RATE,
    *,
    mount: bool = True,
    first: Sequence[Fault] = (),
) -> DirectoryRun:
    """Run the campaign once, with its files in ``folder``. ``first`` are the faults of the first rounds."""
    run = DirectoryRun(seed)
    with places(folder, mount=mount) as made:
        box = BoxProcess(folder / "home", command_of([each.path for each in made]))
        (folder / "plan.json").write_text(json.dumps(plan(box, rate, LAYOUT, DELAYED)))
        notes = _under_load(box, worker_command(worker, folder), folder, run, made, rounds, first)
    with (folder / "history.jsonl").open() as lines:
        events = sorted([*map(json.loads, lines), *notes], key=lambda event: event["at"])
    run.verdict = judge(events, window(rate), LAYOUT)
    return run


def _under_load(
    box: BoxProcess,
    command: list[str],
    folder: Path,
    run: DirectoryRun,
    made: Sequence[Place],
    rounds: int,
    first: Sequence[Fault],
) -> list[dict[str, Any]]:
    clients = None
    try:
        box.start()
        clients = Clients(command, folder / "worker.log")
        clients.await_answer("running")
        campaign = Rounds(box, made, random.Random(run.seed), run, first)
        for number in range(rounds):
            campaign.round(number)
        clients.order("drain", "drained")
        box.kill()
        note(campaign.notes, "killed")
        box.start()
        note(campaign.notes, "ready")
        clients.order("audit", "audited")
        return campaign.notes
    finally:
        if clients is not None:
            clients.finish()
        box.kill()


def show(run: DirectoryRun) -> None:
    """Print the results."""
    counts = run.verdict.counts
    rows: dict[str, int | str] = {
        **{f"rounds: {name}": number for name, number in sorted(run.faults.items())},
        "kills (SIGKILL)": run.kills,
        "messages sent": counts["sent"],
        "receipts": counts["receipted"],
        "sends that failed": counts["failed"],
        "messages in the logs": counts["log"],
        "deliveries": counts["received"],
        "ack receipts": counts["acked"],
        "start to serving, p50 / max": spread(run.start_seconds),
        "mended to complete copies, p50 / max": spread(run.whole_seconds),
        "bytes of restored copies": run.copied_bytes,
        "damaged runs found by scrubs": run.damaged,
        "violations": len(run.verdict.violations),
    }
    table = Table(title=f"crash with several data directories, seed {run.seed}", show_header=False)
    for name, value in rows.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else value)
    Console().print(table)
    for text in run.verdict.violations:
        print(f"VIOLATION {text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--worker", choices=["auto", "go", "python"], default="auto")
    parser.add_argument("--rate", type=int, default=RATE, help="messages a second of each publisher")
    parser.add_argument("--no-mount", action="store_true", help="mount nothing: no full or immutable directories")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="pulsarbox-crash-"))
    say(f"seed {seed}, files in {folder}")
    run = crash(folder, arguments.rounds, seed, arguments.worker, arguments.rate, mount=not arguments.no_mount)
    show(run)
    return leave(folder, run.verdict.violations)


if __name__ == "__main__":
    sys.exit(main())
