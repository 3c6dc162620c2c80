"""Detection of the suite's tests that pass without a broker, and so do not test one.

Most tests wait half a minute for a broker before they fail, so all run concurrently, once per version of the suite's
files.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.suite.running import run_file

SIDE_BY_SIDE: Final = 16
PATIENCE_SECONDS: Final = 45.0
"""Longer than the client's timeout of 30 s for requests to a broker."""


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a hash of the files' names and contents."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def without_broker(tests: Mapping[Path, Sequence[str]], scratch: Path) -> frozenset[str]:
    """Return the tests that pass without a broker. The result is cached in ``scratch``."""
    kept = scratch / f"needs-no-broker-{fingerprint(tests)}.json"
    known: dict[str, bool] = json.loads(kept.read_text()) if kept.exists() else {}
    unknown = [(file, name) for file, names in tests.items() for name in names if name not in known]

    def passes(which: tuple[Path, str]) -> bool:
        file, name = which
        own = scratch / "alone" / name
        own.mkdir(parents=True, exist_ok=True)
        return run_file(file, [name], own, PATIENCE_SECONDS)[name].passed

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        known |= dict(zip((name for _, name in unknown), pool.map(passes, unknown), strict=True))
    if unknown:
        kept.write_text(json.dumps(known, indent=1, sort_keys=True))
    return frozenset(name for names in tests.values() for name in names if known[name])
