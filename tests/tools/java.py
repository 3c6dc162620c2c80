"""Official Java programs for tests: their jars, fetched once by Maven, and single-file programs that use them.

``python -m tests.tools.java`` fetches the jars of the client into Maven's own repository; `.make/java` records their
paths. ``tests/java_tools`` does so with those of the distribution's tools.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FETCH_SECONDS: Final = 900
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


def need_java() -> None:
    """Skip a Spark test if Java is missing; .ci/tests reports it in one line."""
    import pytest

    home = os.environ.get("JAVA_HOME")
    if shutil.which(f"{home}/bin/java" if home else "java") is None:
        pytest.skip("Spark needs Java: there is no java on PATH, or in JAVA_HOME")


class JavaError(Exception):
    """Java or the jars are missing; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class Jars:
    """Jars of a pom, and the file that records their paths."""

    what: str
    pom: Path
    recorded: Path
    target: str
    """Target of the Makefile that fetches them."""

    def class_path(self) -> str:
        """Return the jars that were fetched. Raises JavaError."""
        jars = self.recorded.read_text("utf-8").strip() if self.recorded.exists() else ""
        if not jars or self.recorded.stat().st_mtime < self.pom.stat().st_mtime or not _are_there(jars):
            raise JavaError(f"the jars of the Java {self.what} are not here: `make {self.target}` fetches them, once")
        return jars

    def fetch(self) -> None:
        """Fetch the jars. Raises JavaError."""
        maven = shutil.which("mvn")
        if maven is None:
            raise JavaError(f"Maven (mvn) is not installed: it fetches the jars of the Java {self.what}")
        self.recorded.parent.mkdir(parents=True, exist_ok=True)
        words = [maven, "-q", "-B", "-f", str(self.pom), PLUGIN, f"-Dmdep.outputFile={self.recorded}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        if done.returncode:
            raise JavaError(f"Maven could not fetch the Java {self.what}:\n{done.stdout}{done.stderr}")
        self.recorded.touch()

    def fetched(self) -> str:
        """Return the jars, which are fetched if they are missing. Raises JavaError."""
        try:
            return self.class_path()
        except JavaError:
            self.fetch()
            return self.class_path()


CLIENT: Final = Jars(
    "client", ROOT / "tests" / "e2e" / "java" / "pom.xml", ROOT / ".make" / "java" / "classpath", "java-transactions"
)
TOOLS: Final = Jars("tools", ROOT / "tests" / "java_tools" / "pom.xml", ROOT / ".make" / "java" / "tools", "java-tools")


def java(jars: str, *options: str) -> list[str]:
    """Return the command that runs a class or a source file, without its name. Raises JavaError."""
    program = shutil.which("java")
    if program is None or shutil.which("javac") is None:
        raise JavaError("Java (a JDK) is not installed")
    return [program, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options, "-cp", jars]


def command(source: Path) -> list[str]:
    """Return the command that runs a program of the client, without its arguments. Raises JavaError."""
    return [*java(CLIENT.class_path(), "-Xmx256m"), str(source)]


def _are_there(jars: str) -> bool:
    return all(Path(each).exists() for each in jars.split(":"))


def main() -> int:
    """Fetch the jars if they are missing."""
    try:
        java(CLIENT.fetched())
    except JavaError as error:
        print(f"java: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
