"""Official Java client for tests: its jars, fetched once by Maven, and single-file programs that use it.

``python -m tests.tools.java`` fetches the jars into Maven's own repository; `.make/java` records their paths.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
POM: Final = ROOT / "tests" / "e2e" / "java" / "pom.xml"
CLASSPATH: Final = ROOT / ".make" / "java" / "classpath"
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


def command(source: Path) -> list[str]:
    """Return the command that runs a program, without its arguments. Raises JavaError."""
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        raise JavaError("Java (a JDK) is not installed")
    jars = CLASSPATH.read_text("utf-8").strip() if CLASSPATH.exists() else ""
    if not jars or CLASSPATH.stat().st_mtime < POM.stat().st_mtime or not _are_there(jars):
        raise JavaError("the Java client's jars are not here: `make java-transactions` fetches them, once")
    return [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", jars, str(source)]


def _are_there(jars: str) -> bool:
    return all(Path(each).exists() for each in jars.split(":"))


def fetch() -> None:
    """Fetch the jars. Raises JavaError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaError("Maven (mvn) is not installed: it fetches the Java client's jars")
    CLASSPATH.parent.mkdir(parents=True, exist_ok=True)
    words = [maven, "-q", "-B", "-f", str(POM), PLUGIN, f"-Dmdep.outputFile={CLASSPATH}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if done.returncode:
        raise JavaError(f"Maven could not fetch the Java client:\n{done.stdout}{done.stderr}")
    CLASSPATH.touch()


def main() -> int:
    """Fetch the jars if they are missing."""
    try:
        try:
            command(POM)
        except JavaError:
            fetch()
            command(POM)
    except JavaError as error:
        print(f"java: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
