"""A new user in an empty directory: the wheel in a new environment, then every line of README and quickstart.

Slow, with installs, builds and downloads: `make clients`. Free ports replace 6650 and 8080 of the pages. If a toolchain
or its registry is unavailable, the test is skipped with this reason.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.newcomer.pages import Command, File, Section, sections
from tests.tools.box import free_ports
from tests.tools.forwarder import Forwarder

ROOT: Final = Path(__file__).parents[2]
README: Final = sections((ROOT / "README.md").read_text())
QUICKSTART: Final = sections((ROOT / "docs" / "quickstart.md").read_text())
TOOLS: Final = {"Go": "go", "Java": "mvn", "Rust": "cargo", "Node": "npm"}
CLIENTS: Final = {section.title: section for section in QUICKSTART if section.title in TOOLS}
PAGES: Final = {
    "README": README,
    "quickstart": [section for section in QUICKSTART if section.title not in TOOLS],
}
ENDLESS: Final = re.compile(r"pulsarbox (start(?!.*--detach)|consume|tap|status.*--watch)")
"""Commands that run until Ctrl-C, or may."""
WITHOUT_BOX: Final = re.compile(r"pulsarbox (completion|config|doctor|start|status|stop|storage|version)\b")
COMMAND_SECONDS: Final = 120.0
ENDLESS_SECONDS: Final = 10.0
BUILD_SECONDS: Final = 900.0
OFFLINE: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|Could not resolve|Could not transfer|dial tcp|no such host|failed to download"
    r"|Unknown host|Temporary failure in name resolution|connection refused",
    re.IGNORECASE,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS + 300)]


class Newcomer:
    """A user with an environment, at a shell in a directory."""

    def __init__(self, environment: Path, folder: Path, host: str = "localhost") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.web_port = free_ports(2)
        self.shown_port = self.port
        """Port that replaces 6650 of the pages."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULSARBOX_", "VIRTUAL_ENV"))}
        self.environ = kept | {
            "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
            "PULSARBOX_bindAddress": host,
            "PULSARBOX_brokerServicePort": str(self.port),
            "PULSARBOX_webServicePort": str(self.web_port),
        }

    def type(self, line: str, folder: Path | None = None, seconds: float = COMMAND_SECONDS) -> tuple[int, str]:
        """Run a line and return its exit code and output. An endless command is ended with Ctrl-C after a while."""
        endless = ENDLESS.match(line) is not None
        process = subprocess.Popen(
            ["bash", "-c", self.here(line)],
            cwd=folder or self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=ENDLESS_SECONDS if endless else seconds)
        except subprocess.TimeoutExpired:
            if not endless:
                os.killpg(process.pid, signal.SIGKILL)
                said, _ = process.communicate()
                raise AssertionError(f"{line}: no end within {seconds:g} s:\n{said}") from None
            os.killpg(process.pid, signal.SIGINT)
            said, _ = process.communicate(timeout=COMMAND_SECONDS)
            return (0 if process.returncode in (0, 130, -signal.SIGINT) else process.returncode), said
        return process.returncode, said

    def here(self, text: str) -> str:
        """Replace the ports in a page's text by those of this box."""
        return text.replace("6650", str(self.shown_port)).replace("8080", str(self.web_port))

    def ensure_box(self) -> None:
        if self.type("pulsarbox status")[0] == 3:
            code, said = self.type("pulsarbox start --detach")
            assert code == 0, said

    def follow(self, section: Section) -> None:
        """Run the steps of a section."""
        for step in section.steps:
            if isinstance(step, File):
                self.ensure_box()
                self.run_python(step)
            elif not step.text.startswith(("make ", "PATH=")):
                own = "--data-dir" in step.text  # the section starts a box of its own
                if step.text.startswith("pulsarbox ") and not own and not WITHOUT_BOX.match(step.text):
                    self.ensure_box()
                self.run(step)

    def run(self, step: Command) -> None:
        code, said = self.type(step.text)
        assert code == 0, f"{step.text}: exit code {code}:\n{said}"
        printed = {line.split()[0] for line in said.splitlines() if line.split()}
        wanted = {line.split()[0] for line in step.shown if line.split()} - {"pulsarbox:"}
        assert wanted <= printed, f"{step.text} does not print {wanted - printed}, which the page shows:\n{said}"

    def run_python(self, step: File) -> None:
        """Run a program and check the output shown on the page, or run a test."""
        assert step.language == "python"
        is_test = "def test_" in step.text
        name = "test_first.py" if is_test else "first.py"
        (self.folder / name).write_text(self.here(step.text))
        code, said = self.type(f"python -m pytest {name}" if is_test else f"python {name}")
        assert code == 0, said
        assert not (is_test and " passed" not in said), said
        assert not ("print(message.data())" in step.text and "b'hello'" not in said), said


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel, its dependencies, the official client, and pytest."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, timeout=BUILD_SECONDS)
    (wheel,) = folder.glob("pulsarbox-*.whl")
    made = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(made)], check=True, timeout=BUILD_SECONDS)
    install = [
        str(made / "bin" / "pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        str(wheel),
        "pulsar-client",
        "pytest",
    ]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
    if done.returncode != 0 and OFFLINE.search(done.stderr):
        pytest.skip(f"the package registry cannot be reached: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return made


@contextlib.contextmanager
def newcomer(environment: Path, folder: Path, host: str = "localhost") -> Iterator[Newcomer]:
    made = Newcomer(environment, folder, host)
    try:
        yield made
    finally:
        made.type("pulsarbox stop")


@pytest.mark.parametrize("page", PAGES)
def test_every_line_of_a_page_does_what_it_says(environment: Path, tmp_path: Path, page: str) -> None:
    with newcomer(environment, tmp_path / "somewhere") as somebody:
        where = somebody.type("python -c 'import pulsarbox; print(pulsarbox.__file__)'")[1]
        assert where.startswith(str(environment))
        for section in PAGES[page]:
            somebody.follow(section)


def test_the_targets_that_the_readme_names_exist() -> None:
    lines = [step.text for section in README for step in section.steps if isinstance(step, Command)]
    targets = {line.split()[1] for line in lines if line.startswith("make ")}
    makefile = (ROOT / "Makefile").read_text()
    assert targets and all(re.search(rf"^{target}:.*##", makefile, re.MULTILINE) for target in targets)


@pytest.mark.parametrize("language", CLIENTS)
def test_the_client_of_a_language(environment: Path, tmp_path: Path, language: str) -> None:
    if shutil.which(TOOLS[language]) is None:
        pytest.skip(f"{TOOLS[language]} is not installed")
    # Through a mapped port, as with a container: the address that lookups return otherwise has no listener.
    with (
        newcomer(environment, tmp_path / "somewhere", "127.0.0.2") as somebody,
        Forwarder(somebody.port, "127.0.0.2") as forwarder,
    ):
        somebody.shown_port = forwarder.port
        tools(somebody, language)
        somebody.ensure_box()
        project = tmp_path / "project"
        project.mkdir()
        said = ""
        for step in CLIENTS[language].steps:
            if isinstance(step, File):
                path = project / step.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(somebody.here(step.text))
                continue
            code, said = somebody.type(step.text, project, BUILD_SECONDS)
            if code != 0 and OFFLINE.search(said):
                (why,) = [line for line in said.splitlines() if OFFLINE.search(line)][:1]
                pytest.skip(f"`{step.text}` cannot fetch what it needs here: {why[:200]}")
            assert code == 0, f"{step.text}: exit code {code}:\n{said}"
        assert "hello" in said.splitlines(), said
        assert forwarder.connections > 0


def tools(somebody: Newcomer, language: str) -> None:
    """Set up a language's build folder, cached for later runs, and its protocol compiler."""
    if language != "Rust":
        return
    kept = ROOT / ".make" / "clients"
    kept.mkdir(parents=True, exist_ok=True)
    somebody.environ["CARGO_TARGET_DIR"] = str(kept / "rust")
    if shutil.which("protoc") is None:
        protoc = kept / "protoc"
        protoc.write_text(f'#!/bin/sh\nexec {sys.executable} -m grpc_tools.protoc "$@"\n')
        protoc.chmod(0o755)
        somebody.environ["PROTOC"] = str(protoc)
