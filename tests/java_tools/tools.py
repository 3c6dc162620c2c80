"""The Java tools of one broker: a JVM that runs many commands, and processes of single commands."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tests.tools.java import java

HERE: Final = Path(__file__).parent
SECONDS: Final = 60
"""Time limit of one command in the JVM."""
PROCESS_SECONDS: Final = 60
"""Time limit of one process."""
OPTIONS: Final = (
    f"-Dlog4j.configurationFile={HERE / 'log4j2.xml'}",
    "--add-opens=java.base/sun.net=ALL-UNNAMED",
    "-Xmx900m",  # pulsar-perf allocates its histograms at the start, and a large message needs several copies
)
LATE: Final = "timeout"
"""Exit code of a command that exceeds its time limit."""
MAIN: Final = {
    "pulsar-admin": "org.apache.pulsar.admin.cli.PulsarAdminTool",
    "pulsar-client": "org.apache.pulsar.client.cli.PulsarClientTool",
    "pulsar-perf": "org.apache.pulsar.testclient.PulsarPerfTestTool",
    "pulsar-shell": "org.apache.pulsar.shell.PulsarShell",
}
IN_ONE: Final = ("admin", "client")


@dataclass(frozen=True)
class Result:
    """Outcome of one command."""

    exit: str
    """Exit code, or ``LATE``."""
    out: str
    err: str


class Tools:
    """The tools, configured for one broker. Close it to end its JVM."""

    def __init__(self, jars: str, folder: Path, settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._jars, self._folder = jars, folder
        self._conf = folder / "client.conf"
        self._conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        self._jvm: subprocess.Popen[str] | None = None
        self.home = folder / "home"
        """Home and working directory of the processes."""
        self.home.mkdir(exist_ok=True)

    def run(self, tool: str, words: list[str], given: str = "") -> Result:
        """Run a command. Raises JavaError without a JDK, and ValueError for an unknown tool."""
        if tool in IN_ONE:
            return self._in_one(tool, words)
        if tool not in MAIN:
            raise ValueError(f"unknown tool {tool}: expected one of {', '.join((*IN_ONE, *MAIN))}")
        return self._process(tool, words, given)

    def _in_one(self, tool: str, words: list[str]) -> Result:
        stdin, stdout = self._streams()
        stdin.write(json.dumps({"tool": tool, "args": words, "seconds": SECONDS}) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"the JVM ended: {(self._folder / 'jvm.log').read_text()}")
        return Result(**json.loads(line))

    def _streams(self) -> tuple[IO[str], IO[str]]:
        if self._jvm is None:
            with (self._folder / "jvm.log").open("wb") as log:
                self._jvm = subprocess.Popen(
                    [*java(self._jars, *OPTIONS), str(HERE / "Commands.java"), str(self._conf)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        assert self._jvm.stdin is not None and self._jvm.stdout is not None
        return self._jvm.stdin, self._jvm.stdout

    def _process(self, tool: str, words: list[str], given: str) -> Result:
        configured = ["-c", str(self._conf)] if tool == "pulsar-shell" else [str(self._conf)]
        try:
            done = subprocess.run(
                [*java(self._jars, *OPTIONS, f"-Duser.home={self.home}"), MAIN[tool], *configured, *words],
                input=given,
                capture_output=True,
                text=True,
                timeout=PROCESS_SECONDS,
                check=False,
                cwd=self.home,
                env=os.environ | {"TERM": "dumb"},
            )
        except subprocess.TimeoutExpired as late:
            return Result(LATE, _text(late.stdout), _text(late.stderr))
        return Result(str(done.returncode), done.stdout, done.stderr)

    def close(self) -> None:
        """End the JVM. Idempotent."""
        if self._jvm is None:
            return
        for stream in (self._jvm.stdin, self._jvm.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._jvm.kill()
        self._jvm.wait()
        self._jvm = None


def _text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


@contextlib.contextmanager
def tools(jars: str, folder: Path, settings: Mapping[str, str]) -> Iterator[Tools]:
    """Return the tools, closed at the end."""
    opened = Tools(jars, folder, settings)
    try:
        yield opened
    finally:
        opened.close()
