"""Spark sessions for pipelines: interpreter, checkpoints, shuffles, and a fast-starting JVM."""

import contextlib
import logging
import os
import shlex
import shutil
import socketserver
import subprocess
import sys
import warnings
from collections.abc import Mapping
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from pulsarbox.spark import accelerator
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.failure_causes import innermost_exception
from pulsarbox.spark.pipelines.requirements import check, not_started
from pulsarbox.spark.pipelines.spark_log import begin, bound_periodically
from pulsarbox.storage.lmdb.private_files import make_directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAST: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options that halve the startup time but reduce peak performance: for single runs."""
_STATE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_FILES: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_END_SECONDS: Final = 60.0
_DYING_SECONDS: Final = 5.0


def settings(master: str, cores: int) -> dict[str, str]:
    """Return the default Spark settings of pipelines; ``cores`` is the number on this machine.

    Measurements and reasons are in docs/spark.md. The checkpoint manager suits local disks, so it is set for local
    masters.
    """
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        "spark.sql.streaming.stateStore.providerClass": _STATE,
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|authparams",
    }
    if is_local(master):
        found |= {
            "spark.sql.shuffle.partitions": str(cores_of(master, cores)),
            "spark.sql.streaming.checkpointFileManagerClass": _FILES,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
        }
    return found


def with_jars(conf: Mapping[str, str], jar: Path | None) -> dict[str, str]:
    """Return settings with pulsarbox's own jar, if it was built, in front of those that the user names."""
    if jar is None:
        return dict(conf)
    named = conf.get("spark.jars", "")
    return {**conf, "spark.jars": f"{jar},{named}" if named else str(jar)}


def is_local(master: str) -> bool:
    """Return whether everything runs on this machine, in one JVM."""
    return master == "local" or master.startswith("local[")


def cores_of(master: str, cores: int) -> int:
    """Return the number of concurrent tasks of a local master: ``local[2]`` is 2, ``local[*]`` all of ``cores``."""
    number = master.removeprefix("local[").rstrip("]").split(",")[0] if master.startswith("local[") else "1"
    return int(number) if number.isdigit() and int(number) else cores


def retried(master: str) -> str:
    """Return a local master with task retries: by default, Spark fails a local job at the first task failure."""
    if master == "local":
        return "local[1,3]"
    return f"{master[:-1]},3]" if master.startswith("local[") and "," not in master else master


def session(
    master: str = "local[*]",
    name: str = "pulsarbox",
    conf: Mapping[str, str] | None = None,
    fast: bool = False,
    log: Path | None = None,
) -> "SparkSession":
    """Return a new session, or this process's existing one, with the format ``pulsarbox`` registered.

    ``conf`` overrides ``settings``. ``fast``: a JVM that starts in half the time and computes slower. ``log``: a file
    for the stderr of Spark and of users' code in workers. Raises SparkMissingError, and PipelineError if Spark rejects
    the master or a setting.
    """
    check(master)
    _prepare(master, fast)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # py4j leaves sockets to the collector
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession

        chosen = with_jars(settings(master, os.cpu_count() or 1) | dict(conf or {}), accelerator.jar())
        _launch(chosen, log)
        builder = SparkSession.builder.master(retried(master)).appName(name)
        for key, value in chosen.items():
            builder = builder.config(key, value)
        made = _made(builder, master, log)
    # The caller reports errors of frames; Spark would log them again as JSON.
    for each in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(each).setLevel(logging.CRITICAL)
    _quietly(getattr(made.sparkContext, "_accumulatorServer", None))
    return made


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.msg != "Exception while sending command."  # also raised


def _quietly(server: "socketserver.BaseServer | None") -> None:
    """Suppress PySpark's tracebacks about an ended JVM, which the runner reports."""
    logging.getLogger().addFilter(_is_not_py4js)
    if server is None:
        return
    told = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError | EOFError):
            told(request, client_address)

    server.handle_error = handle_error  # type: ignore[method-assign]


def _made(builder: "SparkSession.Builder", master: str, log: Path | None) -> "SparkSession":
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from pulsarbox.spark import register

    try:
        made = builder.getOrCreate()
        made.sparkContext.setLogLevel("ERROR")
        register(made)  # the first access to settings of spark.sql
        return made
    except (Py4JJavaError, PySparkException) as error:
        said = innermost_exception(str(error), "")
        more = f"; see {log}" if log is not None else ""
        raise PipelineError(
            f"Spark failed to start with --master {master} and the settings of --conf: {said}{more}"
        ) from None


def _prepare(master: str, fast: bool) -> None:
    """Set the environment variables that Spark reads, unless already set."""
    os.environ.setdefault("PYSPARK_PYTHON", interpreter(cache()) if is_local(master) else sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if fast and not os.environ.get("SPARK_SUBMIT_OPTS"):
        os.environ["SPARK_SUBMIT_OPTS"] = " ".join((*FAST, *_archived(archive())))


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of files that speed up Spark's start; it may be deleted."""
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".cache", "pulsarbox")


