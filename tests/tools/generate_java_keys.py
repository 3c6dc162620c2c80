"""Generator of tests/data/java_keys.tsv: hashes and partitions of 10,000 random keys from Pulsar's Java client.

    python -m tests.tools.generate_java_keys CLASSPATH

``CLASSPATH``: that of a Pulsar client (``org.apache.pulsar:pulsar-client-original`` and its dependencies); Java 17 runs
JavaKeys.java from source. The keys themselves are not written: ``random_keys`` reproduces them.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = Path(__file__).parents[1] / "data" / "java_keys.tsv"
PARTITIONS: Final = 16
ALPHABET: Final = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_:/. éüßñ日本語한국😀🚀\u00a0\u2028"
_HEADER: Final = "# Written by tests/tools/generate_java_keys.py with Pulsar {version}; keys: {digest}"
_COLUMNS: Final = "# JavaStringHash\tMurmur3_32Hash\tpartition of 16 (RoundRobinPartitionMessageRouterImpl)"


class JavaKey(NamedTuple):
    """Key with the Java client's hashes and partition."""

    key: str
    java: int
    murmur3: int
    partition: int


def random_keys() -> list[str]:
    """Return ten thousand reproducible keys, including the empty key and duplicates."""
    dice = random.Random(20261121)
    return ["".join(dice.choice(ALPHABET) for _ in range(dice.randrange(0, 40))) for _ in range(10_000)]


def java_keys() -> Iterator[JavaKey]:
    """Yield the contents of the file."""
    header, _, *rows = FILE.read_text("utf-8").splitlines()
    keys = random_keys()
    assert header.endswith(_digest(keys)), "the file has other keys: generate it again"
    for key, row in zip(keys, rows, strict=True):
        java, murmur3, partition = map(int, row.split("\t"))
        yield JavaKey(key, java, murmur3, partition)


def _digest(keys: list[str]) -> str:
    return sha256("\n".join(keys).encode()).hexdigest()


def main(classpath: str) -> None:
    """Write the file."""
    keys = random_keys()
    program = Path(__file__).with_name("JavaKeys.java")
    done = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-cp", classpath, str(program)],
        input="\n".join(keys).encode() + b"\n",
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        sys.exit("JavaKeys.java cannot be run with this class path")
    jars = [Path(each).name for each in classpath.split(":")]
    (version,) = {
        each.split("-")[-1].removesuffix(".jar") for each in jars if each.startswith("pulsar-client-original")
    }
    header = _HEADER.format(version=version, digest=_digest(keys))
    FILE.write_text("\n".join((header, _COLUMNS, done.stdout.decode().rstrip("\n"))) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
