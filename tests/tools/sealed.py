"""Container-like sandbox without a container engine: its own root, loopback network, pid 1, any user.

The root is this machine's, below a writable layer (overlayfs) that is discarded afterwards. Needs root and a kernel
that permits it; ``why_not`` reports what is missing.
"""

import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

TOOLS: Final = ("unshare", "nsenter", "chroot", "mount", "ip")
_NAMESPACES: Final = ("--mount", "--pid", "--ipc", "--uts")
_END_SECONDS: Final = 30.0

# $1 a scratch folder, $2 the layer, $3 "ro" or "rw", $4 user:group, $5 the working directory, $6... the command.
_PREPARE: Final = """
set -e
own=$1 layer=$2 mode=$3 user=$4 folder=$5
shift 5
mount -t tmpfs own "$own"
mkdir "$own/upper" "$own/work" "$own/root"
mount -t overlay own -o "lowerdir=/,upperdir=$own/upper,workdir=$own/work" "$own/root"
cp -a "$layer/." "$own/root/"
mount -t proc proc "$own/root/proc"
mount --rbind /dev "$own/root/dev"
mount -t tmpfs -o mode=0775 data "$own/root/pulsar/data"
if [ "$mode" = ro ]; then mount -o remount,ro "$own/root"; fi
ip link set lo up || true
exec chroot --userspec="$user" "$own/root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


@functools.cache
def why_not() -> str:
    """Return what prevents a sandbox on this machine; empty if nothing."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"there is no {', '.join(missing)} here"
    if os.geteuid() != 0:
        return "only root may make namespaces and mounts here"
    with tempfile.TemporaryDirectory() as folder:
        layer = Path(folder, "layer")
        (layer / "pulsar" / "data").mkdir(parents=True)
        try:
            with Sealed(Path(folder), layer, ["/bin/true"], {}, user="0:0", folder="/") as sealed:
                code = sealed.wait()
        except OSError as error:
            return str(error)
        return "" if code == 0 else f"namespaces or mounts are not allowed here: {sealed.said().strip()}"


class Sealed:
    """Command that runs as pid 1 in a sandbox, while the context is active."""

    def __init__(
        self,
        own: Path,
        layer: Path,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        user: str,
        folder: str,
        read_only: bool = True,
        network: bool = False,
    ) -> None:
        """Prepare the sandbox. ``own``: a scratch folder; ``layer``: files to add to this machine's root.

        ``network``: this machine's, instead of loopback only.
        """
        self._mounts = own / "mounts"
        self._log = own / "log"
        self._environ = dict(environ)
        options = [str(self._mounts), str(layer), "ro" if read_only else "rw", user, folder]
        self._command = [
            *(
                "unshare",
                *_NAMESPACES,
                *([] if network else ["--net"]),
                "--fork",
                "--kill-child",
                "/bin/sh",
                "-c",
                _PREPARE,
                "sealed",
            ),
            *options,
            *("env", "-i", *(f"{name}={value}" for name, value in environ.items())),
            *command,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Sealed":
        self._mounts.mkdir()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                start_new_session=True,
            )
        until(lambda: bool(self._children()) or not self.is_running(), _END_SECONDS, "a first process")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.kill()  # kills its child, and thereby the whole namespace
        self._process.wait()

    @property
    def root(self) -> Path:
        """The sandbox's root as seen from outside, while it runs."""
        return Path(f"/proc/{self.pid}/root")

    @property
    def pid(self) -> int:
        """The process ID of pid 1 outside the sandbox."""
        children = self._children()
        assert children, f"it has ended:\n{self.said()}"
        return children[0]

    def _children(self) -> list[int]:
        assert self._process is not None
        try:
            text = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        except FileNotFoundError:
            return []
        return [int(word) for word in text.split()]

    def run(self, *command: str, seconds: float = 60.0) -> "subprocess.CompletedProcess[str]":
        """Run a command of this machine in the sandbox's network."""
        words = ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)

    def inside(self, user: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside the sandbox, as `docker exec` does."""
        number, _, group = user.partition(":")
        entered = ["nsenter", f"--target={self.pid}", "--all", "--root", "--wdns=/pulsar"]
        told = ["env", "-i", *(f"{name}={value}" for name, value in self._environ.items())]
        as_user = ["setpriv", f"--reuid={number}", f"--regid={group}", "--clear-groups"]
        return subprocess.run(
            [*entered, *as_user, *told, *command], capture_output=True, text=True, timeout=60, check=False
        )

    def is_running(self) -> bool:
        assert self._process is not None
        return self._process.poll() is None

    def terminate(self) -> int:
        """Send SIGTERM to pid 1, as `docker stop` does, and return its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(_END_SECONDS)

    def said(self) -> str:
        """Return its stdout and stderr, as `docker logs` does."""
        return self._log.read_text(errors="replace")


def open_to_all(layer: Path, *paths: Path) -> None:
    """Let every user reach the paths, by granting search permission on their parents, in the layer only."""
    for path in paths:
        for folder in reversed(path.parents):
            made = layer / folder.relative_to("/")
            if folder != Path("/"):
                made.mkdir(exist_ok=True)
                made.chmod((folder.stat().st_mode | 0o055) & 0o7777)


def until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until a condition holds. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.05)
