"""Compile on all processors what pytest would compile on one: ``python -m tests.workers.compiling``.

In a new checkout this takes two thirds of the collection, because pytest rewrites the assertions of every module. The
results are those of pytest itself, in the same files. Modules that have been compiled once are left to pytest, which
compiles them again after changes.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from _pytest.assertion import rewrite

ROOT: Final = Path(__file__).parents[2]
FEW: Final = 50
"""Fewer modules are compiled as fast by pytest alone."""


def modules(root: Path = ROOT) -> Iterator[Path]:
    """Return the files that pytest rewrites: tests, and the package, which has a plugin for pytest."""
    for folder in ("pulsarbox", "tests"):
        for place, folders, names in os.walk(root / folder, followlinks=True):
            folders.sort()
            for name in sorted(names):
                is_test = name.startswith(("test_", "conftest.py"))
                if name.endswith(".py") and (is_test or folder == "pulsarbox"):
                    yield Path(place, name)


def compiled(file: Path) -> Path:
    """Return the path of pytest's compiled module."""
    return rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"


def compile_one(file: Path) -> None:
    """Compile a module as pytest does."""
    config: Any = None  # used only for plugins that observe passing assertions, and there are none
    state: Any = SimpleNamespace(trace=lambda _: None)
    source_hash, code = rewrite._rewrite_test(file, config)
    compiled(file).parent.mkdir(exist_ok=True)
    rewrite._write_pyc(state, code, source_hash, compiled(file))


def compute_letters() -> None:
    """Compute the Unicode tables that Hypothesis keeps in its folder: otherwise each worker takes a second for it."""
    from hypothesis.internal import charmap  # deferred: slower than finding out that nothing has to be compiled

    charmap.intervals_from_codec("utf-8")


def main(root: Path = ROOT) -> int:
    """Compile the modules that never were. Returns their number, 0 if they are few."""
    missing = [file for file in modules(root) if not compiled(file).exists()]
    if len(missing) < FEW:
        return 0
    with ProcessPoolExecutor() as pool:
        pool.submit(compute_letters)
        list(pool.map(compile_one, missing, chunksize=20))
    return len(missing)


if __name__ == "__main__":
    main()
