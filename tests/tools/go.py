"""Builder of the Go programs of tests and benchmarks, cached by a hash of their sources."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# Outside any package, and ignored by git.
BUILT: Final = ROOT / ".make" / "go"
GO_HOME: Final = "/usr/local/go/bin"
BUILD_SECONDS: Final = 600


class GoError(Exception):
    """The program is unavailable; the message says why."""


def find_go() -> str | None:
    return shutil.which("go") or shutil.which("go", path=GO_HOME)


def build(folder: Path) -> Path:
    """Build the module in ``folder`` and return its program. Raises GoError if Go is missing or the build fails."""
    go = find_go()
    if go is None:
        raise GoError("Go is not installed")
    sources = sorted([*folder.glob("*.go"), folder / "go.mod", folder / "go.sum"])
    key = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    program = BUILT / f"{folder.parent.name}-{folder.name}-{key}"
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            print(f"building {folder.relative_to(ROOT)} (once)", file=sys.stderr)
            _build(go, folder, program)
    return program


def _build(go: str, folder: Path, program: Path) -> None:
    part = program.with_suffix(".part")
    command = [go, "build", "-buildvcs=false", "-o", str(part), "."]
    # Without cgo, a build with an empty cache takes half as long, because no C compiler runs.
    environment = os.environ | {"CGO_ENABLED": "0"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise GoError(f"{folder} does not build within {BUILD_SECONDS} s") from None
    if done.returncode != 0:
        raise GoError(f"{folder} does not build:\n{done.stderr}")
    part.replace(program)
