"""Benchmark of the store: packing, compression, catch-up from disk, restart with a long log, memory, delays.

``make bench-storage``. Everything runs in temporary data directories; the full run takes some 15 GiB of disk. Table on
stdout, progress on stderr, and optionally all values in a JSON file.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.bench import driver
from benchmarks.storage_box import backlog, restart
from benchmarks.storage_compressed import compressing
from benchmarks.storage_delayed import delayed
from benchmarks.storage_engine import packing, reading
from benchmarks.storage_table import Line, Options, say, show, text_of

PARTS: Final[dict[str, Callable[[Options], Iterator[Line]]]] = {
    "packing": packing,
    "compressing": compressing,
    "catchup": reading,
    "restart": restart,
    "memory": backlog,
    "delayed": delayed,
}
NEEDS_A_DRIVER: Final = ("restart", "memory")


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="only these parts")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies sizes")
    parser.add_argument("--backlog-gib", type=float, default=10.0, help="backlog of the part memory")
    parser.add_argument("--rest-seconds", type=float, default=10.0, help="rest before its memory is looked at")
    parser.add_argument("--disk", type=Path, help="directory on the disk that is measured (default: the system's)")
    parser.add_argument("--driver", choices=["auto", "go", "python"], default="auto")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(words)


def run(arguments: argparse.Namespace) -> dict[str, list[Line]]:
    """Return the results of each part."""
    command = driver(arguments.driver) if set(arguments.only) & set(NEEDS_A_DRIVER) else []
    options = Options(arguments.scale, arguments.backlog_gib, arguments.rest_seconds, arguments.disk, tuple(command))
    found: dict[str, list[Line]] = {}
    for name in PARTS:
        if name in arguments.only:
            lines = found[name] = []
            for line in PARTS[name](options):
                lines.append(line)
                say(f"{line.title}: {line.figure}: {text_of(line.value)} {line.unit}")
    return found


def write(path: Path, found: dict[str, list[Line]], arguments: argparse.Namespace) -> None:
    document = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "scale": arguments.scale,
        "backlog_gib": arguments.backlog_gib,
        "parts": {name: [line._asdict() for line in lines] for name, lines in found.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    say(f"all values are in {path}")


def main(words: Sequence[str] | None = None) -> None:
    arguments = arguments_of(words)
    found = run(arguments)
    show([line for lines in found.values() for line in lines], arguments.scale)
    if arguments.json:
        write(arguments.json, found, arguments)


if __name__ == "__main__":
    main()
