"""Requirements of a Spark session: checked up front, and diagnosed if Spark fails to start. Does not import Spark."""

import os
import re
import shutil
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pulsarbox.spark.pipelines.declaration import PipelineError

INSTALL: Final = "pip install 'pulsarbox[spark]'"
JAVA: Final = "Spark requires Java 17 or newer on PATH, or JAVA_HOME"
_LOCAL: Final = re.compile(r"local(\[(\*|[1-9][0-9]*)(, *[1-9][0-9]*)?\]|-cluster\[.*\])?")
_MASTERS: Final = "expected local[*], local[2], spark://host:7077, yarn, or another Spark master"
_ANSWER_SECONDS: Final = 5.0
_TOO_OLD: Final = "UnsupportedClassVersionError"
_LOG_BYTES: Final = 1 << 20
_WORDS: Final = re.compile(r"(error|exception|invalid)\b", re.IGNORECASE)


class SparkMissingError(PipelineError):
    """Spark or Java is missing or does not start; the message has the remedy."""


def check(master: str, environ: Mapping[str, str] = os.environ) -> None:
    """Check Spark, Java and the master.

    Raises SparkMissingError, and PipelineError for an invalid or unreachable master.
    """
    for module in ("pyspark", "pyarrow", "fastavro"):
        if find_spec(module) is None:
            raise SparkMissingError(f"Spark is not installed (module {module} not found): {INSTALL}")
    _check_java(environ)
    if master.startswith("spark://"):
        _check_standalone(master)
    elif not _LOCAL.fullmatch(master) and "://" not in master and master != "yarn":
        raise PipelineError(f"--master {master}: {_MASTERS}")


def _check_java(environ: Mapping[str, str]) -> None:
    home = environ.get("JAVA_HOME")
    if home and not Path(home, "bin", "java").exists():
        raise SparkMissingError(f"JAVA_HOME is {home}, which has no bin/java: {JAVA}")
    if not home and shutil.which("java", path=environ.get("PATH")) is None:
        raise SparkMissingError(f"Java is not installed: {JAVA}")


def _check_standalone(master: str) -> None:
    """Check that a standalone master is reachable. Spark would retry silently for a minute."""
    reasons = []
    for each in master.removeprefix("spark://").split(","):
        host, _, port = each.rpartition(":")
        if not host or not port.isdigit():
            raise PipelineError(f"--master {master}: expected a standalone master such as spark://host:7077")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
        except OSError as error:
            reasons.append(f"{each}: {error.strerror or error}")
        else:
            return
    raise PipelineError(
        f"no Spark master is reachable at {master} ({'; '.join(reasons)}): start it with Spark's sbin/start-master.sh, "
        "or run the pipeline locally with --master 'local[*]'"
    )


def not_started(log: Path, error: object) -> SparkMissingError:
    """Return the error for a JVM that ended during startup, with the reason from its log."""
    text = why(log)
    if _TOO_OLD in text:
        return SparkMissingError(f"this Java is too old: {JAVA} ({text})")
    return SparkMissingError(f"Spark's JVM failed to start: {text or error}; see {log}")


def why(log: Path) -> str:
    """Return the first line of a log that mentions an error; empty if none does."""
    try:
        with log.open("rb") as file:
            lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    found = [line.strip() for line in lines if _WORDS.search(line.strip()) and not line.lstrip().startswith("at ")]
    # An old Java reports the occurrence of an error first, and its cause later.
    cause = next((line for line in found if _TOO_OLD in line), "")
    return (cause or next(iter(found), ""))[:300]
