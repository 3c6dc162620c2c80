"""Creation of files that only their owner may read.

Data directories hold messages, keys and names, so directories have mode 0700 and files 0600. Each call passes the mode,
because the umask belongs to the process, which may be another program.
"""

import os
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents, accessible by the owner only. Raises OSError."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(PRIVATE_DIRECTORY, exist_ok=True)


def opener(path: str, flags: int) -> int:
    """Opener for ``open(..., opener=opener)``: created files are accessible by the owner only."""
    return os.open(path, flags | os.O_CLOEXEC, PRIVATE)
