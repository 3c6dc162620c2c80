"""Scenarios with the official Go client, whose program prints the steps."""

import subprocess
from pathlib import Path

from tests.differences.broker import Broker
from tests.differences.scenario import Steps, scenario
from tests.differences.telling import scrub
from tests.tools.go import GoError, build

FOLDER = Path(__file__).parents[1] / "go"


def played(broker: Broker, name: str) -> Steps:
    topic = broker.topic()
    try:
        program = build(FOLDER)
    except GoError as error:
        if "not installed" not in str(error):
            raise
        yield "the Go client", str(error)
        return
    command = [str(program), "-url", broker.url, "-topic", topic, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    for line in done.stdout.splitlines():
        step, _, seen = line.partition("\t")
        yield step, scrub(seen)
    yield "exit code", [done.returncode, done.stderr.splitlines()[:1]]


@scenario
def sticky_ranges(broker: Broker) -> Steps:
    yield from played(broker, "sticky")


@scenario
def key_shared_policies(broker: Broker) -> Steps:
    yield from played(broker, "policies")


@scenario
def readers(broker: Broker) -> Steps:
    yield from played(broker, "inclusive")


@scenario
def ack_receipts(broker: Broker) -> Steps:
    yield from played(broker, "receipts")
