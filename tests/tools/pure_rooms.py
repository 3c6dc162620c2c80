"""The modules of the pure rooms, as the import contract in pyproject.toml lists them."""

import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
CONTRACT: Final = "allowed"


def contract() -> dict[str, Any]:
    """Return the import contract of the pure rooms."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: dict[str, Any]
    (found,) = (each for each in document["tool"]["importlinter"]["contracts"] if each["type"] == CONTRACT)
    return found


def files() -> list[Path]:
    """Return the modules of the pure rooms without generated ones, as absolute paths without links, sorted by room."""
    rules = contract()
    exempt = tuple(name.split(".")[1:] for name in rules["exempt_modules"])
    found = []
    for room in rules["source_modules"]:
        folder = ROOT / "pulsarbox" / room.partition(".")[2]
        for path in sorted(folder.resolve().rglob("*.py")):
            parts = [folder.name, *path.relative_to(folder.resolve()).with_suffix("").parts]
            if not any(parts[: len(each)] == each for each in exempt) and not path.stem.endswith("_pb2"):
                found.append(path)
    return found
