"""``produce`` to a topic whose backlog quota is reached."""

import json
import subprocess
from typing import Any

import pytest

from tests.e2e.clients import admin_path, numbered
from tests.e2e.commands import run, running
from tests.e2e.conftest import Running

QUOTA = {"limitSize": 2000, "limitTime": -1, "policy": "producer_request_hold"}


def limit_backlog(box: Running, space: str, **more: Any) -> str:
    """Create a topic with a subscription, in a namespace with a backlog quota."""
    topic = f"persistent://{space}/limited"
    box.admin("POST", f"namespaces/{space}/backlogQuota", json.dumps(QUOTA | more))
    box.admin("PUT", f"{admin_path(topic)}/subscription/s")
    return topic


def test_produce_waits_while_a_quota_holds_it_and_then_says_so(box: Running, space: str) -> None:
    topic = limit_backlog(box, space)
    lines = b"\n".join(numbered(1000)) + b"\n"
    done = run(
        "produce",
        topic,
        "--url",
        box.url,
        "--admin-url",
        box.web_url,
        "--no-batch",
        "--timeout",
        "1",
        stdin=lines,
        code=8,
    )
    told = done.stderr.decode()
    reason = f"the backlog of {topic} has reached its quota: consume it, clear it, or raise the quota"
    assert f"the broker blocks the producer ({reason}): waiting for up to 1 s" in told
    assert told.rstrip().endswith(f"messages stored, then: {reason} (waited for 1 s)")
    done = run("produce", topic, "newcomer", "--url", box.url, "--admin-url", box.web_url, "--timeout", "1", code=4)
    assert done.stderr.decode().rstrip().endswith(f"{reason} (waited for 1 s)")
    box.admin("POST", f"namespaces/{space}/backlogQuota", json.dumps(QUOTA | {"policy": "producer_exception"}))
    done = run("produce", topic, "newcomer", "--url", box.url, "--admin-url", box.web_url, code=4)
    assert "backlog quota exceeded" in done.stderr.decode()


@pytest.mark.parametrize(("before", "count"), [(3000, 2), (0, 6)], ids=["newcomer", "amid"])
def test_produce_goes_on_once_the_backlog_is_smaller(box: Running, space: str, before: int, count: int) -> None:
    topic = limit_backlog(box, space)
    if before:
        run("produce", topic, "x" * before, "--url", box.url, "--admin-url", box.web_url)
    with running(
        "produce", topic, "--url", box.url, "--admin-url", box.web_url, "--no-batch", stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"".join(b"x" * 500 + b"\n" for _ in range(count)))
        process.stdin.flush()
        assert b"blocks the producer" in process.stderr.readline()
        box.admin("POST", f"{admin_path(topic)}/subscription/s/skip_all")
        assert process.stderr.readline() == b"pulsarbox: the broker accepts messages again\n"
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == f"pulsarbox: {count} messages stored in {topic}\n".encode()
