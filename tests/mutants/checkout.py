"""A copy of the checkout in which modules are mutated and tested."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from tests.mutants.stages import Stage

MEMORY_BYTES: Final = 4 << 30
"""Memory limit of each process: a mutated loop may append forever."""
_LIMITED: Final = (
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_DATA, 2 * (int(sys.argv[1]),));"
    " os.execv(sys.argv[2], sys.argv[2:])"
)
"""Runs a command under a memory limit: that of the data segment, which excludes memory-mapped files."""
STAGE_SECONDS: Final = 600
"""Seconds per stage; the slowest takes 50 s on an idle machine."""


class Outcome(NamedTuple):
    """The result of a stage."""

    passed: bool
    timed_out: bool
    seconds: float
    output: str


class BrokenTestsError(Exception):
    """A stage fails without a mutant, so it cannot judge any."""


class CheckoutCopy:
    """A copy of the files that git tracks or would add, with their uncommitted changes. The checkout is only read."""

    def __init__(self, source: Path, folder: Path) -> None:
        """Copy ``source`` to ``folder``, which must not exist. Raises OSError, CalledProcessError, BrokenTestsError."""
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=source, check=True, capture_output=True,
        ).stdout.decode()  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if os.path.lexists(source / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / name, folder / name, follow_symlinks=False)
        self._sound: set[Stage] = set()
        """Stages that have passed without a mutant."""
        # The interpreter has the checkout installed: nothing must be imported from it.
        found = self._run(Stage("import", ("-c", "import pulsarbox; print(pulsarbox.__file__)")))
        if not Path(found.output.strip()).is_relative_to(folder):
            raise BrokenTestsError(f"pulsarbox is not imported from the copy: {found.output}")

    def judge(self, module: PurePath, text: str, stage: Stage) -> Outcome:
        """Run a stage with a mutated module. Raises BrokenTestsError if the stage fails without the mutant as well."""
        original = (self.folder / module).read_text("utf-8")
        self._write(module, text)
        try:
            outcome = self._run(stage)
        finally:
            self._write(module, original)
        if not outcome.passed and stage not in self._sound:
            clean = self._run(stage)
            if not clean.passed:
                raise BrokenTestsError(f"{stage.name} fails without a mutant:\n{clean.output}")
            self._sound.add(stage)
        return outcome

    def _write(self, module: PurePath, text: str) -> None:
        path = self.folder / module
        path.write_text(text, "utf-8")
        # A compiled module is validated by seconds and size in bytes, which a mutant may share with the original.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, stage: Stage) -> Outcome:
        environment = os.environ | {
            "PYTHONPATH": str(self.folder),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".hypothesis"),
        }
        environment["PYTEST_DEBUG_TEMPROOT"] = str(self.folder.parent)
        began = time.monotonic()
        timed_out = False
        with subprocess.Popen(
            [sys.executable, "-c", _LIMITED, str(MEMORY_BYTES), sys.executable, *stage.arguments], cwd=self.folder,
            env=environment, text=True, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=STAGE_SECONDS)
            except subprocess.TimeoutExpired:
                timed_out, output = True, f"no end after {STAGE_SECONDS} s"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # also child processes of tests
                except ProcessLookupError:
                    pass
        timed_out = timed_out or "Timeout (>" in output
        return Outcome(not timed_out and process.returncode == 0, timed_out, time.monotonic() - began, output)