_INTERPRETER: Final = """#!/bin/sh
# Spark's processes load its Python code from archives, which are compiled each time: a second of processor time per
# process. The installed package is already compiled. Forking processes load what their children need in advance.
set -f
IFS=:
kept=
for each in $PYTHONPATH; do
    case $each in
    */python/lib/pyspark.zip | */python/lib/py4j-*.zip) ;;
    *) kept=$kept${kept:+:}$each ;;
    esac
done
PYTHONPATH=$kept
export PYTHONPATH
if [ "$1 $2" = "-m pyspark.daemon" ]; then
    shift 2
    set -- -m pulsarbox.spark.worker_forking "$@"
fi
exec %s "$@"
"""


def interpreter(directory: Path) -> str:
    """Return the Python command for Spark's workers on this machine: a wrapper that removes Spark's archives from the
    path, or sys.executable if the wrapper cannot be written or run."""
    file = directory / f"python-{blake2b(sys.executable.encode(), digest_size=6).hexdigest()}"
    text = _INTERPRETER % shlex.quote(sys.executable)
    try:
        if not file.exists() or file.read_text() != text:
            make_directory(directory)
            new = file.with_suffix(f".{os.getpid()}")
            new.write_text(text)
            new.chmod(0o700)
            new.replace(file)
        subprocess.run([file, "-c", ""], check=True, stdin=subprocess.DEVNULL, timeout=_END_SECONDS)
    except (OSError, subprocess.SubprocessError):  # the disk is full, read-only or mounted noexec
        return sys.executable
    return str(file)


def archive(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the class data sharing archive of Spark's startup classes for this Java.

    The first ``fast`` session writes it, about 150 MB.
    """
    home = environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java", path=environ.get("PATH")) or "java")
    known = blake2b(f"{java.resolve()} {sys.prefix}".encode(), digest_size=6).hexdigest()
    return Path(cache(environ), f"spark-{version('pyspark')}-{known}.jsa")


def _archived(kept: Path) -> tuple[str, ...]:
    """Return the JVM flags that use the archive, or write it at exit; none if it cannot be stored."""
    if kept.exists():
        return (f"-XX:SharedArchiveFile={kept}", "-Xshare:auto")
    if " " in str(kept):  # Spark's script would split the flag
        return ()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        for left in kept.parent.glob(f"{kept.stem}.*"):
            if left.suffix[1:].isdigit() and not _is_alive(int(left.suffix[1:])):  # left by a killed JVM
                left.unlink(missing_ok=True)
    except OSError:
        return ()
    return (f"-XX:ArchiveClassesAtExit={_new(kept)}",)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # belongs to another user
        pass
    return True


def _new(kept: Path) -> Path:
    """Return the name of an archive until it is complete."""
    return kept.with_suffix(f".{os.getpid()}")


def _keep_archive() -> None:
    """Put the archive in place after a normal exit of the JVM, which completes it."""
    kept = archive()
    with contextlib.suppress(OSError):
        _new(kept).replace(kept)


def _launch(conf: Mapping[str, str], log: Path | None) -> None:
    """Launch the JVM with its output redirected to a file; Spark would let it inherit our stderr."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if log is None or SparkContext._gateway is not None:
        return
    of_the_jvm = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        if key.startswith(("spark.driver.", "spark.jars", "spark.submit.")):
            of_the_jvm.set(key, value)
    try:
        opened = begin(log)
    except OSError as error:
        text = f"{log} cannot be written: {error.strerror}; choose another directory with --state or XDG_STATE_HOME"
        raise PipelineError(text) from None
    with opened as stream:
        try:
            gateway = launch_gateway(of_the_jvm, _popen(stream))  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise not_started(log, error) from None
    process: subprocess.Popen[bytes] = gateway.proc
    bound_periodically(log, lambda: process.poll() is None)
    SparkContext._ensure_initialized(gateway=gateway)


def _popen(stream: IO[bytes]) -> dict[str, Any]:
    return {"stdout": stream, "stderr": stream}


def stop(spark: "SparkSession") -> None:
    """Stop the session and its JVM, and wait for the exit; until then this process cannot use Spark."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    try:
        spark.stop()
    except Exception:  # a JVM that is exiting does not answer
        if gateway is None:
            raise
    if gateway is None:
        return
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is not None and process.stdin is not None:
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode == 0:
            _keep_archive()


def jvm_has_ended(error: BaseException) -> bool:
    """Return whether the JVM of this process has exited. An error that may result from its exit waits a little, as
    connections close before the process ends."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    may_be = isinstance(error, Py4JError | OSError) and not isinstance(error, Py4JJavaError)
    try:
        process.wait(_DYING_SECONDS if may_be else 0)
    except subprocess.TimeoutExpired:
        return False
    return True
