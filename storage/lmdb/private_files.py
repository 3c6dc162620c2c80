"""Files that only their owner may read.

What a box writes holds messages, keys and names, so its directories are made with 0700 and its files with 0600. These
modes are given to the system with each call, because the umask belongs to the process, which may be another program.
"""

import os
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, each its owner's alone. Raises OSError."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(PRIVATE_DIRECTORY, exist_ok=True)


def opener(path: str, flags: int) -> int:
    """For ``open(..., opener=opener)``: a file that is made is its owner's alone."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE)
