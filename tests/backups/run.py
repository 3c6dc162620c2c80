"""Campaign that backs up a broker repeatedly under load, restores each backup, and verifies it.

``make backups N=25`` starts its own broker. Progress on stderr, the summary on stdout; exits with 1 if a rule was
broken. Each restored broker must hold one instant: everything receipted before its backup began, and nothing sent after
it ended. Each transaction must be complete or absent, over two topics and a subscription.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import pulsar

from pulsarbox import PulsarBox
from pulsarbox.embed.errors import BoxError
from tests import forks
from tests.backups.load import INPUT, KEPT, LEFT, RIGHT, SUBSCRIPTION, Known, Load, number_of
from tests.e2e.clients import connect, read_to_end

SETTINGS: Final[dict[str, Any]] = {
    "journalVolumeSizeMbytes": 2,
    "journalMaxBatchMbytes": 1,
    "journalCheckpointMbytes": 1,
    "journalReserveMbytes": 0,
    "managedLedgerMaxSizePerLedgerMbytes": 1,
    "maxMessageSize": 1_000_000,
}
"""Small volumes and ledgers: a short run seals, packs and removes them."""
_BETWEEN_SECONDS: Final = 0.5


class Taken(NamedTuple):
    """A backup, and the state of the clients before and after it."""

    name: str
    before: Known
    after: Known
    document: dict[str, Any]


class Run(NamedTuple):
    """Results of a campaign."""

    backups: int
    violations: list[str]
    counts: dict[str, int]


def pulsarbox(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a ``pulsarbox`` command."""
    return forks.text(forks.run(*words))


def campaign(path: Path, backups: int) -> Run:
    """Back up a broker under load, and once more after ``kill -9``."""
    data, target = path / "data", path / "backups"
    taken: list[Taken] = []
    with PulsarBox(data_dir=data, process=True, **SETTINGS) as box:
        load = Load(box)
        load.start()
        try:
            for number in range(backups):
                while load.known().deleted <= number and not load.failures:
                    time.sleep(0.01)
                time.sleep(_BETWEEN_SECONDS)
                taken.append(_taken(load, data, target))
                _say(f"backup {taken[-1].name}: {taken[-1].before.committed} transactions")
        finally:
            load.stop()
        end = load.known()
        box.kill()
        taken.append(Taken("", end, end, json.loads(_backup(data, target))))
        taken[-1] = taken[-1]._replace(name=taken[-1].document["name"])
    verified = pulsarbox("backup", "verify", str(target))
    violations = [] if verified.returncode == 0 else [f"verify: {verified.stdout}{verified.stderr}"]
    for one in taken:
        violations += [f"{one.name}: {what}" for what in _judge(one, target, path / "restored")]
    names = ("copiedBytes", "linkedBytes", "reusedBytes")
    counts = {name: sum(one.document[name] for one in taken) for name in names}
    return Run(len(taken), violations, {**counts, "transactions": end.committed, "deleted": end.deleted})


def _taken(load: Load, data: Path, target: Path) -> Taken:
    before = load.known()
    document = json.loads(_backup(data, target))
    return Taken(document["name"], before, load.known(), document)


def _backup(data: Path, target: Path) -> str:
    done = pulsarbox("backup", str(target), "--data-dir", str(data), "--rate", "0", "-o", "json")
    if done.returncode:
        raise AssertionError(f"pulsarbox backup ended with {done.returncode}: {done.stderr}")
    return done.stdout


def _judge(taken: Taken, target: Path, data: Path) -> list[str]:
    """Return the violations of a backup."""
    done = pulsarbox("restore", str(target), str(data), "--backup", taken.name)
    if done.returncode:
        return [f"restore ended with {done.returncode}: {done.stderr}"]
    try:
        check = pulsarbox("storage", "check", str(data))
        wrong = [] if check.returncode == 0 else [f"storage check: {check.stdout}"]
        with PulsarBox(data_dir=data, process=True, **SETTINGS) as box:
            wrong += _look(box, taken)
        return wrong
    except BoxError as error:
        return [f"it does not start: {error}"]
    finally:
        shutil.rmtree(data)


def _look(box: PulsarBox, taken: Taken) -> list[str]:
    before, after = taken.before, taken.after
    client = connect(box.service_url)
    inputs, left, right = (_numbers(client, topic) for topic in (INPUT, LEFT, RIGHT))
    behind = sorted(set(inputs) - set(left))
    waiting = _waiting(client, len(behind) - 1)
    topics = box.admin("GET", "/admin/v2/persistent/public/default")
    client.close()
    kept = sorted(int(topic.removeprefix(KEPT)) for topic in topics if topic.startswith(KEPT))
    # The transaction that was open at the cut is still open and claims its acknowledged message.
    rules = {
        f"input has {inputs[:5]}...{inputs[-5:]}": inputs == list(range(len(inputs))),
        f"{len(inputs)} inputs, {before.receipted} receipted before": len(inputs) >= before.receipted,
        f"{len(inputs)} inputs, {after.sent} sent until the end": len(inputs) <= after.sent,
        f"left has {len(left)}, right has {len(right)}": left == right,
        f"{len(left)} transactions, {before.committed} committed before": len(left) >= before.committed,
        f"{len(left)} transactions, {after.begun} begun until the end": len(left) <= after.begun,
        f"{len(left)} results, some of them twice": len(left) == len(set(left)),
        f"the worker is sent {waiting[:5]}..., {behind[:5]}... have no result": waiting in (behind, behind[1:]),
        f"deleted topics {kept}, {before.deleted} deleted before": all(each >= before.deleted for each in kept),
        f"topics {kept}, {after.deleted} deleted at the end": all(each <= after.deleted for each in kept),
    }
    return [what for what, holds in rules.items() if not holds]


def _numbers(client: Any, topic: str) -> list[int]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = [number_of(body) for body in read_to_end(reader)]
    reader.close()
    return found


def _waiting(client: Any, count: int) -> list[int]:
    """Return the messages of the worker's subscription: at least ``count``, and those that follow soon."""
    consumer = client.subscribe(INPUT, SUBSCRIPTION, pulsar.ConsumerType.Shared)
    found: list[int] = []
    try:
        while True:
            found.append(number_of(consumer.receive(60_000 if len(found) < count else 300).data()))
    except pulsar.Timeout:
        return sorted(found)
    finally:
        consumer.close()


def _say(text: str) -> None:
    print(f"backups: {text}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--backups", type=int, default=25)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="backups-") as folder:
        run = campaign(Path(folder), arguments.backups)
    print(json.dumps(run._asdict(), indent=2))
    sys.exit(1 if run.violations else 0)


if __name__ == "__main__":
    main()
