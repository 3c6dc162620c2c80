"""Selection of mutants and of the tests that judge them, and the checkout copy that they run in."""

import ast
import subprocess
from itertools import islice
from pathlib import Path, PurePath
from random import Random
from typing import Any

import pytest

from tests.mutants import run
from tests.mutants.checkout import BrokenTestsError, CheckoutCopy
from tests.mutants.mutation import Mutations
from tests.mutants.run import Verdict, modules, sample
from tests.mutants.stages import Stage, stages_of
from tests.tools.pure_rooms import ROOT

TEXT = '''"""A module."""

LIMIT: int = 7


@cached(3)
def full(size: int = 1, *, name: str = "x") -> bool | None:
    """Whether it is full."""
    if size >= LIMIT:
        return True
    raise ValueError(f"size {size} of {name} " + "is small")
'''


def test_functions_are_mutated_and_types_decorators_texts_and_constants_are_not() -> None:
    mutants = list(Mutations(TEXT))
    assert [each.line for each in mutants] == sorted(each.line for each in mutants)
    changes = {each.change for each in mutants}
    assert ("-    if size >= LIMIT:", "+    if size > LIMIT:") in changes
    assert ("-        return True", "+        return False") in changes
    assert {each.line for each in mutants} == {7, 9, 10, 11}
    assert all("bool | None" in each.text and '"x"' in each.text and "f\"size {size}" in each.text for each in mutants
               if "ValueError(None)" not in each.text)  # fmt: skip
    for each in mutants:
        ast.parse(each.text)
        removed = "\n".join(line[1:] for line in each.change if line[0] == "-")
        assert removed in TEXT


def test_a_seed_determines_the_sample_and_no_mutant_comes_twice() -> None:
    first, second = Mutations(TEXT), Mutations(TEXT)
    count = len(list(Mutations(TEXT)))
    one, two = Random(5), Random(5)
    found = [first.sample(one) for _ in range(count)]
    assert found == [second.sample(two) for _ in range(count)]
    assert {each.text for each in found if each is not None} == {each.text for each in Mutations(TEXT)}
    assert first.sample(one) is None


def test_the_modules_are_the_pure_ones_without_links() -> None:
    found = modules()
    assert {PurePath("storage/cursor.py"), PurePath("pulsarbox/names.py")} <= set(found)
    assert not [path for path in found if path.parts[:2] == ("pulsarbox", "storage") or "lmdb" in path.parts]
    assert modules(["storage/cursor.py", "pulsarbox/protocol/schema"])[-1] == PurePath("storage/cursor.py")
    assert all(path.is_relative_to("pulsarbox/protocol/schema") for path in modules(["pulsarbox/protocol/schema"]))


def test_a_sample_ends_with_the_mutants() -> None:
    path = PurePath("pulsarbox/clock.py")
    found = list(sample([path], Random(1)))
    assert len(found) == len(list(Mutations((ROOT / path).read_text("utf-8"))))


@pytest.mark.parametrize(
    ("module", "quick", "names"),
    [
        (
            "pulsarbox/broker/policies/policies.py",
            False,
            ["tests/unit/broker/policies/test_policies.py", "simulation", "tests/unit/broker/policies",
             "tests/unit/broker"],
        ),
        ("pulsarbox/broker/policies/policies.py", True, ["tests/unit/broker/policies/test_policies.py", "simulation"]),
        ("pulsarbox/broker/backlog/quota_enforcement.py", True, ["simulation"]),
        ("storage/cursor.py", False, ["tests/unit/storage/test_cursor.py", "simulation", "tests/unit/storage"]),
        ("pulsarbox/protocol/frames.py", True, ["tests/unit/protocol/test_frames.py", "tests/unit/protocol"]),
        ("pulsarbox/expressions.py", False, ["tests/unit/test_expressions.py"]),
    ],
)  # fmt: skip
def test_the_quickest_tests_come_first(module: str, *, quick: bool, names: list[str]) -> None:
    assert [each.name for each in stages_of(PurePath(module), ROOT, quick=quick)] == names


def test_no_test_runs_in_two_stages() -> None:
    stages = stages_of(PurePath("pulsarbox/broker/policies/policies.py"), ROOT)
    ignored = [[word for word in each.arguments if word.startswith("--ignore")] for each in stages]
    mirrored, folder = "tests/unit/broker/policies/test_policies.py", "tests/unit/broker/policies"
    assert ignored == [[], [], [f"--ignore={mirrored}"], [f"--ignore={folder}"]]


def test_a_module_outside_of_rooms_without_a_mirror_has_the_tests_that_import_it(tmp_path: Path) -> None:
    tests = tmp_path / "tests/unit/broker"
    tests.mkdir(parents=True)
    (tests / "test_a.py").write_text("from pulsarbox.names import parse_topic\n", "utf-8")
    (tests / "test_b.py").write_text("from pulsarbox.clock import Now\n", "utf-8")
    (stage,) = stages_of(PurePath("pulsarbox/names.py"), tmp_path)
    assert stage.name == "1 test files that import it"
    assert stage.arguments[-1] == "tests/unit/broker/test_a.py"


