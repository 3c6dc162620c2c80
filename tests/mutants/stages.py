"""The tests that judge a mutant, in stages from the quickest to the slowest."""

from pathlib import Path, PurePath
from typing import Final, NamedTuple

from tests.tools.mirrored_tests import UNIT, importers, mirror, nearest_room

SIMULATED: Final = ("broker", "storage")
"""Packages whose mutants simulation histories can detect as well."""
SIMULATION: Final = ("-m", "tests.simulation.run", "--seeds", "3", "--steps", "500")
PYTEST: Final = ("-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--tb=line")
TEST_SECONDS: Final = 60
"""Seconds per test; the slowest takes 5 s on an idle machine."""


class Stage(NamedTuple):
    """A command of the interpreter whose failure kills a mutant."""

    name: str
    """Name of the tests in reports."""
    arguments: tuple[str, ...]


def stages_of(module: PurePath, root: Path, *, quick: bool = False) -> list[Stage]:
    """Return the stages for a module: its mirror, the simulation, the nearest test folder, all tests of its package.

    A module outside the packages has its mirror, or else the tests that import it. ``quick`` excludes slow folders if
    there is a quicker stage.
    """
    parts = module.parts[1:] if module.parts[0] == "pulsarbox" else module.parts
    mirrored, folder, room = mirror(module, root), nearest_room(module, root), UNIT / parts[0]
    stages = [] if mirrored is None else [unit_tests(mirrored)]
    if len(parts) == 1:
        files = importers(module, root)
        return stages or [unit_tests(*files)._replace(name=f"{len(files)} test files that import it")]
    simulated = parts[0] in SIMULATED
    if simulated:
        stages.append(Stage("simulation", SIMULATION))
    if folder != room and not (quick and stages):
        stages.append(unit_tests(folder, without=mirrored))
    if not (quick and simulated):
        stages.append(unit_tests(room, without=mirrored if folder == room else folder))
    return stages


def unit_tests(*paths: PurePath, without: PurePath | None = None) -> Stage:
    """Return a stage of test files and folders, except tests that an earlier stage has run."""
    words = tuple(str(path) for path in paths)
    ignored = () if without is None else (f"--ignore={without}",)
    return Stage(" ".join(words), (*PYTEST, "-o", f"timeout={TEST_SECONDS}", *words, *ignored))
