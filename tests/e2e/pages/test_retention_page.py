"""Every command of Pulsar's page about message retention and expiry, unmodified and in order."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests import forks
from tests.e2e.conftest import Running

SET_RETENTION: Final = "pulsar-admin namespaces set-retention my-tenant/my-ns"
QUOTA: Final = {"limit": 2147483648, "limitSize": 2147483648, "limitTime": -1, "policy": "producer_request_hold"}


@pytest.fixture(scope="module", autouse=True)
def namespace(box: Running) -> Iterator[None]:
    """Return the namespace of the page, with the topic that the page names."""
    info = json.dumps({"adminRoles": [], "allowedClusters": ["standalone"]})
    box.admin("PUT", "tenants/my-tenant", info)
    box.admin("PUT", "namespaces/my-tenant/my-ns")
    box.admin("PUT", "persistent/my-tenant/my-ns/my-topic")
    yield
    box.admin("DELETE", "persistent/my-tenant/my-ns/my-topic?force=true")
    box.admin("DELETE", "namespaces/my-tenant/my-ns")
    box.admin("DELETE", "tenants/my-tenant")


@pytest.fixture
def run(box: Running) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a line of the page, with `pulsarbox admin` for `pulsar-admin`."""

    def run(line: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        words = shlex.split(line.replace("\\\n", ""), comments=True)
        assert words[0] == "pulsar-admin"
        asked = ["admin", "--admin-url", box.web_url, *words[1:]]
        if typed is None:
            return forks.text(forks.run(*asked))
        command = [sys.executable, "-m", "pulsarbox", *asked]
        ours, theirs = os.openpty()
        try:
            os.write(ours, typed.encode())
            return _run(command, theirs)
        finally:
            os.close(ours)
            os.close(theirs)

    return run


def _run(command: list[str], stdin: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, stdin=stdin)


@pytest.mark.parametrize(
    ("line", "minutes", "megabytes"),
    [
        (f"{SET_RETENTION} \\\n--size 10G \\\n--time 3h", 180, 10240),
        (f"{SET_RETENTION} \\\n--size 1T \\\n--time -1", -1, 1 << 20),
        (f"{SET_RETENTION} \\\n--size -1 \\\n--time 3h", 180, -1),
        (f"{SET_RETENTION} \\\n--size -1 \\\n--time -1", -1, -1),
        (f"{SET_RETENTION} \\\n--size 0 \\\n--time 0", 0, 0),
    ],
)
def test_set_retention_and_get_retention(
    line: str, minutes: int, megabytes: int, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert run(line).returncode == 0
    shown = run("pulsar-admin namespaces get-retention my-tenant/my-ns")
    assert json.loads(shown.stdout) == {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


@pytest.mark.parametrize("line", [f"{SET_RETENTION} --size 0 --time -1", f"{SET_RETENTION} --size 1G --time 0"])
def test_a_single_zero_is_refused(line: str, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    refused = run(line)
    assert refused.returncode == 2
    assert "0 keeps nothing, and --" in refused.stderr


def test_backlog_quotas(run: Callable[..., subprocess.CompletedProcess[str]], box: Running) -> None:
    set_quota = "pulsar-admin namespaces set-backlog-quota my-tenant/my-ns"
    assert run(f"{set_quota} \\\n--limit 2G \\\n--policy producer_request_hold").returncode == 0
    shown = run("pulsar-admin namespaces get-backlog-quotas my-tenant/my-ns")
    assert shown.returncode == 0
    assert "destination_storage" in shown.stdout
    assert "2147483648" in shown.stdout
    assert json.loads(box.admin("GET", "namespaces/my-tenant/my-ns/backlogQuotaMap")) == {"destination_storage": QUOTA}
    assert run("pulsar-admin namespaces remove-backlog-quota my-tenant/my-ns").returncode == 0
    assert json.loads(box.admin("GET", "namespaces/my-tenant/my-ns/backlogQuotaMap")) == {}


def test_what_the_page_prints_and_pulsar_refuses_is_answered_with_the_command_that_does_it(
    run: Callable[..., subprocess.CompletedProcess[str]], box: Running
) -> None:
    refused = run(
        "pulsar-admin namespaces set-backlog-quota my-tenant/my-ns/my-topic \\\n"
        "--limitTime 3600 \\\n--policy producer_request_hold \\\n--type message_age"
    )
    assert refused.returncode == 2
    _, mark, hint = refused.stderr.replace("\n", " ").partition("For a topic: pulsarbox admin ")
    assert mark
    assert run(f"pulsar-admin {hint}").returncode == 0
    found = json.loads(box.admin("GET", "persistent/my-tenant/my-ns/my-topic/backlogQuotaMap"))
    assert found == {"message_age": {"limit": -1, "limitSize": -1, "limitTime": 3600, "policy": QUOTA["policy"]}}
    removed = run("pulsar-admin topicPolicies remove-backlog-quota my-tenant/my-ns/my-topic -t message_age")
    assert removed.returncode == 0


def test_clear_backlog_asks_and_force_does_not(
    run: Callable[..., subprocess.CompletedProcess[str]], box: Running, client: Any
) -> None:
    topic = "persistent://my-tenant/my-ns/my-topic"
    line = "pulsar-admin namespaces clear-backlog my-tenant/my-ns"

    def backlog() -> int:
        stats = json.loads(box.admin("GET", "persistent/my-tenant/my-ns/my-topic/stats"))
        return int(stats["subscriptions"]["s"]["msgBacklog"])

    client.subscribe(topic, "s").close()
    producer = client.create_producer(topic)
    for typed, force, left, code in (
        (None, "", 1, 2),  # stdin is no terminal for a prompt
        ("N\n", "", 2, 0),
        ("Y\n", "", 0, 0),
        (None, " --force", 0, 0),
        (None, " -force", 0, 0),
    ):
        producer.send(b"x")
        done = run(line + force, typed)
        assert (done.returncode, backlog()) == (code, left), done.stderr
        assert ("Are you sure" in done.stderr) == (not force)
    producer.close()


def test_time_to_live(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    line = "pulsar-admin namespaces set-message-ttl my-tenant/my-ns \\\n--messageTTL 120 # TTL of 2 minutes"
    assert run(line).returncode == 0
    assert run("pulsar-admin namespaces get-message-ttl my-tenant/my-ns").stdout == "120\n"
    assert run("pulsar-admin namespaces remove-message-ttl my-tenant/my-ns").returncode == 0
    shown = run("pulsar-admin namespaces get-message-ttl my-tenant/my-ns")
    assert shown.returncode == 0
    assert "120" not in shown.stdout