# The copy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkout with a linked folder and an uncommitted file."""
    checkout = tmp_path / "checkout"
    (checkout / "pulsarbox").mkdir(parents=True)
    (checkout / "storage").mkdir()
    (checkout / "pulsarbox/__init__.py").write_text("", "utf-8")
    (checkout / "pulsarbox/storage").symlink_to("../storage")
    (checkout / "storage/__init__.py").write_text("", "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=checkout, check=True)
    subprocess.run(["git", "add", "-A"], cwd=checkout, check=True)
    (checkout / "storage/m.py").write_text("VALUE = 1\n", "utf-8")
    return checkout


MODULE = PurePath("storage/m.py")


def python(text: str) -> Stage:
    return Stage("some", ("-c", text))


def test_a_mutant_is_judged_in_the_copy_and_undone_and_the_checkout_is_left_alone(source: Path, tmp_path: Path) -> None:
    copy = CheckoutCopy(source, tmp_path / "copy")
    stage = python("from pulsarbox.storage.m import VALUE; assert VALUE == 1")
    for _ in range(2):  # the compiled module of a mutant does not outlive it
        killed = copy.judge(MODULE, "VALUE = 2\n", stage)
        assert (killed.passed, killed.timed_out) == (False, False)
        assert copy.judge(MODULE, "VALUE = +1\n", stage).passed
    assert (copy.folder / MODULE).read_text("utf-8") == (source / MODULE).read_text("utf-8") == "VALUE = 1\n"
    assert sorted(path.name for path in (source / "storage").iterdir()) == ["__init__.py", "m.py"]


def test_tests_that_fail_without_a_mutant_judge_none(source: Path, tmp_path: Path) -> None:
    copy = CheckoutCopy(source, tmp_path / "copy")
    with pytest.raises(BrokenTestsError, match="some fails without a mutant"):
        copy.judge(MODULE, "VALUE = 2\n", python("raise SystemExit(1)"))


def test_a_mutant_that_does_not_end_is_killed_by_its_limit(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = CheckoutCopy(source, tmp_path / "copy")
    monkeypatch.setattr("tests.mutants.checkout.STAGE_SECONDS", 2)
    outcome = copy.judge(MODULE, "import time\nwhile True:\n    time.sleep(1)\n", python("import pulsarbox.storage.m"))
    assert (outcome.passed, outcome.timed_out) == (False, True)


def test_a_mutant_that_fills_the_memory_is_stopped(source: Path, tmp_path: Path) -> None:
    copy = CheckoutCopy(source, tmp_path / "copy")
    outcome = copy.judge(MODULE, "VALUE = bytearray(5 << 30)\n", python("import pulsarbox.storage.m"))
    assert "MemoryError" in outcome.output


def test_a_package_from_elsewhere_is_not_judged(source: Path, tmp_path: Path) -> None:
    (source / "pulsarbox/__init__.py").write_text("__file__ = '/elsewhere/pulsarbox/__init__.py'\n", "utf-8")
    with pytest.raises(BrokenTestsError, match="not imported from the copy"):
        CheckoutCopy(source, tmp_path / "copy")


# The command


@pytest.mark.parametrize(("killed", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_mutants_survive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, killed: bool, code: int
) -> None:
    def judged(*_: Any, **__: Any) -> Verdict:
        return Verdict(killed, False, ("tests/unit/test_clock.py",))

    monkeypatch.setattr(run, "CheckoutCopy", lambda source, folder: None)
    monkeypatch.setattr(run, "judge", judged)
    words = ["--count", "3", "--seed", "4", "--only", "pulsarbox/clock.py"]
    assert run.main(words) == code
    out = capsys.readouterr().out
    assert "seed 4: 3 mutants of 1 modules" in out
    (path, mutant), *_ = islice(sample([PurePath("pulsarbox/clock.py")], Random(4)), 1)
    assert (f"\n{path}:{mutant.line}  (tests/unit/test_clock.py)\n" in out) is not killed
    capsys.readouterr()
    assert run.main([*words, "--skip", "1", "--count", "2"]) == code
    assert all(line in out for line in capsys.readouterr().out.splitlines() if line.startswith("+"))


def test_tests_that_are_broken_have_their_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Verdict:
        raise BrokenTestsError("tests fail without a mutant")

    monkeypatch.setattr(run, "CheckoutCopy", lambda source, folder: None)
    monkeypatch.setattr(run, "judge", broken)
    assert run.main(["--only", "pulsarbox/clock.py"]) == 2
    assert "tests fail without a mutant" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        run.main(["--only", "pulsarbox/server"])
