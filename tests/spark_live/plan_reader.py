"""Process of a Java program of tests that reads plans inside a JVM, as ``PlanLines.java`` says."""

import subprocess
from pathlib import Path
from typing import Final

from pulsarbox.spark.source.jvm_plan import MAGIC
from tests.tools import build_jar

_LINES: Final = Path(__file__).with_name("PlanLines.java")


class PlanReader:
    """Program that answers each plan with a line."""

    def __init__(self, program: Path, folder: Path, *options: str) -> None:
        """Compile ``program`` into ``folder``, and start it with some options of the JVM. Needs javac."""
        import pyspark

        jars = f"{build_jar.current()}:{Path(pyspark.__file__).parent / 'jars'}/*"
        subprocess.run(["javac", "-cp", jars, "-d", str(folder), str(_LINES), str(program)], check=True)
        name = f"pulsarbox.spark.{program.stem}"
        command = ["java", "-XX:+UseSerialGC", *options, "-cp", f"{folder}:{jars}", name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self, plan: bytes) -> str:
        """Return the answer to a plan. Raises RuntimeError if the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(plan[len(MAGIC) + 4 :].decode() + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM has ended with {self._process.wait()}")
        return line.rstrip("\n")

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)
