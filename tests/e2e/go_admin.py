"""The Go Admin API client as a function: the call, and the decoded response."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from tests.tools.go import build

FOLDER: Final = Path(__file__).parent / "go-admin"
NOT_IMPLEMENTED: Final = 501
PATIENCE_SECONDS: Final = 60.0


class Refused(Exception):
    """The client reported a failure; ``code`` is the status, 0 if the client could not parse the response."""

    def __init__(self, call: str, code: int, reason: str, requests: list[Any]) -> None:
        super().__init__(f"{call}: {code} {reason} {requests}")
        self.code = code
        self.reason = reason
        self.requests = requests


class NotServed(Refused):
    """A box does not support the call; ``endpoint`` is its row in the endpoint table, which agrees."""

    endpoint: Endpoint


class GoAdmin:
    """The running program."""

    def __init__(self, web_url: str, folder: Path) -> None:
        self.requests: list[Any] = []
        """Method, path and status of the last call's requests."""
        self.folder = folder
        """Working directory, for files that the program reads."""
        self._program = subprocess.Popen(
            [build(FOLDER), "-web-url", web_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def __call__(self, call: str, *args: Any) -> Any:
        """Return the result of a call: a value, a list for several results, or None. Raises Refused, NotServed."""
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps({"call": call, "args": args}) + "\n")
        self._program.stdin.flush()
        line = self._program.stdout.readline()
        if not line:
            raise AssertionError(f"{call}: {self._said()}")
        told = json.loads(line)
        self.requests = told["requests"]
        if told["error"]:
            raise _refusal(call, told)
        result = told["result"] or []
        return result[0] if len(result) == 1 else result or None

    def refusal(self, call: str, *args: Any) -> tuple[int, str]:
        """Return the status and reason of a rejected call."""
        try:
            given = self(call, *args)
        except Refused as error:
            return error.code, error.reason
        raise AssertionError(f"{call} was not refused, but gave {given}")

    def until(self, holds: Callable[[Any], bool], call: str, *args: Any) -> Any:
        """Return the result of a call when it satisfies the condition, or on timeout: Pulsar applies policies with a
        delay.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds(given := self(call, *args)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return given

    def close(self) -> None:
        """Stop the program."""
        assert self._program.stdin is not None
        self._program.stdin.close()
        assert self._program.wait(60) == 0, self._said()
        for stream in (self._program.stdout, self._program.stderr):
            assert stream is not None
            stream.close()

    def _said(self) -> str:
        assert self._program.stderr is not None
        return self._program.stderr.read()


def _refusal(call: str, told: dict[str, Any]) -> Refused:
    given = call, told["code"], told["error"], told["requests"]
    rows = [row for row in endpoints() if row.refusal and row.refusal == told["error"]]
    if told["code"] == NOT_IMPLEMENTED and rows:
        made = NotServed(*given)
        made.endpoint = rows[0]
        return made
    return Refused(*given)


def calls() -> dict[str, list[str]]:
    """Return all calls of the client, and their parameter types."""
    done = subprocess.run([build(FOLDER), "list"], capture_output=True, text=True, timeout=100, check=True)
    rows = map(json.loads, done.stdout.splitlines())
    return {row["call"]: row["takes"] for row in rows}
