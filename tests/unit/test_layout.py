"""Packaging: the links in the package, the contents of distributions, and importable names."""

import hashlib
import importlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINKED = ("plugins", "storage", "tui")
REGISTERED = "pulsarbox/spark/registered/"
"""Folder whose contents are at the top level of a wheel, where Spark looks them up."""
APACHE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""The SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt."""
SOURCE_SUFFIXES = {".py", ".pyi", ".proto", ".tcss", ".typed"}


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a ``wheel`` or an ``sdist`` of ``source``, without network access, and return the file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=100)
    (built,) = target.iterdir()
    return built


def sources(folder: Path) -> set[str]:
    """Return the source files of a folder of the checkout, as relative paths."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix in SOURCE_SUFFIXES)
    return {path.relative_to(folder).as_posix() for path in files}


def expected_in_wheel() -> set[str]:
    packaged = {f"pulsarbox/{name}" for name in sources(ROOT / "pulsarbox")}
    own = {name for name in packaged if name.split("/")[1] not in LINKED}
    own = {name.removeprefix(REGISTERED) for name in own}
    return own | {f"pulsarbox/{folder}/{name}" for folder in LINKED for name in sources(ROOT / folder)}


def wheel_contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("name", LINKED)
def test_each_top_level_folder_is_linked_into_the_package(name: str) -> None:
    link = ROOT / "pulsarbox" / name
    assert link.is_symlink()
    assert link.readlink().as_posix() == f"../{name}"
    assert (ROOT / name).is_dir()
    assert not (ROOT / name).is_symlink()


@pytest.mark.parametrize("name", LINKED)
def test_the_folder_is_imported_by_its_name_in_the_package(name: str) -> None:
    module = importlib.import_module(f"pulsarbox.{name}")
    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == ROOT / name / "__init__.py"


def test_the_wheel_has_every_source_once_and_nothing_beside_the_packages(wheel: Path) -> None:
    names = wheel_contents(wheel)
    assert len(names) == len(set(names))
    packages = {"pulsarbox", "pyspark_pulsarbox", "pyspark_pulsarbox_connector"}
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == packages
    assert {name for name in names if Path(name).suffix in SOURCE_SUFFIXES} == expected_in_wheel()


def test_the_wheel_has_the_jar_for_spark_if_it_was_built(wheel: Path) -> None:
    is_built = (ROOT / "pulsarbox/spark/jars/pulsarbox-spark.jar").exists()
    assert ("pulsarbox/spark/jars/pulsarbox-spark.jar" in wheel_contents(wheel)) is is_built


def test_an_installed_wheel_is_imported_by_the_same_names(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import sys; sys.path.insert(0, sys.argv[1])\nimport pulsarbox.storage, pulsarbox.tui, pulsarbox.plugins\n"
    code += "print(pulsarbox.storage.__file__)"
    command = [sys.executable, "-I", "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert Path(done.stdout.strip()) == tmp_path / "pulsarbox" / "storage" / "__init__.py"


@pytest.mark.parametrize("installed", ["checkout", "wheel"])
def test_spark_finds_the_format_where_pulsarbox_is_installed(installed: str, wheel: Path, tmp_path: Path) -> None:
    """Spark lists the available top-level modules, and imports those named pyspark_*."""
    if installed == "wheel":
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path)
    code = "import sys; sys.path[:0] = sys.argv[1:]\nimport importlib, pkgutil\n"
    code += "found = sorted({each.name for each in pkgutil.iter_modules() if each.name.startswith('pyspark_')})\n"
    code += "names = [importlib.import_module(each).DefaultSource.name() for each in found]\n"
    code += "print(*names, *{'pyarrow'} & {*sys.modules})"
    command = [sys.executable, "-I", "-c", code, *([str(tmp_path)] if installed == "wheel" else [])]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "pulsarbox pulsar\n"


def test_the_licence_is_apaches_and_the_wheel_names_it(wheel: Path) -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE
    with zipfile.ZipFile(wheel) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(about))
        for name in ("LICENSE", "NOTICE"):
            packed = archive.read(about.replace("METADATA", f"licenses/{name}"))
            assert packed == (ROOT / name).read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]


@pytest.mark.campaign
def test_an_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    for name in ("LICENSE", "NOTICE", "SECURITY.md"):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes()
    rebuilt = build("wheel", unpacked, tmp_path / "wheel")
    assert sorted(wheel_contents(rebuilt)) == sorted(wheel_contents(wheel))


def test_a_checkout_that_lost_its_links_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    for name in ("pulsarbox", *LINKED):
        shutil.copytree(ROOT / name, checkout / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    for name in LINKED:
        (checkout / "pulsarbox" / name).unlink()
        (checkout / "pulsarbox" / name).write_text(f"../{name}")  # git's checkout of a link on a system without links
    rebuilt = build("wheel", checkout, tmp_path / "wheel")
    assert sorted(wheel_contents(rebuilt)) == sorted(wheel_contents(wheel))
