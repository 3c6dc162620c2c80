"""Build the jar of Spark's reader inside the JVM: ``python -m tests.tools.build_jar`` (``make jar``).

The same sources and compiler give the same bytes. Needs javac 17 or newer, and the jars of PySpark to compile against.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pulsarbox.spark.accelerator import JAR

SOURCES: Final = JAR.parents[1] / "jvm"
RELEASE: Final = "17"
"""The oldest Java that Spark supports."""
SERVICE: Final = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
MANIFEST: Final = "Manifest-Version: 1.0\r\nAutomatic-Module-Name: pulsarbox.spark\r\n\r\n"


class BuildError(Exception):
    """The jar cannot be built; the message says why."""


def compiler() -> str | None:
    """Return the path of javac, or None."""
    return shutil.which("javac")


def build(to: Path | None = None) -> Path:
    """Build the jar, by default where installations have it. Raises BuildError."""
    to = to or JAR
    javac = compiler()
    if javac is None:
        raise BuildError("javac is missing: install a JDK 17 or newer, or do without the jar: Python reads all then")
    with tempfile.TemporaryDirectory() as folder:
        _compile(javac, Path(folder))
        contents = {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*.class")}
    contents |= {SERVICE: b"pulsarbox.spark.PulsarboxSource\n"}
    to.parent.mkdir(exist_ok=True)
    new = to.with_suffix(".new")
    with zipfile.ZipFile(new, "w") as jar:
        for name, content in (("META-INF/MANIFEST.MF", MANIFEST.encode()), *sorted(contents.items())):
            # Stored: the bytes of compressed contents would depend on the version of zlib.
            jar.writestr(zipfile.ZipInfo(name, EPOCH), content)
    new.replace(to)
    return to


def _compile(javac: str, folder: Path) -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    options = ["--release", RELEASE, "-proc:none", "-g:lines,source", "-encoding", "UTF-8", "-d", str(folder)]
    sources = sorted(map(str, SOURCES.glob("*.java")))
    made = subprocess.run([javac, *options, "-cp", f"{jars}/*", *sources], capture_output=True, text=True, check=False)
    if made.returncode:
        raise BuildError(f"javac failed:\n{made.stderr}")


def current() -> Path | None:
    """Return the jar, built if it is older than its sources; None without a compiler. Raises BuildError."""
    newest = max(path.stat().st_mtime for path in SOURCES.glob("*.java"))
    if not JAR.exists() or JAR.stat().st_mtime < newest:
        return build() if compiler() else None
    return JAR


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--if-possible", action="store_true", help="only if javac is installed, and the jar is older")
    try:
        print(current() if parser.parse_args(words).if_possible else build())
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
